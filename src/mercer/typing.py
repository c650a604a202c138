"""Names for what goes in and what comes out, for annotations.

Array      numbers, float64; what every computation here is made of
Floats     numbers in the precision in which they came, single or double
Integers   positions and counts
Flags      true or false, entry by entry
Index      some rows of a matrix, by their positions or by a slice
Labels     classes: numbers or text
Table      rows as people have them: lists, arrays, sparse matrices, data frames
Targets    what is to be learned, one entry or one row for each row of the table
Weights    one number for each row, or None where all count alike
Seed       what scikit-learn calls random_state
Memory     bytes, or a text such as "2GiB"
Numbers    what becomes an array of numbers
Setting    the value of a parameter: a number, several, a word, a function, a kernel
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.intp]
Flags: TypeAlias = npt.NDArray[np.bool_]
Index: TypeAlias = Integers | slice
Labels: TypeAlias = npt.NDArray[Any]


class Frame(Protocol):
    """A data frame of any library: columns that have names."""

    @property
    def columns(self) -> Iterable[Any]: ...


class SparseMatrix(Protocol):
    """A matrix of SciPy that stores its entries other than 0."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def nnz(self) -> int: ...


Table: TypeAlias = npt.ArrayLike | Frame | SparseMatrix | Sequence[Any]
Targets: TypeAlias = npt.ArrayLike | Frame
Weights: TypeAlias = npt.ArrayLike | None
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
Memory: TypeAlias = int | str
Numbers: TypeAlias = npt.ArrayLike
Setting: TypeAlias = Any
