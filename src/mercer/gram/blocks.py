"""The NumPy spelling: any kernel expression in blocks of rows, forwards and backwards.

It serves expressions with a part that the core does not know (a user's function, a Matérn of odd smoothness,
a leaf without a rule in `lower.py`), in bounded memory. It is also the second spelling that the core is
tested against.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial, singledispatch
from typing import TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.errors import MagnitudeError
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.formulas.formula import NotRecorded, Values
from mercer.kernels.leaves import special
from mercer.kernels.leaves.distances import dot_products
from mercer.kernels.leaves.families import DotProduct, PerColumn, Radial
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.leaves.recording import OfOneNumber, derivative_of
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Flags, Integers, Setting

# An integer array, a list of integers, a boolean mask or a slice.
Index: TypeAlias = Integers | Flags | list[int] | slice
# A kernel with another value of one parameter.
Rebuild: TypeAlias = Callable[[Setting], Kernel]

# Entries of one block: 32 MiB in float64.
_BLOCK = 2**22


def row_blocks(n: int, m: int) -> Iterator[slice]:
    """Slices of rows such that a block with m columns stays small."""
    step = max(1, _BLOCK // max(1, m))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def block(kernel: Kernel, x: Rows, z: Rows | None, rows: Index, cols: Index) -> Array:
    """k between some rows of x and some of z; noise is added where both name the same observation."""
    i = np.arange(len(x))[rows]
    j = np.arange(len(x if z is None else z))[cols]
    out = kernel.block(x.rows(i), (x if z is None else z).rows(j))
    if z is None:
        a, b = same_observations(i, j)
        out[a, b] = kernel.diagonal(x.rows(i[a])) if len(a) else 0.0
    return out


def same_observations(i: Integers, j: Integers) -> tuple[Integers, Integers]:
    """The places (a, b) of a block at which row i[a] and column j[b] are the same observation."""
    order = np.argsort(j, kind="stable")
    first = np.searchsorted(j[order], i, side="left")
    count = np.searchsorted(j[order], i, side="right") - first
    a = np.repeat(np.arange(len(i)), count)
    within = np.arange(len(a)) - np.repeat(np.cumsum(count) - count, count)
    return a, order[np.repeat(first, count) + within]


def apply(kernel: Kernel, x: Rows, z: Rows | None, V: Array) -> Array:
    """K @ V, a block of rows at a time."""
    m = len(x if z is None else z)
    out = np.empty((len(x), V.shape[1]))
    for rows in row_blocks(len(x), m):
        out[rows] = block(kernel, x, z, rows, slice(None)) @ V
    return out


def contract(
    kernel: Kernel,
    x: Rows,
    z: Rows | None,
    *,
    U: Array | None = None,
    V: Array | None = None,
    W: Array | None = None,
) -> Array:
    """Σ W_ij ∂K_ij/∂p for every parameter p, W = UVᵀ or given, a block of rows at a time."""
    m = len(x if z is None else z)
    total = np.zeros(len(kernel.parameters))
    for rows in row_blocks(len(x), m):
        if W is not None:
            weights = W[rows]
        else:
            assert U is not None and V is not None
            weights = U[rows].reshape(rows.stop - rows.start, -1) @ np.reshape(V, (m, -1)).T
        pull = _Pull(kernel, x.rows(np.arange(len(x))[rows]), x if z is None else z, z is None, rows.start)
        pull.down(kernel, np.asarray(weights, dtype=float), "", pull.x, pull.z)
        total += pull.total
    return total


class _Pull:
    """One backward sweep over the expression: weights on the output become gradients of the parameters."""

    def __init__(self, kernel: Kernel, x: Rows, z: Rows, same: bool, start: int) -> None:
        self.slots = {p.name: i for i, p in enumerate(kernel.parameters)}
        self.total = np.zeros(len(self.slots))
        self.x = x
        self.z = z
        self.same = same
        self.start = start

    def add(self, path: str, value: float) -> None:
        slot = self.slots.get(path)
        if slot is not None:
            self.total[slot] += value

    def value(self, k: Kernel, x: Rows, z: Rows) -> Array:
        """The block of a part, with noise where the observation is the same."""
        out = k.block(x, z)
        if self.same:
            i = np.arange(len(x))
            out = np.array(out)
            out[i, i + self.start] = k.diagonal(x)
        return out

    def down(self, k: Kernel, W: Array, path: str, x: Rows, z: Rows) -> None:
        _down(k, self, W, path, x, z)

    def down_diagonal(self, k: Kernel, weights: Array, path: str, rows: Rows) -> None:
        """The gradients of Σ weights_i k(x_i, x_i)."""
        if not any(slot.startswith(path) for slot in self.slots):
            return
        for i in np.flatnonzero(weights):
            row = rows.rows(np.array([i]))
            one = _Pull(k, row, row, True, 0)
            one.slots = self.slots
            one.total = np.zeros_like(self.total)
            one.down(k, np.array([[weights[i]]]), path, one.x, one.z)
            self.total += one.total


@singledispatch
def _down(k: Kernel, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    """A leaf without slopes: its own parameters by central differences (none of ours has any)."""
    for name, _ in k.own_domains():
        for tail, value, moved in _perturbed(k, name):
            h = 1e-6 * max(1.0, abs(value))
            up, down = (pull.value(moved(value + s * h), x, z) for s in (1, -1))
            pull.add(f"{path}{name}{tail}", float((W * (up - down)).sum() / (2 * h)))


def _perturbed(k: Kernel, name: str, tail: str = "") -> Iterator[tuple[str, float, Rebuild]]:
    """Each number inside a parameter, with a way to make the kernel that has another number there."""

    def walk(value: Setting, rebuild: Rebuild, tail: str) -> Iterator[tuple[str, float, Rebuild]]:
        if isinstance(value, tuple):
            for i, v in enumerate(value):
                yield from walk(v, partial(_with_entry, rebuild, value, i), f"{tail}[{i}]")
        else:
            yield tail, value, rebuild

    yield from walk(getattr(k, name), lambda new: _raw(k, name, new), tail)


def _with_entry(rebuild: Rebuild, value: tuple[Setting, ...], i: int, new: Setting) -> Kernel:
    return rebuild((*value[:i], new, *value[i + 1 :]))


def _raw(k: Kernel, name: str, value: Setting) -> Kernel:
    """A copy with one field replaced and nothing checked (the value may be complex)."""
    out = copy.copy(k)
    object.__setattr__(out, name, value)
    return out


# Of the complex step: the derivative of an analytic formula, exact to rounding.
_STEP = 1e-30


def _own_parameters(k: OfOneNumber, pull: _Pull, W: Array, path: str, r: Array, skip: set[str]) -> None:
    """Parameters inside `value` (alpha, gamma, offset, …): by its formula, or else by the complex step."""
    names = [name for name, _ in k.own_domains() if name not in skip]
    for name in names:
        for tail, value, moved in _perturbed(k, name):
            try:
                k.recorded()
            except NotRecorded:
                shifted = moved(value + 1j * _STEP)
                assert isinstance(shifted, OfOneNumber)
                derivative = shifted.value(r).imag / _STEP
            else:
                with np.errstate(all="ignore"):
                    derivative = derivative_of(k, name + tail).at(r, k.numbers())
            pull.add(f"{path}{name}{tail}", float((W * derivative).sum()))


@_down.register(Radial)
def _(k: Radial, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    X = x.vectors
    Z = z.vectors
    s = k.squares(X, Z)
    G = W * k.slope(s)
    G[s == 0] = 0.0
    if isinstance(k.lengthscale, tuple):
        for j, length in enumerate(k.lengthscale):
            share = (G * (_difference(X, Z, j) / length) ** 2).sum()
            pull.add(f"{path}lengthscale[{j}]", float(-2 / length * share))
    else:
        pull.add(f"{path}lengthscale", float(-2 / k.lengthscale * (G * s).sum()))
    _own_parameters(k, pull, W, path, s, {"lengthscale"})


@_down.register(DotProduct)
def _(k: DotProduct, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    _own_parameters(k, pull, W, path, dot_products(x.vectors, z.vectors), set())


@_down.register(PerColumn)
def _(k: PerColumn, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    X = k.checked_rows(x)
    Z = k.checked_rows(z)
    d = X.shape[1]
    at = {name: k.column_values(name, d) for name in k.column_names()}
    terms = [k.term(X[:, None, j], Z[None, :, j], **{n: v[j] for n, v in at.items()}) for j in range(d)]
    total = sum(terms) if k.reduction == "sum" else np.prod(terms, axis=0)
    G = W * k.slope(total)

    def share(j: int, term: Values) -> float:
        """What a complex step in the term of one column comes to."""
        slope = np.imag(term) / _STEP
        if k.reduction == "product":
            slope = slope * np.prod([t for i, t in enumerate(terms) if i != j], axis=0)
        return float((G * slope).sum())

    for name in at:
        moved = [{n: v[j] + (1j * _STEP if n == name else 0) for n, v in at.items()} for j in range(d)]
        parts = [share(j, k.term(X[:, None, j], Z[None, :, j], **moved[j])) for j in range(d)]
        _per_column(k, name, np.array(parts), pull, path)
    _own_parameters(k, pull, W, path, total, set(at))
    # parameters of all columns that the term reads from the kernel itself
    for name, _ in k.own_domains():
        for tail, value, rebuild in _perturbed(k, name) if name not in at else ():
            leaf = rebuild(value + 1j * _STEP)
            assert isinstance(leaf, PerColumn)
            for j in range(d):
                term = leaf.term(X[:, None, j], Z[None, :, j], **{n: v[j] for n, v in at.items()})
                pull.add(f"{path}{name}{tail}", share(j, term))


def _per_column(k: Leaf, name: str, parts: Array, pull: _Pull, path: str) -> None:
    if isinstance(getattr(k, name), tuple):
        for j, part in enumerate(parts):
            pull.add(f"{path}{name}[{j}]", float(part))
    else:
        pull.add(f"{path}{name}", float(parts.sum()))


def _difference(X: Matrix, Z: Matrix, j: int) -> Array:
    return np.asarray(dense(X[:, [j]]).astype(float) - dense(Z[:, [j]]).astype(float).T)


@_down.register(special.Constant)
def _(k: special.Constant, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    pull.add(f"{path}value", float(W.sum()))


@_down.register(special.White)
def _(k: special.White, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    if pull.same:
        pull.add(f"{path}noise", float(np.trace(W, offset=pull.start)))


@_down.register(algebra.Scaled)
def _(k: algebra.Scaled, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    pull.add(f"{path}scale", float((W * pull.value(k.kernel, x, z)).sum()))
    pull.down(k.kernel, k.scale * W, f"{path}kernel__", x, z)


@_down.register(algebra.Sum)
def _(k: algebra.Sum, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    for name, part in k.children():
        pull.down(part, W, f"{path}{name}__", x, z)


@_down.register(algebra.Product)
def _(k: algebra.Product, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    values = [pull.value(part, x, z) for part in k.parts]
    for i, (name, part) in enumerate(k.children()):
        others = np.prod([v for j, v in enumerate(values) if j != i], axis=0)
        pull.down(part, W * others, f"{path}{name}__", x, z)


@_down.register(algebra.Power)
@_down.register(algebra.Exp)
@_down.register(algebra.PolynomialOf)
def _(
    k: algebra.Power | algebra.Exp | algebra.PolynomialOf, pull: _Pull, W: Array, path: str, x: Rows, z: Rows
) -> None:
    inside = pull.value(k.kernel, x, z)
    if isinstance(k, algebra.Power):
        slope = _slope_of_power(inside, k.exponent)
        if k.revives and np.any(k.block(x, z)[inside == 0]):
            raise MagnitudeError(
                f"{k}: the kernel inside is so small that float64 takes it for 0, and its power is not, so "
                "its gradient is "
                "not known. Take a longer lengthscale, which says the same as a small power."
            )
    elif isinstance(k, algebra.Exp):
        slope = np.exp(inside)
    else:
        slope = np.asarray(
            np.polynomial.polynomial.polyval(inside, np.polynomial.polynomial.polyder(k.coefs)), dtype=float
        )
    pull.down(k.kernel, W * slope, f"{path}kernel__", x, z)


def _slope_of_power(t: Array, p: float) -> Array:
    """p t^(p-1), and 0 where it is infinite: at t = 0 for p < 1, as in the core."""
    if p == 0:
        return np.zeros_like(t)
    with np.errstate(divide="ignore", over="ignore"):
        slope = p * t ** (p - 1)
    return np.where(np.isinf(slope), 0.0, slope) if p < 1 else slope


@_down.register(algebra.Times)
def _(k: algebra.Times, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    pull.down(k.kernel, k.factor(x)[:, None] * W * k.factor(z)[None, :], f"{path}kernel__", x, z)


@_down.register(algebra.InSpace)
def _(k: algebra.InSpace, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    a = k.space.diagonal(x)
    b = k.space.diagonal(z)
    length = k.length()
    s = np.maximum(a[:, None] + b[None, :] - 2 * pull.value(k.space, x, z), 0.0) / length**2
    if pull.same:
        i = np.arange(len(x))
        s[i, i + pull.start] = 0.0
    G = W * k.radial.slope(s)
    # at distance 0 the slope may be infinite, and the distance does not move
    G[s == 0] = 0.0
    pull.add(f"{path}kernel__lengthscale", float(-2 / length * (G * s).sum()))
    _own_parameters(k.radial, pull, W, f"{path}kernel__", s, {"lengthscale"})
    G /= length**2
    pull.down(k.space, -2 * G, f"{path}space__", x, z)
    pull.down_diagonal(k.space, G.sum(axis=1), f"{path}space__", x)
    pull.down_diagonal(k.space, G.sum(axis=0), f"{path}space__", z)


@_down.register(algebra.Of)
@_down.register(algebra.Read)
@_down.register(algebra.LinearMap)
@_down.register(algebra.On)
def _(
    k: algebra.Of | algebra.Read | algebra.LinearMap | algebra.On,
    pull: _Pull,
    W: Array,
    path: str,
    x: Rows,
    z: Rows,
) -> None:
    pull.down(k.kernel, W, f"{path}kernel__", k.mapped(x), k.mapped(z))


@_down.register(algebra.Normalized)
def _(k: algebra.Normalized, pull: _Pull, W: Array, path: str, x: Rows, z: Rows) -> None:
    a = k.inverse_norms(x)
    b = k.inverse_norms(z)
    inside = pull.value(k.kernel, x, z)
    pull.down(k.kernel, a[:, None] * W * b[None, :], f"{path}kernel__", x, z)
    T = W * inside
    pull.down_diagonal(k.kernel, -0.5 * a**3 * (T @ b), f"{path}kernel__", x)
    pull.down_diagonal(k.kernel, -0.5 * b**3 * (a @ T), f"{path}kernel__", z)
