"""Explicit feature maps φ with φ(x)·φ(z) = k(x, z), where they are finite (K12).

A kernel that is a polynomial in the columns is expanded exactly (see `monomials`) and gets the smallest map there is,
one feature per monomial. Other sums put maps side by side, other products multiply them out, and whole powers take
the monomials of the features inside.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Rows, column_names
from mercer.errors import (
    InputError,
    InvalidKernelError,
    MemoryBudgetError,
    NoFiniteMapError,
    ParameterError,
    ShapeError,
)
from mercer.kernels.algebra import (
    Exp,
    LinearMap,
    Normalized,
    Of,
    On,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Sum,
    Times,
)
from mercer.kernels.base import Kernel, _dtype, _hashable
from mercer.kernels.columns import AllSubsets, Cosine
from mercer.kernels.dot import Dot, Linear, Logistic, Polynomial, Sigmoid
from mercer.kernels.maps import (
    Factor,
    Halves,
    Infinite,
    Join,
    Monomials,
    Node,
    Projection,
    Space,
    Tensor,
    Through,
    Unit,
    Waves,
    function_name,
)
from mercer.kernels.monomials import Expansion, vanishes
from mercer.kernels.special import ArcCosine, Bilinear, Constant, CosineSimilarity, Custom, Stationary
from mercer.memory import memory_limit, say_bytes, say_count

Path = tuple[
    Kernel, ...
]  # the On, Of and LinearMap nodes through which a polynomial sees the data, outermost first
Columns = int | Sequence[str] | None


# ── the two questions ───────────────────────────────────────────────────────────────────────────────────────


def dimension(kernel: Kernel, d: Columns) -> int | float:
    """How many features the map of `kernel` has on d columns; nothing is built.

    >>> from mercer import RBF, AllSubsets, Polynomial
    >>> dimension(Polynomial(2), 3), dimension(AllSubsets(), 100) == 2**100, dimension(RBF(), 3)
    (10, True, inf)
    """
    return _plan(kernel, _space(kernel, d)).dimension


def build(kernel: Kernel, d: Columns, *, memory: int | str = "1GiB") -> FeatureMap:
    """The map itself, refused where it is infinite or larger than `memory`.

    >>> from mercer import Polynomial
    >>> build(Polynomial(2), 2).names
    ('1', 'x1', 'x2', 'x1^2', 'x1*x2', 'x2^2')
    """
    limit, space = memory_limit(memory), _space(kernel, d)
    node = _plan(kernel, space)
    if isinstance(node, Infinite):
        inside = "" if node.culprit == str(kernel) else f" because of {node.culprit}"
        raise NoFiniteMapError(
            f"the feature map of {kernel} is infinite{inside}. Use the kernel itself, or mercer.MercerMap for "
            "finitely many features of a sample."
        )
    size = int(node.dimension)
    _check_memory(kernel, space.d, size, 8 * size, limit, "for one row")
    _check_memory(
        kernel, space.d, size, 8 * size + node.table_bytes, limit, "for one row and the table of monomials"
    )
    return FeatureMap(kernel, space, node, limit)


def _check_memory(kernel: Kernel, d: int, size: int, needed: int, limit: int, what: str) -> None:
    if needed > limit:
        raise MemoryBudgetError(
            f"the feature map of {kernel} on {d} column(s) has {say_count(size)} features and needs {say_bytes(needed)} "
            f"{what}; the limit is {say_bytes(limit)}. Use the kernel itself, which needs no map, or raise memory=."
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMap:
    """φ with φ(x)·φ(z) = k(x, z): call it on rows to get an n × D array.

    Lists, arrays, data frames and sparse matrices are taken; the answer is always dense, in float32 for float32 rows
    and else in float64, and refused when it would be larger than the memory allowed.

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

    def __call__(self, X: Any) -> np.ndarray:
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
        n = len(x)
        _check_memory(
            self.kernel, d, self.dimension, 8 * n * self.dimension, self.memory, f"for these {n:,} rows"
        )
        return self.node.apply(x).astype(_dtype(x, None), copy=False)

    def __str__(self) -> str:
        shown = [self.node.name(i) for i in range(min(self.dimension, 6))]
        shown += ["…"] if self.dimension > 6 else []
        columns, features = (
            f"{n:,} {word}{'' if n == 1 else 's'}"
            for n, word in ((self.space.d, "column"), (self.dimension, "feature"))
        )
        return f"φ of {self.kernel}: {columns} -> {features}" + (f" ({', '.join(shown)})" if shown else "")

    __repr__ = __str__


def _space(kernel: Kernel, d: Any) -> Space:
    names = column_names(d)
    if names is None and isinstance(d, Sequence) and not isinstance(d, str):
        names = [str(name) for name in d]
    if names is not None:
        if len(set(names)) != len(names) or not names:
            raise ParameterError(f"d: column names must be distinct and at least one; got {names}.")
        return Space(len(names), tuple(names), given=True)
    if d is None:
        d = kernel._columns_needed()[0]
    try:
        count = -1 if isinstance(d, bool) else operator.index(d)
    except TypeError:
        count = -1
    if count < 1:
        raise ParameterError(
            f"d must be the number of columns, a whole number >= 1 (or their names); got {d!r}."
        )
    return Space(count)


# ── polynomials of the columns ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Polynome:
    """An expansion and the way it sees the data; constants see nothing."""

    expansion: Expansion
    path: Path | None = None

    @property
    def key(self) -> Any:
        return None if self.path is None else tuple(_way(k) for k in self.path)


def _way(k: Any) -> Any:
    return (
        type(k).__name__,
        _hashable(k.columns if isinstance(k, On) else k.map if isinstance(k, Of) else k.A),
    )


def _expand(k: Kernel) -> Polynome | None:
    """`k` as a polynomial in one set of columns, or None."""
    match k:
        case Constant():
            return Polynome(Expansion.constant(k.value))
        case Linear():
            return Polynome(Expansion.series((0, 1)), ())
        case Polynomial():
            return Polynome(Expansion.series((k.offset, k.scale)).power(k.degree), ())
        case Dot() if isinstance(k.taylor, tuple):
            return Polynome(Expansion.series(k.taylor), ())
        case AllSubsets():
            return Polynome(Expansion.of({(0, 1): 1}), ())
        case On() | Of() | LinearMap():
            inside = _expand(k.kernel)
            return inside and Polynome(inside.expansion, None if inside.path is None else (k, *inside.path))
        case Sum() | Product():
            return _expand_parts(k)
        case Scaled() | Power() | PolynomialOf() | Exp():
            inside = _expand(k.kernel)
            outside = None if inside is None else _expand_unary(k, inside.expansion)
            return None if inside is None or outside is None else Polynome(outside, inside.path)
    return None


def _expand_parts(k: Sum | Product) -> Polynome | None:
    parts = [_expand(part) for part in k.parts]
    if any(p is None for p in parts) or len({p.key for p in parts if p and p.path is not None}) > 1:
        return None
    out, path = Expansion.constant(0 if isinstance(k, Sum) else 1), None
    for p in parts:
        assert p is not None
        out = out + p.expansion if isinstance(k, Sum) else out * p.expansion
        path = p.path if p.path is not None else path
    return Polynome(out, path)


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


def _monomials(polynome: Polynome, space: Space) -> Node:
    """The map of a polynomial, seen through its path."""

    def inside(path: Path, seen: Space) -> Node:
        if not path:
            return Monomials(polynome.expansion, seen)
        return Through(inside(path[1:], _space_after(path[0], seen)), path[0])  # type: ignore[arg-type]

    return inside(polynome.path or (), space)


def _space_after(k: Kernel, space: Space) -> Space:
    """The columns that the kernel inside an `On`, `Of` or `LinearMap` sees."""
    if isinstance(k, LinearMap):
        if len(k.A[0]) != space.d:
            raise ShapeError(f"of(A): A has {len(k.A[0])} columns, but d is {space.d}.")
        return Space(len(k.A), tuple(f"(Ax){i}" for i in range(1, len(k.A) + 1)))
    if isinstance(k, On):
        names = [name for c in k.columns for name in _chosen(c, space)]
        return Space(len(names), tuple(names))
    assert isinstance(k, Of)
    name, width = function_name(k.map, "ψ"), _width(k, space.d)
    return Space(width, tuple(f"{name}{i}" for i in range(1, width + 1)))


def _chosen(column: Any, space: Space) -> list[str]:
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
            return int(k._mapped(Rows(np.full((2, d), 0.5))).vectors.shape[1])
    except Exception as error:
        raise NoFiniteMapError(
            f"{k}: the map was tried on rows of {d} numbers to see how many it makes of them, and failed: {error}"
        ) from error


# ── everything else ─────────────────────────────────────────────────────────────────────────────────────────


def _plan(k: Kernel, space: Space) -> Node:
    polynome = _expand(k)
    if polynome is not None:
        try:
            return _monomials(polynome, space)
        except InvalidKernelError as error:
            if not _independent(polynome.path or (), space):
                raise _unknown(
                    k, f"{error}, which what it sees of the columns may or may not repair."
                ) from error
            raise InvalidKernelError(
                f"{k} is not positive semi-definite: {error}. So it has no feature map; k.validity() gives the witness."
            ) from error
    for kinds, plan in _PLANS:
        if isinstance(k, kinds):
            return plan(k, space)
    return Infinite(str(k))


def _independent(path: Path, space: Space) -> bool:
    """Whether a polynomial sees distinct columns as they are, so that its monomials are independent functions."""
    for way in path:
        if not isinstance(way, On):
            return False
        space = _space_after(way, space)
        if len(set(space.names or ())) < space.d:
            return False
    return True


def _unknown(k: Kernel, why: str) -> NoFiniteMapError:
    return NoFiniteMapError(f"no finite feature map of {k} is known: {why}")


def _terms(k: Kernel, scale: Fraction = Fraction(1)) -> list[tuple[Fraction, Kernel]]:
    """A sum of scaled kernels, flat."""
    if isinstance(k, Scaled):
        return _terms(k.kernel, scale * Fraction(k.scale))
    if isinstance(k, Sum):
        return [term for part in k.parts for term in _terms(part, scale)]
    return [(scale, k)]


def _plan_sum(k: Kernel, space: Space) -> Node:
    """Polynomials of the same columns are merged, equal kernels are counted, the rest stands side by side."""
    polynomes: dict[Any, Polynome] = {}
    others: dict[Kernel, tuple[Fraction, Fraction]] = {}
    for scale, part in _terms(k):
        found = _expand(part)
        if found is None:
            net, gross = others.get(part, (Fraction(0), Fraction(0)))
            others[part] = (net + scale, gross + abs(scale))
        else:
            so_far = polynomes.get(found.key, Polynome(Expansion({}), found.path))
            polynomes[found.key] = Polynome(so_far.expansion + found.expansion.scaled(scale), found.path)
    nodes: list[tuple[Fraction, Node]] = [(Fraction(1), node) for node in _side_by_side(k, polynomes, space)]
    for part, (net, gross) in others.items():
        if net < 0 and not vanishes(net, gross):
            raise _unknown(
                k, f"it subtracts {part}, and nothing cancels that. k.validity() says whether it is a kernel."
            )
        if not vanishes(net, gross):
            nodes.append((net, _plan_inside(k, part, space)))
    infinite = [node for _, node in nodes if isinstance(node, Infinite)]
    return infinite[0] if infinite else Join(nodes)


def _side_by_side(k: Kernel, polynomes: dict[Any, Polynome], space: Space) -> list[Node]:
    """The maps of polynomials in different columns, with their constants gathered in one."""
    constant = Expansion({})
    out = []
    for p in polynomes.values():
        net, gross = p.expansion.at_zero
        constant = constant + Expansion({(0, 0): (net, gross)})
        if p.path is not None:
            rest = Polynome(p.expansion + Expansion({(0, 0): (-net, gross)}), p.path)
            out.append(_alone(k, rest, space))
    gathered = _alone(k, Polynome(constant), space)
    return [gathered, *out] if gathered.dimension else out


def _alone(k: Kernel, polynome: Polynome, space: Space) -> Node:
    """The map of a polynomial that is only a part of `k`, so that its failure does not condemn `k`."""
    try:
        return _monomials(polynome, space)
    except InvalidKernelError as error:
        raise _unknown(
            k, f"of the polynomial in it, {error}. k.validity() says whether it is a kernel."
        ) from error


def _plan_inside(k: Kernel, part: Kernel, space: Space) -> Node:
    try:
        return _plan(part, space)
    except InvalidKernelError as error:
        raise _unknown(k, str(error)) from error


def _plan_product(k: Product, space: Space) -> Node:
    """Polynomials of the same columns are multiplied, equal factors become a power, the rest is a tensor product."""
    polynomes: dict[Any, Polynome] = {None: Polynome(Expansion.constant(1))}
    others: dict[Kernel, int] = {}
    for part in _factors(k):
        found = _expand(part)
        if found is None:
            others[part] = others.get(part, 0) + 1
        else:
            so_far = polynomes.get(found.key, Polynome(Expansion.constant(1), found.path))
            polynomes[found.key] = Polynome(so_far.expansion * found.expansion, found.path)
    scale = polynomes.pop(None).expansion.at_zero[0]
    nodes = [_alone(k, p, space) for p in polynomes.values()]
    nodes += [_powered(_plan_inside(k, part, space), m, space) for part, m in others.items()]
    if scale == 0 or any(node.dimension == 0 for node in nodes):
        return Join([])
    if scale < 0:
        raise _unknown(k, "it is a product with a negative number. k.validity() says whether it is a kernel.")
    infinite = [node for node in nodes if isinstance(node, Infinite)]
    if infinite:
        return infinite[0]
    out = nodes[0]
    for node in nodes[1:]:
        out = Tensor(out, node)
    return out if scale == 1 else Join([(scale, out)])


def _factors(k: Kernel) -> list[Kernel]:
    if isinstance(k, Scaled):
        return [Constant(k.scale), *_factors(k.kernel)]
    if isinstance(k, Product):
        return [f for part in k.parts for f in _factors(part)]
    if isinstance(k, Power) and k.exponent in range(1, 64):
        return _factors(k.kernel) * int(k.exponent)
    return [k]


def _powered(node: Node, p: int, space: Space) -> Node:
    return node if p == 1 or isinstance(node, Infinite) else Monomials(Expansion.of({(p, 0): 1}), space, node)


def _plan_power(k: Power, space: Space) -> Node:
    if k.exponent == 0:
        return Monomials(Expansion.constant(1), space)
    if k.exponent != int(k.exponent):
        if isinstance(_plan_inside(k, k.kernel, space), Infinite):
            return Infinite(str(k))
        raise _unknown(k, "it is a fractional power. k.validity() says whether it is a kernel.")
    if isinstance(k.kernel, Scaled | Product) and k.exponent < 64:
        return _plan_product(Product((k.kernel,) * int(k.exponent)), space)
    return _powered(_plan_inside(k, k.kernel, space), int(k.exponent), space)


def _plan_polynomial(k: PolynomialOf, space: Space) -> Node:
    series = Expansion.series(k.coefs)
    if series.is_constant:
        return _alone(k, Polynome(series), space)
    inside = _plan_inside(k, k.kernel, space)
    if isinstance(inside, Infinite):
        return inside
    if min(k.coefs) < 0:
        raise _unknown(
            k, "its polynomial has a negative coefficient. k.validity() says whether it is a kernel."
        )
    return Monomials(series, space, inside)


def _plan_exp(k: Exp, space: Space) -> Node:
    inside = _expand(k.kernel)
    if inside is not None:
        inside = Polynome(inside.expansion + Expansion.constant(-inside.expansion.at_zero[0]), inside.path)
        found = _alone(k, inside, space)
    else:
        found = _plan_inside(k, k.kernel, space)
    return Infinite(str(k)) if found.dimension else Monomials(Expansion.constant(1), space)


def _wrapped(wrap: Callable[[Node, Any], Node]) -> Callable[[Any, Space], Node]:
    def plan(k: Any, space: Space) -> Node:
        seen = _space_after(k, space) if isinstance(k, On | Of | LinearMap) else space
        inside = _plan(k.kernel, seen) if isinstance(k, On) else _plan_inside(k, k.kernel, seen)
        return inside if isinstance(inside, Infinite) else wrap(inside, k)

    return plan


def _plan_bilinear(k: Bilinear, space: Space) -> Node:
    A = k.matrix
    if len(A) != space.d:
        raise ShapeError(f"Bilinear: A is {len(A)} by {len(A)}, but d is {space.d}.")
    if not k._symmetric():
        raise InvalidKernelError(f"{k} is not a kernel: A is not symmetric, so there is no feature map.")
    values, vectors = np.linalg.eigh(A)
    rounding = len(A) * np.finfo(float).eps * float(np.linalg.norm(A))
    if values[0] < -rounding:
        raise InvalidKernelError(
            f"{k} is not positive semi-definite: A has the eigenvalue {values[0]:.6g}, so there is no feature map."
        )
    kept = np.flatnonzero(values > rounding)[::-1]
    return Projection(vectors[:, kept] * np.sqrt(values[kept]))


def _plan_arc_cosine(k: ArcCosine, space: Space) -> Node:
    return Halves(k.order, float(k.value(1.0)), space) if space.d == 1 else Infinite(str(k))


def _plan_never(k: Kernel, space: Space) -> Node:
    raise InvalidKernelError(
        f"{k} is not positive semi-definite (its Taylor series has negative coefficients), so there is no feature map. "
        "k.validity() gives the witness."
    )


def _plan_dot(k: Dot, space: Space) -> Node:
    if callable(k.taylor):
        return Infinite(str(k))
    raise _unknown(k, "its Taylor series is not declared. Pass taylor=[…] if it is a polynomial.")


def _plan_own(k: Kernel, space: Space) -> Node:
    raise _unknown(k, "it is a function of your own, and nothing is known of its features.")


_PLANS: list[tuple[Any, Callable[[Any, Space], Node]]] = [
    ((Sum, Scaled), _plan_sum),
    (Product, _plan_product),
    (Power, _plan_power),
    (PolynomialOf, _plan_polynomial),
    (Exp, _plan_exp),
    ((On, Of, LinearMap), _wrapped(Through)),
    (Times, _wrapped(Factor)),
    (Normalized, _wrapped(lambda node, k: Unit(node, "|φ|"))),
    (CosineSimilarity, lambda k, space: Unit(Monomials(Expansion.series((0, 1)), space), "|x|")),
    (Bilinear, _plan_bilinear),
    (Cosine, lambda k, space: Waves(k._per_column("period", space.d), space)),
    (ArcCosine, _plan_arc_cosine),
    ((Sigmoid, Logistic), _plan_never),
    (Dot, _plan_dot),
    ((Stationary, Custom), _plan_own),
]
