"""Random features, built from the kernel expression: one rule per kind of node.

A `Sketch` maps rows to finitely many features with E φ(x)·φ(z) = k(x, z). Kernels with a finite map small
enough get it exactly; stationary ones get cosines and sines of random frequencies; dot-product kernels a
tensor sketch or a random Maclaurin series; sums are put side by side, products are sketched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from mercer.arrays import Rows
from mercer.errors import MercerError, ParameterError
from mercer.gram import core
from mercer.kernels import algebra
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.distances import squared_norms
from mercer.kernels.leaves.families import DotProduct
from mercer.kernels.leaves.leaf import Leaf
from mercer.kernels.leaves.radial import RBF
from mercer.kernels.maps.explicit import FeatureMap
from mercer.kernels.maps.spectral import NoSpectrum, Spectrum, draw, orthogonal
from mercer.memory import room
from mercer.sparse import Matrix, dense
from mercer.threads import threads
from mercer.typing import Array, Integers

# A number, or a function of the rows.
Factor: TypeAlias = float | Callable[[Rows], Array]

KINDS = ("auto", "gaussian", "orthogonal", "quasi", "tensor-sketch", "maclaurin")
# Up to here quasi-random frequencies were measured to be at least as good as orthogonal ones.
QUASI_COLUMNS = 10


@dataclass(frozen=True, eq=False)
class Sketch:
    """Features of rows: `dimension` of them, and `how` they were made.

    `exact` ones reproduce the kernel to rounding.
    """

    dimension: int
    how: str
    exact: bool

    def __call__(self, rows: Rows) -> Array:
        raise NotImplementedError

    def write(self, rows: Rows, out: Array) -> None:
        """Features of rows, into memory that is given: whole rows of an array."""
        out[...] = self(rows)


@dataclass(frozen=True, eq=False)
class Plan:
    """What the rules need to know: the sample, the kind asked for, and where chance comes from."""

    rows: Rows
    kind: str
    rng: np.random.Generator

    @property
    def d(self) -> int:
        return self.rows.width

    def at(self, rows: Rows) -> Plan:
        return Plan(rows, self.kind, self.rng)


def build(k: Kernel, size: int, plan: Plan) -> Sketch:
    """At most about `size` features of k, or `ParameterError` with the reason why there are none."""
    exact = _exact(k, size, plan)
    if exact is not None:
        return exact
    if isinstance(k, algebra.Scaled):
        if k.scale < 0:
            raise ParameterError(f"{k} has a negative factor, so no real features reproduce it.")
        return times(build(k.kernel, size, plan), float(np.sqrt(k.scale)))
    if isinstance(k, algebra.Sum):
        return _sum(k, size, plan)
    try:
        found = k.spectrum(plan.d, plan.rows.names)
    except NoSpectrum as reason:
        return _not_stationary(k, size, plan, str(reason))
    return _fourier(found, size, plan)


def _exact(k: Kernel, size: int, plan: Plan) -> Sketch | None:
    """Features that reproduce the kernel to rounding, where no more are needed than were asked for."""
    found = _finite(k, size, plan)
    if found is not None:
        return found
    try:
        s = k.spectrum(plan.d, plan.rows.names)
    except NoSpectrum:
        return None
    atoms = s.atoms(size // 2)
    if atoms is None:
        return None
    return Fourier(2 * len(atoms[1]), "its Fourier series", True, atoms[0], s.amplitude * atoms[1])


def _finite(k: Kernel, size: int, plan: Plan) -> Sketch | None:
    """The kernel's own map, where it has no more features than were asked for."""
    try:
        where = plan.d if plan.rows.names is None else list(plan.rows.names)
        if not k.feature_dimension(where) <= size:
            return None
        # The caller asks for rows in blocks.
        map = k.features(where, memory=2**62)
    except MercerError:
        return None
    return Explicit(int(map.dimension), "the explicit map", True, map)


@dataclass(frozen=True, eq=False)
class Explicit(Sketch):
    """The features of a finite map."""

    map: FeatureMap

    def __call__(self, rows: Rows) -> Array:
        return np.asarray(self.map(rows), dtype=np.float64)


# ── stationary kernels ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Fourier(Sketch):
    """φ(x) = √p_j (cos ω_j·x, sin ω_j·x): the diagonal k(x, x) = Σ p_j is exact."""

    omega: Array
    weight: Array

    def __call__(self, rows: Rows) -> Array:
        out = room((len(rows), self.dimension))
        self.write(rows, out)
        return out

    def write(self, rows: Rows, out: Array) -> None:
        core.waves(rows.vectors, self.omega, np.sqrt(self.weight), out, threads(None))


@dataclass(frozen=True, eq=False)
class OneCosine(Sketch):
    """φ(x) = √2 cos(ω·x + b) with b uniform, where there is no room for a sine."""

    omega: Array
    shift: Array
    size: float

    def __call__(self, rows: Rows) -> Array:
        values: Array = self.size * np.cos(np.asarray(rows.vectors @ self.omega.T) + self.shift)
        return values


def _fourier(s: Spectrum, size: int, plan: Plan) -> Sketch:
    if size == 1:
        omega = draw(s, 1, "gaussian", plan.rng)
        shift = plan.rng.uniform(0, 2 * np.pi, size=1)
        return OneCosine(1, "a single frequency", False, omega, shift, float(np.sqrt(2 * s.amplitude)))
    m = size // 2
    kind = plan.kind
    if kind in ("tensor-sketch", "maclaurin"):
        kind = "auto"
    if kind == "auto":
        blocks = s.uniforms > QUASI_COLUMNS and orthogonal(s)[1] is not None
        kind = "orthogonal" if blocks else "quasi"
    omega = draw(s, m, kind, plan.rng)
    words = {"gaussian": "independent", "orthogonal": "orthogonal", "quasi": "quasi-random"}
    return Fourier(2 * m, f"{m} {words[kind]} frequencies", False, omega, np.full(m, s.amplitude / m))


# ── dot products ────────────────────────────────────────────────────────────────────────────────────────────


def _not_stationary(k: Kernel, size: int, plan: Plan, reason: str) -> Sketch:
    if isinstance(k, DotProduct) and (k.is_series() or k.rate() is not None):
        return _dot(k, size, plan)
    activation = k.activation() if isinstance(k, Leaf) else None
    if activation is not None:
        weights = plan.rng.standard_normal((size, plan.d))
        return Layer(size, f"{size} random units", False, weights, activation)
    if isinstance(k, algebra.On):
        inner = build(k.kernel, size, plan.at(plan.rows.take(k.columns)))
        return Inside(inner.dimension, inner.how, inner.exact, inner, partial(Rows.take, columns=k.columns))
    if isinstance(k, algebra.Of | algebra.LinearMap):
        inner = build(k.kernel, size, plan.at(k.mapped(plan.rows)))
        return Inside(inner.dimension, inner.how, inner.exact, inner, k.mapped)
    if isinstance(k, algebra.Times):
        return times(build(k.kernel, size, plan), k.factor)
    if isinstance(k, algebra.Normalized):
        return times(build(k.kernel, size, plan), k.inverse_norms)
    if isinstance(k, algebra.Product):
        return _product(k.parts, size, plan)
    if isinstance(k, algebra.Power) and float(k.exponent).is_integer() and 2 <= k.exponent <= 16:
        return _product((k.kernel,) * int(k.exponent), size, plan)
    raise ParameterError(
        f"RandomFeatures has no rule for {k}: {reason}, it is no known function of the dot product, and its "
        f"own feature map is infinite or has more than {size} features. Nystroem takes every kernel."
    )


def _dot(k: DotProduct, size: int, plan: Plan) -> Sketch:
    power = k.power_form()
    rate = k.rate()
    if plan.kind != "maclaurin" and rate is not None:
        # e^(c x·z) = e^(c‖x‖²/2) e^(-c‖x - z‖²/2) e^(c‖z‖²/2): a Gaussian kernel between two factors
        gauss = RBF(1.0 / np.sqrt(rate))
        inner = _fourier(gauss.spectrum(plan.d), size, plan)
        return times(inner, partial(half_exponential, scale=rate))
    if plan.kind == "maclaurin" or power is None:
        return _maclaurin(k, size, plan)
    return _tensor_sketch(plan.d, *power, size, plan.rng)


def _count(width: int, size: int, rng: np.random.Generator) -> sparse.csr_array:
    """A count sketch: each of `width` columns is added, with a random sign, to one of `size`."""
    signs = rng.choice([-1.0, 1.0], size=width)
    return sparse.csr_array((signs, (np.arange(width), rng.integers(size, size=width))), shape=(width, size))


def _tensor_sketch(
    d: int, scale: float, offset: float, degree: int, size: int, rng: np.random.Generator
) -> Sketch:
    tables = [_count(d + (offset > 0), size, rng) for _ in range(degree)]
    return TensorSketch(size, f"a tensor sketch of degree {degree}", False, tables, scale, offset)


@dataclass(frozen=True, eq=False)
class TensorSketch(Sketch):
    """(offset + scale x·z)^p by p count sketches of (√scale x, √offset), convolved (Pham and Pagh)."""

    tables: list[Matrix]
    scale: float
    offset: float

    def __call__(self, rows: Rows) -> Array:
        X = rows.vectors * np.sqrt(self.scale)
        if self.offset > 0:
            one = np.full((X.shape[0], 1), np.sqrt(self.offset))
            if sparse.issparse(X):
                X = sparse.hstack([X, sparse.csr_array(one)], format="csr")
            else:
                X = np.hstack([X, one])
        return convolve([X @ table for table in self.tables], self.dimension)


def convolve(parts: list[Matrix], size: int) -> Array:
    """The circular convolution of the rows of several arrays."""
    arrays = [np.asarray(dense(part)) for part in parts]
    if len(arrays) == 1:
        return arrays[0]
    out = np.fft.rfft(arrays[0], axis=1)
    for array in arrays[1:]:
        out *= np.fft.rfft(array, axis=1)
    found: Array = np.fft.irfft(out, n=size, axis=1)
    return found


def _maclaurin(k: DotProduct, size: int, plan: Plan) -> Sketch:
    """Σ a_n (x·z)^n: features of random degree n, P(n) ∝ a_n r^n for r = E‖x‖², with n random signs."""
    r = max(float(squared_norms(plan.rows.vectors).mean()), 1e-300)
    rate = k.rate()
    if rate is not None:
        n = np.arange(int(20 + rate * r + 12 * np.sqrt(rate * r)))
        logs = n * np.log(rate * r) - gammaln(n + 1)
        log_a = n * np.log(rate) - gammaln(n + 1)
    else:
        a = np.array(_taylor(k))
        n = np.arange(len(a))
        with np.errstate(divide="ignore"):
            log_a = np.log(a)
        logs = log_a + n * np.log(r)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    degrees = np.sort(plan.rng.choice(n, size=size, p=p))
    weight = np.exp(0.5 * (log_a[degrees] - np.log(p[degrees]) - np.log(size)))
    signs = [
        plan.rng.choice([-1.0, 1.0], size=(plan.d, int((degrees > j).sum())))
        for j in range(int(degrees.max()))
    ]
    return Maclaurin(size, f"{size} terms of a random Maclaurin series", False, degrees, weight, signs)


def _taylor(k: DotProduct) -> tuple[float, ...]:
    coefficients = k.taylor_coefficients()
    if coefficients is None:
        raise ParameterError(
            f"{k} has no finite list of Taylor coefficients. Give them as Dot(taylor=[...]), or use Nystroem."
        )
    if min(coefficients) < 0:
        raise ParameterError(f"{k} has a negative Taylor coefficient, so no real features reproduce it.")
    return coefficients


@dataclass(frozen=True, eq=False)
class Maclaurin(Sketch):
    """Products of random signs of the columns, as many as the degree of the feature."""

    degrees: Integers
    weight: Array
    signs: list[Array]

    def __call__(self, rows: Rows) -> Array:
        X = rows.vectors
        out = np.tile(self.weight, (X.shape[0], 1))
        # Degrees are sorted, so those that still have factors are the last ones.
        for S in self.signs:
            out[:, self.dimension - S.shape[1] :] *= np.asarray(X @ S)
        return out


@dataclass(frozen=True, eq=False)
class Layer(Sketch):
    """k = 2 E h(w·x) h(w·z) over Gaussian w, with h the activation of a unit."""

    weights: Array
    activation: Callable[[Array], Array]

    def __call__(self, rows: Rows) -> Array:
        h = self.activation(np.asarray(rows.vectors @ self.weights.T))
        return np.asarray(h * np.sqrt(2.0 / self.dimension))


# ── made of others ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Inside(Sketch):
    """Features of mapped rows, or of some of their columns."""

    inner: Sketch
    map: Callable[[Rows], Rows]

    def __call__(self, rows: Rows) -> Array:
        return self.inner(self.map(rows))


@dataclass(frozen=True, eq=False)
class Times(Sketch):
    """f(x) φ(x), for a number or a function f."""

    inner: Sketch
    factor: Factor

    def __call__(self, rows: Rows) -> Array:
        out = self.inner(rows)
        if callable(self.factor):
            out *= self.factor(rows).reshape(-1, 1)
        else:
            out *= self.factor
        return out


def times(inner: Sketch, factor: Factor) -> Sketch:
    """The features times a number or a function of the rows."""
    return Times(inner.dimension, inner.how, inner.exact, inner, factor)


def half_exponential(rows: Rows, scale: float) -> Array:
    values: Array = np.exp(0.5 * scale * squared_norms(rows.vectors))
    return values


@dataclass(frozen=True, eq=False)
class SideBySide(Sketch):
    """The features of several sketches: their kernels are added."""

    parts: list[Sketch]

    def __call__(self, rows: Rows) -> Array:
        return np.hstack([part(rows) for part in self.parts])


def _sum(k: algebra.Sum, size: int, plan: Plan) -> Sketch:
    """Exact parts keep their features; the others share the rest by their mean k(x, x), at least 2 each."""
    parts: list[Sketch | None] = [_exact(p, size // len(k.parts), plan) for p in k.parts]
    left = size - sum(s.dimension for s in parts if s is not None)
    open_ = [i for i, s in enumerate(parts) if s is None]
    if open_ and left < 2 * len(open_):
        raise ParameterError(f"{k} has {len(k.parts)} terms, too many for n_components={size}.")
    mass = np.array([max(float(k.parts[i].diagonal(plan.rows).mean()), 0.0) for i in open_])
    share = np.full(len(open_), 1 / max(len(open_), 1))
    if mass.sum() > 0:
        share = mass / mass.sum()
    for i, f in zip(open_, share, strict=True):
        parts[i] = build(k.parts[i], 2 + int((left - 2 * len(open_)) * f), plan)
    made = [s for s in parts if s is not None]
    return SideBySide(
        sum(s.dimension for s in made), " + ".join(s.how for s in made), all(s.exact for s in made), made
    )


@dataclass(frozen=True, eq=False)
class Tensor(Sketch):
    """φ₁ ⊗ φ₂ ⊗ …, written out."""

    parts: list[Sketch]

    def __call__(self, rows: Rows) -> Array:
        out = self.parts[0](rows)
        for part in self.parts[1:]:
            out = (out[:, :, None] * part(rows)[:, None, :]).reshape(len(out), -1)
        return out


@dataclass(frozen=True, eq=False)
class SketchedProduct(Sketch):
    """φ₁ ⊗ φ₂ ⊗ … sketched: a count sketch of each, convolved."""

    parts: list[Sketch]
    tables: list[Matrix]

    def __call__(self, rows: Rows) -> Array:
        return convolve([p(rows) @ t for p, t in zip(self.parts, self.tables, strict=True)], self.dimension)


def _product(factors: tuple[Kernel, ...], size: int, plan: Plan) -> Sketch:
    """Independent features of every factor; their tensor product if it is small enough, else sketched."""
    exact = [_exact(f, size, plan) for f in factors]
    room = size / float(np.prod([s.dimension for s in exact if s is not None]))
    rest = [i for i, s in enumerate(exact) if s is None]
    if len(rest) == 1 and room >= 64:
        # One random factor among small exact ones.
        exact[rest[0]] = build(factors[rest[0]], int(room), plan)
    parts = [s if s is not None else build(f, size, plan) for s, f in zip(exact, factors, strict=True)]
    whole = int(np.prod([float(s.dimension) for s in parts]))
    how = " times ".join(s.how for s in parts)
    if whole <= size:
        return Tensor(whole, how, all(s.exact for s in parts), parts)
    tables = [_count(s.dimension, size, plan.rng) for s in parts]
    return SketchedProduct(size, f"a tensor sketch of ({how})", False, parts, tables)
