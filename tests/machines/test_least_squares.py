"""Kernel least squares by gradient descent: the seed's update, its closed form, and when it stops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import RBF, Interrupted, KernelLeastSquares
from mercer.errors import InputError, InvalidKernelError, InvalidKernelWarning, ParameterError
from mercer.machines.ridge import examine_descent


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
def test_the_steps_are_the_seeds_and_their_closed_form(steps):
    X, y = data()
    K = RBF(1.0)(X)
    model = KernelLeastSquares(RBF(1.0), step=0.01, max_iter=steps, tol=0.0).fit(X, y)
    alpha = np.zeros(40)
    for _ in range(steps):
        alpha = alpha - 2 * 0.01 * (K @ alpha - y)
    np.testing.assert_allclose(model.dual_coef_, alpha, rtol=1e-12)
    values, U = np.linalg.eigh(K)
    filtered = (1 - (1 - 0.02 * values) ** steps) / values
    np.testing.assert_allclose(K @ model.dual_coef_, K @ (U @ (filtered * (U.T @ y))), atol=1e-9)
    np.testing.assert_allclose(model.predict(X), K @ alpha, atol=1e-12)
    assert model.n_iter_ == steps and model.certificate_.status == "limit"
    assert model.certificate_.residual == pytest.approx(np.linalg.norm(K @ alpha - y) / np.linalg.norm(y))
    assert model.path_.train_errors[0] == pytest.approx(np.mean(y**2))
    assert model.path_.train_errors[-1] == pytest.approx(np.mean((K @ alpha - y) ** 2))


def test_a_step_above_the_inverse_of_the_largest_eigenvalue_is_refused_and_just_below_it_descends():
    X, y = data()
    top = np.linalg.eigvalsh(RBF(1.0)(X))[-1]
    with pytest.raises(ParameterError, match=f"{1 / top:.6g}"):
        KernelLeastSquares(RBF(1.0), step=1.001 / top).fit(X, y)
    model = KernelLeastSquares(RBF(1.0), step=0.99 / top, max_iter=50, tol=0.0).fit(X, y)
    assert np.all(np.diff(model.path_.train_errors) < 0)
    auto = KernelLeastSquares(RBF(1.0), max_iter=3, tol=0.0).fit(X, y)
    assert auto.largest_eigenvalue_ == pytest.approx(top) and auto.step_ == pytest.approx(0.5 / top)


def test_early_stopping_keeps_the_best_of_the_path():
    X, y = data(60)
    model = KernelLeastSquares("RBF(0.3)", max_iter=2000, early_stopping=True, tol=0.0, random_state=0).fit(
        X, y
    )
    errors = model.path_.validation_errors
    assert model.n_iter_ == model.path_.best == int(np.argmin(errors)) < len(errors) - 1
    held = model.validation_rows_
    assert len(held) == 12 and not model.dual_coef_[held].any()
    assert np.mean((model.predict(X[held]) - y[held]) ** 2) == pytest.approx(errors.min())
    assert model.certificate_.status == "converged" and "held out" in str(model.certificate_)
    K = RBF(0.3)(X)
    alpha, train = np.zeros(60), np.setdiff1d(np.arange(60), held)
    for _ in range(model.n_iter_):
        alpha[train] -= 2 * model.step_ * (K[train] @ alpha - y[train])
    np.testing.assert_allclose(model.dual_coef_, alpha, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match="leave none"):
        KernelLeastSquares("RBF(1.0)", early_stopping=True).fit([[1.0]], [1.0])


def test_weight_two_is_a_row_twice_and_precomputed_is_on_the_fly():
    X, y = data()
    Y = np.column_stack([y, y**2])
    w = np.arange(40) % 3
    options = {"max_iter": 40, "tol": 0.0}
    weighted = KernelLeastSquares("RBF(1.0)", **options).fit(X, Y, sample_weight=w)
    repeated = KernelLeastSquares("RBF(1.0)", **options).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
    K = RBF(1.0)(X)
    given = KernelLeastSquares("precomputed", **options).fit(K, Y, sample_weight=w)
    np.testing.assert_allclose(given.predict(K), weighted.predict(X), atol=1e-12)
    tiles = KernelLeastSquares("RBF(1.0)", memory=100, **options).fit(sparse.csr_array(X), Y, sample_weight=w)
    np.testing.assert_allclose(tiles.predict(X), weighted.predict(X), atol=1e-9)


def test_convergence_and_limits_are_said(capsys):
    X, y = np.arange(15.0).reshape(-1, 1), np.sin(np.arange(15.0))
    done = KernelLeastSquares("RBF(0.5)", max_iter=500, tol=1e-6, verbose=1).fit(X, y)
    assert done.certificate_.converged and done.certificate_.residual <= 1e-6
    assert "[mercer] step 10" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning, match="early_stopping"):
        KernelLeastSquares("RBF(1.0)", max_iter=3).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        KernelLeastSquares("RBF(1.0)", max_seconds=1e-9).fit(X, y)
    zero = KernelLeastSquares().fit(X, np.zeros(15))
    assert zero.certificate_.converged and not zero.dual_coef_.any()


def test_an_invalid_kernel_is_announced():
    X, y = data(20)
    K = RBF(1.0)(X) - np.eye(20)
    with (
        pytest.warns(InvalidKernelWarning, match="grows"),
        pytest.warns(ConvergenceWarning, match="The error grew"),
    ):
        model = KernelLeastSquares("precomputed", max_iter=10**4).fit(K, y)
    assert model.certificate_.status == "failed"
    with pytest.raises(InvalidKernelError):
        KernelLeastSquares("precomputed", strict=True).fit(K, y)


def test_ctrl_c_keeps_the_iterate(monkeypatch):
    def interrupt(self, t, train, held):
        if t == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(KernelLeastSquares, "_tell", interrupt)
    X, y = data()
    model = KernelLeastSquares("RBF(1.0)", max_iter=100, tol=0.0)
    with pytest.raises(Interrupted):
        model.fit(X, y)
    assert model.certificate_.status == "interrupted" and model.n_iter_ == 4


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"step": 0.0}, "step must"),
        ({"step": "fast"}, "step must"),
        ({"max_iter": 0}, "max_iter"),
        ({"patience": True}, "patience"),
        ({"tol": -1.0}, "tol"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"max_seconds": 0}, "max_seconds"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X, y = data()
    with pytest.raises(ParameterError, match=words):
        KernelLeastSquares(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([KernelLeastSquares(max_iter=30)])
def test_the_contract(estimator, check):
    check(estimator)


def test_rows_held_out_without_a_seed_leave_the_steps_to_verify(monkeypatch):
    monkeypatch.setattr(examine_descent, "ALL_EIGENVALUES", 10)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)
    model = KernelLeastSquares("RBF()", early_stopping=True, tol=0.0).fit(X, y)
    done = mercer.verify(model, X, y)
    assert done.ok and any("without a seed" in said for said in done.unchecked)
    model.dual_coef_[model._used[0]] += 1e-3
    assert not mercer.verify(model, X, y).ok
