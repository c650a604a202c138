"""A member of the forecast: one shape on one scale, fitted by evidence, and tested from earlier days.

The back-test is honest: the numbers of the kernel come from the values before the first origin, and from each
origin the values that follow are forecast from those before it. Only then are the numbers searched again, on
all values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import PrecisionWarning
from mercer.kernels import Kernel, as_kernel
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.scales import Scale
from mercer.series.shapes import HEIGHT_OF_BREAK, Shape, step_at
from mercer.typing import Array, Integers

# Values that a search for numbers of a kernel sees, that a forecast of the back-test rests on, and that the
# forecast itself does: the last ones, and of those before a random part.
SEARCHED = 500
TESTED = 1500
HELD = 3000
# Of these, the last ones without a gap.
LAST = 0.6
STEPS = 40


@dataclass(frozen=True)
class Values:
    """A series in units of its axis, on one scale, about its mean in units of its deviation."""

    t: Array
    y: Array
    step: float
    scale: Scale
    centre: float
    spread: float

    @classmethod
    def of(cls, t: Array, y: Array, step: float, scale: Scale) -> Values:
        values = scale.forward(y)
        spread = float(values.std())
        return cls(t, y, step, scale, float(values.mean()), spread or 1.0)

    @property
    def z(self) -> Array:
        return np.asarray((self.scale.forward(self.y) - self.centre) / self.spread)

    @property
    def span(self) -> float:
        return float(self.t[-1] - self.t[0])

    def __len__(self) -> int:
        return len(self.t)

    def log_jacobian(self, index: Integers) -> float:
        """What makes a log density of z at these values one of y."""
        return self.scale.log_jacobian(self.y[index]) - len(index) * float(np.log(self.spread))


@dataclass(frozen=True)
class Normals:
    """Normal distributions on the scale of a member, one for each time, and what was seen there if known."""

    mean: Array
    std: Array
    scale: Scale

    def cdf(self, y: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr((_forward(self.scale, y) - self.mean) / self.std))

    def wider(self, factor: float) -> Normals:
        return Normals(self.mean, factor * self.std, self.scale)

    def mean_of_y(self) -> Array:
        return self.scale.mean(self.mean, self.std)

    def quantile(self, p: float) -> Array:
        return self.scale.quantile(self.mean, self.std, p)


def _forward(scale: Scale, y: Array) -> Array:
    """Values on the scale; those below what it has are at its lower end."""
    if scale.is_identity:
        return np.asarray(y)
    tiny = np.finfo(float).tiny
    return scale.forward(np.maximum(y, -scale.shift + max(tiny, 1e-12 * scale.shift)))


@dataclass(frozen=True)
class Member:
    """A shape on a scale with the kernel that was found, and the forecasts that it made from each origin."""

    shape: Shape
    values: Values
    kernel: Kernel
    tests: tuple[Normals, ...]
    evidence: float
    score: float = np.inf


def some(n: int, most: int, seed: int = 0) -> Integers:
    """Which of n values to use: all, or the last ones and a random part of the others, in order."""
    if n <= most:
        return np.arange(n)
    last = int(LAST * most)
    earlier = np.random.default_rng(seed).choice(n - last, most - last, replace=False)
    return np.concatenate([np.sort(earlier), np.arange(n - last, n)])


def searched(
    kernel: Kernel, values: Values, until: int, steps: int = STEPS
) -> tuple[GaussianProcessRegressor, float]:
    """The process with the numbers that the evidence of the first `until` values prefers, and it, of y."""
    index = some(until, SEARCHED)
    model = GaussianProcessRegressor(kernel, max_iter=steps, singular="add")
    with quiet():
        model.fit(values.t[index, None], values.z[index])
    return model, float(model.log_evidence_) + values.log_jacobian(index)


def conditioned(kernel: Kernel, values: Values, until: int, most: int = HELD) -> GaussianProcessRegressor:
    """The process with these numbers, given the first `until` values."""
    index = some(until, most)
    model = GaussianProcessRegressor(kernel, optimizer=None, singular="add")
    with quiet():
        return model.fit(values.t[index, None], values.z[index])


def foreseen(model: GaussianProcessRegressor, values: Values, t: Array) -> Normals:
    """What a fitted process expects at times."""
    mean, std = model.predict(t[:, None], return_std=True, noise=True)
    return Normals(values.centre + values.spread * mean, values.spread * std, values.scale)


def backtested(shape: Shape, values: Values, tests: Sequence[slice]) -> Member:
    """A member with its forecasts of some values from those before them, the kernel that of the first.

    A break that happens between two of these origins is not known at the first of them.
    """
    first = tests[0].start
    known = replace(shape, breaks=tuple(place for place in shape.breaks if place < values.t[first]))
    model, evidence = searched(known.kernel(values.span, values.step), values, first)
    kernel = as_kernel(model.kernel_)
    made = []
    for part in tests:
        now = kernel
        for place in shape.breaks:
            if values.t[first] <= place < values.t[part.start - 1]:
                now = now + HEIGHT_OF_BREAK * step_at(place, values.step)
        made.append(foreseen(conditioned(now, values, part.start, TESTED), values, values.t[part]))
    start = kernel if known == shape else shape.kernel(values.span, values.step)
    return Member(shape, values, start, tuple(made), evidence)


def refined(member: Member, steps: int) -> tuple[Kernel, float]:
    """The kernel of a member with its evidence, its numbers searched on all values.

    The search starts from those of the back-test, and afresh.

    The first values may have no use for a term that the later ones need, and a height near 0 stays there.
    """
    values = member.values
    starts = [member.kernel, member.shape.kernel(values.span, values.step)]
    found = [searched(start, values, len(values), steps) for start in dict.fromkeys(starts)]
    model, evidence = max(found, key=lambda pair: pair[1])
    return as_kernel(model.kernel_), evidence


@contextmanager
def quiet() -> Iterator[None]:
    """Searches end on purpose after some steps; a shape may explain little, and words say what is noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", PrecisionWarning)
        yield
