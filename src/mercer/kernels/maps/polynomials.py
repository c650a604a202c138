"""Kernels that are polynomials in one set of columns, read from their expressions.

Sums, products, powers and polynomials of `Constant`, `Linear`, `Polynomial`, `Dot(taylor=…)` and `AllSubsets`
are expanded exactly; `on`, `of` and matrices around them say which columns the polynomial sees.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Column, Rows
from mercer.errors import (
    InputError,
    NoFiniteMapError,
    ShapeError,
)
from mercer.kernels.algebra import (
    Exp,
    LinearMap,
    Of,
    On,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Sum,
)
from mercer.kernels.base import Kernel
from mercer.kernels.maps.monomials import Expansion
from mercer.kernels.maps.parts import (
    Monomials,
    Node,
    Space,
    Through,
    function_name,
)
from mercer.kernels.tuning import hashable

# The nodes through which a polynomial sees the data, outermost first.
Path = tuple[On | Of | LinearMap, ...]


@dataclass(frozen=True)
class InColumns:
    """An expansion and the way it sees the data; constants see nothing."""

    expansion: Expansion
    path: Path | None = None

    @property
    def key(self) -> Hashable:
        """Equal where the data are seen in the same way."""
        if self.path is None:
            return None
        return tuple(_way(k) for k in self.path)


def _way(k: On | Of | LinearMap) -> Hashable:
    if isinstance(k, On):
        return ("On", hashable(k.columns))
    if isinstance(k, Of):
        return ("Of", k.map)
    return ("LinearMap", k.A)


def expand(k: Kernel) -> InColumns | None:
    """`k` as a polynomial in one set of columns, or None."""
    match k:
        case On() | Of() | LinearMap():
            inside = expand(k.kernel)
            if inside is None or inside.path is None:
                return inside
            return InColumns(inside.expansion, (k, *inside.path))
        case Sum() | Product():
            return _expand_parts(k)
        case Scaled() | Power() | PolynomialOf() | Exp():
            inside = expand(k.kernel)
            outside = None if inside is None else _expand_unary(k, inside.expansion)
            if inside is None or outside is None:
                return None
            return InColumns(outside, inside.path)
    found = k.in_columns()
    if found is None:
        return None
    if k.takes_things():
        # what takes other things than vectors, a constant, sees no columns
        return InColumns(found, None)
    return InColumns(found, ())


def _expand_parts(k: Sum | Product) -> InColumns | None:
    parts = [expand(part) for part in k.parts]
    if any(p is None for p in parts) or len({p.key for p in parts if p and p.path is not None}) > 1:
        return None
    out = Expansion.constant(0 if isinstance(k, Sum) else 1)
    path: Path | None = None
    for p in parts:
        assert p is not None
        out = out + p.expansion if isinstance(k, Sum) else out * p.expansion
        path = p.path if p.path is not None else path
    return InColumns(out, path)


def _expand_unary(k: Kernel, inside: Expansion) -> Expansion | None:
    match k:
        case Scaled():
            return inside.scaled(k.scale)
        case PolynomialOf():
            return inside.polynomial(k.coefs)
        case Power() if k.exponent == int(k.exponent):
            return inside.power(int(k.exponent))
        case Power() if inside.is_constant and inside.at_zero[0] >= 0:
            return Expansion.constant(float(inside.at_zero[0]) ** k.exponent)
        case Exp() if inside.is_constant:
            return Expansion.constant(math.exp(inside.at_zero[0]))
    return None


def polynomial_map(polynomial: InColumns, space: Space) -> Node:
    """The map of a polynomial, seen through its path."""

    def inside(path: Path, seen: Space) -> Node:
        if not path:
            return Monomials(polynomial.expansion, seen)
        return Through(inside(path[1:], space_after(path[0], seen)), path[0])

    return inside(polynomial.path or (), space)


def space_after(k: On | Of | LinearMap, space: Space) -> Space:
    """The columns that the kernel inside an `On`, `Of` or `LinearMap` sees."""
    if isinstance(k, LinearMap):
        if len(k.A[0]) != space.d:
            raise ShapeError(f"of(A): A has {len(k.A[0])} columns, but d is {space.d}.")
        return Space(len(k.A), tuple(f"(Ax){i}" for i in range(1, len(k.A) + 1)))
    if isinstance(k, On):
        names = [name for c in k.columns for name in _chosen(c, space)]
        return Space(len(names), tuple(names))
    name = function_name(k.map, "ψ")
    width = _width(k, space.d)
    return Space(width, tuple(f"{name}{i}" for i in range(1, width + 1)))


def _chosen(column: Column, space: Space) -> list[str]:
    if isinstance(column, str):
        if space.given and column not in (space.names or ()):
            raise InputError(f"there is no column {column!r}; there are {list(space.names or ())}.")
        return [column]
    if isinstance(column, slice):
        found = [space.name(i) for i in range(*column.indices(space.d))]
        if not found:
            raise ShapeError(f"{column} selects none of the {space.d} columns.")
        return found
    if not -space.d <= column < space.d:
        raise ShapeError(f"column {column} was asked for, but d is {space.d} (columns 0 to {space.d - 1}).")
    return [space.name(column % space.d)]


def _width(k: Of, d: int) -> int:
    """How many columns a user's map makes of d, by calling it once on two rows."""
    try:
        with np.errstate(all="ignore"):
            return int(k.mapped(Rows(np.full((2, d), 0.5))).vectors.shape[1])
    except Exception as error:
        raise NoFiniteMapError(
            f"{k}: the map was tried on rows of {d} numbers to see how many it makes of them, and failed: "
            f"{error}"
        ) from error
