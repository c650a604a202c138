"""Machines on things that a kernel counts go by the counts: the answers are those of K, which is not made."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    Graph,
    KernelKMeans,
    KernelMachine,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Spectrum,
    Text,
    WeisfeilerLehman,
    White,
    verify,
)
from mercer.gram import Tiles
from mercer.kernels.things.sparse_map import SparseMap

N = 150


def documents(n=N, words=40, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{j}" for j in rng.integers(0, words, size=rng.integers(3, 9))) for _ in range(n)]


def strings(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), size=rng.integers(4, 15))) for _ in range(n)]


def graphs(n=N, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        size = int(rng.integers(3, 8))
        out.append(
            Graph(size, np.argwhere(np.triu(rng.random((size, size)) < 0.5, 1)), rng.choice([*"ab"], size))
        )
    return out


KINDS = {
    "text": (Text(weighting="idf"), documents),
    "strings": (0.5 * Spectrum(2).normalized() + 0.1 * Spectrum(1).normalized(), strings),
    "graphs": (WeisfeilerLehman(2).normalized(), graphs),
}


def targets(n=N):
    rng = np.random.default_rng(3)
    f = rng.normal(size=n)
    return f, np.where(f > 0, "yes", "no"), np.digitize(f, [-0.5, 0.5])


def never_stored(monkeypatch):
    """Any whole K is an error from now on."""

    def refuse(*args, **kwargs):
        raise AssertionError("K was made")

    monkeypatch.setattr("mercer.gram.of_kernel.Dense.__init__", refuse)
    monkeypatch.setattr("mercer.gram.of_kernel.computed", refuse)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("machine", [SVC, SVR, KernelMachine], ids=lambda m: m.__name__)
def test_margins_and_losses_are_solved_in_features_where_these_are_cheaper(
    machine, kind, monkeypatch, tmp_path
):
    kernel, things = KINDS[kind]
    X, new = things(), things(30, seed=9)
    numbers, labels, _ = targets()
    settings = {SVC: {"C": 2.0}, SVR: {"C": 2.0}, KernelMachine: {"loss": "logistic"}}
    y = numbers if machine is SVR else labels
    tight = {"tol": 1e-9} if machine is KernelMachine else {"tol": 1e-7}
    by_rows = machine(kernel, **settings[machine], **tight).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("mercer.solve.plan.FEW_ROWS", 0)
        never_stored(patch)
        model = machine(kernel, **settings[machine], **tight).fit(X, y)
    assert isinstance(model.feature_map_, SparseMap) and "features" in model.certificate_.method
    assert "coef_" not in vars(by_rows)
    ask = "predict" if machine is SVR else "decision_function"
    ours, theirs = getattr(model, ask)(new), getattr(by_rows, ask)(new)
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * max(1.0, np.abs(theirs).max()))
    assert verify(model, X, y).ok
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(getattr(again, ask)(new), ours)
    read = mercer.load(mercer.save(model, tmp_path / "model.mercer").path)
    np.testing.assert_array_equal(getattr(read, ask)(new), ours)
    assert list(read.feature_map_.names) == list(model.feature_map_.names)
    assert verify(read, X, y).ok


def test_verify_sees_other_weights_and_another_map(monkeypatch):
    monkeypatch.setattr("mercer.solve.plan.FEW_ROWS", 0)
    X, (_, y, _) = strings(), targets()
    model = SVC(Spectrum(2)).fit(X, y)
    assert verify(model, X, y).ok
    kept = model.coef_.copy()
    model.coef_[0, 0] += 1e-3 * np.abs(kept).max()
    assert not verify(model, X, y).ok
    model.coef_ = kept
    model.feature_map_ = (2.0 * Spectrum(2)).features_of(X).without_rows()
    assert not verify(model, X, y).ok


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["auto", "primal", "cg"])
def test_ridge_by_features_is_ridge(solver, kind):
    kernel, things = KINDS[kind]
    X, new = things(), things(30, seed=9)
    f, _, _ = targets()
    model = KernelRidge(kernel + White(0.2), 0.3, solver=solver, fit_intercept=True, tol=1e-12).fit(X, f)
    exact = KernelRidge(kernel, 0.5, solver="cholesky", fit_intercept=True).fit(X, f)
    np.testing.assert_allclose(model.predict(new), exact.predict(new), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.loo_predictions_, exact.loo_predictions_, rtol=1e-6, atol=1e-7)
    assert verify(model, X, f).ok
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))


def test_few_features_are_solved_in_the_primal_and_many_by_products():
    f, _, _ = targets()
    assert KernelRidge(Spectrum(1), 0.1).fit(strings(), f).solver_ == "primal"
    many = [f"{text} own{i}" for i, text in enumerate(documents())]
    assert KernelRidge(Text(), 0.1).fit(many, f).solver_ == "cholesky"
    assert KernelRidgeCV(Spectrum(1)).fit(strings(), f).solver_ == "primal"


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_blocks_are_those_of_the_matrix(kind):
    kernel, things = KINDS[kind]
    X, new = things(), things(20, seed=9)
    k = (3.0 * kernel + 0.5 + White(0.25)).resolved(X)
    rng = np.random.default_rng(0)
    K = k(X)
    G = Tiles(k, X)
    np.testing.assert_allclose(G @ (V := rng.normal(size=(N, 3))), K @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(G @ V[:, 0], K @ V[:, 0], rtol=1e-10, atol=1e-10)
    some = np.array([5, 0, 5, 7])
    np.testing.assert_allclose(G.block(some, slice(2, 9)), K[some, 2:9], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(G.block(K[0] > 0.5, [3]), K[K[0] > 0.5][:, [3]], rtol=1e-12, atol=1e-14)
    across = k(new, X)
    np.testing.assert_allclose(Tiles(k, new, X) @ V, across @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(Tiles(k, new, X).T @ across, across.T @ across, rtol=1e-10, atol=1e-10)
    again = pickle.loads(pickle.dumps(G))
    np.testing.assert_array_equal(again @ V, G @ V)


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_matrix_does_not_fit_machines_go_on_without_it(kind, monkeypatch):
    kernel, things = KINDS[kind]
    n = 1200
    X, new = things(n), things(20, seed=9)
    f, labels, _ = targets(n)
    whole = [
        KernelPCA(kernel, 3).fit(X).transform(new),
        KernelRidge(kernel, 0.3, tol=1e-12).fit(X, f).predict(new),
        SVC(kernel, tol=1e-7).fit(X, labels).decision_function(new),
    ]
    never_stored(monkeypatch)
    little = "1MiB"
    axes = KernelPCA(kernel, 3, memory=little).fit(X).transform(new)
    np.testing.assert_allclose(np.abs(axes), np.abs(whole[0]), atol=1e-6)
    ridge = KernelRidge(kernel, 0.3, tol=1e-12, memory=little).fit(X, f)
    np.testing.assert_allclose(ridge.predict(new), whole[1], rtol=1e-6, atol=1e-7)
    model = SVC(kernel, tol=1e-7, memory=little).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(new), whole[2], atol=1e-5)
    groups = KernelKMeans(kernel, 3, random_state=0, memory=little).fit(X)
    monkeypatch.undo()
    assert verify(groups, X).ok


def test_a_process_on_more_texts_than_a_factor_has_room_for():
    X, new = documents(), documents(10, seed=9)
    f, _, _ = targets()
    kernel = 2.0 * Text(weighting="idf") + White(0.5)
    exact = GaussianProcessRegressor(kernel, optimizer=None).fit(X, f)
    model = GaussianProcessRegressor(kernel, optimizer=None, memory="100KiB", random_state=0).fit(X, f)
    np.testing.assert_allclose(model.predict(new), exact.predict(new), rtol=1e-5, atol=1e-6)


def test_words_that_no_document_of_fit_had_do_not_count(monkeypatch):
    monkeypatch.setattr("mercer.solve.plan.FEW_ROWS", 0)
    X, (_, y, _) = documents(), targets()
    model = SVC(Text(weighting="idf")).fit(X, y)
    known, more = model.decision_function(["w1 w2", "w1 w2 unheard of"])
    assert known == pytest.approx(more, rel=1e-12)
    assert model.decision_function(["nothing known"])[0] == pytest.approx(model.intercept_[0])
