"""What holds for every kernel on things: formula, symmetry, features, text, proof, every way to ask."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SVC, GaussianProcessRegressor, KernelPCA, KernelRidge, White, parse, verify
from mercer.arrays import Rows
from mercer.errors import InputTypeError, NoFiniteMapError
from mercer.gram import Dense, Tiles
from things_under_test import every_thing_kernel, registered_things

CASES = every_thing_kernel()
VALID = [case for case in CASES if case.valid]


def by_loop(case, a, b):
    return np.array([[case.reference(x, z) for z in b] for x in a])


def test_every_registered_leaf_is_under_these_laws():
    assert {type(case.kernel).__name__ for case in CASES} == set(registered_things())


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_matrix_is_what_the_formula_says(case):
    half = len(case.things) // 2
    exact = by_loop(case, case.things, case.things)
    scale = max(1.0, np.abs(exact).max())
    np.testing.assert_allclose(case.kernel(case.things), exact, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(
        case.kernel(case.things[:half], case.things[half:]),
        exact[:half, half:],
        rtol=1e-12,
        atol=1e-12 * scale,
    )
    np.testing.assert_allclose(case.kernel.diag(case.things), np.diag(exact), rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_matrix_is_symmetric_to_the_last_bit(case):
    K = case.kernel(case.things)
    np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("case", VALID, ids=repr)
def test_the_matrix_is_positive_semidefinite_and_proved_so(case):
    values = np.linalg.eigvalsh(case.kernel(case.things))
    assert values[0] >= -1e-11 * max(1.0, values[-1])
    assert case.kernel.validity(samples=case.things).status in ("proved", "declared")


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_text_is_read_back(case):
    for k in (case.kernel, 2.0 * case.kernel.normalized() + White(0.1), case.kernel.on("some column")):
        assert parse(str(k)) == k
    assert case.kernel.latex()


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_every_way_to_ask_gives_the_same(case):
    k = 2.0 * case.kernel + 0.5
    K = k(case.things)
    n = len(case.things)
    V = np.random.default_rng(0).normal(size=(n, 2))
    for G in (Tiles(k, case.things), Dense(k, case.things)):
        np.testing.assert_allclose(G @ V, K @ V, rtol=1e-10, atol=1e-10 * np.abs(K).max())
        np.testing.assert_allclose(G.diag(), np.diag(K), rtol=1e-12)
        np.testing.assert_allclose(
            G.block(np.arange(3), np.arange(1, n)), K[:3, 1:], rtol=1e-12, atol=1e-12 * np.abs(K).max()
        )
    gradient = Dense(k, case.things).contract(np.ones(n))
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_an_array_of_objects_and_a_column_of_a_table_are_the_same_things(case):
    pd = pytest.importorskip("pandas")
    things = np.empty(len(case.things), dtype=object)
    for i, thing in enumerate(case.things):
        things[i] = thing
    K = case.kernel(case.things)
    np.testing.assert_array_equal(case.kernel(things), K)
    table = pd.DataFrame({"n": np.arange(len(things)), "thing": things})
    np.testing.assert_array_equal(case.kernel.on("thing")(table), K)


def built_from(k):
    """The kernel, and kernels made of it that keep its features."""
    return (k, 3.0 * k, k + 2.0 * k, k.normalized())


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_sparse_features_give_the_kernel(case):
    for k in built_from(case.kernel):
        if k.sparse_map(Rows(case.things)) is None:
            with pytest.raises(NoFiniteMapError, match="no inner product of features"):
                k.features_of(case.things)
            continue
        phi = k.features_of(case.things)
        K = k(case.things)
        np.testing.assert_allclose(
            (phi.matrix @ phi.matrix.T).toarray(), K, rtol=1e-12, atol=1e-12 * np.abs(K).max()
        )
        assert len(phi.names) == phi.dimension == phi.matrix.shape[1]
        assert all(isinstance(name, str) and name for name in phi.names)
        few = k.features_of(case.things[:4])
        np.testing.assert_allclose(
            (few(case.things) @ few.matrix.T).toarray(), K[:, :4], rtol=1e-12, atol=1e-12 * np.abs(K).max()
        )


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_map_is_pickled_with_its_names_and_without_its_rows(case):
    for k in (*built_from(case.kernel), case.kernel.bags()):
        X = [[thing] for thing in case.things] if type(k).__name__ == "Bags" else case.things
        if k.sparse_map(Rows(X)) is None:
            continue
        phi = k.features_of(X)
        again = pickle.loads(pickle.dumps(phi.without_rows()))
        assert again.matrix.shape == (0, phi.dimension)
        assert list(again.names) == list(phi.names)
        np.testing.assert_array_equal(again(X).toarray(), phi(X).toarray())


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_kernel_that_counts_says_how_its_features_are_asked_for(case):
    if case.kernel.sparse_map(Rows(case.things)) is None:
        pytest.skip("no sparse map")
    with pytest.raises(NoFiniteMapError, match=r"k\.features_of\(X\)"):
        case.kernel.features(3)


@pytest.mark.parametrize("case", [case for case in CASES if not case.takes_missing], ids=repr)
def test_none_among_the_things_is_named_by_its_row(case):
    with pytest.raises(InputTypeError, match="row 2 of X is None"):
        case.kernel([*case.things[:2], None])


@pytest.mark.parametrize("case", VALID, ids=repr)
def test_machines_fit_verify_and_survive_a_pickle(case):
    X = case.things
    n = len(X)
    y = np.arange(n) % 2
    k = case.kernel.normalized()
    model = SVC(k, C=1.0).fit(X, y)
    assert verify(model, X, y).ok
    again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    ridge = KernelRidge(k, 0.1).fit(X, y.astype(float))
    np.testing.assert_allclose(ridge.predict(X), k(X) @ np.linalg.solve(k(X) + 0.1 * np.eye(n), y), atol=1e-8)
    process = GaussianProcessRegressor(k + White(0.5), optimizer=None).fit(X, y.astype(float))
    assert np.all(np.isfinite(process.predict(X[:3], return_std=True)))
    assert KernelPCA(k, 2).fit_transform(X).shape == (n, 2)
