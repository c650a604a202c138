"""Doors in time: a function that is there after a place, or before it.

    After(c, w)    1 / (1 + e^(-(x - c) / w))      near 0 before the place c, near 1 after it
    Before(c, w)   1 / (1 + e^((x - c) / w))       the other way round

`Linear().of(After(c, w))` is a(x) a(z) with this a, so its product with a kernel is that kernel after c, a
product with both is a window, and a change point is a sum:

    k₁ before c and k₂ after it    k₁ · Linear().of(Before(c, w)) + k₂ · Linear().of(After(c, w))
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from mercer.arrays import Rows
from mercer.kernels.things.reading import Reading, reading
from mercer.params import positive, real
from mercer.sparse import dense
from mercer.typing import Array


class Gate(Reading):
    """A curve that rises or falls once, at a place, within a few widths."""

    place: float
    width: float

    def _steps(self, x: Rows) -> Array:
        """How many widths each number lies behind the place."""
        X = np.asarray(dense(x.vectors), dtype=np.float64)
        return np.asarray((X - self.place) / self.width)


@reading
class After(Gate):
    """Near 0 before a place, near 1 after it, ½ at the place itself.

    >>> After(1975.0, 2.0).read(Rows([[1975.0], [1979.0]])).vectors.ravel().round(3).tolist()   # 1/(1 + e⁻²)
    [0.5, 0.881]
    >>> from mercer import RBF, Linear
    >>> RBF(3.0) * Linear().of(After(1975.0, 2.0))
    RBF(3.0)*Linear().of(After(1975.0, 2.0))
    """

    place: float = real(0.0)
    width: float = positive(1.0)

    def read(self, x: Rows) -> Rows:
        return Rows(expit(self._steps(x)), x.name, x.names)


@reading
class Before(Gate):
    """Near 1 before a place, near 0 after it, ½ at the place itself.

    >>> Before(1975.0, 2.0).read(Rows([[1975.0], [1979.0]])).vectors.ravel().round(3).tolist()   # 1/(1 + e²)
    [0.5, 0.119]
    """

    place: float = real(0.0)
    width: float = positive(1.0)

    def read(self, x: Rows) -> Rows:
        return Rows(expit(-self._steps(x)), x.name, x.names)
