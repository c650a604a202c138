"""The parts of which explicit feature maps are made. Each knows its size before it is built.

Monomials    products of columns, or of the features of another map, each once
Words        the same with every order and every way to choose listed apart: redundant, as books write it
Join         maps side by side: φ of a sum          Tensor    all products of two maps: φ of a product
Through      a map after a choice of columns, a matrix or a function
Factor       a map times f(x)                       Unit      a map divided by its length
Projection, Waves, Halves    φ of Bilinear, Cosine, and ArcCosine in one column
Infinite     no finite map, and which part is to blame
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.errors import NoFiniteMapError
from mercer.kernels.maps.monomials import Expansion, Places, write_monomial
from mercer.sparse import Matrix, dense
from mercer.typing import Array

if TYPE_CHECKING:
    from mercer.kernels.algebra import LinearMap, Of, On, Times
    from mercer.kernels.base import Kernel

# Numbers written at a time, so that they stay in cache.
_CHUNK = 2**19


@dataclass(frozen=True)
class Space:
    """The columns a map sees: how many, and what they are called."""

    d: int
    names: tuple[str, ...] | None = None
    given: bool = False  # whether the names are those of the whole table

    def name(self, i: int) -> str:
        if self.names is None:
            return f"x{i + 1}"
        return self.names[i]


class Node(ABC):
    """A map from rows to features."""

    dimension: int | float

    @abstractmethod
    def factors(self, i: int) -> list[str]:
        """The names whose product feature i is, up to a number."""

    def name(self, i: int) -> str:
        """What feature i is called."""
        return write_monomial(self.factors(i))

    @abstractmethod
    def apply(self, x: Rows) -> Array:
        """The features of every row, n × dimension, in float64."""

    @property
    def linear(self) -> bool:
        """Whether every feature is a number, or a column times one number a row: then zeros stay zeros."""
        return False

    def apply_sparse(self, x: Rows) -> Matrix:
        """The features of sparse rows as CSR, in float64; for maps that are `linear`."""
        raise NotImplementedError

    @property
    def table_bytes(self) -> int:
        """What the map itself takes, besides its answer."""
        return 0

    def redundant(self) -> Node:
        """The same inner product with repeated coordinates; itself where there is nothing to repeat."""
        return self


@dataclass(frozen=True)
class Infinite(Node):
    """No finite map, because of a part of the kernel; what it is called is written where it is told."""

    culprit: Kernel
    dimension: int | float = math.inf

    def factors(self, i: int) -> list[str]:
        raise NotImplementedError

    def apply(self, x: Rows) -> Array:
        raise NotImplementedError


class Products(Node):
    """Weighted products of values v, which are the columns or the features of `inner`, listed in a table."""

    def __init__(self, expansion: Expansion, space: Space, inner: Node | None = None) -> None:
        self.expansion = expansion
        self.space = space
        self.inner = inner
        self.width = space.d if inner is None else int(inner.dimension)

    @property
    @abstractmethod
    def table(self) -> tuple[Places, Array]:
        """(index, weight): feature i is weight[i] Π v[index[i]]; an index beyond the last value means 1."""

    def factors(self, i: int) -> list[str]:
        columns = [int(j) for j in self.table[0][i] if j < self.width]
        if self.inner is None:
            return [self.space.name(j) for j in columns]
        return [name for j in columns for name in self.inner.factors(j)]

    def apply(self, x: Rows) -> Array:
        if self.linear:
            return self._apply_linear(x)
        index, weight = self.table
        out = np.empty((len(x), len(weight)))
        out[:] = weight
        if index.shape[1] == 0 or len(weight) == 0:
            return out
        V = self._values(x)
        step = max(1, _CHUNK // len(weight))
        for i in range(0, len(V), step):
            for factor in index.T:
                out[i : i + step] *= V[i : i + step, factor]
        return out

    @cached_property
    def _weights(self) -> tuple[float, float]:
        """The number that is a feature, and that of each column; 0 for what is none."""
        constant = self.expansion.coefficient(())
        column = self.expansion.coefficient((1,))
        return math.sqrt(constant), math.sqrt(column)

    def _apply_linear(self, x: Rows) -> Array:
        constant, column = self._weights
        first = int(constant > 0)
        out = np.empty((len(x), int(self.dimension)))
        out[:, :first] = constant
        if column > 0:
            np.multiply(dense(x.vectors), column, out=out[:, first:])
        return out

    def apply_sparse(self, x: Rows) -> Matrix:
        constant, column = self._weights
        parts = []
        if constant > 0:
            parts.append(sparse.csr_array(np.full((len(x), 1), constant)))
        if column > 0:
            columns = sparse.csr_array(x.vectors, dtype=np.float64)
            # a copy of all entries is only worth it where they change
            parts.append(columns if column == 1.0 else column * columns)
        return side_by_side(parts)

    def _values(self, x: Rows) -> Array:
        V = dense(x.vectors) if self.inner is None else self.inner.apply(x)
        return np.column_stack([V.astype(np.float64, copy=False), np.ones(len(V))])


class Monomials(Products):
    """√c(α) v^α for every monomial with c(α) > 0: the smallest map."""

    def __init__(self, expansion: Expansion, space: Space, inner: Node | None = None) -> None:
        super().__init__(expansion, space, inner)
        self.dimension = expansion.count(self.width) if self.width else int(expansion.at_zero[0] > 0)

    @property
    def table_bytes(self) -> int:
        table = int(self.dimension) * self.expansion.table_bytes(self.width)
        return table + (self.inner.table_bytes if self.inner else 0)

    @cached_property
    def table(self) -> tuple[Places, Array]:
        if self.width == 0:
            return Expansion.constant(self.expansion.at_zero[0]).table(1)
        return self.expansion.table(self.width)

    @property
    def linear(self) -> bool:
        return self.inner is None and self.width > 0 and self.expansion.degree(self.width) <= 1

    def redundant(self) -> Node:
        return Words(self.expansion, self.space, self.inner and self.inner.redundant())


class Words(Products):
    """√a v_i v_j … for every choice and order of factors: a p^j E^k has w^j 2^(wk) of them on w values."""

    def __init__(self, expansion: Expansion, space: Space, inner: Node | None = None) -> None:
        super().__init__(expansion, space, inner)
        self.dimension = expansion.count_words(self.width)

    @property
    def table_bytes(self) -> int:
        table = int(self.dimension) * (4 * self.expansion.degree(self.width) + 8)
        return table + (self.inner.table_bytes if self.inner else 0)

    @cached_property
    def table(self) -> tuple[Places, Array]:
        return self.expansion.words(self.width)


class Join(Node):
    """√c₁ φ₁, √c₂ φ₂, … side by side."""

    def __init__(self, parts: list[tuple[Fraction, Node]]) -> None:
        self.parts = [(math.sqrt(c), node) for c, node in parts if node.dimension]
        self.scales = [c for c, node in parts if node.dimension]
        self.dimension = sum(int(node.dimension) for _, node in self.parts)

    @property
    def table_bytes(self) -> int:
        return sum(node.table_bytes for _, node in self.parts)

    def redundant(self) -> Node:
        nodes = [node.redundant() for _, node in self.parts]
        return Join(list(zip(self.scales, nodes, strict=True)))

    def factors(self, i: int) -> list[str]:
        for _, node in self.parts:
            if i < node.dimension:
                return node.factors(i)
            i -= int(node.dimension)
        raise IndexError(i)

    def apply(self, x: Rows) -> Array:
        out = np.empty((len(x), int(self.dimension)))
        at = 0
        for root, node in self.parts:
            end = at + int(node.dimension)
            np.multiply(node.apply(x), root, out=out[:, at:end])
            at = end
        return out

    @property
    def linear(self) -> bool:
        return bool(self.parts) and all(node.linear for _, node in self.parts)

    def apply_sparse(self, x: Rows) -> Matrix:
        return side_by_side([root * node.apply_sparse(x) for root, node in self.parts])


class Tensor(Node):
    """Every product of a feature of `a` and a feature of `b`."""

    def __init__(self, a: Node, b: Node) -> None:
        self.a = a
        self.b = b
        self.dimension = int(a.dimension) * int(b.dimension)

    @property
    def table_bytes(self) -> int:
        return self.a.table_bytes + self.b.table_bytes

    def redundant(self) -> Node:
        return Tensor(self.a.redundant(), self.b.redundant())

    def factors(self, i: int) -> list[str]:
        j, k = divmod(i, int(self.b.dimension))
        return self.a.factors(j) + self.b.factors(k)

    def apply(self, x: Rows) -> Array:
        products = np.einsum("ij,ik->ijk", self.a.apply(x), self.b.apply(x))
        return np.asarray(products).reshape(len(x), int(self.dimension))


class Wrapped(Node):
    """A map with as many features as another."""

    def __init__(self, inner: Node) -> None:
        self.inner = inner
        self.dimension = inner.dimension

    @property
    def table_bytes(self) -> int:
        return self.inner.table_bytes

    def factors(self, i: int) -> list[str]:
        return self.inner.factors(i)


class Through(Wrapped):
    """φ(ψ(x)) with ψ of an `On`, `Of` or `LinearMap`."""

    def __init__(self, inner: Node, how: On | Of | LinearMap) -> None:
        super().__init__(inner)
        self.how = how

    def redundant(self) -> Node:
        return Through(self.inner.redundant(), self.how)

    def apply(self, x: Rows) -> Array:
        return self.inner.apply(self.how.mapped(x))

    @property
    def linear(self) -> bool:
        return self.inner.linear and self.how.keeps_zeros

    def apply_sparse(self, x: Rows) -> Matrix:
        return self.inner.apply_sparse(self.how.mapped(x))


class Factor(Wrapped):
    """f(x) φ(x)."""

    def __init__(self, inner: Node, times: Times) -> None:
        super().__init__(inner)
        self.times = times

    def redundant(self) -> Node:
        return Factor(self.inner.redundant(), self.times)

    def factors(self, i: int) -> list[str]:
        return [f"{function_name(self.times.f, 'f')}(x)", *self.inner.factors(i)]

    def apply(self, x: Rows) -> Array:
        return self.times.factor(x)[:, None] * self.inner.apply(x)

    @property
    def linear(self) -> bool:
        return self.inner.linear

    def apply_sparse(self, x: Rows) -> Matrix:
        return times_rows(self.times.factor(x), self.inner.apply_sparse(x))


class Unit(Wrapped):
    """φ(x) / ‖φ(x)‖, and 0 where φ(x) is 0."""

    def __init__(self, inner: Node, length: str) -> None:
        super().__init__(inner)
        self.length = length

    def redundant(self) -> Node:
        return Unit(self.inner.redundant(), self.length)

    def factors(self, i: int) -> list[str]:
        name = self.inner.name(i)
        return [f"({name})/{self.length}" if "*" in name else f"{name}/{self.length}"]

    def apply(self, x: Rows) -> Array:
        out = self.inner.apply(x)
        length = np.sqrt(np.einsum("ij,ij->i", out, out))
        out *= (1 / np.where(length == 0, np.inf, length))[:, None]
        return out

    @property
    def linear(self) -> bool:
        return self.inner.linear

    def apply_sparse(self, x: Rows) -> Matrix:
        out = self.inner.apply_sparse(x)
        length = np.sqrt(out.multiply(out).sum(axis=1))
        return times_rows(1 / np.where(length == 0, np.inf, length), out)


class Projection(Node):
    """xᵀB, for xᵀAz with A = BBᵀ."""

    def __init__(self, B: Array) -> None:
        self.B = B
        self.dimension = B.shape[1]

    def factors(self, i: int) -> list[str]:
        return [f"v{i + 1}·x"]

    def apply(self, x: Rows) -> Array:
        return np.asarray(x.vectors.astype(np.float64, copy=False) @ self.B)


class Waves(Node):
    """Π of a cosine or a sine of each column: cos ω(x - z) = cos ωx cos ωz + sin ωx sin ωz."""

    def __init__(self, period: Array, space: Space) -> None:
        self.period = period
        self.space = space
        self.dimension = 2 ** len(period)

    def factors(self, i: int) -> list[str]:
        waves = ["sin" if i >> (len(self.period) - 1 - j) & 1 else "cos" for j in range(len(self.period))]
        terms = zip(waves, self.period, range(len(waves)), strict=True)
        return [f"{w}(2π{self.space.name(j)}/{p:g})" for w, p, j in terms]

    def apply(self, x: Rows) -> Array:
        angle = 2 * np.pi * dense(x.vectors).astype(np.float64, copy=False) / self.period
        out = np.ones((len(x), 1))
        for a in angle.T:
            out = np.einsum("ij,ik->ijk", out, np.column_stack([np.cos(a), np.sin(a)])).reshape(len(x), -1)
        return out


class Halves(Node):
    """The two half-lines of `ArcCosine` in one column: max(x, 0)ⁿ and max(-x, 0)ⁿ, with 0⁰ = 1/2."""

    def __init__(self, order: int, top: float, space: Space) -> None:
        self.order = order
        self.top = top
        self.space = space
        self.dimension = 2

    def factors(self, i: int) -> list[str]:
        name = self.space.name(0)
        if self.order == 0:
            return [f"[{name} {'><'[i]} 0]"]
        return [f"max({'-' * i}{name}, 0)"] * self.order

    def apply(self, x: Rows) -> Array:
        v = dense(x.vectors).astype(np.float64, copy=False)
        both = np.column_stack([v, -v])
        halves = np.heaviside(both, 0.5) if self.order == 0 else np.maximum(both, 0) ** self.order
        return math.sqrt(self.top) * halves


def side_by_side(parts: list[Matrix]) -> Matrix:
    """Sparse features of the same rows, one after the other."""
    return parts[0] if len(parts) == 1 else sparse.csr_array(sparse.hstack(parts, format="csr"))


def times_rows(factor: Array, A: Matrix) -> Matrix:
    """Each row of a sparse matrix times a number."""
    out = sparse.csr_array(A, copy=True)
    out.data *= np.repeat(factor, np.diff(out.indptr))
    return out


def function_name(f: Callable[..., object], otherwise: str) -> str:
    name = getattr(f, "__name__", otherwise)
    if name == "<lambda>":
        return otherwise
    return name


def unknown_map(k: Kernel, why: str) -> NoFiniteMapError:
    """The error of a kernel that may or may not have a finite map."""
    return NoFiniteMapError(f"no finite feature map of {k} is known: {why}")
