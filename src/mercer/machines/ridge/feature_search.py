"""Which metric, bandwidth and penalty: rounds of fitting and measuring gradients, judged on rows held out.

    round 0     the rows as they are (standardised), bandwidth and penalty by leave-one-out; where these leave
                nearly all of the variance, narrow bandwidths too
    round r     the metric of the function of round r - 1, bandwidth and penalty from there on

Each form of the metric (full, diagonal) and each exponent is a chain of rounds of its own. A metric has seen
the targets of all rows, so that leaving one out under it flatters, the more so the more numbers it has. So
every chain is gone once more on each three quarters of the rows, with the bandwidths and penalties of the
whole one. There the error of the quarter that neither metric nor function has seen, over that of leaving one
out, says by how much it flatters:

    expected = (leaving one out, all rows) · (rows held out) / (leaving one out, three quarters of the rows)

After the first round the best exponent and start of each form go on, as long as that falls. The round where
it is least is taken, of all chains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mercer.blas import matmul
from mercer.kernels.leaves.families import Radial
from mercer.machines.ridge.feature_fits import (
    FOLDS,
    WORTH_A_STEP,
    Judge,
    LeftOut,
    Point,
    Sample,
    left_out,
)
from mercer.machines.ridge.feature_metric import average_outer_product, shaped
from mercer.progress import say
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.typing import Array, Integers

# Where more of the variance than this is left, errors tell no bandwidth from another: rounds start from
# narrow ones too, because a function that fits nothing yet has slopes.
UNTOLD = 0.9


class Round(NamedTuple):
    """One fit of the search: how often the metric was learned, from which fit, and mean squared errors.

    `error` is that of leaving one out, `expected` the same without what flatters in it; infinite where there
    are too few rows, or no time.
    """

    iteration: int
    after: int
    form: str
    exponent: float
    bandwidth: float
    alpha: float
    error: float
    expected: float


@dataclass(frozen=True, eq=False)
class FeaturePath:
    """Every fit of a search, in the order in which it was made, and which of them was taken.

    The metric of a fit is that of the function of an earlier one, `after`; those without one are after
    themselves.

    `errors` are mean squared leave-one-out errors in units of the spread of the targets, so that 1 is what
    the mean alone would have; the metric had seen the row. `expected` are these times what that flatters by,
    which rows say that the metric had not seen: by them one is taken. They are infinite where there are too
    few rows, or no time.
    """

    iterations: Integers
    after: Integers
    forms: tuple[str, ...]
    exponents: Array
    bandwidths: Array
    alphas: Array
    errors: Array
    expected: Array
    best: int

    @classmethod
    def of(cls, rounds: list[Round], best: int) -> FeaturePath:
        def column(name: str) -> Array:
            return np.array([getattr(each, name) for each in rounds], dtype=float)

        return cls(
            np.array([each.iteration for each in rounds]),
            np.array([each.after for each in rounds]),
            tuple(each.form for each in rounds),
            column("exponent"),
            column("bandwidth"),
            column("alpha"),
            column("error"),
            column("expected"),
            best,
        )

    @property
    def judged(self) -> Array:
        """The errors by which a round is taken."""
        return judged(self.expected, self.errors)


def judged(expected: Array, errors: Array) -> Array:
    """Errors to be expected, or where no round has any, of leaving one out."""
    return expected if np.isfinite(expected).any() else errors


class HeldOut(NamedTuple):
    """A chain of rounds on each fold: metrics and coefficients now, and by how much leaving one out flatters.

    `flattery` is the error of rows held out over that of leaving one out; 1 where that is less by chance.
    """

    roots: list[Array]
    coefs: list[Array]
    flattery: float


def held_out(sample: Sample, roots: list[Array], at: Point) -> HeldOut | None:
    """The ridge on the rows of each fold under their own metric; None where one has none, or no time."""
    bandwidth, alpha = at.values
    coefs = []
    unseen = seen = 0.0
    for fold, root in zip(sample.folds, roots, strict=True):
        if sample.late():
            return None
        K = sample.gram(matmul(sample.X, root), bandwidth)
        among = K[np.ix_(fold.learned, fold.learned)]
        weight = sample.weight[fold.learned]
        found = left_out(among, sample.Y[fold.learned], weight, alpha, sample.intercept)
        if found is None:
            return None
        said = matmul(K[np.ix_(fold.judged, fold.learned)], found.coef) + found.intercept
        errors = (sample.Y[fold.judged] - said) ** 2
        unseen += float((sample.weight[fold.judged] @ errors).mean())
        seen += found.error * float(weight.sum())
        coefs.append(found.coef)
    # a row is held out once, and learned from in all the other folds
    flattery = unseen * (FOLDS - 1) / seen if seen > 0 else np.inf
    return HeldOut(roots, coefs, max(flattery, 1.0)) if coefs and np.isfinite(flattery) else None


@dataclass(eq=False)
class Chain:
    """Rounds with one form and exponent: where it is now, its place in the path, and its folds."""

    form: str
    exponent: float
    judge: Judge
    at: Point
    place: int = 0
    error: float = np.inf
    held: HeldOut | None = None

    @property
    def score(self) -> float:
        """The error by which it is compared: what can be expected, or without folds that of leaving out."""
        return self.expected if self.judge.sample.folds else self.error

    @property
    def expected(self) -> float:
        return np.inf if self.held is None else self.held.flattery * self.error


@dataclass(eq=False)
class Search:
    """The rounds so far, with the metric of each."""

    sample: Sample
    rank: int | None = None
    verbose: int = 0
    rounds: list[Round] = field(default_factory=list)
    roots: list[Array] = field(default_factory=list)
    fits: list[LeftOut | None] = field(default_factory=list)

    def begin(self) -> list[Chain]:
        """Round 0: the rows as they are."""
        plain = np.eye(self.sample.X.shape[1])
        judge = Judge(self.sample, plain)
        chains = [self._first(judge, judge.descend(judge.start()))]
        if chains[0].score > UNTOLD and self.sample.bandwidth is None:
            chains += [self._first(judge, at) for at in judge.narrow()]
        return chains

    def _first(self, judge: Judge, at: Point) -> Chain:
        return self.keep(0, Chain("none", 1.0, judge, at), [judge.root] * len(self.sample.folds))

    def keep(
        self, iteration: int, chain: Chain, roots: list[Array] | None, last: Chain | None = None
    ) -> Chain:
        """Note a round; `roots` are its metrics on the folds, None where one of these has none."""
        chain.error = chain.judge.error(chain.at)
        if roots:
            chain.held = held_out(self.sample, roots, chain.at)
        errors = (chain.error, chain.expected)
        chain.place = len(self.rounds)
        after = chain.place if last is None else last.place
        done = Round(iteration, after, chain.form, chain.exponent, *chain.at.values, *errors)
        self.rounds.append(done)
        self.roots.append(chain.judge.root)
        self.fits.append(chain.judge.fit(chain.at))
        if self.verbose:
            say(
                f"round {iteration}, {chain.form}, exponent {chain.exponent:g}: lengthscale "
                f"{done.bandwidth:.4g}, alpha {done.alpha:.3g}, leave-one-out {np.sqrt(chain.error):.5g}, "
                f"to be expected {np.sqrt(chain.expected):.5g}"
            )
        return chain

    def next(self, last: Chain, form: str, exponent: float, iteration: int) -> Chain | None:
        """The round after `last`, with the metric of its function; None where it has none."""
        fit = last.judge.fit(last.at)
        if fit is None:
            return None
        sample = self.sample
        leaf = sample.closed(last.at.values[0])
        M = average_outer_product(leaf, last.judge.U, last.judge.root, fit.coef, sample.weight)
        root = shaped(M, form, exponent, self.rank, sample.spread)
        if root is None:
            return None
        judge = Judge(sample, root)
        chain = Chain(form, exponent, judge, judge.descend(judge.start(last.at)))
        return self.keep(iteration, chain, self._of_folds(last, leaf, form, exponent), last)

    def _of_folds(self, last: Chain, leaf: Radial, form: str, exponent: float) -> list[Array] | None:
        """The metric of each fold, from the function that its rows had in the last round."""
        if last.held is None:
            return None
        sample = self.sample
        found = []
        for fold, root, coef in zip(sample.folds, last.held.roots, last.held.coefs, strict=True):
            if sample.late():
                return None
            U = matmul(sample.X[fold.learned], root)
            M = average_outer_product(leaf, U, root, coef, sample.weight[fold.learned])
            shape = shaped(M, form, exponent, self.rank, sample.spread)
            if shape is None:
                return None
            found.append(shape)
        return found

    def best(self) -> int:
        expected = np.array([done.expected for done in self.rounds])
        return int(np.argmin(judged(expected, np.array([done.error for done in self.rounds]))))

    @property
    def judged_error(self) -> float:
        """What is to be expected of the round that is taken."""
        return float(self.path().judged[self.best()])

    def path(self) -> FeaturePath:
        return FeaturePath.of(self.rounds, self.best())


def search(
    sample: Sample,
    forms: tuple[str, ...],
    exponents: tuple[float, ...],
    *,
    updates: int,
    rank: int | None = None,
    verbose: int = 0,
) -> tuple[Search, Status]:
    """All rounds of all chains, or those for which there was time; and how it ended."""
    found = Search(sample, rank, verbose)
    with Anytime[Search]() as run:
        starts = [chain for chain in found.begin() if np.isfinite(chain.error)]
        run.best = found
        chains = [(form, exponent, first) for form in forms for exponent in exponents for first in starts]
        for iteration in range(1, updates + 1):
            after: list[Chain] = []
            for form, exponent, last in chains:
                if sample.late():
                    break
                done = found.next(last, form, exponent, iteration)
                if done is not None and (iteration == 1 or done.score < last.score * (1.0 - WORTH_A_STEP)):
                    after.append(done)
            if iteration == 1:
                after = [min(_of_form(after, form), key=_score) for form in forms if _of_form(after, form)]
            chains = [(chain.form, chain.exponent, chain) for chain in after]
        if not sample.late():
            run.status = Status.CONVERGED
    return found, run.status


def _of_form(chains: list[Chain], form: str) -> list[Chain]:
    return [chain for chain in chains if chain.form == form]


def _score(chain: Chain) -> float:
    return chain.score
