"""Explicit feature maps φ with φ(x)·φ(z) = k(x, z), where they are finite (K12)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mercer.arrays import Rows, column_names
from mercer.errors import (
    InputError,
    MemoryBudgetError,
    NoFiniteMapError,
    ParameterError,
    ShapeError,
)
from mercer.kernels import doors
from mercer.kernels.base import Kernel
from mercer.kernels.maps.parts import (
    Infinite,
    Node,
    Space,
)
from mercer.kernels.maps.planning import plan
from mercer.memory import memory_limit, say_bytes, say_count
from mercer.samples import common_dtype
from mercer.sparse import Matrix
from mercer.typing import Array, Table

Columns = int | Sequence[str] | None


def dimension(kernel: Kernel, d: Columns, *, redundant: bool = False) -> int | float:
    """How many features the map of `kernel` has on d columns; nothing is built.

    >>> from mercer import RBF, AllSubsets, Polynomial
    >>> dimension(Polynomial(2), 3), dimension(AllSubsets(), 100) == 2**100, dimension(RBF(), 3)
    (10, True, inf)
    >>> dimension(Polynomial(2), 3, redundant=True)                  # 1 + 3 + 3²
    13
    """
    space = _space(kernel, d)
    known = None if redundant else kernel.map_dimension(space.d)
    if known is not None:
        return known
    return _planned(kernel, space, redundant).dimension


def build(kernel: Kernel, d: Columns, *, redundant: bool = False, memory: int | str = "1GiB") -> FeatureMap:
    """The map itself, refused where it is infinite or larger than `memory`.

    >>> from mercer import Polynomial
    >>> build(Polynomial(2), 2).names
    ('1', 'x1', 'x2', 'x1^2', 'x1*x2', 'x2^2')
    """
    limit = memory_limit(memory)
    if _counts(kernel):
        raise NoFiniteMapError(
            f"the features of {kernel!r} are those that things have, and no number of columns tells them. "
            "Pass the things: k.features_of(X)."
        )
    space = _space(kernel, d)
    node = _planned(kernel, space, redundant)
    if isinstance(node, Infinite):
        culprit = str(node.culprit)
        inside = "" if culprit == str(kernel) else f" because of {culprit}"
        raise NoFiniteMapError(
            f"the feature map of {kernel} is infinite{inside}. Use the kernel itself, or mercer.MercerMap "
            "for "
            "finitely many features of a sample."
        )
    size = int(node.dimension)
    _check_memory(kernel, space.d, size, 8 * size, limit, "for one row")
    _check_memory(
        kernel, space.d, size, 8 * size + node.table_bytes, limit, "for one row and the table of monomials"
    )
    return FeatureMap(kernel, space, node, limit)


def _counts(kernel: Kernel) -> bool:
    """Whether the kernel is made of leaves whose features are met in things, one of them no constant."""
    leaves = [part for part in kernel.walk() if not part.children()]
    if any(type(part).sparse_map is Kernel.sparse_map for part in leaves):
        return False
    return any(part.in_columns() is None for part in leaves)


def _planned(kernel: Kernel, space: Space, redundant: bool) -> Node:
    if not isinstance(redundant, bool | np.bool_):
        raise ParameterError(f"redundant must be True or False; got {redundant!r}.")
    node = plan(kernel, space)
    if redundant:
        return node.redundant()
    return node


def _check_memory(kernel: Kernel, d: int, size: int, needed: int, limit: int, what: str) -> None:
    if needed > limit:
        raise MemoryBudgetError(
            f"the feature map of {kernel} on {d} column(s) has {say_count(size)} features and needs "
            f"{say_bytes(needed)} "
            f"{what}; the limit is {say_bytes(limit)}. Use the kernel itself, which needs no map, or raise "
            "memory=."
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMap:
    """φ with φ(x)·φ(z) = k(x, z): call it on rows to get an n × D array.

    Lists, arrays, data frames and sparse matrices are taken; the answer is always dense, in float32 for
    float32 rows and else in float64, and refused when it would be larger than the memory allowed.

    >>> from mercer import Polynomial
    >>> phi = Polynomial(2, offset=0.5).features(1)
    >>> phi([[3.0]]) @ phi([[2.0]]).T                         # (0.5 + 6)²
    array([[42.25]])
    >>> print(phi)
    φ of Polynomial(2, offset=0.5): 1 column -> 3 features (1, x1, x1^2)
    """

    kernel: Kernel
    space: Space
    node: Node
    memory: int

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.node.dimension)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each feature is, as "x1*x3"."""
        return tuple(self.node.name(i) for i in range(self.dimension))

    def __call__(self, X: Table | Rows) -> Array:
        x = self._rows(X)
        n = len(x)
        size = 8 * n * self.dimension
        _check_memory(self.kernel, self.space.d, self.dimension, size, self.memory, f"for these {n:,} rows")
        return self.node.apply(x).astype(common_dtype(x, None), copy=False)

    def keeps_sparse(self, X: Table | Rows) -> bool:
        """Whether `sparse` gives the features of these rows: they are sparse, and the map keeps zeros.

        >>> from mercer import Linear, Polynomial
        >>> from scipy.sparse import csr_array
        >>> X = csr_array([[0.0, 2.0]])
        >>> (2 * Linear() + 1).features(2).keeps_sparse(X), Polynomial(2).features(2).keeps_sparse(X)
        (True, False)
        """
        return bool(self.node.linear and sparse.issparse(self._rows(X).data))

    def sparse(self, X: Table | Rows) -> Matrix:
        """The features of sparse rows as a CSR array, which takes memory for their entries only."""
        return self.node.apply_sparse(self._rows(X))

    def _rows(self, X: Table | Rows) -> Rows:
        """The rows, checked to have the columns that the map was built for."""
        x = Rows.of(X, "X")
        d = len(x.names) if x.names is not None else x.vectors.shape[1]
        if d != self.space.d:
            raise ShapeError(
                f"X has {d} columns; the map was built for {self.space.d}. Pass the same columns, or call "
                f"features({d}) for another map."
            )
        if self.space.given and x.names is not None and list(x.names) != list(self.space.names or ()):
            raise InputError(
                f"X has columns {x.names}; the map was built for {list(self.space.names or ())}."
            )
        if x.names is None and self.space.given:
            x = Rows(x.data, x.name, self.space.names)
        return x

    def __str__(self) -> str:
        shown = [self.node.name(i) for i in range(min(self.dimension, 6))]
        shown += ["…"] if self.dimension > 6 else []
        columns, features = (
            f"{n:,} {word}{'' if n == 1 else 's'}"
            for n, word in ((self.space.d, "column"), (self.dimension, "feature"))
        )
        return f"φ of {self.kernel}: {columns} -> {features}" + (f" ({', '.join(shown)})" if shown else "")

    __repr__ = __str__


def _space(kernel: Kernel, d: Columns) -> Space:
    names = column_names(d)
    if names is None and isinstance(d, Sequence) and not isinstance(d, str):
        names = [str(name) for name in d]
    if names is not None:
        if len(set(names)) != len(names) or not names:
            raise ParameterError(f"d: column names must be distinct and at least one; got {names}.")
        return Space(len(names), tuple(names), given=True)
    if d is None:
        d = kernel.columns_needed()[0]
    try:
        count = -1 if isinstance(d, bool) else operator.index(d)  # type: ignore[arg-type]
    except TypeError:
        count = -1
    if count < 1:
        raise ParameterError(
            f"d must be the number of columns, a whole number >= 1 (or their names); got {d!r}."
        )
    return Space(count)


doors.mapping.open(doors.Mapping(build, dimension))
