"""On which scale a target is normal: as it is, its root, its logarithm (Box and Cox, 1964).

    t(y) = log(y + shift)                     power 0
           (y + shift)^power / power          power between 0 and 1
           y                                  power 1

    dt/dy = (y + shift)^(power - 1)           so that densities of y can be compared between scales:
    log p(y) = log p(t(y)) + log dt/dy

Box and Cox subtract 1/power as well, a constant that changes nothing in a model with a mean of its own, and
that would cost small numbers their digits. Powers below 0 are left out: 1/t of a normal t has no mean.

If t is normal with mean m and deviation s, then y has a mean, a deviation and quantiles, which are not those
of t carried back: the logarithm's mean is e^(m + s²/2), the median e^m. A power between 0 and 1 has no
inverse below t = 0; y is there as small as it can be, -shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from mercer.errors import DomainError, ParameterError
from mercer.typing import Array, Flags, Numbers

ROOTS = {0.5: "square", 1 / 3: "cube"}
POWERS = (0.0, 1 / 3, 0.5)
# A target with fewer different values is not measured finely enough to tell scales apart.
LEAST_DISTINCT = 10
# A larger share of zeros is a group of its own, and on no scale a part of a normal distribution.
MOST_ZEROS = 0.05
# A shift is at least this share of the median: a single tiny value is not the unit of all others.
LEAST_SHIFT = 1e-3
# Beyond so many deviations a normal distribution has less than rounding.
REACH = 9.0
# Rows that are integrated at a time.
BLOCK = 4096
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def half_width(level: float) -> float:
    """How many deviations a central band of this probability is wide, either way, under a normal law.

    >>> round(half_width(0.95), 3)
    1.96
    """
    return float(ndtri(0.5 + level / 2))


@dataclass(frozen=True)
class Scale:
    """A scale of the target: its `power`, between 0 (the logarithm) and 1 (as it is), and its `shift`.

    >>> scale = Scale(0.0)
    >>> scale.words
    'the logarithm of y'
    >>> round(float(scale.mean(0.0, 1.0)), 4), float(scale.quantile(0.0, 1.0, 0.5))
    (1.6487, 1.0)
    """

    power: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.power <= 1:
            raise ParameterError(f"the power of a scale must be between 0 and 1; got {self.power!r}.")
        if not 0 <= self.shift < np.inf:
            raise ParameterError(f"the shift of a scale must be finite and not negative; got {self.shift!r}.")
        if self.is_identity and self.shift:
            raise ParameterError(f"the scale of y as it is (power 1) has no shift; got {self.shift!r}.")

    @property
    def is_identity(self) -> bool:
        """Whether y is taken as it is."""
        return self.power == 1

    # ── there and back ──────────────────────────────────────────────────────────────────────────────────────

    def forward(self, y: Numbers) -> Array:
        """The targets on this scale."""
        values = np.asarray(y, dtype=np.float64)
        if self.is_identity:
            return values.copy()
        shifted = self._shifted(values)
        if self.power == 0:
            return np.asarray(np.log(shifted))
        return np.asarray(shifted**self.power / self.power)

    def inverse(self, t: Numbers) -> Array:
        """What y is where it is t on this scale; -shift where the power has no inverse."""
        values = np.asarray(t, dtype=np.float64)
        if self.is_identity:
            return values.copy()
        return np.asarray(self._raised(values) - self.shift)

    def log_jacobian(self, y: Numbers) -> float:
        """Σ log dt/dy: what is added to a log density of t to have that of y."""
        values = np.asarray(y, dtype=np.float64)
        if self.is_identity:
            return 0.0
        return float((self.power - 1.0) * np.log(self._shifted(values)).sum())

    def _shifted(self, y: Array) -> Array:
        shifted = y + self.shift
        if not np.all(shifted > 0):
            worst = float(np.min(y))
            raise DomainError(
                f"{self.words} needs y above {0.0 - self.shift:g}; got {worst:g}. Take y as it is: Scale()."
            )
        return np.asarray(shifted)

    def _raised(self, t: Array) -> Array:
        """What y + shift is; too large for a number is infinite."""
        with np.errstate(over="ignore", under="ignore"):
            if self.power == 0:
                return np.asarray(np.exp(t))
            return np.asarray((self.power * np.maximum(t, 0.0)) ** (1.0 / self.power))

    def holds(self, y: Numbers) -> Flags:
        """Which numbers have a place on this scale."""
        values = np.asarray(y, dtype=np.float64)
        if self.is_identity:
            return np.ones(values.shape, dtype=np.bool_)
        return np.asarray(values + self.shift > 0)

    # ── y where t is normal ─────────────────────────────────────────────────────────────────────────────────

    def mean(self, m: Numbers, s: Numbers) -> Array:
        """The mean of y if t is normal with mean m and deviation s."""
        centre, spread = _moments(m, s)
        if self.is_identity:
            return centre.copy()
        if self.power == 0:
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(centre + spread**2 / 2) - self.shift)
        return self._by_blocks(centre, spread)[0] - self.shift

    def std(self, m: Numbers, s: Numbers) -> Array:
        """The standard deviation of y if t is normal with mean m and deviation s."""
        centre, spread = _moments(m, s)
        if self.is_identity:
            return spread.copy()
        if self.power == 0:
            return _lognormal_deviation(centre, spread)
        return self._by_blocks(centre, spread)[1]

    def quantile(self, m: Numbers, s: Numbers, p: Numbers) -> Array:
        """The value below which y is with probability p if t is normal with mean m and deviation s."""
        centre, spread = _moments(m, s)
        return self.inverse(centre + spread * ndtri(np.asarray(p, dtype=np.float64)))

    def _by_blocks(self, m: Array, s: Array) -> tuple[Array, Array]:
        """Mean and deviation of y + shift, of some rows at a time."""
        centre, spread = m.ravel(), s.ravel()
        out = np.empty((2, len(centre)))
        for start in range(0, len(centre), BLOCK):
            some = slice(start, start + BLOCK)
            out[:, some] = self._integrated(centre[some], spread[some])
        return out[0].reshape(m.shape), out[1].reshape(m.shape)

    def _integrated(self, m: Array, s: Array) -> tuple[Array, Array]:
        """Mean and deviation of y + shift, by quadrature.

        Gauss and Legendre's rule over the part of the normal distribution where the power has an inverse:
        the function is smooth there, which it is not over all of it. Below, y + shift is 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = np.where(s > 0, -m / s, np.where(m > 0, -np.inf, np.inf))
        low = np.clip(zero, -REACH, REACH)
        half = (REACH - low)[:, None] / 2
        z = low[:, None] + half * (1.0 + _NODES)
        weights = half * _WEIGHTS * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        values = self._raised(m[:, None] + s[:, None] * z)
        mean = (values * weights).sum(axis=1)
        away = np.abs(values - mean[:, None])
        # squares of large numbers overflow: the largest is taken out
        unit = np.maximum(np.maximum(away.max(axis=1), mean), np.finfo(float).tiny)
        inside = ((away / unit[:, None]) ** 2 * weights).sum(axis=1)
        return mean, unit * np.sqrt(inside + (mean / unit) ** 2 * ndtr(zero))

    # ── in words and in files ───────────────────────────────────────────────────────────────────────────────

    @property
    def words(self) -> str:
        """The scale in words, of a target that is called y."""
        return self.words_of("y")

    def words_of(self, name: str) -> str:
        """The scale in words, of a target with a name of its own.

        >>> Scale(0.5, 1.0).words_of("count")
        'the square root of count + 1'
        """
        if self.is_identity:
            return f"{name} as it is"
        shifted = f"{name} + {self.shift:g}" if self.shift else name
        if self.power == 0:
            return f"the logarithm of {shifted}"
        for power, kind in ROOTS.items():
            if self.power == power:
                return f"the {kind} root of {shifted}"
        return f"the power {self.power:g} of {shifted}"

    def to_dict(self) -> dict[str, float]:
        """The scale as two numbers with names."""
        return {"power": float(self.power), "shift": float(self.shift)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, float]) -> Scale:
        """The scale that `to_dict` wrote."""
        if set(fields) != {"power", "shift"}:
            raise ParameterError(f"a scale has a power and a shift; got {', '.join(map(str, fields))}.")
        return cls(float(fields["power"]), float(fields["shift"]))


IDENTITY = Scale()


def candidates(y: Numbers) -> tuple[Scale, ...]:
    """The scales that may be tried for a target: y as it is first, then logarithm and roots if they suit it.

    They suit numbers that are positive and have many different values. With a few zeros y is shifted by its
    smallest positive value, and counts are shifted by 1.

    >>> [scale.words for scale in candidates(np.arange(1.0, 20.0))]
    ['y as it is', 'the logarithm of y', 'the cube root of y', 'the square root of y']
    >>> [scale.words for scale in candidates(np.arange(-1.0, 20.0))]
    ['y as it is']
    """
    values = np.asarray(y, dtype=np.float64).ravel()
    if not np.isfinite(values).all() or np.any(values < 0) or len(np.unique(values)) < LEAST_DISTINCT:
        return (IDENTITY,)
    shift = _shift(values)
    if shift is None:
        return (IDENTITY,)
    return (IDENTITY, *(Scale(power, shift) for power in POWERS))


def _shift(values: Array) -> float | None:
    """What to add to numbers that are not negative before a logarithm; None where nothing does."""
    positive = values[values > 0]
    if len(positive) == len(values):
        return 0.0
    if np.all(values == np.round(values)):
        return 1.0
    if np.mean(values == 0) > MOST_ZEROS:
        return None
    return float(max(positive.min(), LEAST_SHIFT * np.median(positive)))


def _moments(m: Numbers, s: Numbers) -> tuple[Array, Array]:
    """Means and deviations as arrays of one shape."""
    centre, spread = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64))
    if np.any(spread < 0):
        raise DomainError(f"a standard deviation cannot be negative; got {float(spread.min()):g}.")
    return centre, spread


def _lognormal_deviation(m: Array, s: Array) -> Array:
    """e^(m + s²/2) √(e^(s²) - 1), in logarithms: neither factor overflows where the product does not."""
    square = s**2
    with np.errstate(over="ignore", divide="ignore"):
        # log(e^a - 1) = a + log(1 - e^-a)
        return np.asarray(np.exp(m + square + 0.5 * np.log(-np.expm1(-square))))
