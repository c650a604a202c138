"""Missing values as a level of their own: `RBF().on("income", missing="own level")`.

    k(fill(x), fill(z)) · e^(-[x is missing ≠ z is missing] / ℓ)

What is missing is filled with the median, so that the kernel has a number, and the second factor says how
much it counts that a value is known.
"""

from __future__ import annotations

from mercer.arrays import Column
from mercer.errors import ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.rules.arithmetic import multiply
from mercer.kernels.rules.readings import Read
from mercer.kernels.rules.views import On
from mercer.kernels.things.categories import Categorical
from mercer.kernels.things.dates import Date
from mercer.kernels.things.scaling import Filled, Known

OWN_LEVEL = "own level"


def on_columns(kernel: Kernel, columns: tuple[Column, ...], missing: str | None = None) -> Kernel:
    """The kernel on some columns; with `missing` "own level" it also takes what is missing there."""
    if missing is None:
        return On(kernel, columns)
    if missing != OWN_LEVEL:
        raise ParameterError(
            f"on(): missing must be {OWN_LEVEL!r}, or None, which refuses missing values; got {missing!r}."
        )
    return multiply(On(filled(kernel), columns), On(Read(Categorical(), Known()), columns))


def filled(kernel: Kernel) -> Kernel:
    """The kernel on numbers that were filled, after dates have been read as numbers.

    >>> from mercer import RBF
    >>> filled(RBF().of(Date("years")))
    RBF().of(Filled()).of(Date(gaps="keep"))
    """
    if isinstance(kernel, Read) and isinstance(kernel.reading, Date):
        return Read(filled(kernel.kernel), kernel.reading.changed(gaps="keep"))
    return Read(kernel, Filled())
