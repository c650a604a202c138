"""An open lengthscale: one kernel however it is written, closed by one rule,
and never evaluated in silence.
"""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import mercer
import mercer.plot
import mercer.sklearn
import mercer.theory
from mercer import (
    RBF,
    SVC,
    SVR,
    Exponential,
    GaussianProcessRegressor,
    KernelRidge,
    Laplacian,
    Linear,
    Matern,
    White,
    parse,
)
from mercer.cli.check import run_check
from mercer.errors import OpenParameterError, ParameterError
from mercer.kernels import Radial, RationalQuadratic, leaf
from mercer.kernels.leaves.closing import WIDEST, closing_lengths
from mercer.kernels.leaves.leaf import LEAVES
from mercer.params import OPEN, Open

OPEN_LEAVES = [RBF(), Exponential(), Matern(), Matern(nu=2.5), RationalQuadratic(alpha=0.5), Laplacian()]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) * [1.0, 100.0, 0.01] + [0.0, 500.0, 0.0]


@pytest.mark.parametrize("k", OPEN_LEAVES, ids=str)
def test_text_and_object_are_the_same_open_kernel(k):
    assert k.is_open and parse(str(k)) == k and "1.0" not in str(k)
    assert hash(parse(str(k))) == hash(k)
    assert pickle.loads(pickle.dumps(k)) == k and clone(k) == k
    assert k.get_params()["lengthscale"] is OPEN
    assert k != type(k)(1.0)
    assert k.validity().status == "proved"
    assert r"\ell" in k.latex() or isinstance(k, Laplacian | Matern | RationalQuadratic)


@pytest.mark.parametrize(
    "k", [*OPEN_LEAVES, 2.0 * RBF() + White(0.1), RBF().on(0) * Linear(), RBF().normalized()], ids=str
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda k: k(X),
        lambda k: k(X, X[:2]),
        lambda k: k.diag(X),
        lambda k: k.gram(X) @ np.ones(30),
        lambda k: k.gram(X).contract(np.ones(30)),
        lambda k: k.gram(sparse.csr_array(X)) @ np.ones(30),
    ],
)
def test_an_open_kernel_is_never_evaluated(k, ask):
    if isinstance(k, mercer.kernels.algebra.Normalized) and ask(RBF(1.0)) is None:
        return
    with pytest.raises(OpenParameterError, match=r"leaves its lengthscale open.*resolved\(X\)"):
        ask(k)


def test_it_is_tuned_bounded_and_fixed_like_any_other():
    k = RBF().bounded(lengthscale=(0.1, 2.0)).fix("lengthscale")
    assert k.is_open and len(k.theta) == 0 and parse(str(k)) == k
    closed = RBF().bounded(lengthscale=(0.1, 2.0)).resolved(X)
    assert max(closed.lengthscale) <= 2.0 and min(closed.lengthscale) >= 0.1
    assert (2.0 * RBF()).set_params(kernel__lengthscale=3.0) == 2.0 * RBF(3.0)
    assert (2.0 * RBF(3.0)).set_params(kernel__lengthscale=OPEN) == 2.0 * RBF()
    assert (2.0 * RBF() + Matern()).closed(4.0) == 2.0 * RBF(4.0) + Matern(4.0)
    with pytest.raises(ParameterError, match="a positive number"):
        White(OPEN)


def test_ard_is_open_for_each_column():
    k = RBF(ard=True)
    assert k.lengthscale is Open.EACH and str(k) == "RBF(ard=True)" and parse(str(k)) == k and k != RBF()
    assert RBF(ard=False) == RBF()
    for wrong in (lambda: RBF(2.0, ard=True), lambda: RBF(ard=3), lambda: RBF(gamma=1.0, ard=True)):
        with pytest.raises(ParameterError):
            wrong()
    y = np.sin(X[:, 0]) + X[:, 1] / 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = GaussianProcessRegressor("1.0*RBF() + White(0.1)").fit(X[:20], y[:20])
        each = GaussianProcessRegressor("1.0*RBF(ard=True) + White(0.1)").fit(X[:20], y[:20])

    def ratios(model):
        length = np.array(model.kernel_.parts[0].kernel.lengthscale)
        return length / length[0] / (X[:20].std(axis=0) / X[:20].std(axis=0)[0])

    np.testing.assert_allclose(ratios(few), 1.0, rtol=1e-9)
    assert np.abs(np.log(ratios(each))).max() > 0.01


# ── every door ──────────────────────────────────────────────────────────────────────────────────────────────

Y = (X[:, 0] > 0).astype(int)
CLOSED_BY_THE_ROWS = {
    "alignment": lambda k: mercer.theory.alignment(k, X, Y),
    "gram_matrix": lambda k: mercer.plot.gram_matrix(k, X),
    "mmd_test": lambda k: mercer.theory.mmd_test(X[:15], X[15:], k, random_state=0),
    "hsic_test": lambda k: mercer.theory.hsic_test(X, X[:, :1], k, random_state=0),
    "choose": lambda k: mercer.choose(KernelRidge(k), X, X[:, 0], n_trials=2),
    "RandomFeatures": lambda k: mercer.RandomFeatures(k, random_state=0).fit(X),
    "Nystroem": lambda k: mercer.Nystroem(k, random_state=0).fit(X),
    "plot.kernel": lambda k: mercer.plot.kernel(k),
}


@pytest.mark.parametrize("k", [RBF(), "RBF()", RBF(ard=True)], ids=repr)
@pytest.mark.parametrize("door", CLOSED_BY_THE_ROWS)
def test_who_is_given_rows_or_draws_closes_an_open_kernel(door, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert CLOSED_BY_THE_ROWS[door](k) is not None


@pytest.mark.parametrize("k", OPEN_LEAVES, ids=str)
def test_scikit_learn_has_no_word_for_an_open_kernel(k):
    with pytest.raises(ParameterError):
        mercer.sklearn.to_peer(2.0 * k)


def test_a_command_shows_the_kernel_that_it_judged(capsys):
    assert run_check("RBF() - Matern()", None, 60.0, latex=False, as_json=False) == 1
    shown = capsys.readouterr().out
    assert "RBF(1.0) - Matern(1.0)" in shown and "RBF() - Matern()" not in shown
    assert run_check("2.0*RBF()", None, 60.0, latex=False, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["expression"] == "2.0*RBF()"
    assert [p["value"] for p in told["parameters"]] == [2.0, None]


# ── the rule ────────────────────────────────────────────────────────────────────────────────────────────────


def slow_rule(A, w):
    """The rule as it is stated, one column after the other."""
    total = w.sum()
    deviations = []
    pooled = []
    for column in A.T:
        mean = (w * column).sum() / total
        live = column[w > 0]
        s = 0.0 if (live == live[0]).all() else np.sqrt((w * (column - mean) ** 2).sum() / total)
        deviations.append(s)
        pooled.append(max(w[column == value].sum() for value in np.unique(column)) > total / 2)
    deviations, pooled = np.array(deviations), np.array(pooled)
    varies = deviations > 0
    if not varies.any():
        return 1.0
    out = deviations.copy()
    if (pooled & varies).any():
        out[pooled] = np.sqrt((deviations[pooled & varies] ** 2).mean())
    out[~varies] = np.sqrt((deviations[varies] ** 2).mean())
    if (pooled | ~varies).all():
        out[:] = np.sqrt((deviations[varies] ** 2).mean())
    return out * np.sqrt(varies.sum() / 2)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_the_rule_is_what_the_guide_says_for_dense_sparse_and_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 20)), int(rng.integers(1, 6))
    A = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
    for j in range(d):
        kind = rng.integers(5)
        if kind == 0:
            A[rng.random(n) < 0.7, j] = 0
        elif kind == 1:
            A[:, j] = rng.random(n) < 0.2
        elif kind == 2:
            A[:, j] = 3.0
        elif kind == 3:
            A[rng.random(n) < 0.6, j] = -1.0
    w = rng.integers(0, 3, n).astype(float)
    w[0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = closing_lengths(A, w)
        np.testing.assert_allclose(np.broadcast_to(found, d), np.broadcast_to(slow_rule(A, w), d), rtol=1e-10)
        np.testing.assert_allclose(closing_lengths(sparse.csr_array(A), w), found, rtol=1e-10)
        assert closing_lengths(np.repeat(A, w.astype(int), axis=0)) == found
        plain = np.broadcast_to(slow_rule(A, np.ones(n)), d)
        np.testing.assert_allclose(np.broadcast_to(closing_lengths(A), d), plain, rtol=1e-10)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_columns_that_were_sorted_before_give_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 6))
    A = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-90, -3, 0, 3, 90], d)
    A[:, 0] = rng.integers(0, 3, n)
    if rng.random() < 0.3:
        A = np.asfortranarray(A)
    for w in (None, np.ones(n), rng.integers(1, 3, n).astype(float)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert closing_lengths(A, w, np.sort(A, axis=0)) == closing_lengths(A, w)
            assert RBF().resolved(A, sample_weight=w).lengthscale == closing_lengths(A, w)


@pytest.mark.parametrize("make", [SVC, SVR, KernelRidge, GaussianProcessRegressor], ids=lambda c: c.__name__)
def test_units_of_columns_do_not_matter_to_a_default_machine(make):
    y = (X[:, 0] > 0).astype(float) + (0.0 if make is SVC else X[:, 1] / 300)
    units = np.array([1000.0, 1e-6, 7.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = make().fit(X, y).predict(X)
        there = make().fit(X * units, y).predict(X * units)
    np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-3)


def test_parts_are_closed_by_the_columns_they_see():
    k = RBF().on(1) + RBF().of(lambda A: A[:, :1] * 5) * Matern()
    closed = k.resolved(X)
    assert not closed.is_open
    s = X.std(axis=0)
    assert closed.parts[0].kernel.lengthscale == pytest.approx(s[1] / np.sqrt(2))
    assert closed.parts[1].parts[0].kernel.lengthscale == pytest.approx(5 * s[0] / np.sqrt(2))
    np.testing.assert_allclose(closed.parts[1].parts[1].lengthscale, s * np.sqrt(1.5), rtol=1e-10)


def test_very_wide_sparse_rows_have_one_number():
    wide = sparse.random(40, 10 * WIDEST, density=1e-3, random_state=0, format="csr")
    assert isinstance(closing_lengths(wide), float)


def test_a_leaf_of_ones_own_may_be_open_too():
    before = dict(LEAVES)
    try:

        @leaf
        class Mine(Radial):
            def value(self, s):
                return 1 / (1 + s)

        assert Mine().is_open and str(Mine()) == "Mine()" and str(Mine(ard=True)) == "Mine(ard=True)"
        model = KernelRidge(Mine()).fit(X, X[:, 0])
        np.testing.assert_allclose(model.kernel_.lengthscale, X.std(axis=0) * np.sqrt(1.5), rtol=1e-10)
    finally:
        LEAVES.clear()
        LEAVES.update(before)
