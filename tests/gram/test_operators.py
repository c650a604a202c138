"""One case, inherited by every kind of Gram operator: it must answer as the dense matrix does."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from mercer import RBF, ArcCosine, CosineSimilarity, Custom, Linear, Periodic, Polynomial, White
from mercer.errors import InputError, ParameterError, ShapeError
from mercer.gram import Dense, Features, LowRank, Precomputed, SumOf, Tiles, blocks, gram

rng = np.random.default_rng(7)
X, Z = rng.normal(size=(41, 3)), rng.normal(size=(17, 3))
KERNEL = 2.0 * RBF([1.0, 2.0, 0.7]) * Periodic(2.0) + 0.5 * Polynomial(2) + White(0.3)
PLAIN = Custom(lambda a, b: float(a @ b) + 1.0) + 2.0 * RBF(1.5) + White(0.1)


class OperatorCase:
    """What holds for every kind. A subclass gives `square`, `tall` and their dense answers."""

    square: LinearOperator
    tall: LinearOperator
    tolerance = 1e-11

    def dense(self, K):
        return np.asarray(K.dense())

    def close(self, a, b):
        b = np.asarray(b)
        np.testing.assert_allclose(a, b, rtol=0, atol=self.tolerance * max(1.0, np.abs(b).max(initial=0)))

    def test_products_with_vectors_and_blocks_are_those_of_the_dense_matrix(self):
        for K in (self.square, self.tall):
            V = rng.normal(size=(K.shape[1], 5))
            self.close(K @ V, self.dense(K) @ V)
            self.close(K @ V[:, 0], self.dense(K) @ V[:, 0])

    def test_products_with_strided_reversed_and_read_only_vectors(self):
        V = rng.normal(size=(2 * self.tall.shape[1], 4))[::-2, ::2]
        V.flags.writeable = False
        self.close(self.tall @ V, self.dense(self.tall) @ V)

    def test_transpose_swaps_the_samples(self):
        self.close(self.tall.T.dense(), self.dense(self.tall).T)
        u = rng.normal(size=self.tall.shape[0])
        self.close(self.tall.T @ u, self.dense(self.tall).T @ u)
        self.close(self.tall.rmatvec(u), self.dense(self.tall).T @ u)

    def test_blocks_are_pieces_of_the_dense_matrix(self):
        K, D = self.square, self.dense(self.square)
        rows, cols = np.array([5, 0, 7, 7]), np.array([7, 2, 5])
        self.close(K.block(rows, cols[:2]), D[rows][:, cols[:2]])
        self.close(K.block(slice(3, 9), slice(None)), D[3:9])
        self.close(self.tall.block(slice(None), [1, 3]), self.dense(self.tall)[:, [1, 3]])

    def test_diag_is_the_diagonal(self):
        self.close(self.square.diag(), np.diag(self.dense(self.square)))

    def test_shifted_adds_to_the_diagonal_only(self):
        n = self.square.shape[0]
        for shift in (0.7, np.linspace(0.0, 1.0, n)):
            S = self.square.shifted(shift)
            D = self.dense(self.square) + np.diag(np.broadcast_to(shift, n))
            self.close(S.dense(), D)
            self.close(S @ np.ones(n), D @ np.ones(n))
            self.close(S.diag(), np.diag(D))
            self.close(S.block([3, 1, 2], [1, 0]), D[[3, 1, 2]][:, [1, 0]])

    def test_sums_of_kinds_are_sums(self):
        total = self.square + Precomputed(np.eye(self.square.shape[0])) + self.square
        self.close(total.dense(), 2 * self.dense(self.square) + np.eye(self.square.shape[0]))
        assert isinstance(total, SumOf)
        assert not any(isinstance(part, SumOf) for part in total.parts)

    def test_it_is_a_scipy_linear_operator(self):
        S = self.square.shifted(10.0)
        b = rng.normal(size=S.shape[0])
        x, info = cg(S, b, rtol=1e-10, maxiter=1000)
        assert info == 0
        np.testing.assert_allclose(S @ x, b, atol=1e-7)
        top = eigsh(S, k=2, return_eigenvectors=False)
        np.testing.assert_allclose(np.sort(top), np.linalg.eigvalsh(S.dense())[-2:], rtol=1e-8)

    def test_contract_is_the_derivative_of_the_weighted_sum(self):
        kernel = getattr(self.square, "kernel", None)
        for K in (self.square, self.tall):
            U, V = rng.normal(size=(K.shape[0], 2)), rng.normal(size=(K.shape[1], 2))
            found = K.contract(U, V)
            np.testing.assert_allclose(found, K.contract(W=U @ V.T), rtol=1e-9, atol=1e-9)
            if kernel is None:
                assert found.shape == (0,)
                continue
            theta, h = kernel.theta, 1e-6
            for i in range(len(theta)):
                step = h * np.eye(len(theta))[i]
                up, down = (self.with_kernel(K, kernel.with_theta(theta + s * step)).dense() for s in (1, -1))
                expected = ((U @ V.T) * (up - down)).sum() / (2 * h)
                assert found[i] == pytest.approx(expected, rel=1e-5, abs=1e-6)

    def with_kernel(self, K, kernel):
        return type(K)(kernel, K.x, K.z)

    def test_bad_weights_are_refused(self):
        with pytest.raises(ShapeError, match="U must be"):
            self.square.contract(np.ones(3))
        with pytest.raises(ShapeError, match="W must be"):
            self.square.contract(W=np.ones((2, 2)))
        with pytest.raises(ParameterError, match="not both"):
            self.square.contract(np.ones(self.square.shape[0]), W=np.ones(self.square.shape))
        with pytest.raises(ParameterError):
            self.square.shifted(np.ones(3))
        with pytest.raises(ShapeError, match="square"):
            self.tall.shifted(1.0)


class TestTiles(OperatorCase):
    square, tall = Tiles(KERNEL, X), Tiles(KERNEL, X, Z)


class TestDense(OperatorCase):
    square, tall = Dense(KERNEL, X), Dense(KERNEL, X, Z)


class TestTilesByNumpy(OperatorCase):
    """An expression with a Python function: no program, so NumPy does the blocks, and says so."""

    square, tall = Tiles(PLAIN, X), Tiles(PLAIN, X, Z)

    def test_it_says_that_numpy_does_the_work(self):
        assert "Custom has no program" in self.square.notes[0]
        with pytest.raises(InputError, match="input gradient"):
            self.square.contract_inputs(np.ones(len(X)))


class TestPrecomputed(OperatorCase):
    square, tall = Precomputed(KERNEL(X)), Precomputed(KERNEL(X, Z))


class TestLowRank(OperatorCase):
    F = rng.normal(size=(41, 6))
    square, tall = LowRank(F), LowRank(F, rng.normal(size=(17, 6)))


class TestFeatures(OperatorCase):
    map = (Polynomial(3) + 0.5 * Linear()).features(3)
    square, tall = Features(map, X), Features(map, X, Z)

    def test_it_is_the_kernel(self):
        self.close(self.square.dense(), (Polynomial(3) + 0.5 * Linear())(X))


class TestSumOfKinds(OperatorCase):
    square = Tiles(KERNEL, X) + Precomputed(np.outer(X[:, 0], X[:, 0]))
    tall = Tiles(KERNEL, X, Z) + LowRank(X, Z)

    def test_contract_is_the_derivative_of_the_weighted_sum(self):
        U, V = rng.normal(size=(41, 1)), rng.normal(size=(41, 1))
        np.testing.assert_allclose(self.square.contract(U, V), Tiles(KERNEL, X).contract(U, V))


@pytest.mark.parametrize("kernel", [KERNEL, PLAIN], ids=["core", "numpy"])
def test_the_answer_does_not_depend_on_the_memory_allowed(kernel):
    small, large = gram(kernel, X, memory=1), gram(kernel, X, memory="1GiB")
    assert (small.kind, large.kind) == ("tiles", "dense")
    V = rng.normal(size=(41, 3))
    np.testing.assert_allclose(small @ V, large @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(small.dense(), large.dense(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "kernel", [PLAIN, PLAIN + White(0.3), White(0.3) * PLAIN + 0.5 * White(0.2)], ids=str
)
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_the_answer_does_not_depend_on_where_blocks_of_rows_begin(kernel, rows, monkeypatch):
    W = rng.normal(size=(41, 41))
    whole = Tiles(kernel, X)
    slopes, product = whole.contract(W=W), whole @ W
    monkeypatch.setattr(blocks, "_BLOCK", 41 * rows)
    np.testing.assert_allclose(Tiles(kernel, X).contract(W=W), slopes, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(Tiles(kernel, X) @ W, product, rtol=1e-12, atol=1e-12)


def test_two_samples_have_no_diagonal():
    with pytest.raises(ShapeError, match="one sample"):
        Tiles(RBF(1.0), X, Z).diag()


def test_noise_sits_on_the_diagonal_of_one_sample_and_nowhere_else():
    K = Tiles(White(0.5), X)
    np.testing.assert_array_equal(K.dense(), 0.5 * np.eye(41))
    np.testing.assert_array_equal(K.block([3, 4], [4, 3]), [[0, 0.5], [0.5, 0]])
    np.testing.assert_array_equal(Tiles(White(0.5), X, X).dense(), np.zeros((41, 41)))


def test_float32_rows_make_float32_operators():
    single = X.astype(np.float32)
    for K in (Tiles(KERNEL, single), Dense(KERNEL, single)):
        assert K.dtype == np.float32
        assert (K @ np.ones(41)).dtype == np.float32
        np.testing.assert_allclose(K.dense(), KERNEL(X), rtol=3e-5, atol=3e-5)


INPUT_KERNELS = [
    CosineSimilarity(),
    ArcCosine(1),
    KERNEL,
    Polynomial(3).normalized(),
    RBF(1.0).on(2, 0) * Linear().on(1),
    RBF(1.0).of([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]),
]


@pytest.mark.parametrize("kernel", INPUT_KERNELS, ids=str)
@pytest.mark.parametrize("two", [False, True])
def test_input_gradients_are_finite_differences(kernel, two):
    A, B = X[:6], (Z[:4] if two else None)
    K = Tiles(kernel, A, B)
    W = rng.normal(size=K.shape)
    gx, gz = K.contract_inputs(W=W)
    assert (gz is None) == (B is None)

    def total(A, B):
        return float((W * Tiles(kernel, A, B).dense()).sum())

    h = 1e-6
    for i, j in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[i, j] = h
        assert gx[i, j] == pytest.approx(
            (total(A + step, B) - total(A - step, B)) / (2 * h), rel=1e-5, abs=1e-6
        )
    if B is not None:
        step = np.zeros_like(B)
        step[1, 2] = h
        assert gz[1, 2] == pytest.approx(
            (total(A, B + step) - total(A, B - step)) / (2 * h), rel=1e-5, abs=1e-6
        )


def test_a_product_runs_where_the_matrix_would_not_fit():
    """K would take 3.2 GB; the address space is limited to 1 GB more than the imports need, and really is."""
    script = textwrap.dedent("""
        import resource, numpy as np
        from mercer import RBF, Periodic, White
        from mercer.gram import gram
        X = np.random.default_rng(0).normal(size=(20_000, 2))
        k = RBF(1.0) * Periodic(3.0) + White(0.1)
        gram(k, X[:50]) @ np.ones(50)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))
        try:
            k(X)
        except MemoryError:
            pass
        else:
            raise SystemExit("the limit is not enforced")
        K = gram(k, X, memory="256MiB", n_jobs=1)
        assert K.kind == "tiles"
        y = K @ np.ones(20_000)
        i = np.array([0, 11_111, 19_999])
        assert np.allclose(y[i], K.block(i, slice(None)).sum(axis=1), rtol=1e-10)
        print("fits", len(K.contract(np.ones(20_000))))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "fits 4"
