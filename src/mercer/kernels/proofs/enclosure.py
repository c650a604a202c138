"""Gram matrices in interval arithmetic: every entry with certain bounds, for the few points of a witness.

Functions of a distance or of a dot product follow from their recorded formula (`certain`); every other class
has one rule. A sample is known twice: as the rows that functions of a user are given, and as intervals that
hold the exact coordinates. A function that a user wrote returns rounded numbers, and nobody knows how well;
its values are taken to be right to 1e-10 of the largest of them. The same is said of Matérn kernels whose
Bessel function has no closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import factorial
from typing import Any

import numpy as np

from mercer.arrays import Rows
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.formulas.certain import KNOWN, bounds
from mercer.kernels.formulas.formula import NotRecorded
from mercer.kernels.leaves import columns, radial, special
from mercer.kernels.leaves.families import DotProduct, PerColumn, Radial
from mercer.kernels.leaves.recording import OfOneNumber
from mercer.kernels.proofs.intervals import Interval, NotEnclosed, pi
from mercer.params import Vector
from mercer.sparse import dense
from mercer.typing import Array

Enclosed = list[list[Interval]]

# How well the values of a user's function are taken to be known, relative to the largest.
MEASURED = 1e-10

_ZERO = Interval.exact(0)
_ONE = Interval.exact(1)
_TWO = Interval.exact(2)


def quadratic_form(kernel: Kernel, rows: Rows, q: Array) -> Interval:
    """qᵀKq with certain bounds; `NotEnclosed` where there are none."""
    try:
        K = enclose(kernel, Sample.of(rows))
        total = _ZERO
        for a, row in zip(q.tolist(), K, strict=True):
            for b, entry in zip(q.tolist(), row, strict=True):
                total = total + Interval.exact(a) * Interval.exact(b) * entry
    except ArithmeticError as error:
        raise NotEnclosed(str(error)) from error
    if not (total.low.is_finite() and total.high.is_finite()):
        raise NotEnclosed("an infinite value")
    return total


def difference(kernel: Kernel, rows: Rows) -> Interval:
    """k(x₁, x₂) - k(x₂, x₁) with certain bounds."""
    try:
        K = enclose(kernel, Sample.of(rows))
        return K[0][1] - K[1][0]
    except ArithmeticError as error:
        raise NotEnclosed(str(error)) from error


@dataclass(frozen=True)
class Sample:
    """The same points as rows and as intervals; things that are no vectors have no intervals."""

    rows: Rows
    points: list[list[Interval]] | None

    @classmethod
    def of(cls, rows: Rows) -> Sample:
        return cls(rows, _exact(rows))

    def pairs(self, entry: Callable[[list[Interval], list[Interval]], Interval]) -> Enclosed:
        """A symmetric function of two points at every pair."""
        if self.points is None:
            raise NotEnclosed("these are no vectors")
        n = len(self.points)
        out = [[_ZERO] * n for _ in range(n)]
        for i, x in enumerate(self.points):
            for j in range(i, n):
                out[i][j] = entry(x, self.points[j])
                out[j][i] = out[i][j]
        return out


def _exact(rows: Rows) -> list[list[Interval]] | None:
    try:
        X = dense(rows.vectors)
    except Exception:  # strings, graphs, plain numbers: only a function that takes them can see them
        return None
    return [[Interval.exact(float(v)) for v in x] for x in X]


def enclose(kernel: Kernel, sample: Sample) -> Enclosed:
    """k(x_i, x_j) for one sample of observations, by the rule of its class."""
    rule = _RULES.get(type(kernel))
    if rule is not None:
        return rule(kernel, sample)
    if isinstance(kernel, Radial):
        return _of_formula(kernel, sample, partial(_squared_distance, kernel))
    if isinstance(kernel, DotProduct):
        return _of_formula(kernel, sample, _dot)
    return measured(kernel, sample)


def measured(k: Kernel, sample: Sample) -> Enclosed:
    """The values that a function of a user returns, with the error they are taken to have."""
    K = np.asarray(k.block(sample.rows, None), dtype=float)
    if not np.all(np.isfinite(K)):
        raise NotEnclosed("an infinite value")
    error = MEASURED * float(np.abs(K).max(initial=0.0))
    return [[Interval.around(float(v), error) for v in row] for row in K]


# ── primitives ──────────────────────────────────────────────────────────────────────────────────────────────


def _dot(x: list[Interval], z: list[Interval]) -> Interval:
    total = _ZERO
    for a, b in zip(x, z, strict=True):
        total = total + a * b
    return total


def _norm(x: list[Interval]) -> Interval:
    total = _ZERO
    for a in x:
        total = total + a.square()
    return total.sqrt()


def _numbers(value: Vector, d: int) -> list[Interval]:
    """A parameter as one number per column."""
    return [Interval.exact(v) for v in (value if isinstance(value, tuple) else (value,) * d)]


def _map(K: Enclosed, f: Callable[[Interval], Interval]) -> Enclosed:
    return [[f(v) for v in row] for row in K]


def _squared_distance(k: Radial, x: list[Interval], z: list[Interval]) -> Interval:
    """s = Σ ((x_d - z_d) / ℓ_d)²."""
    s = _ZERO
    for a, b, scale in zip(x, z, _numbers(k.lengthscale, len(x)), strict=True):
        s = s + ((a - b) / scale).square()
    return s


def _of_formula(
    k: OfOneNumber, sample: Sample, variable: Callable[[list[Interval], list[Interval]], Interval]
) -> Enclosed:
    """The recorded formula in interval arithmetic; what has none, or steps without bounds, is measured."""
    try:
        f = k.recorded()
    except NotRecorded:
        return measured(k, sample)
    if not set(f.operations()) <= KNOWN:
        return measured(k, sample)
    return _map(sample.pairs(variable), lambda u: bounds(f, u, k.numbers()))


# ── leaves ──────────────────────────────────────────────────────────────────────────────────────────────────


def _polynomial(coefs: tuple[float, ...], t: Interval) -> Interval:
    out = _ZERO
    for c in reversed(coefs):
        out = out * t + Interval.exact(c)
    return out


def _matern(k: radial.Matern, sample: Sample) -> Enclosed:
    """ν = p + ½: e^(-a) p!/(2p)! Σ (p+i)!/(i!(p-i)!) (2a)^(p-i); other ν are measured."""
    p = int(k.nu)
    if k.nu != p + 0.5:
        return measured(k, sample)
    coefs = [
        Fraction(factorial(p) * factorial(p + i), factorial(2 * p) * factorial(i) * factorial(p - i))
        for i in range(p, -1, -1)
    ]

    def value(s: Interval) -> Interval:
        a = (Interval.exact(2 * p + 1) * s).sqrt()
        total = _ZERO
        for c in reversed(coefs):
            total = total * _TWO * a + Interval.exact(c.numerator) / Interval.exact(c.denominator)
        return (-a).exp() * total

    return _map(sample.pairs(partial(_squared_distance, k)), value)


def _by_columns(
    k: PerColumn,
    sample: Sample,
    names: tuple[str, ...],
    term: Callable[..., Interval],
    *,
    product: bool = False,
) -> Enclosed:
    """A term of every column, summed or multiplied."""

    def entry(x: list[Interval], z: list[Interval]) -> Interval:
        parameters = [_numbers(getattr(k, name), len(x)) for name in names]
        total = _ONE if product else _ZERO
        for values in zip(x, z, *parameters, strict=True):
            part = term(*values)
            total = total * part if product else total + part
        return total

    return sample.pairs(entry)


def _laplacian(k: columns.Laplacian, sample: Sample) -> Enclosed:
    r = _by_columns(k, sample, ("lengthscale",), lambda x, z, scale: (x - z).absolute() / scale)
    return _map(r, lambda v: (-v).exp())


def _wave(x: Interval, z: Interval, period: Interval) -> Interval:
    return (_TWO * pi() * (x - z) / period).cos()


def _periodic(k: columns.Periodic, sample: Sample) -> Enclosed:
    """2 sin²(πδ/p) = 1 - cos(2πδ/p)."""

    def term(x: Interval, z: Interval, period: Interval, scale: Interval) -> Interval:
        return (_ONE - _wave(x, z, period)) / scale.square()

    r = _by_columns(k, sample, ("period", "lengthscale"), term)
    return _map(r, lambda v: (-v).exp())


def _brownian(x: Interval, z: Interval) -> Interval:
    if (x.low > 0 and z.low > 0) or (x.high < 0 and z.high < 0):
        return x.absolute().smaller(z.absolute())
    if x.high <= 0 <= z.low or z.high <= 0 <= x.low:
        return _ZERO
    raise NotEnclosed("the sign of a coordinate is not known")


def _chi2(k: columns.Chi2, sample: Sample) -> Enclosed:
    def term(x: Interval, z: Interval) -> Interval:
        total = x + z
        return _ZERO if total.is_zero() else (x - z).square() / total

    gamma = Interval.exact(k.gamma)
    return _map(_by_columns(k, sample, (), term), lambda r: (-(gamma * r)).exp())


def _constant(k: special.Constant, sample: Sample) -> Enclosed:
    n = len(sample.rows)
    return [[Interval.exact(k.value)] * n for _ in range(n)]


def _white(k: special.White, sample: Sample) -> Enclosed:
    n = len(sample.rows)
    return [[Interval.exact(k.noise) if i == j else _ZERO for j in range(n)] for i in range(n)]


def _bilinear(k: special.Bilinear, sample: Sample) -> Enclosed:
    A = [[Interval.exact(v) for v in row] for row in k.A]
    if sample.points is None:
        raise NotEnclosed("these are no vectors")
    left = [[_dot(x, list(column)) for column in zip(*A, strict=True)] for x in sample.points]
    return [[_dot(row, z) for z in sample.points] for row in left]


def _cosine_of(x: list[Interval], z: list[Interval]) -> Interval | None:
    """The cosine of the angle between two vectors; None if one of them is zero."""
    if all(v.is_zero() for v in x) or all(v.is_zero() for v in z):
        return None
    return _ONE if x is z else _dot(x, z) / (_norm(x) * _norm(z))


def _cosine_similarity(k: special.CosineSimilarity, sample: Sample) -> Enclosed:
    return sample.pairs(lambda x, z: _cosine_of(x, z) or _ZERO)


def _arc_cosine(k: special.ArcCosine, sample: Sample) -> Enclosed:
    """J falls with the angle for every order, so its bounds are those at the ends."""

    def entry(x: list[Interval], z: list[Interval]) -> Interval:
        cosine = _cosine_of(x, z) or _ZERO
        high = _arc_cosine_profile(k.order, Interval(cosine.high, cosine.high))
        low = _arc_cosine_profile(k.order, Interval(cosine.low, cosine.low))
        size = (_norm(x) * _norm(z)).whole_power(k.order)
        return size * Interval(low.low, high.high)

    return sample.pairs(entry)


def _arc_cosine_profile(order: int, cosine: Interval) -> Interval:
    theta = cosine.arccos()
    rest = pi() - theta
    c = theta.cos()
    sine = (_ONE - c.square()).sqrt()
    if order == 0:
        return rest / pi()
    if order == 1:
        return (sine + rest * c) / pi()
    return (Interval.exact(3) * sine * c + rest * (_ONE + _TWO * c.square())) / pi()


def _spectral_mixture(k: special.SpectralMixture, sample: Sample) -> Enclosed:
    def entry(x: list[Interval], z: list[Interval]) -> Interval:
        total = _ZERO
        for weight, mean, scale in zip(k.weights, k.means, k.scales, strict=True):
            part = Interval.exact(weight)
            for a, b, m, s in zip(x, z, np.ravel(mean).tolist(), np.ravel(scale).tolist(), strict=True):
                turn = pi() * (a - b)
                part = part * (-(_TWO * (turn * Interval.exact(s)).square())).exp()
                part = part * (_TWO * turn * Interval.exact(m)).cos()
            total = total + part
        return total

    return sample.pairs(entry)


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────


def _entrywise(parts: list[Enclosed], combine: Callable[[Interval, Interval], Interval]) -> Enclosed:
    out = parts[0]
    for other in parts[1:]:
        out = [[combine(a, b) for a, b in zip(r, s, strict=True)] for r, s in zip(out, other, strict=True)]
    return out


def _scaled(k: algebra.Scaled, sample: Sample) -> Enclosed:
    scale = Interval.exact(k.scale)
    return _map(enclose(k.kernel, sample), lambda v: scale * v)


def _sum(k: algebra.Sum, sample: Sample) -> Enclosed:
    return _entrywise([enclose(part, sample) for part in k.parts], lambda a, b: a + b)


def _product(k: algebra.Product, sample: Sample) -> Enclosed:
    return _entrywise([enclose(part, sample) for part in k.parts], lambda a, b: a * b)


def _power(k: algebra.Power, sample: Sample) -> Enclosed:
    inside = enclose(k.kernel, sample)
    if k.exponent == int(k.exponent):
        return _map(inside, lambda v: v.whole_power(int(k.exponent)))
    return _map(inside, lambda v: v.power(k.exponent))


def _times(k: algebra.Times, sample: Sample) -> Enclosed:
    """f is whatever it returns: any function will do, a rounded one too."""
    f = [Interval.exact(float(v)) for v in k.factor(sample.rows)]
    K = enclose(k.kernel, sample)
    return [[a * b * v for b, v in zip(f, row, strict=True)] for a, row in zip(f, K, strict=True)]


def _of(k: algebra.Of, sample: Sample) -> Enclosed:
    """ψ is whatever it returns: any map will do, a rounded one too."""
    return enclose(k.kernel, Sample.of(k.mapped(sample.rows)))


def _linear_map(k: algebra.LinearMap, sample: Sample) -> Enclosed:
    if sample.points is None:
        raise NotEnclosed("these are no vectors")
    A = [[Interval.exact(v) for v in row] for row in k.A]
    points = [[_dot(row, x) for row in A] for x in sample.points]
    return enclose(k.kernel, Sample(k.mapped(sample.rows), points))


def _on(k: algebra.On, sample: Sample) -> Enclosed:
    if sample.points is None:
        raise NotEnclosed("these are no vectors")
    d = len(sample.points[0])
    numbers = Rows(np.arange(float(d))[None, :], names=sample.rows.names).take(k.columns)
    index = [int(j) for j in dense(numbers.vectors)[0]]
    points = [[x[j] for j in index] for x in sample.points]
    return enclose(k.kernel, Sample(sample.rows.take(k.columns), points))


def _normalized(k: algebra.Normalized, sample: Sample) -> Enclosed:
    K = enclose(k.kernel, sample)
    n = len(K)
    if any(K[i][i].includes_zero() and not K[i][i].is_zero() for i in range(n)):
        raise NotEnclosed("whether k(x, x) is 0 is not known")
    norm = [K[i][i].sqrt() for i in range(n)]
    out = [[_ZERO] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if not (norm[i].is_zero() or norm[j].is_zero()):
                out[i][j] = _ONE if i == j else K[i][j] / (norm[i] * norm[j])
    return out


_RULES: dict[type, Callable[[Any, Sample], Enclosed]] = {
    radial.Matern: _matern,
    columns.Laplacian: _laplacian,
    columns.Periodic: _periodic,
    columns.Cosine: lambda k, sample: _by_columns(k, sample, ("period",), _wave, product=True),
    columns.AllSubsets: lambda k, sample: _by_columns(k, sample, (), lambda x, z: _ONE + x * z, product=True),
    columns.Brownian: lambda k, sample: _by_columns(k, sample, (), _brownian, product=True),
    columns.Intersection: lambda k, sample: _by_columns(k, sample, (), Interval.smaller),
    columns.Chi2: _chi2,
    special.Constant: _constant,
    special.White: _white,
    special.Bilinear: _bilinear,
    special.CosineSimilarity: _cosine_similarity,
    special.ArcCosine: _arc_cosine,
    special.SpectralMixture: _spectral_mixture,
    algebra.Scaled: _scaled,
    algebra.Sum: _sum,
    algebra.Product: _product,
    algebra.Power: _power,
    algebra.Exp: lambda k, sample: _map(enclose(k.kernel, sample), Interval.exp),
    algebra.PolynomialOf: lambda k, sample: _map(
        enclose(k.kernel, sample), lambda v: _polynomial(k.coefs, v)
    ),
    algebra.Times: _times,
    algebra.Of: _of,
    algebra.LinearMap: _linear_map,
    algebra.On: _on,
    algebra.Normalized: _normalized,
}
