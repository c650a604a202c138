"""How kernels are combined with signs and by name; the rules themselves are in `algebra`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeGuard, cast

import numpy as np

from mercer.arrays import Column
from mercer.errors import ParameterError
from mercer.kernels import doors
from mercer.kernels.tuning import Tunable
from mercer.params import is_real
from mercer.typing import Array, Table

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel
    from mercer.kernels.things.reading import Reading


class Combinable(Tunable):
    """An expression that can be part of another."""

    is_family: ClassVar[bool] = True

    @property
    def _kernel(self) -> Kernel:
        return cast("Kernel", self)

    def __add__(self, other: Kernel | float) -> Kernel:
        return doors.combining().add(self._kernel, other)

    def __radd__(self, other: Kernel | float) -> Kernel:
        # sum(kernels) starts at 0
        if type(other) is int and other == 0:
            return self._kernel
        return doors.combining().add(other, self._kernel)

    def __mul__(self, other: Kernel | float) -> Kernel:
        return doors.combining().multiply(self._kernel, other)

    def __rmul__(self, other: Kernel | float) -> Kernel:
        if is_number(other):
            return self * other
        return NotImplemented

    def __truediv__(self, other: float) -> Kernel:
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ParameterError("a kernel cannot be divided by zero.")
        return self * (1.0 / other)

    def __neg__(self) -> Kernel:
        return self * -1.0

    def __pos__(self) -> Kernel:
        return self._kernel

    def __sub__(self, other: Kernel | float) -> Kernel:
        """The difference, treated as what it is: rarely a kernel, and `validity()` says so."""
        if isinstance(other, Combinable):
            return self + (-other)
        if not is_number(other):
            return NotImplemented
        # -np.uint8(2) would be 254
        return self + -float(other)

    def __rsub__(self, other: float) -> Kernel:
        if is_number(other):
            return other + (-self)
        return NotImplemented

    def __pow__(self, exponent: float) -> Kernel:
        if not is_number(exponent):
            return NotImplemented
        return doors.combining().power(self._kernel, exponent)

    def exp(self) -> Kernel:
        """e^k."""
        return doors.combining().exponential(self._kernel)

    def polynomial(self, coefs: Sequence[float]) -> Kernel:
        """c₀ + c₁k + c₂k² + …, the constant first."""
        return doors.combining().polynomial(self._kernel, tuple(coefs))

    def times(self, f: Callable[[Array], Array]) -> Kernel:
        """f(x) k(x, z) f(z); `f` maps the n×d matrix of points to n numbers."""
        return doors.combining().times(self._kernel, f)

    def of(self, map: Callable[[Table], Table] | Reading | Kernel | Table) -> Kernel:
        """k(ψ(x), ψ(z)); `map` is a function of the n×d matrix of points, or a matrix A for ψ(x) = Ax.

        It may also be a named `Reading`, such as `Date("years")`, or a kernel, whose features φ are then ψ.
        """
        return doors.combining().of(self._kernel, map)

    def on(self, *columns: Column, missing: str | None = None) -> Kernel:
        """The kernel on some columns only, by name, number or slice.

        Missing numbers and dates are refused, unless `missing="own level"` says that they are a level of
        their own: filled with the median, and a row that has a value counts as different from one that has
        none.

        >>> from mercer import RBF
        >>> RBF().on("income", missing="own level")
        RBF().of(Filled()).on("income")*Categorical().of(Known()).on("income")
        """
        return doors.combining().on(self._kernel, columns, missing)

    def normalized(self) -> Kernel:
        """k(x, z) / √(k(x, x) k(z, z)): the cosine in feature space; of a cosine it is the cosine itself."""
        return doors.combining().normalized(self._kernel)

    def bags(self) -> Kernel:
        """The mean of k over all pairs of two bags: rows are then arrays of points, or lists of things.

        >>> from mercer import Linear
        >>> Linear().bags()([[[1.0], [3.0]], [[5.0]]])                   # means 2 and 5
        array([[ 4., 10.],
               [10., 25.]])
        """
        return doors.combining().bags(self._kernel)


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is one real number; an array without dimensions is."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return is_real(value)
