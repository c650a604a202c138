"""How good a kernel is: its evidence, and how it predicts rows that it was not tuned on, in nats per row.

    evidence    (log p(y | X, θ̂) - ½ p log n - l log 8) / n     p numbers were tuned, l leaves were chosen
    held out    the mean of log p(y_i | other rows, θ̂')   θ̂' tuned without the rows that are predicted
    score       the mean of the two, each weighed by the rows it speaks of: n, and those held out

For one ordered column rows are held out by rolling origins: the next tenth is predicted from 70, 80 and 90 %
of the rows. Rows that follow one another are wrong together: a forecast that is off by two deviations is off
by two on all the rows that come next, and counted row by row it would be held against the kernel as often. So
the tenth counts as a whole, log p(y_new | y_past, θ̂'), per row. For a table rows are held out by five folds,
and count one by one.

The evidence sees every row and is quiet, but among hundreds of kernels it favours one that fits by chance,
and it judges a forecast one step ahead. The held-out density is honest and of the kind that is asked of a
model, but noisy. A kernel that is better in truth is better in both; one that is better by chance in one of
them is not in the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer.arrays import Rows
from mercer.errors import InputError, NotPositiveDefiniteError
from mercer.gram.of_kernel import Tiles
from mercer.kernels.base import Kernel
from mercer.kernels.terms import latent_diag, split_noise
from mercer.machines.gaussian_process.evidence import LOG_2PI, factor_gram, log_evidence
from mercer.machines.gaussian_process.refine import Enough
from mercer.machines.gaussian_process.tune import maximise
from mercer.solve.solution import Status
from mercer.structure.grammar import chosen_numbers, foreseen, leaves_in
from mercer.typing import Array, Integers

# Steps of a first look, of a search that is meant, and of one that goes on from other rows.
GLANCE = 5
MEANT = 30
AGAIN = 6
# Steps for each number that a search that is meant may take too: it learns one direction of the curvature by
# each, and a Gaussian of thirty columns has thirty lengthscales.
EACH = 4
# Where a search ends that knows the curvature: no step promises so many nats, and no slope is steep.
SETTLED = Enough(0.1, 3e-3)
NEARLY = Enough(0.2, np.inf)
# Numbers up to which that slope is small; of more the slopes add up, and each must be less.
SEVERAL = 5
# The inverse curvature that is guessed of a number nothing is known of yet.
GUESSED = 1.0
FOLDS = 5
# What a leaf costs, in nats: it was chosen among about eight.
CHOICE = math.log(8.0)
ORIGINS = (0.7, 0.8, 0.9)
# The least density of one row, in nats.
FLOOR = -200.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows and standardised targets of a search, and the splits by which kernels are judged on them."""

    rows: Rows
    y: Array
    splits: tuple[tuple[Integers, Integers], ...]
    n_jobs: int | None = None
    # whether the rows that are held out follow one another
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> Array:
        return np.asarray(self.rows.vectors, dtype=np.float64)

    def part(self, index: Integers) -> Sample:
        return Sample(self.rows.rows(index), self.y[index], (), self.n_jobs)


def rolling(order: Integers) -> tuple[tuple[Integers, Integers], ...]:
    """What comes before an origin and the tenth after it, for each origin; rows by their order in time."""
    n = len(order)
    found = []
    for origin in ORIGINS:
        begin = round(origin * n)
        end = max(round((origin + 0.1) * n), begin + 1)
        found.append((np.sort(order[:begin]), np.sort(order[begin:end])))
    return tuple((past, new) for past, new in found if len(past) and len(new))


def folds(n: int, rng: np.random.Generator) -> tuple[tuple[Integers, Integers], ...]:
    """Five parts of the rows, each beside all others."""
    parts = np.array_split(rng.permutation(n), min(FOLDS, n))
    return tuple((np.sort(np.setdiff1d(np.arange(n), part)), np.sort(part)) for part in parts)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel with its numbers, what it is worth, and the density of each held-out row, by splits."""

    kernel: Kernel
    log_evidence: float
    rows: int
    densities: tuple[Array, ...] = field(default=())
    # mean and variance of each held-out row and what was observed, by splits
    forecasts: tuple[tuple[Array, Array, Array], ...] = field(default=())
    # the inverse curvature of minus the log evidence per row, as far as the tuning saw it
    inverse: Array | None = None
    # where held-out rows follow one another: the log density of those of each split, as a whole
    blocks: tuple[float, ...] = field(default=())

    @property
    def evidence(self) -> float:
        """Nats per row, the numbers that were tuned and the leaves that were chosen paid for."""
        return (self.log_evidence - _price(self.kernel, self.rows)) / self.rows

    def promise(self, rows: int) -> float:
        """What a look at few rows promises of the evidence of more, in nats per row.

        Tuning p numbers raises the log evidence by p/2 in the mean, on few rows as on many. Without that,
        rows are taken to tell as much as those that were seen. The price is that of all rows: per row it is
        less, and a kernel with many numbers that is not worth them on few rows may be on all.
        """
        tuning = 0.5 * chosen_numbers(self.kernel)
        seen = (self.log_evidence - tuning) / self.rows
        return seen + (tuning - _price(self.kernel, rows)) / rows

    @property
    def held_out(self) -> float:
        """The density of rows that were held out, in nats per row: one by one, or in blocks."""
        if not self.densities:
            return -np.inf
        if self.blocks:
            return sum(self.blocks) / sum(len(density) for density in self.densities)
        return float(np.mean(np.concatenate(self.densities)))

    @property
    def score(self) -> float:
        """Nats per row: of the evidence on all rows and of the rows held out, each row counted alike."""
        held = sum(len(density) for density in self.densities)
        if not held:
            return self.evidence
        return (self.rows * self.evidence + held * self.held_out) / (self.rows + held)


def _price(kernel: Kernel, rows: int) -> float:
    """What the numbers of a kernel that are tuned on so many rows and its leaves cost, in nats."""
    return 0.5 * chosen_numbers(kernel) * math.log(rows) + CHOICE * leaves_in(kernel)


def tuned(
    kernel: Kernel, sample: Sample, steps: int, inverse: Array | None = None, enough: Enough = SETTLED
) -> Candidate | None:
    """The kernel with its numbers tuned by evidence, in so many steps; None where it cannot be factored.

    With the `inverse` curvature of a tuning on other rows it ends where no step is worth it (`enough`).
    """
    Y = sample.y[:, None]

    def objective(theta: Array) -> tuple[Any, ...]:
        K = Tiles(kernel.with_theta(theta), sample.rows, n_jobs=sample.n_jobs)
        found = log_evidence(K, Y, diagnose=False)
        if found.gradient is None:
            return found.value, np.zeros(len(theta))
        return found.value, found.gradient

    try:
        found = maximise(
            objective, kernel, size=len(Y), max_iter=steps, inverse=inverse, enough=enough, n_jobs=1
        )
    except (NotPositiveDefiniteError, InputError):
        return None
    if found.status == Status.INTERRUPTED:
        # the search around it keeps the best kernel; a search that was cut is none
        raise KeyboardInterrupt
    return Candidate(kernel.with_theta(found.theta), found.value, len(Y), inverse=found.inverse)


def guessed_curvature(kernel: Kernel, span: float) -> Array:
    """The inverse curvature that is guessed of the numbers of a kernel, for rows that reach over a `span`.

    A period is known far better than other numbers: after span/p turns a pattern whose period is wrong by a
    factor of e^δ is off by δ·2π·span/p. So p/(2π·span) is one step, and a longer one leaves the peak of the
    spectrum that proposed it, for ever.

    >>> from mercer import Periodic
    >>> np.diag(guessed_curvature(2.0 * Periodic(2 * np.pi), 10.0)).round(4).tolist()
    [1.0, 0.01, 1.0]
    """
    steps = [GUESSED] * len(kernel.theta)
    free = [parameter for parameter in kernel.parameters if parameter.free]
    for i, parameter in enumerate(free):
        if parameter.name.rpartition("__")[2] == "period" and span > 0:
            steps[i] *= (parameter.value / (2 * np.pi * span)) ** 2
    return np.diag(steps)


def curvature_after_step(before: Candidate, kernel: Kernel, span: float) -> Array | None:
    """The inverse curvature for a kernel one step away: known for the numbers that the step left alone.

    They are found by their values, which a step hands on as they are, in the same order.

    >>> from mercer import RBF, White
    >>> parent = Candidate(2.0 * RBF(3.0) + White(0.1), 0.0, 9, inverse=np.diag([5.0, 6.0, 7.0]))
    >>> np.diag(curvature_after_step(parent, 2.0 * RBF(3.0) + 0.3 * RBF(1.0) + White(0.1), 1.0)).tolist()
    [5.0, 6.0, 1.0, 1.0, 7.0]
    """
    if before.inverse is None:
        return None
    old = before.kernel.theta.tolist()
    new = kernel.theta.tolist()
    found = guessed_curvature(kernel, span)
    matches = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    was = [match.a + i for match in matches for i in range(match.size)]
    now = [match.b + i for match in matches for i in range(match.size)]
    found[np.ix_(now, now)] = before.inverse[np.ix_(was, was)]
    return found


def settled(candidate: Candidate, sample: Sample) -> Candidate | None:
    """The candidate tuned on the rows of a sample, until no step is worth an evaluation.

    One whose curvature is not known yet makes a few steps first, by which it is seen.
    """
    first: Candidate | None = candidate
    if candidate.inverse is None:
        first = tuned(candidate.kernel, sample, GLANCE)
    if first is None:
        return None
    numbers = len(first.kernel.theta)
    steps = max(MEANT, EACH * numbers)
    enough = SETTLED._replace(slope=SETTLED.slope * min(1.0, SEVERAL / max(numbers, 1)))
    return tuned(first.kernel, sample, steps, first.inverse, enough)


def judged(candidate: Candidate, sample: Sample) -> Candidate:
    """The candidate with the densities of held-out rows, its numbers tuned again without them.

    A door behind all rows that are known was found by those that are held out: it is not there for them.
    """
    forecasts = []
    blocks = []
    for known, new in sample.splits:
        past = sample.part(known)
        kernel, inverse = candidate.kernel, candidate.inverse
        if sample.ordered:
            kernel = foreseen(kernel, float(past.X[:, 0].max()))
        if kernel is not candidate.kernel:
            inverse = curvature_after_step(candidate, kernel, float(np.ptp(past.X[:, 0])))
        again = tuned(kernel, past, AGAIN, inverse, NEARLY)
        kernel = kernel if again is None else again.kernel
        forecasts.append(forecast(kernel, past, sample.part(new)))
        if sample.ordered:
            blocks.append(block_density(kernel, past, sample.part(np.concatenate([known, new]))))
    densities = tuple(normal_density(*one) for one in forecasts)
    return replace(candidate, densities=densities, forecasts=tuple(forecasts), blocks=tuple(blocks))


def block_density(kernel: Kernel, past: Sample, whole: Sample) -> float:
    """log p(new | past) of all new rows together, from past and new as a `whole`; at least `FLOOR` a row."""
    least = FLOOR * (len(whole) - len(past))
    try:
        before, after = (
            log_evidence(
                Tiles(kernel, part.rows, n_jobs=part.n_jobs), part.y[:, None], gradient=False, diagnose=False
            ).value
            for part in (past, whole)
        )
    except (NotPositiveDefiniteError, InputError):
        return least
    return max(after - before, least)


def predicted(kernel: Kernel, known: Sample, new: Sample) -> tuple[Array, Array]:
    """Mean and variance of new observations, noise included."""
    factor = factor_gram(Tiles(kernel, known.rows, n_jobs=known.n_jobs), diagnose=False)
    latent, noise = split_noise(kernel)
    if latent is None:
        return np.zeros(len(new)), np.full(len(new), noise)
    across = Tiles(latent, known.rows, Rows(new.rows.data, "Z", new.rows.names), n_jobs=known.n_jobs).dense()
    half = solve_triangular(factor.lower, across, lower=True, check_finite=False)
    mean = across.T @ factor.solve(known.y[:, None])[:, 0]
    variance = latent_diag(latent, new.rows) - np.einsum("ij,ij->j", half, half)
    return mean, np.maximum(variance, 0.0) + noise


def forecast(kernel: Kernel, known: Sample, new: Sample) -> tuple[Array, Array, Array]:
    """Mean and variance of new observations, and what they were; no kernel that fails is ever near them."""
    try:
        mean, variance = predicted(kernel, known, new)
    except (NotPositiveDefiniteError, InputError):
        return np.full(len(new), 1e9), np.ones(len(new)), new.y
    return mean, np.maximum(variance, np.finfo(float).tiny), new.y


def normal_density(mean: Array, variance: Array, y: Array, floor: float = FLOOR) -> Array:
    """log N(y; mean, variance), at least `floor`."""
    found = -0.5 * ((y - mean) ** 2 / variance + np.log(variance) + LOG_2PI)
    return np.asarray(np.maximum(found, floor))


def log_densities(kernel: Kernel, known: Sample, new: Sample) -> Array:
    """log p of each new observation given the known ones, at least `FLOOR`."""
    return normal_density(*forecast(kernel, known, new))


def residuals(kernel: Kernel, sample: Sample) -> Array:
    """What the latent terms leave of the targets: noise times α."""
    latent, noise = split_noise(kernel)
    if latent is None:
        return sample.y
    try:
        factor = factor_gram(Tiles(kernel, sample.rows, n_jobs=sample.n_jobs), diagnose=False)
    except (NotPositiveDefiniteError, InputError):
        return sample.y
    return np.asarray(noise * factor.solve(sample.y[:, None])[:, 0])
