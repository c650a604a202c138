"""A term of a sum of kernels as factors, each with the columns that it looks at and how it reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from mercer.arrays import Column
from mercer.kernels import (
    Brownian,
    Categorical,
    Constant,
    Cosine,
    Date,
    Hamming,
    Kernel,
    Laplacian,
    Linear,
    Periodic,
    Polynomial,
    Radial,
    Reading,
    SpectralMixture,
    Standardized,
    White,
    ZeroMeanPeriodic,
)
from mercer.kernels.algebra import On, Power, Product, Read, Scaled
from mercer.kernels.things.gates import Gate
from mercer.params import Open

# The most factors that a power of a leaf is written out as.
LONGEST_POWER = 4


class Kind(Enum):
    """What a factor does, in the order in which one of them gives a product its noun."""

    NOISE = auto()
    PERIODIC = auto()
    SHAPE = auto()
    WALK = auto()
    CATEGORY = auto()
    LINE = auto()
    GATE = auto()
    OTHER = auto()
    LEVEL = auto()


_KINDS: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((White,), Kind.NOISE),
    ((Periodic, ZeroMeanPeriodic, Cosine), Kind.PERIODIC),
    ((Radial, Laplacian, SpectralMixture), Kind.SHAPE),
    ((Brownian,), Kind.WALK),
    ((Categorical, Hamming), Kind.CATEGORY),
    ((Linear, Polynomial), Kind.LINE),
    ((Constant,), Kind.LEVEL),
)


@dataclass(frozen=True)
class Factor:
    """One leaf of a product, the columns it looks at (None for all), and the readings between, in order."""

    leaf: Kernel
    columns: tuple[Column, ...] | None = None
    readings: tuple[Reading, ...] = ()

    @property
    def kind(self) -> Kind:
        """What it does to a term."""
        if isinstance(self.leaf, Linear) and self.gate is not None:
            return Kind.GATE
        for classes, kind in _KINDS:
            if isinstance(self.leaf, classes):
                return kind
        return Kind.OTHER

    @property
    def gate(self) -> Gate | None:
        """The door that a linear leaf is read through, if it is one."""
        last = self.readings[-1] if self.readings else None
        return last if isinstance(last, Gate) else None

    @property
    def date(self) -> Date | None:
        """What part of a date it reads, if it reads dates."""
        return next((r for r in self.readings if isinstance(r, Date)), None)

    @property
    def unit(self) -> float:
        """What a length of 1 inside the readings is on the axis itself."""
        length = 1.0
        for reading in self.readings:
            if isinstance(reading, Standardized) and reading.deviations:
                length *= reading.deviations[0]
        return length

    @property
    def origin(self) -> float:
        """The place on the axis that the leaf sees as 0."""
        place = 0.0
        for reading in reversed(self.readings):
            if isinstance(reading, Standardized) and reading.means and reading.deviations:
                place = reading.means[0] + reading.deviations[0] * place
        return place

    def numbers(self, name: str) -> tuple[float, ...]:
        """A parameter in units of the axis: one number, one for each column, or none while it is open."""
        value = getattr(self.leaf, name, None)
        if value is None or isinstance(value, Open):
            return ()
        listed = value if isinstance(value, tuple) else (value,)
        return tuple(float(v) * self.unit for v in listed)


def factors_of(term: Kernel) -> tuple[float, tuple[Factor, ...]]:
    """The number in front of a term, and its factors.

    >>> from mercer import RBF, Linear, Periodic
    >>> height, factors = factors_of(2.0 * (RBF(1.0) * Periodic(3.0)).on("t") * 1.5)
    >>> height, [(str(f.leaf), f.columns) for f in factors]
    (3.0, [('RBF(1.0)', ('t',)), ('Periodic(3.0)', ('t',))])
    """
    return _collected(term, None, ())


def _collected(
    kernel: Kernel, columns: tuple[Column, ...] | None, readings: tuple[Reading, ...]
) -> tuple[float, tuple[Factor, ...]]:
    if isinstance(kernel, Scaled):
        height, inside = _collected(kernel.kernel, columns, readings)
        return kernel.scale * height, inside
    if isinstance(kernel, On):
        return _collected(kernel.kernel, kernel.columns, readings)
    if isinstance(kernel, Read):
        return _collected(kernel.kernel, columns, (*readings, kernel.reading))
    parts: tuple[Kernel, ...] = ()
    if isinstance(kernel, Product):
        parts = kernel.parts
    elif isinstance(kernel, Power) and kernel.exponent in range(1, LONGEST_POWER + 1):
        parts = (kernel.kernel,) * int(kernel.exponent)
    if not parts:
        return 1.0, (Factor(kernel, columns, readings),)
    height = 1.0
    factors: tuple[Factor, ...] = ()
    for part in parts:
        own, inside = _collected(part, columns, readings)
        height *= own
        factors += inside
    return height, factors
