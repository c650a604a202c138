"""What the laws are tested on: named kernels beside their slow reference, points of awkward shapes,
random expressions.

`every_kernel()` holds every leaf and every rule; a test checks that no registered leaf is missing. To put a
new leaf under all laws, add one line to `_leaves` (and its formula to `reference/kernels.py`).
"""

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

from mercer.kernels import (
    RBF,
    AllSubsets,
    ArcCosine,
    Bilinear,
    Brownian,
    Chi2,
    Constant,
    Cosine,
    CosineSimilarity,
    Custom,
    Dot,
    ExpDot,
    Exponential,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Logistic,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Standardized,
    Stationary,
    White,
    ZeroMeanPeriodic,
)
from mercer.kernels.leaves.leaf import LEAVES
from reference import kernels as ref


@dataclass(frozen=True)
class Case:
    """A kernel, its reference, and what is known of it."""

    name: str
    kernel: Kernel
    reference: Any
    valid: bool = True  # positive semi-definite by theory
    columns: int | None = None  # how many columns it needs, where it matters
    histogram: bool = False  # defined on x >= 0 only
    named: bool = True  # made of named parts: its text can be read back
    explosive: bool = False  # grows like an exponential: large points overflow

    def __repr__(self) -> str:
        return self.name

    def points(self, n: int, d: int = 3, seed: int = 0) -> np.ndarray:
        """A cloud of n points on which the kernel is defined."""
        return self.admit(np.random.default_rng(seed).normal(size=(n, self.columns or d)))

    def admit(self, X: np.ndarray) -> np.ndarray:
        """The points, moved to where the kernel is defined."""
        X = X[:, : self.columns]
        if self.explosive:
            X = np.clip(X, -6.0, 6.0)
        return np.abs(X) if self.histogram else X


# ── functions, as numpy for mercer and as mpmath for the reference ──────────────────────────────────────────


def cubic(t):
    return t + t**3


def sinh(t):
    return np.sinh(t)


def gauss_of_difference(delta):
    return np.exp(-np.sum(delta * delta, axis=-1))


def smallest_sum(a, b):
    """A kernel written by a user: Σ min(|a|, |b|), for any two rows of numbers."""
    return sum(min(abs(float(p)), abs(float(q))) for p, q in zip(a, b, strict=True))


def smallest_sums(A, B):
    return [[smallest_sum(a, b) for b in B] for a in A]


def first_plus_one(X):
    return np.asarray(X)[:, 0] + 1.0


def squares(X):
    return np.asarray(X) ** 2


def _sum_of_squares(delta):
    return mpmath.fsum(v * v for v in delta)


A2 = [[2.0, 1.0], [1.0, 2.0]]
A3 = [[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 3.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
SKEW = [[1.0, 2.0], [0.0, 1.0]]
MAP = [[1.0, -1.0, 0.5], [0.0, 2.0, 1.0]]
ARD = [0.7, 1.5, 3.0]


def _leaves() -> list[Case]:
    return [
        Case("linear", Linear(), ref.linear()),
        Case("polynomial", Polynomial(), ref.polynomial(3, 1.0, 1.0)),
        Case("polynomial-1", Polynomial(1, offset=0.0), ref.polynomial(1, 0.0, 1.0)),
        Case("polynomial-homogeneous", Polynomial(2, offset=0.0, scale=0.3), ref.polynomial(2, 0.0, 0.3)),
        Case("polynomial-7", Polynomial(7, offset=0.5, scale=0.1), ref.polynomial(7, 0.5, 0.1)),
        Case("rbf", RBF(1.0), ref.rbf(1.0)),
        Case("rbf-ard", RBF(ARD), ref.rbf(ARD), columns=3),
        Case("rbf-wide", RBF(25.0), ref.rbf(25.0)),
        Case("laplacian", Laplacian(1.0), ref.laplacian(1.0)),
        Case("laplacian-ard", Laplacian(ARD), ref.laplacian(ARD), columns=3),
        Case("exponential", Exponential(0.8), ref.exponential(0.8)),
        Case("exponential-ard", Exponential(ARD), ref.exponential(ARD), columns=3),
        *(Case(f"matern-{nu}", Matern(1.3, nu=nu), ref.matern(1.3, nu)) for nu in (0.5, 1.5, 2.5)),
        *(
            Case(f"matern-{nu}", Matern(0.9, nu=nu), ref.matern(0.9, nu))
            for nu in (0.3, 1.0, 2.0, 3.5, 7.25, 20.0)
        ),
        Case("matern-ard", Matern(ARD, nu=1.5), ref.matern(ARD, 1.5), columns=3),
        Case("rational-quadratic", RationalQuadratic(1.0), ref.rational_quadratic(1.0, 1.0)),
        Case("rational-quadratic-heavy", RationalQuadratic(0.5, alpha=0.1), ref.rational_quadratic(0.5, 0.1)),
        Case(
            "rational-quadratic-ard",
            RationalQuadratic(ARD, alpha=40.0),
            ref.rational_quadratic(ARD, 40.0),
            columns=3,
        ),
        Case("periodic", Periodic(), ref.periodic(1.0, 1.0)),
        Case(
            "periodic-ard",
            Periodic([0.9, 2.0, 7.0], lengthscale=ARD),
            ref.periodic([0.9, 2.0, 7.0], ARD),
            columns=3,
        ),
        Case("zero-mean-periodic", ZeroMeanPeriodic(2.5, lengthscale=0.8), ref.zero_mean_periodic(2.5, 0.8)),
        Case(
            "zero-mean-periodic-ard",
            ZeroMeanPeriodic([0.9, 2.0, 7.0], lengthscale=ARD),
            ref.zero_mean_periodic([0.9, 2.0, 7.0], ARD),
            columns=3,
        ),
        Case("cosine", Cosine(2.5), ref.cosine(2.5)),
        Case("cosine-ard", Cosine(ARD), ref.cosine(ARD), columns=3),
        Case(
            "spectral-mixture",
            SpectralMixture([1.0, 0.5], [0.2, 1.1], [0.3, 0.05]),
            ref.spectral_mixture([1.0, 0.5], [0.2, 1.1], [0.3, 0.05]),
            columns=1,
        ),
        Case(
            "spectral-mixture-2d",
            SpectralMixture([0.7, 2.0], [[0.2, -0.4], [0.0, 1.5]], [[0.3, 0.1], [1.0, 0.2]]),
            ref.spectral_mixture([0.7, 2.0], [[0.2, -0.4], [0.0, 1.5]], [[0.3, 0.1], [1.0, 0.2]]),
            columns=2,
        ),
        Case("exp-dot", ExpDot(), ref.exp_dot(1.0), explosive=True),
        Case("exp-dot-scaled", ExpDot(0.25), ref.exp_dot(0.25), explosive=True),
        Case("all-subsets", AllSubsets(), ref.all_subsets()),
        Case("cosine-similarity", CosineSimilarity(), ref.cosine_similarity()),
        *(Case(f"arc-cosine-{n}", ArcCosine(n), ref.arc_cosine(n)) for n in (0, 1, 2)),
        Case("constant", Constant(2.5), ref.constant(2.5)),
        Case("constant-negative", Constant(-0.5), ref.constant(-0.5), valid=False),
        Case("white", White(0.3), ref.white(0.3)),
        Case("bilinear", Bilinear(A3), ref.bilinear(A3), columns=3),
        Case("bilinear-indefinite", Bilinear(INDEFINITE), ref.bilinear(INDEFINITE), columns=2, valid=False),
        Case("brownian", Brownian(), ref.brownian()),
        Case("chi2", Chi2(0.7), ref.chi2(0.7), histogram=True),
        Case("intersection", Intersection(), ref.intersection(), histogram=True),
        Case("sigmoid", Sigmoid(0.8, offset=-0.5), ref.sigmoid(0.8, -0.5), valid=False),
        Case("logistic", Logistic(0.8, offset=0.5), ref.logistic(0.8, 0.5), valid=False),
        Case("dot-taylor", Dot(taylor=[1.0, 0.0, 2.0]), ref.dot(lambda t: 1 + 2 * t * t)),
        Case("dot-function", Dot(sinh), ref.dot(mpmath.sinh), named=False, explosive=True),
        Case("dot-checked", Dot(cubic, taylor=[0, 1, 0, 1]), ref.dot(cubic)),
        Case(
            "stationary",
            Stationary(gauss_of_difference),
            ref.stationary(lambda delta: mpmath.exp(-_sum_of_squares(delta))),
            named=False,
        ),
        Case("custom", Custom(smallest_sum), ref.custom(smallest_sum), named=False),
        Case("custom-blocks", Custom(smallest_sums, blocks=True), ref.custom(smallest_sum), named=False),
    ]


def _rules() -> list[Case]:
    rbf, lin, per = RBF(1.5), Linear(), Periodic(2.0)
    r, l, p = ref.rbf(1.5), ref.linear(), ref.periodic(2.0, 1.0)
    return [
        Case("sum", rbf + lin + per, ref.plus(r, l, p)),
        Case("sum-with-number", rbf + 2, ref.plus(r, ref.constant(2.0))),
        Case("difference", rbf - lin, ref.minus(r, l), valid=False),
        Case("number-minus", 1.5 - rbf, ref.minus(ref.constant(1.5), r), valid=False),
        Case("negative", -rbf, ref.scaled(-1.0, r), valid=False),
        Case("product", rbf * lin * per, ref.product(r, l, p)),
        Case("scaled", 0.3 * rbf, ref.scaled(0.3, r)),
        Case("scaled-product", 0.3 * rbf * (2.0 * lin), ref.scaled(0.6, ref.product(r, l))),
        Case("divided", rbf / 4.0, ref.scaled(0.25, r)),
        Case("power-0", lin**0, ref.power(l, 0)),
        Case("power-3", (lin + 1) ** 3, ref.power(ref.plus(l, ref.constant(1.0)), 3)),
        Case("power-fractional", rbf**0.5, ref.power(r, mpmath.mpf(0.5))),
        Case("exp", (0.5 * rbf).exp(), ref.exp(ref.scaled(0.5, r))),
        Case("polynomial-of", lin.polynomial([1, 0, 0.5]), ref.polynomial_of(l, [1, 0, 0.5])),
        Case(
            "polynomial-of-signed", rbf.polynomial([0, 1, -2]), ref.polynomial_of(r, [0, 1, -2]), valid=False
        ),
        Case("times", rbf.times(first_plus_one), ref.times(r, lambda x: x[0] + 1), named=False),
        Case("of-function", rbf.of(squares), ref.of(r, lambda x: [v * v for v in x]), named=False),
        Case("of-matrix", rbf.of(MAP), ref.linear_map(r, MAP), columns=3),
        Case(
            "of-reading",
            rbf.of(Standardized([1.0, 0.0, -0.5], [2.0, 0.5, 1.0])),
            ref.of(r, lambda x: [(x[0] - 1) / 2, 2 * x[1], x[2] + mpmath.mpf(0.5)]),
            columns=3,
        ),
        Case("on-columns", rbf.on(2, 0), ref.on(r, [2, 0]), columns=3),
        Case("on-slice", lin.on(slice(1, None)), ref.on(l, [1, 2]), columns=3),
        Case("tensor", rbf.on(0) * per.on(-1), ref.product(ref.on(r, [0]), ref.on(p, [2])), columns=3),
        Case("normalized", (lin + 1).normalized(), ref.normalized(ref.plus(l, ref.constant(1.0)))),
        Case("normalized-sum", (rbf + lin).normalized(), ref.normalized(ref.plus(r, l))),
        Case(
            "mauna-loa",
            4.0 * RBF(6.0)
            + 2.0 * RBF(9.0) * Periodic(1.0, lengthscale=1.3)
            + RationalQuadratic(1.2, alpha=0.78)
            + 0.04 * White(1.0),
            ref.plus(
                ref.scaled(4.0, ref.rbf(6.0)),
                ref.scaled(2.0, ref.product(ref.rbf(9.0), ref.periodic(1.0, 1.3))),
                ref.rational_quadratic(1.2, 0.78),
                ref.scaled(0.04, ref.white(1.0)),
            ),
        ),
        Case(
            "deep",
            ((rbf + 0.1 * White(0.5)) * (lin + 2.0)).normalized().exp().on(0, 1),
            ref.on(
                ref.exp(
                    ref.normalized(
                        ref.product(
                            ref.plus(r, ref.scaled(0.1, ref.white(0.5))), ref.plus(l, ref.constant(2.0))
                        )
                    )
                ),
                [0, 1],
            ),
            columns=3,
        ),
    ]


def every_leaf() -> list[Case]:
    return _leaves()


def every_rule() -> list[Case]:
    return _rules()


def every_kernel() -> list[Case]:
    """Every leaf with several parameters, and every rule."""
    return _leaves() + _rules()


def every_valid_kernel() -> list[Case]:
    return [case for case in every_kernel() if case.valid]


def registered_leaves() -> dict[str, type]:
    """The leaves on vectors that mercer itself registers (tests and documentation may register more).

    Those on other things have laws of their own: `things_under_test`.
    """
    ours = {name: cls for name, cls in LEAVES.items() if cls.__module__.startswith("mercer.")}
    return {name: cls for name, cls in ours.items() if not cls.__module__.startswith("mercer.kernels.things")}


# ── points ──────────────────────────────────────────────────────────────────────────────────────────────────

_seeds = st.integers(0, 2**32 - 1)
_few = st.integers(1, 8)


def cloud(n: int, d: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def grid(side: int, d: int, step: float = 0.5) -> np.ndarray:
    axes = np.meshgrid(*[np.arange(side) * step] * d, indexing="ij")
    return np.stack([a.ravel() for a in axes], axis=1)


@st.composite
def points(draw, d: int | None = None, n: st.SearchStrategy[int] = _few):
    """Clouds, grids, repeated rows, points on a line, points far from the origin,
    points very close together.
    """
    columns = d if d is not None else draw(st.integers(1, 4))
    rows, seed = draw(n), draw(_seeds)
    X = cloud(rows, columns, seed)
    shape = draw(st.sampled_from(["cloud", "grid", "duplicates", "collinear", "offset", "tiny", "zeros"]))
    if shape == "grid":
        X = np.round(2 * X) / 2
    elif shape == "duplicates":
        X = X[np.random.default_rng(seed).integers(0, rows, rows)]
    elif shape == "collinear":
        X = X[:, :1] * np.ones((1, columns))
    elif shape == "offset":
        X = X + 1e3
    elif shape == "tiny":
        X = X * 1e-6
    elif shape == "zeros":
        X[0] = 0.0
    return X


# ── expressions ─────────────────────────────────────────────────────────────────────────────────────────────

_size = st.floats(1e-3, 1e3, allow_subnormal=False) | st.sampled_from([1.0, 2.0, 0.5, 10.0, 1e-3])
_any_number = st.floats(-1e3, 1e3, allow_subnormal=False) | st.integers(-5, 5)


@st.composite
def _leaf_expressions(draw, d: int):
    vector = _size | st.lists(_size, min_size=d, max_size=d)
    square = st.lists(st.lists(_any_number, min_size=d, max_size=d), min_size=d, max_size=d)
    q = draw(st.integers(1, 2))
    mixture = st.lists(st.lists(_size, min_size=d, max_size=d), min_size=q, max_size=q)
    return draw(
        st.one_of(
            st.sampled_from([Linear(), AllSubsets(), CosineSimilarity(), Brownian(), Intersection()]),
            st.builds(Polynomial, st.integers(1, 5), offset=st.floats(0, 5), scale=_size),
            st.builds(RBF, vector),
            st.builds(Laplacian, vector),
            st.builds(Exponential, vector),
            st.builds(Matern, vector, nu=st.sampled_from([0.5, 1.5, 2.5, 0.7, 3.0])),
            st.builds(RationalQuadratic, vector, alpha=_size),
            st.builds(Periodic, vector, lengthscale=vector),
            st.builds(ZeroMeanPeriodic, vector, lengthscale=vector),
            st.builds(Cosine, vector),
            st.builds(SpectralMixture, st.lists(_size, min_size=q, max_size=q), mixture, mixture),
            st.builds(ExpDot, _size),
            st.builds(ArcCosine, st.integers(0, 2)),
            st.builds(Constant, _any_number),
            st.builds(White, _size),
            st.builds(Chi2, _size),
            st.builds(Bilinear, square),
            st.builds(Sigmoid, _size, offset=_any_number),
            st.builds(Logistic, _size, offset=_any_number),
            st.builds(lambda c: Dot(taylor=c), st.lists(_any_number, min_size=1, max_size=4)),
        )
    )


_columns = st.lists(
    st.integers(-3, 3)
    | st.text(alphabet="ab_ 1.\"'\\\n\té(,)", min_size=1, max_size=5)
    | st.builds(slice, st.none() | st.integers(-2, 3), st.none() | st.integers(1, 4)),
    min_size=1,
    max_size=3,
)


def _grow(kernels: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.builds(lambda a, b: a + b, kernels, kernels),
        st.builds(lambda a, b: a - b, kernels, kernels),
        st.builds(lambda a, b: a * b, kernels, kernels),
        st.builds(lambda a, c: a + c, kernels, _any_number),
        st.builds(lambda a, c: c - a, kernels, _any_number),
        st.builds(lambda a, c: c * a, kernels, _any_number),
        st.builds(lambda a: -a, kernels),
        st.builds(lambda a, p: a**p, kernels, st.sampled_from([0, 1, 2, 3, 0.5, 1.75, 1e-3])),
        st.builds(lambda a: a.exp(), kernels),
        st.builds(lambda a: a.normalized(), kernels),
        st.builds(lambda a, c: a.polynomial(c), kernels, st.lists(_any_number, min_size=1, max_size=4)),
        st.builds(lambda a, c: a.on(*c), kernels, _columns),
        st.builds(lambda a, A: a.of(A), kernels, st.just(MAP) | st.just([[1, -2.5]])),
        st.builds(_fix_one, kernels, _seeds),
        st.builds(_bound_one, kernels, _seeds),
    )


def _fix_one(k: Kernel, seed: int) -> Kernel:
    names = sorted({p.name.split("[")[0] for p in k.parameters})
    names += sorted({n.split("__")[-1] for n in names})
    return k.fix(names[seed % len(names)]) if names else k


def _bound_one(k: Kernel, seed: int) -> Kernel:
    names = sorted({p.name.split("[")[0] for p in k.parameters})
    if not names:
        return k
    name = names[seed % len(names)]
    values = [p.value for p in k.parameters if p.name.split("[")[0] == name]
    low, high = min(values), max(values)
    low, high = (low / 2 if low > 0 else low * 2 - 1), (high * 3 if high > 0 else high / 2)
    return k.bounded(**{name: (low, high)}) if low < high else k


def expressions(d: int = 2, max_leaves: int = 5) -> st.SearchStrategy:
    """Random kernels of named parts: their text can be read back."""
    return st.recursive(_leaf_expressions(d), _grow, max_leaves=max_leaves)


# ── expressions that can be evaluated on d columns, with maps of the points ─────────────────────────────────

_scale = st.floats(0.3, 3.0)
_RULES = ["+", "*", "of", "on", "matrix", "scale", "normalized", "power", "exp", "times"]
_maps = st.sampled_from([np.square, np.abs, np.sin, np.tanh, squares])


@st.composite
def _fitting_leaves(draw, d: int, ard: bool):
    """A leaf for d columns, with numbers of ordinary size."""
    length = _scale | st.lists(_scale, min_size=d, max_size=d) if ard else _scale
    entries = st.lists(st.floats(-1.0, 1.0), min_size=d * d, max_size=d * d)
    square = entries.map(lambda v: np.reshape(v, (d, d)))
    return draw(
        st.one_of(
            st.sampled_from([Linear(), AllSubsets(), CosineSimilarity(), Brownian()]),
            st.builds(Polynomial, st.integers(1, 3), offset=st.floats(0.0, 1.0)),
            st.builds(RBF, length),
            st.builds(Laplacian, length),
            st.builds(Exponential, length),
            st.builds(Matern, length, nu=st.sampled_from([0.5, 1.5, 2.5, 0.7])),
            st.builds(RationalQuadratic, length, alpha=_scale),
            st.builds(Periodic, length, lengthscale=length),
            st.builds(ZeroMeanPeriodic, length, lengthscale=length),
            st.builds(Cosine, length),
            st.builds(ExpDot, st.floats(0.05, 0.3)),
            st.builds(ArcCosine, st.integers(0, 2)),
            st.builds(Constant, st.floats(0.1, 2.0)),
            st.builds(White, st.floats(0.1, 1.0)),
            st.builds(lambda B: Bilinear(B @ B.T), square),
            st.builds(lambda B: Bilinear(B + B.T), square),
            st.builds(Sigmoid, st.floats(0.05, 0.5)),
        )
    )


@st.composite
def fitting(draw, d: int, depth: int = 3, ard: bool = True):
    """Random kernels on d columns, in which every part may see the points through a
    map or some columns of its own.
    """
    if depth == 0:
        return draw(_fitting_leaves(d, ard))
    inside = fitting(d, depth - 1, ard)
    rule = draw(st.sampled_from(_RULES))
    if rule == "on":
        columns = draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
        return draw(fitting(len(columns), depth - 1, ard)).on(*columns)
    if rule == "matrix":
        rows = draw(st.integers(1, 3))
        entries = draw(st.lists(st.floats(-1.0, 1.0), min_size=rows * d, max_size=rows * d))
        return draw(fitting(rows, depth - 1, ard)).of(np.reshape(entries, (rows, d)))
    k = draw(inside)
    if rule in "+*":
        other = draw(inside)
        return k + other if rule == "+" else k * other
    if rule == "of":
        return k.of(draw(_maps))
    if rule == "scale":
        return draw(st.floats(-0.5, 2.0)) * k
    if rule == "power":
        return k ** draw(st.sampled_from([0.5, 1.5, 2, 3]))
    if rule == "exp":
        return (0.1 * k).exp()
    return k.normalized() if rule == "normalized" else k.times(first_plus_one)
