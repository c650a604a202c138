"""Which map a combination of kernels has, and its size before anything is built; leaves say their own.

Polynomials of the columns are expanded exactly and get the smallest map there is. Other sums put maps side by
side, other products multiply them out, and whole powers take the monomials of the features inside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, TypeVar

from mercer.errors import (
    InvalidKernelError,
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
    Unary,
)
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.special import Constant
from mercer.kernels.maps.monomials import Expansion, vanishes
from mercer.kernels.maps.parts import (
    Factor,
    Infinite,
    Join,
    Monomials,
    Node,
    Space,
    Tensor,
    Through,
    Unit,
    unknown_map,
)
from mercer.kernels.maps.polynomials import InColumns, Path, expand, polynomial_map, space_after

U = TypeVar("U", bound=Unary)


def plan(k: Kernel, space: Space) -> Node:
    """The map of `k` on the columns of `space`, sized but not built; `Infinite` where none is finite."""
    polynomial = expand(k)
    if polynomial is not None:
        try:
            return polynomial_map(polynomial, space)
        except InvalidKernelError as error:
            if not _independent(polynomial.path or (), space):
                raise unknown_map(
                    k, f"{error}, which what it sees of the columns may or may not repair."
                ) from error
            raise InvalidKernelError(
                f"{k} is not positive semi-definite: {error}. So it has no feature map; k.validity() gives "
                "the witness."
            ) from error
    for kinds, rule in _PLANS:
        if isinstance(k, kinds):
            return rule(k, space)
    return k.feature_map(space)


def _independent(path: Path, space: Space) -> bool:
    """Whether a polynomial sees distinct columns as they are, so its monomials are independent functions."""
    for way in path:
        if not isinstance(way, On):
            return False
        space = space_after(way, space)
        if len(set(space.names or ())) < space.d:
            return False
    return True


def _terms(k: Kernel, scale: Fraction = Fraction(1)) -> list[tuple[Fraction, Kernel]]:
    """A sum of scaled kernels, flat."""
    if isinstance(k, Scaled):
        return _terms(k.kernel, scale * Fraction(k.scale))
    if isinstance(k, Sum):
        return [term for part in k.parts for term in _terms(part, scale)]
    return [(scale, k)]


def _plan_sum(k: Kernel, space: Space) -> Node:
    """Polynomials of the same columns are merged, equal kernels are counted, the rest stands side by side."""
    polynomials: dict[Hashable, InColumns] = {}
    others: dict[Kernel, tuple[Fraction, Fraction]] = {}
    for scale, part in _terms(k):
        found = expand(part)
        if found is None:
            net, gross = others.get(part, (Fraction(0), Fraction(0)))
            others[part] = (net + scale, gross + abs(scale))
        else:
            so_far = polynomials.get(found.key, InColumns(Expansion({}), found.path))
            polynomials[found.key] = InColumns(so_far.expansion + found.expansion.scaled(scale), found.path)
    nodes: list[tuple[Fraction, Node]] = [
        (Fraction(1), node) for node in _side_by_side(k, polynomials, space)
    ]
    for part, (net, gross) in others.items():
        if net < 0 and not vanishes(net, gross):
            raise unknown_map(
                k, f"it subtracts {part}, and nothing cancels that. k.validity() says whether it is a kernel."
            )
        if not vanishes(net, gross):
            nodes.append((net, _plan_inside(k, part, space)))
    infinite = [node for _, node in nodes if isinstance(node, Infinite)]
    if infinite:
        return infinite[0]
    return Join(nodes)


def _side_by_side(k: Kernel, polynomials: dict[Hashable, InColumns], space: Space) -> list[Node]:
    """The maps of polynomials in different columns, with their constants gathered in one."""
    constant = Expansion({})
    out = []
    for p in polynomials.values():
        net, gross = p.expansion.at_zero
        constant = constant + Expansion({(0, 0): (net, gross)})
        if p.path is not None:
            rest = InColumns(p.expansion + Expansion({(0, 0): (-net, gross)}), p.path)
            out.append(_alone(k, rest, space))
    gathered = _alone(k, InColumns(constant), space)
    if gathered.dimension:
        return [gathered, *out]
    return out


def _alone(k: Kernel, polynomial: InColumns, space: Space) -> Node:
    """The map of a polynomial that is only a part of `k`, so that its failure does not condemn `k`."""
    try:
        return polynomial_map(polynomial, space)
    except InvalidKernelError as error:
        raise unknown_map(
            k, f"of the polynomial in it, {error}. k.validity() says whether it is a kernel."
        ) from error


def _plan_inside(k: Kernel, part: Kernel, space: Space) -> Node:
    try:
        return plan(part, space)
    except InvalidKernelError as error:
        raise unknown_map(k, str(error)) from error


def _plan_product(k: Product, space: Space) -> Node:
    """Polynomials of the same columns multiply, equal factors become a power, the rest a tensor product."""
    polynomials: dict[Hashable, InColumns] = {None: InColumns(Expansion.constant(1))}
    others: dict[Kernel, int] = {}
    for part in _factors(k):
        found = expand(part)
        if found is None:
            others[part] = others.get(part, 0) + 1
        else:
            so_far = polynomials.get(found.key, InColumns(Expansion.constant(1), found.path))
            polynomials[found.key] = InColumns(so_far.expansion * found.expansion, found.path)
    scale = polynomials.pop(None).expansion.at_zero[0]
    nodes = [_alone(k, p, space) for p in polynomials.values()]
    nodes += [_powered(_plan_inside(k, part, space), m, space) for part, m in others.items()]
    if scale == 0 or any(node.dimension == 0 for node in nodes):
        return Join([])
    if scale < 0:
        raise unknown_map(
            k, "it is a product with a negative number. k.validity() says whether it is a kernel."
        )
    infinite = [node for node in nodes if isinstance(node, Infinite)]
    if infinite:
        return infinite[0]
    out = nodes[0]
    for node in nodes[1:]:
        out = Tensor(out, node)
    if scale == 1:
        return out
    return Join([(scale, out)])


def _factors(k: Kernel) -> list[Kernel]:
    if isinstance(k, Scaled):
        return [Constant(k.scale), *_factors(k.kernel)]
    if isinstance(k, Product):
        return [f for part in k.parts for f in _factors(part)]
    if isinstance(k, Power) and k.exponent in range(1, 64):
        return _factors(k.kernel) * int(k.exponent)
    return [k]


def _powered(node: Node, p: int, space: Space) -> Node:
    if p == 1 or isinstance(node, Infinite):
        return node
    return Monomials(Expansion.of({(p, 0): 1}), space, node)


def _plan_power(k: Power, space: Space) -> Node:
    if k.exponent == 0:
        return Monomials(Expansion.constant(1), space)
    if k.exponent != int(k.exponent):
        if isinstance(_plan_inside(k, k.kernel, space), Infinite):
            return Infinite(k)
        raise unknown_map(k, "it is a fractional power. k.validity() says whether it is a kernel.")
    if isinstance(k.kernel, Scaled | Product) and k.exponent < 64:
        return _plan_product(Product((k.kernel,) * int(k.exponent)), space)
    return _powered(_plan_inside(k, k.kernel, space), int(k.exponent), space)


def _plan_polynomial(k: PolynomialOf, space: Space) -> Node:
    series = Expansion.series(k.coefs)
    if series.is_constant:
        return _alone(k, InColumns(series), space)
    inside = _plan_inside(k, k.kernel, space)
    if isinstance(inside, Infinite):
        return inside
    if min(k.coefs) < 0:
        raise unknown_map(
            k, "its polynomial has a negative coefficient. k.validity() says whether it is a kernel."
        )
    return Monomials(series, space, inside)


def _plan_exp(k: Exp, space: Space) -> Node:
    inside = expand(k.kernel)
    if inside is not None:
        inside = InColumns(inside.expansion + Expansion.constant(-inside.expansion.at_zero[0]), inside.path)
        found = _alone(k, inside, space)
    else:
        found = _plan_inside(k, k.kernel, space)
    if found.dimension:
        return Infinite(k)
    return Monomials(Expansion.constant(1), space)


def _wrapped(wrap: Callable[[Node, U], Node]) -> Callable[[U, Space], Node]:
    def wrapped(k: U, space: Space) -> Node:
        seen = space_after(k, space) if isinstance(k, On | Of | LinearMap) else space
        inside = plan(k.kernel, seen) if isinstance(k, On) else _plan_inside(k, k.kernel, seen)
        if isinstance(inside, Infinite):
            return inside
        return wrap(inside, k)

    return wrapped


_PLANS: list[tuple[type | tuple[type, ...], Callable[[Any, Space], Node]]] = [
    ((Sum, Scaled), _plan_sum),
    (Product, _plan_product),
    (Power, _plan_power),
    (PolynomialOf, _plan_polynomial),
    (Exp, _plan_exp),
    ((On, Of, LinearMap), _wrapped(Through)),
    (Times, _wrapped(Factor)),
    (Normalized, _wrapped(lambda node, k: Unit(node, "|φ|"))),
]
