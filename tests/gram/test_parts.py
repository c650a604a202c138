"""Blocks of shifted operators, the order of parts in sums and products, and fractional powers,
against plain arrays.
"""

from inspect import isfunction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import RBF, Constant, ExpDot, Exponential, Laplacian, Linear, Matern, Periodic, Polynomial, White
from mercer.arrays import Rows
from mercer.errors import MagnitudeError
from mercer.gram import Dense, LowRank, Precomputed, SumOf, Tiles, blocks

N = 17
X = np.random.default_rng(0).normal(size=(N, 3))
KERNEL = RBF(1.0) + White(0.2)
PARTS = {
    "tiles": lambda: Tiles(KERNEL, X),
    "dense": lambda: Dense(KERNEL, X),
    "numpy": lambda: Tiles(Matern(1.0, nu=0.7) + White(0.2), X),
    "precomputed": lambda: Precomputed(KERNEL(X)),
    "low rank": lambda: LowRank(X),
    "sum": lambda: Tiles(KERNEL, X) + LowRank(X),
}

_index = st.one_of(
    st.lists(st.integers(-N, N - 1), max_size=25),
    st.builds(
        slice,
        st.none() | st.integers(-N, N),
        st.none() | st.integers(-N, N),
        st.sampled_from([None, 1, 2, 3, -1, -2]),
    ),
    st.lists(st.booleans(), min_size=N, max_size=N).map(np.array),
)


@given(
    rows=_index,
    cols=_index,
    kind=st.sampled_from(sorted(PARTS)),
    several=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_block_of_a_shifted_operator_is_cut_from_the_shifted_matrix(rows, cols, kind, several, seed):
    inner = PARTS[kind]()
    shift = np.random.default_rng(seed).uniform(0.5, 2.0, N) if several else 0.7
    whole = np.array(inner.dense()) + np.diag(np.broadcast_to(shift, N))
    rows, cols = (
        np.asarray(index, dtype=int) if isinstance(index, list) else index for index in (rows, cols)
    )
    K = inner.shifted(shift)
    found = K.block(rows, cols)
    np.testing.assert_allclose(found, whole[rows][:, cols], rtol=1e-12, atol=1e-12)
    twice = K.shifted(0.25).block(rows, cols)
    np.testing.assert_allclose(twice, (whole + 0.25 * np.eye(N))[rows][:, cols], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", PARTS)
def test_a_shifted_operator_is_the_shifted_matrix(kind):
    inner = PARTS[kind]()
    shift = np.random.default_rng(1).uniform(0.5, 2.0, N)
    whole = np.array(inner.dense()) + np.diag(shift)
    K, V = inner.shifted(shift), np.random.default_rng(2).normal(size=(N, 4))
    np.testing.assert_allclose(K.dense(), whole, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(K.diag(), whole.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(K @ V, whole @ V, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(K.T @ V, whole.T @ V, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(inner.dense(), PARTS[kind]().dense())  # the inner one was not changed


# ── the order of parts ──────────────────────────────────────────────────────────────────────────────────────

TERMS = {
    "RBF": 0.5 * RBF([0.7, 1.1, 1.9]),
    "Periodic": 2.0 * Periodic(2.3, lengthscale=[0.9, 1.2, 1.7]),
    "Polynomial": Polynomial(2, offset=0.6, scale=0.3),
    "noise": White(0.4),
    "Constant": Constant(1.5),
    "Laplacian": Laplacian(1.3).on(1),
    "numpy": 0.8 * Matern(1.4, nu=0.7),
    "map": RBF(0.9).of(np.tanh),
    "Exponential": Exponential(1.2) ** 1.5,
}

orders = st.permutations(sorted(TERMS)).map(lambda names: names[:4])


def slopes_of(k, W):
    """∂(Σ W K)/∂θ by central differences of the NumPy spelling, one parameter at a time."""
    out = []
    for i in range(len(k.theta)):
        step = 1e-5 * np.eye(len(k.theta))[i]
        up, down = (k.with_theta(k.theta + s * step).block(Rows(X), None) for s in (1, -1))
        out.append(float((W * (up - down)).sum() / 2e-5))
    return np.array(out)


@given(names=orders, product=st.booleans(), nested=st.booleans())
def test_every_slope_belongs_to_its_part_whatever_the_order(names, product, nested):
    first, *rest = (TERMS[name] for name in names)
    k = first
    for part in rest:
        k = k * part if product else k + part
    if nested:
        k = (0.7 * k + 0.3 * RBF(1.6)) * Linear()
    W = np.random.default_rng(3).normal(size=(N, N))
    expected = slopes_of(k, W)
    size = 1 + np.abs(expected).max()
    np.testing.assert_allclose(Tiles(k, X).contract(W=W), expected, rtol=1e-5, atol=1e-6 * size)
    chain = [p.derivative for p in k.parameters]
    by_numpy = blocks.contract(k, Rows(X), None, W=W) * chain
    np.testing.assert_allclose(
        by_numpy[[p.free for p in k.parameters]], expected, rtol=1e-5, atol=1e-6 * size
    )


@given(names=orders)
def test_a_sum_of_operators_keeps_the_slopes_in_the_order_of_its_parts(names):
    W = np.random.default_rng(4).normal(size=(N, N))
    operators = [Tiles(TERMS[name], X) for name in names]
    total = SumOf(*operators)
    np.testing.assert_array_equal(total.contract(W=W), np.concatenate([K.contract(W=W) for K in operators]))
    left = (operators[0] + operators[1]) + (operators[2] + operators[3])
    np.testing.assert_array_equal(left.contract(W=W), total.contract(W=W))
    np.testing.assert_allclose(total.dense(), sum(TERMS[name](X) for name in names), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total.block([3, 1], slice(2, 9)), total.dense()[[3, 1]][:, 2:9], atol=1e-12)


# ── fractional powers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("power", [1e-3, 0.5, 1.5, 2.75])
@pytest.mark.parametrize(
    "kernel, formula",
    [
        (RBF(1.3), lambda s, t: mpmath.exp(-s / mpmath.mpf(1.3) ** 2 / 2)),
        (
            RBF(1.3) * Exponential(0.9),
            lambda s, t: mpmath.exp(-s / mpmath.mpf(1.3) ** 2 / 2 - mpmath.sqrt(s) / mpmath.mpf(0.9)),
        ),
        (
            3.0 * RBF(0.8) * ExpDot(0.02),
            lambda s, t: 3 * mpmath.exp(-s / mpmath.mpf(0.8) ** 2 / 2 + mpmath.mpf(0.02) * t),
        ),
        (
            (RBF(1.3) ** 2) * Constant(0.3),
            lambda s, t: mpmath.mpf(0.3) * mpmath.exp(-s / mpmath.mpf(1.3) ** 2),
        ),
    ],
    ids=lambda v: "formula" if isfunction(v) else str(v),
)
@pytest.mark.parametrize("size", [1.0, 5.0, 40.0])
def test_a_fractional_power_of_a_product_is_the_power_of_its_value(kernel, formula, power, size):
    Y = size * X[:6, :2]
    expected = np.empty((6, 6))
    for i, x in enumerate(Y):
        for j, z in enumerate(Y):
            s = mpmath.fsum(
                (mpmath.mpf(float(a)) - mpmath.mpf(float(b))) ** 2 for a, b in zip(x, z, strict=True)
            )
            t = mpmath.fsum(mpmath.mpf(float(a)) * mpmath.mpf(float(b)) for a, b in zip(x, z, strict=True))
            expected[i, j] = float(formula(s, t) ** mpmath.mpf(power))
    k = kernel**power
    for K in (k(Y), k(Y, Y.copy()), Tiles(k, Y) @ np.eye(6), k.block(Rows(Y), None)):
        np.testing.assert_allclose(K, expected, rtol=1e-10, atol=1e-12 * expected.max())


def test_a_gradient_that_float64_cannot_see_is_refused():
    k = RBF(0.1) ** 1e-3
    assert np.all(np.isfinite(Tiles(k, 0.1 * X).contract(np.ones(N))))
    with pytest.raises(MagnitudeError, match="gradient"):
        Tiles(k, 9.0 * X).contract(np.ones(N))


def test_a_part_on_columns_that_a_matrix_makes_is_evaluated_between_two_samples():
    k = Linear().on(0, 1).of([[0.5], [1.0], [2.0]])
    X = np.array([[1.0], [2.0]])
    np.testing.assert_allclose(k(X, X.copy()), 1.25 * X @ X.T)
    np.testing.assert_allclose(k(X), 1.25 * X @ X.T)
