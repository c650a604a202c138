"""A loss of one's own for `KernelMachine`, smooth, convex and checked on samples; what `loss=` stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import ParameterError
from mercer.machines.loss.losses import (
    LOSSES,
    EpsilonInsensitive,
    Huber,
    Kind,
    Loss,
    Quantile,
    SquaredEpsilonInsensitive,
)
from mercer.typing import Array, Numbers

Function = Callable[[Array, Array], Numbers]


@dataclass(frozen=True)
class SmoothLoss(Loss):
    """Any smooth convex loss, by its functions of (y, z), entry by entry.

    `curvature` defaults to differences of `slope`. With a `conjugate` the fit has a duality gap, without one
    only a gradient norm. `kind` is "regression" or "classification" (y = ±1); `inverse_link` turns z into
    predictions. The functions are checked on samples before they are used: finite, slope = derivative,
    convex, Fenchel-Young.

    >>> def logcosh(y, z):
    ...     return np.logaddexp(z - y, y - z) - np.log(2)
    >>> SmoothLoss(logcosh, lambda y, z: np.tanh(z - y)).check(np.array([0.0, 2.0]))
    >>> SmoothLoss(lambda y, z: np.sin(z), lambda y, z: np.cos(z)).check(np.array([0.0]))
    Traceback (most recent call last):
    mercer.errors.ParameterError: the loss is not convex in z: for y = 0 its slope falls from ...
    """

    value_of: Function
    slope_of: Function
    curvature_of: Function | None = None
    conjugate_of: Function | None = None
    kind: Kind = "regression"  # type: ignore[misc]
    inverse_link: Callable[[Array], Numbers] | None = None
    name = "user"

    @property
    def has_conjugate(self) -> bool:  # type: ignore[override]
        return self.conjugate_of is not None

    @classmethod
    def of(cls, given: Any) -> SmoothLoss:
        """From an object with `value` and `slope`, perhaps `curvature`, `conjugate`, `kind`, `predict`."""
        kind: Kind = getattr(given, "kind", "regression")
        if kind not in ("regression", "classification"):
            raise ParameterError(f"kind of a loss must be 'regression' or 'classification'; got {kind!r}.")
        return cls(
            given.value,
            given.slope,
            getattr(given, "curvature", None),
            getattr(given, "conjugate", None),
            kind=kind,
            inverse_link=getattr(given, "predict", None),
        )

    def value(self, y: Array, z: Array) -> Array:
        return np.asarray(self.value_of(y, z), dtype=float)

    def slope(self, y: Array, z: Array) -> Array:
        return np.asarray(self.slope_of(y, z), dtype=float)

    def curvature(self, y: Array, z: Array) -> Array:
        if self.curvature_of is not None:
            given: Array = np.asarray(self.curvature_of(y, z), dtype=float)
            return np.asarray(np.maximum(given, 0.0))
        h = 1e-5 * (1.0 + np.abs(z))
        rise: Array = (self.slope(y, z + h) - self.slope(y, z - h)) / (2 * h)
        return np.maximum(rise, 0.0)

    def conjugate(self, y: Array, s: Array) -> Array:
        if self.conjugate_of is None:
            raise ParameterError("this loss was given without a conjugate, so it has no duality gap.")
        return np.asarray(self.conjugate_of(y, s), dtype=float)

    def _conjugate(self, y: Array, s: Array) -> Array:
        return self.conjugate(y, s)

    def predict(self, z: Array) -> Array:
        if self.inverse_link is None:
            return z
        return np.asarray(self.inverse_link(z), dtype=float)

    def check(self, y: Array) -> None:
        """Try the functions on targets like these; a `ParameterError` says where they fail."""
        some = np.unique(np.asarray(y, dtype=float))
        some = some[np.linspace(0, len(some) - 1, min(len(some), 12)).astype(int)]
        reach = np.concatenate([-np.geomspace(8, 0.05, 12), [0.0], np.geomspace(0.05, 8, 12)])
        z = np.sort(
            np.concatenate([reach, *(t + reach * max(float(np.ptp(some)) / 4, 1e-3) for t in some[:3])])
        )
        for t in some:
            self._check_one(np.full(len(z), t), z)

    def _check_one(self, y: Array, z: Array) -> None:
        v = self.value(y, z)
        s = self.slope(y, z)
        for words, found in (("value", v), ("slope", s)):
            if found.shape != z.shape:
                raise ParameterError(
                    f"{words}(y, z) of the loss must work entry by entry: {z.shape} in, {found.shape} out."
                )
            if not np.all(np.isfinite(found)):
                i = int(np.argmax(~np.isfinite(found)))
                raise ParameterError(
                    f"{words}(y, z) of the loss is {found[i]} at y = {y[i]:g}, z = {z[i]:g}; "
                    "it must be finite."
                )
        h = 1e-5 * (1.0 + np.abs(z))
        rise = (self.value(y, z + h) - self.value(y, z - h)) / (2 * h)
        off = np.abs(rise - s) - 1e-4 * (1.0 + np.abs(s)) - 1e-14 * np.abs(v) / h
        if off.max() > 0:
            i = int(np.argmax(off))
            raise ParameterError(
                f"slope is not the derivative of value: at y = {y[i]:g}, z = {z[i]:g} it is {s[i]:.6g}, and "
                f"the difference of values says {rise[i]:.6g}. Correct one of the two."
            )
        fall = s[:-1] - s[1:] - 1e-9 * (1.0 + np.abs(s[1:]))
        if fall.max() > 0:
            i = int(np.argmax(fall))
            raise ParameterError(
                f"the loss is not convex in z: for y = {y[i]:g} its slope falls from {s[i]:.6g} at "
                f"z = {z[i]:.6g} to {s[i + 1]:.6g} at z = {z[i + 1]:.6g}. Newton's method and the "
                "certificate need a convex loss."
            )
        self._check_smooth(y[:1], z, s)
        if self.conjugate_of is not None:
            miss = np.abs(v + self.conjugate(y, s) - s * z) / (1.0 + np.abs(v) + np.abs(s * z))
            if not np.nanmax(np.where(np.isfinite(miss), miss, np.inf)) <= 1e-6:
                i = int(np.argmax(np.where(np.isfinite(miss), miss, np.inf)))
                raise ParameterError(
                    "conjugate is not that of value: ℓ(y, z) + ℓ*(y, s) - s z must be 0 at the slope s, and "
                    f"is {miss[i]:.3g} of their size at y = {y[i]:g}, z = {z[i]:g}."
                )

    def _check_smooth(self, y: Array, z: Array, s: Array) -> None:
        """Halve the interval where the slope rises most, again and again: across a kink it rises no less."""
        i = int(np.argmax(np.diff(s)))
        low = z[i]
        high = z[i + 1]
        below = float(s[i])
        above = float(s[i + 1])
        first = above - below
        while high - low > 1e-9 * (1.0 + abs(low)):
            middle = 0.5 * (low + high)
            m = float(self.slope(y, np.array([middle]))[0])
            if above - m > m - below:
                low = middle
                below = m
            else:
                high = middle
                above = m
        if above - below > 1e-3 * max(first, 1e-12):
            raise ParameterError(
                f"the loss has a kink: for y = {y[0]:g} its slope jumps from {below:.6g} to {above:.6g} at "
                f"z = {low:.6g}. Newton's method needs a smooth loss: use 'hinge', 'epsilon_insensitive' or "
                "'quantile', or round the kink off."
            )


def as_loss(given: object, *, delta: float, epsilon: float, level: float) -> Loss:
    """What `loss=` stands for: a name with its parameters, a `Loss`, or an object with `value` and `slope`.

    >>> as_loss("huber", delta=0.5, epsilon=0.1, level=0.5)
    Huber(delta=0.5)
    """
    if isinstance(given, Loss):
        return given
    kind = LOSSES.get(given) if isinstance(given, str) else None
    if kind is Huber:
        return Huber(float(delta))
    if kind is Quantile:
        return Quantile(level)
    if kind is EpsilonInsensitive or kind is SquaredEpsilonInsensitive:
        return kind(float(epsilon))
    if kind is not None:
        return kind()
    if callable(getattr(given, "value", None)) and callable(getattr(given, "slope", None)):
        return SmoothLoss.of(given)
    raise ParameterError(
        f"loss must be one of {sorted(LOSSES)}, or an object with methods value(y, z) and slope(y, z); "
        f"got {given!r}."
    )
