"""Where θ may go in a search: the numbers that it moves, their units and their limits.

A positive number moves by its logarithm, whether it has bounds or none; between bounds θ is a logit, which
would put the bounds infinitely far away: a search that ends at one would never arrive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import Kernel
from mercer.params import Parameter
from mercer.typing import Array

FACTOR = 1e5  # by how much a parameter without bounds may grow or shrink in one search
LOGIT = 15.0  # how far a bounded parameter's logit goes: within 3e-7 of its interval's ends
AT = 1e-6  # what is so near to a limit is at it
# of an interval whose numbers do not go by logarithms: its middle then counts as it does in the logit
LENGTH = 4.0
SPREAD = 1.5  # standard deviation of a restart's logarithms
_ENTRY = re.compile(r"\[\d+\]$")  # one number of a list: lengthscale[2]


@dataclass(frozen=True, eq=False)
class Path:
    """The numbers u that a search moves, their limits and the parameters they stand for.

    They are added to a place: place = origin + T u. A place is θ where a parameter has no bounds. Between
    bounds it is how far from the lower one the number is, of `lengths` in all: a difference of logarithms.
    """

    origin: Array
    T: Array
    low: Array
    high: Array
    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    # 0 where there are no bounds
    lengths: Array

    def theta(self, u: Array) -> Array:
        return _theta(self.origin + self.T @ u, self.lengths)

    def slope(self, u: Array, gradient: Array) -> Array:
        """The gradient in u, of a function that has this gradient in θ there."""
        bounded = self.lengths > 0
        if bounded.any():
            share = _share(self.origin + self.T @ u, self.lengths)
            gradient = gradient / np.where(bounded, share * (1 - share) * self.lengths, 1.0)
        moved: Array = self.T.T @ gradient
        return moved

    def limits(self) -> list[tuple[float | None, float | None]]:
        return [
            (a if np.isfinite(a) else None, b if np.isfinite(b) else None)
            for a, b in zip(self.low, self.high, strict=True)
        ]

    def ended(self, u: Array) -> Array:
        """-1, 0 or 1 for each number: at its lower limit, between, at its upper limit."""
        return np.asarray((u >= self.high - AT).astype(int) - (u <= self.low + AT).astype(int))

    def slope_left(self, u: Array, gradient: Array) -> float:
        """The largest slope that a search for a maximum can still follow: all but those out of the limits."""
        slope = self.slope(u, gradient)
        return float(np.abs(slope[self.ended(u) * slope <= 0]).max(initial=0.0))


def search_path(kernel: Kernel, theta: Array, *, shared: bool = False) -> Path:
    """All free parameters from θ: a factor of 1e5 around each positive one, its own bounds where it has them.

    With `shared` the numbers of a list (a lengthscale for each column) move together and keep their ratios.

    >>> from mercer import RBF
    >>> path = search_path(RBF([1.0, 2.0]), RBF([1.0, 2.0]).theta, shared=True)
    >>> path.names, path.theta(np.array([1.0])).round(3).tolist()
    (('lengthscale',), [1.0, 1.693])

    A step of 1 is a factor of e, between bounds too.

    >>> kernel = RBF(2.0).bounded(lengthscale=(0.1, 10.0))
    >>> path = search_path(kernel, kernel.theta)
    >>> kernel.with_theta(path.theta(np.array([1.0]))).lengthscale / 2.0     # doctest: +ELLIPSIS
    2.71828...
    """
    free = [p for p in kernel.with_theta(theta).parameters if p.free]
    groups: dict[str, list[int]] = {}
    for i, p in enumerate(free):
        groups.setdefault(listed_as(p.name) if shared else p.name, []).append(i)
    lengths = np.array([_length(p) for p in free])
    low, high = _limits(free, lengths)
    origin = np.clip(_place(theta, lengths), low, high)
    T = np.zeros((len(free), len(groups)))
    for column, members in enumerate(groups.values()):
        T[members, column] = 1.0
    first = tuple(free[members[0]] for members in groups.values())
    return Path(
        origin,
        T,
        np.array([(low - origin)[m].max() for m in groups.values()]),
        np.array([(high - origin)[m].min() for m in groups.values()]),
        tuple(groups),
        first,
        lengths,
    )


def listed_as(name: str) -> str:
    """The name of a parameter without which number of a list it is."""
    return _ENTRY.sub("", name)


def _length(p: Parameter) -> float:
    """Of the interval between the bounds, in the units of the search; 0 without bounds."""
    if p.bounds is None:
        return 0.0
    low, high = p.bounds
    return float(np.log(high / low)) if p.domain.logarithmic and low > 0 else LENGTH


def _share(place: Array, lengths: Array) -> Array:
    """The part of its interval that is below a place, as far as a logit goes; ½ without bounds."""
    least = _logistic(np.array(-LOGIT))
    share = np.divide(place, lengths, out=np.full(len(place), 0.5), where=lengths > 0)
    return np.asarray(np.clip(share, least, 1 - least))


def _theta(place: Array, lengths: Array) -> Array:
    bounded = lengths > 0
    if not bounded.any():
        return place
    share = _share(place, lengths)
    return np.where(bounded, np.log(share / (1 - share)), place)


def _place(theta: Array, lengths: Array) -> Array:
    return np.where(lengths > 0, lengths * _logistic(theta), theta)


def _logistic(t: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * t)))


def _limits(free: list[Parameter], lengths: Array) -> tuple[Array, Array]:
    least = _logistic(np.array(-LOGIT))
    low = np.where(lengths > 0, lengths * least, -np.inf)
    high = np.where(lengths > 0, lengths * (1 - least), np.inf)
    for i, p in enumerate(free):
        if p.bounds is None and p.domain.logarithmic:
            low[i], high[i] = p.theta - np.log(FACTOR), p.theta + np.log(FACTOR)
    return low, high


def restart_points(kernel: Kernel, count: int, rng: np.random.Generator) -> list[Array]:
    """Random θ: logarithms spread around the start, bounded parameters anywhere between their bounds."""
    free = [p for p in kernel.parameters if p.free]
    out = []
    for _ in range(count):
        z = rng.standard_normal(len(free))
        u = rng.uniform(0.02, 0.98, len(free))
        out.append(np.array([_restart(p, zi, ui) for p, zi, ui in zip(free, z, u, strict=True)]))
    return out


def _restart(p: Parameter, z: float, u: float) -> float:
    """θ of one parameter from a normal number z and a number u between 0 and 1."""
    if p.bounds is not None:
        return float(np.log(u / (1 - u)))
    if p.domain.logarithmic:
        return p.theta + SPREAD * z
    return p.theta + SPREAD * z * max(1.0, abs(p.value))
