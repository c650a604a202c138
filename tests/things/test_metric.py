"""A metric inside a kernel: its distances by the formula, its text, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import mercer
from mercer import RBF, Exponential, KernelRidge, Linear, Matern, Metric, Standardized, parse
from mercer.arrays import Rows
from mercer.errors import ParameterError, ShapeError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(9, 3))
Z = RNG.normal(size=(5, 3))
F = RNG.normal(size=(3, 2))


def _squares(M, A, B):
    return np.array([[(a - b) @ M @ (a - b) for b in B] for a in A])


@pytest.mark.parametrize(
    ("metric", "M"),
    [
        (Metric(F @ F.T + np.diag([1.0, 0.0, 2.0])), F @ F.T + np.diag([1.0, 0.0, 2.0])),
        (Metric(F @ F.T), F @ F.T),
        (Metric([2.0, 0.0, 0.5]), np.diag([2.0, 0.0, 0.5])),
        (Metric(factor=F), F @ F.T),
        (Metric([[0.0, 0.0, 0.0]] * 3), np.zeros((3, 3))),
    ],
    ids=["full", "of rank two", "diagonal", "by a factor", "zero"],
)
def test_distances_are_those_of_the_matrix(metric, M):
    for k, profile in (
        (RBF(0.7), lambda s: np.exp(-s / 0.98)),
        (Exponential(2.0), lambda s: np.exp(-(s**0.5) / 2)),
    ):
        wanted = profile(np.maximum(_squares(M, X, Z), 0.0))
        np.testing.assert_allclose(k.of(metric)(X, Z), wanted, atol=1e-7 if k == Exponential(2.0) else 1e-13)
    np.testing.assert_allclose(Linear().of(metric)(X, Z), X @ M @ Z.T, atol=1e-13)


@pytest.mark.parametrize(
    "k",
    [
        Exponential(1.5).of(Metric(F @ F.T)),
        Matern(1.0).of(Metric([2.0, 0.1, 1 / 3])),
        RBF(1.0).of(Metric(factor=F)) + Linear(),
        Exponential(1.0).of(Metric(np.eye(3))).of(Standardized([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])),
    ],
    ids=["full", "diagonal", "factor", "after another reading"],
)
def test_the_text_is_read_back_and_the_kernel_is_proved(k, tmp_path):
    assert parse(str(k)) == k
    assert hash(parse(str(k))) == hash(k)
    assert k.validity().status == "proved"
    assert k.latex()
    model = KernelRidge(k, 0.1).fit(X, X[:, 0])
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.kernel_ == k
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))


@given(st.integers(1, 5), st.integers(0, 10**6))
def test_the_root_squared_is_the_matrix(d, seed):
    A = np.random.default_rng(seed).normal(size=(d, 3)) * 10.0 ** np.random.default_rng(seed).integers(-6, 6)
    M = A @ A.T
    root = Metric((M + M.T) / 2).root
    np.testing.assert_array_equal(root.shape, (d, d))
    np.testing.assert_allclose(root, root.T, atol=1e-12 * np.abs(root).max())
    np.testing.assert_allclose(root @ root, M, atol=1e-12 * np.abs(M).max())


def test_sparse_rows_and_the_identity_change_nothing():
    k = RBF(0.8)
    np.testing.assert_allclose(k.of(Metric(np.eye(3)))(X), k(X), rtol=1e-14)
    np.testing.assert_array_equal(
        k.of(Metric(F @ F.T))(sparse.csr_array(X), sparse.csr_array(Z)), k.of(Metric(F @ F.T))(X, Z)
    )


def test_a_matrix_with_a_negative_eigenvalue_is_refused_with_it():
    with pytest.raises(ParameterError, match=r"least eigenvalue is -1\b"):
        Metric([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ParameterError, match=r"least eigenvalue is -0\.5"):
        Metric([1.0, -0.5])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either a matrix M"),
        ({"matrix": [1.0], "factor": [[1.0]]}, "either a matrix M"),
        ({"matrix": [[1.0, 0.5], [0.0, 1.0]]}, r"entry \(0, 1\) is 0.5, and \(1, 0\) is 0"),
        ({"matrix": [[1.0, 0.5]]}, r"1 × 2.*factor=F"),
        ({"matrix": [[1.0, np.nan], [np.nan, 1.0]]}, "finite"),
        ({"matrix": [[1.0], [1.0, 2.0]]}, "matrix of numbers"),
        ({"matrix": "text"}, "matrix of numbers"),
        ({"matrix": []}, "at least one row"),
        ({"factor": [1.0, 2.0]}, "a row for each column"),
    ],
)
def test_what_is_no_metric_is_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        Metric(**arguments)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ShapeError, match="Metric is one of 3 columns, but X has 2"):
        Metric(F @ F.T).read(Rows(X[:, :2]))
