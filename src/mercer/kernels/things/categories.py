"""Kernels of categories: values that are equal or not, such as a region, a colour or a job.

    Categorical   Π_j e^(-[x_j ≠ z_j] / ℓ_j)     how much a difference in each column counts
    Hamming       the share of the columns in which two rows agree

A missing value is a category of its own: it agrees with another missing one, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import InputTypeError, ShapeError
from mercer.frames import FLOATS, NEVER_NAN, is_missing, without_gaps
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.programs.program import Place
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.things.counted import Counted, widened
from mercer.kernels.things.sparse_map import SparseMap
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.params import OPEN, Open, Vector, positive
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

# Values that are compared as they are, but for NaN.
PLAIN = NEVER_NAN | FLOATS
MISSING = "(missing)"
"""What a missing value is called among the names of features."""

EMPTY = "(empty)"
"""What an empty text is called."""

# The lengthscale when the data are to choose it, for each column: rows that differ in all count e^-1.
TYPICAL = 1.0


@leaf
class Categorical(Leaf):
    """Values that are the same or not; rows may have several columns of them.

        k(x, z) = exp(-Σ_j [x_j ≠ z_j] / ℓ_j)

    A short lengthscale tells different values apart, a long one hardly minds; an open one is closed at the
    number of columns, so that rows which differ in all of them have e^-1. Text, numbers and truth values
    are compared by `==`.

    >>> Categorical(1.0)([["red"], ["blue"], ["red"]]).round(3)          # e^-1 for different colours
    array([[1.   , 0.368, 1.   ],
           [0.368, 1.   , 0.368],
           [1.   , 0.368, 1.   ]])
    """

    lengthscale: Vector = positive(OPEN, per_column=True)

    because: ClassVar = Fact(
        "product of kernels",
        "each factor is (1 - ρ) [x_j = z_j] + ρ with ρ = e^(-1/ℓ_j) in (0, 1): an inner product of "
        "indicators, and a constant",
    )
    divisible: ClassVar = "k^r is the same kernel with lengthscales ℓ_j / r"
    formula: ClassVar = r"\exp\Bigl(-\sum_j \frac{[x_j\neq z_j]}{<lengthscale>}\Bigr)"

    def takes_things(self) -> bool:
        return True

    def compare_columns(self, x: Rows, z: Rows) -> None:
        if levels(x).shape[1] != levels(z).shape[1]:
            raise ShapeError(
                f"{z.name} has {levels(z).shape[1]} columns of categories and {x.name} {levels(x).shape[1]}. "
                "Pass the same columns."
            )

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        value: object = self.lengthscale
        columns = levels(rows).shape[1]
        if value is Open.EACH:
            return self.changed(lengthscale=(TYPICAL * columns,) * columns)
        if value is Open.ONE:
            return self.changed(lengthscale=TYPICAL * columns)
        return self

    def indicators(self, x: Rows, z: Rows | None) -> list[tuple[Matrix, Matrix | None]]:
        """For each column, which value each row has: rows of one 1, in the same columns for both samples."""
        if z is None:
            return [(A, None) for _, A in first_indicators(x)]
        out: list[tuple[Matrix, Matrix | None]] = []
        for j, (values, B) in enumerate(first_indicators(z)):
            more = values.extended()
            columns = more.columns(levels(x)[:, j])
            out.append((one_hot(columns, len(more)), widened(B, max(len(more), 1))))
        return out

    def block(self, x: Rows, z: Rows | None) -> Array:
        parts = self.indicators(x, z)
        lengths = self.column_values("lengthscale", len(parts))
        total = np.zeros((len(x), len(x if z is None else z)))
        for (A, B), length in zip(parts, lengths, strict=True):
            total += (1.0 - (A @ (A if B is None else B).T).toarray()) / length
        return np.exp(-total)

    def program(self, at: Place) -> None:
        """e^(Σ_j ([x_j = z_j] - 1)/ℓ_j): agreement is the inner product of indicators."""
        parts = self.indicators(at.x, at.z)
        lengths = self.column_values("lengthscale", len(parts))
        for j, ((A, B), length) in enumerate(zip(parts, lengths, strict=True)):
            at.step("DOT", at.showing(A, B).view())
            name = self.entry_name("lengthscale", j)
            inverse = at.param(1 / length, name, -(length**-2.0))
            at.affine(inverse, at.param(-1 / length, name, length**-2.0))
            if j:
                at.step("ADD")
        at.step("EXP")

    def diagonal(self, x: Rows) -> Array:
        self.column_values("lengthscale", levels(x).shape[1])
        return np.ones(len(x))

    def sparse_map(self, x: Rows) -> SparseMap | None:
        """Of one column: its values, and a constant."""
        if levels(x).shape[1] != 1:
            return None
        rho = float(np.exp(-1 / self.column_values("lengthscale", 1)[0]))
        values = Vocabulary()
        values.columns(levels(x)[:, 0])
        names = ["1", *(written(v) for v in values.features())]
        of_rows = partial(_constant_and_value, values, rho)
        return SparseMap(names, of_rows(x), of_rows)


@leaf
class Hamming(Counted):
    """The share of the columns in which two rows agree.

        k(x, z) = (1/d) Σ_j [x_j = z_j]

    >>> Hamming()([["red", "oval"], ["red", "round"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    formula: ClassVar = r"\frac{1}{d}\sum_j [x_j = z_j]"
    things_are: ClassVar = "rows of categories"

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        found = super().counts(things, vocabulary, name)
        _same_width(things, name)
        return found

    def compare_columns(self, x: Rows, z: Rows) -> None:
        here, there = (_same_width(rows.things, rows.name) for rows in (x, z))
        if here != there:
            raise ShapeError(
                f"{z.name} has {there} columns of categories and {x.name} {here}. Pass the same columns."
            )

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        cells = cells_of(thing)
        return {(j, category(v)): len(cells) ** -0.5 for j, v in enumerate(cells)}

    def feature_name(self, feature: Hashable) -> str:
        assert isinstance(feature, tuple)
        return f"column {feature[0]}: {written(feature[1])}"


def _same_width(things: Sequence[Thing], name: str) -> int:
    """How many cells all rows have; one that has more or fewer is refused."""
    width = len(_cells_or_missing(things[0]))
    for i, thing in enumerate(things):
        mine = len(_cells_or_missing(thing))
        if mine != width:
            raise ShapeError(
                f"row {i} of {name} has {mine} categories and row 0 has {width}. Give all rows the same "
                "columns."
            )
    return width


def _constant_and_value(values: Vocabulary, rho: float, rows: Rows) -> Matrix:
    """√ρ in all rows, and √(1 - ρ) in the column of the value that a row has."""
    hot = one_hot(values.closed().columns(levels(rows)[:, 0]), len(values))
    constant = sparse.csr_array(np.full((len(rows), 1), np.sqrt(rho)))
    return sparse.csr_array(sparse.hstack([constant, np.sqrt(1 - rho) * hot]))


def cells_of(thing: Thing) -> Sequence[Thing]:
    """The cells of one row; a single value is a row of one."""
    if thing is None:
        raise TypeError("it is no row")
    if isinstance(thing, np.ndarray | list | tuple):
        return list(thing)
    return (thing,)


def levels(x: Rows) -> np.ndarray:
    """The rows as a table of categories, made once for each sample."""

    def make() -> np.ndarray:
        rows = [_cells_or_missing(thing) for thing in x.things]
        out = np.empty((len(rows), _same_width(x.things, x.name)), dtype=object)
        for j in range(out.shape[1]):
            values = [cells[j] for cells in rows]
            if set(map(type, values)) <= PLAIN:
                out[:, j] = without_gaps(values)
            else:
                out[:, j] = [_checked(value, i, j, x) for i, value in enumerate(values)]
        return out

    return x.remembered("levels", make)


def first_indicators(x: Rows) -> list[tuple[Vocabulary, Matrix]]:
    """The values of each column, and which of them each row has; found once for each sample."""

    def make() -> list[tuple[Vocabulary, Matrix]]:
        out = []
        for column in levels(x).T:
            values = Vocabulary()
            codes = values.columns(column)
            out.append((values, one_hot(codes, len(values))))
        return out

    return x.remembered("indicators", make)


def _cells_or_missing(thing: Thing) -> Sequence[Thing]:
    """The cells of a row; None alone is a missing value."""
    return (None,) if thing is None else cells_of(thing)


def _checked(value: Thing, i: int, j: int, x: Rows) -> Hashable:
    try:
        hash(value)
    except TypeError as error:
        raise InputTypeError(
            f"Categorical compares single values, but row {i}, column {j} of {x.name} is a "
            f"{type(value).__name__}."
        ) from error
    return category(value)


def category(value: Thing) -> Hashable:
    """A value as it is compared; all missing values are one, and 1, 1.0 and True are."""
    if is_missing(value):
        return None
    found: Hashable = value
    return found


def written(value: Hashable) -> str:
    """A category as a person would write it."""
    if value is None:
        return MISSING
    return str(value) or EMPTY


def one_hot(columns: Integers, width: int) -> Matrix:
    """Rows of one 1 each; none where the column is absent."""
    there = columns != ABSENT
    starts = np.concatenate([[0], np.cumsum(there)])
    data = np.ones(int(there.sum()))
    return sparse.csr_array((data, columns[there], starts), shape=(len(columns), max(width, 1)))
