"""Sparse rows: a format that leads outside is refused, and memory follows the stored entries,
never the columns.
"""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer import RBF, SVC, CosineSimilarity, Exponential, KernelRidge, Linear, Matern, Polynomial
from mercer.arrays import Rows
from mercer.errors import InputError, MercerError
from mercer.kernels.leaves.closing import variance
from mercer.kernels.leaves.distances import dot_products, squared_distances, stored_columns
from mercer.machines.shared.base import resolve
from mercer.sparse import take_columns
from mercer.vectors import check_vectors


def good():
    """Three rows of four columns."""
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 3, 1, 2]), np.array([0, 2, 3, 4])
    return sparse.csr_array((data, indices, indptr), shape=(3, 4))


def with_changed(field, place, value, format="csr"):
    A = good().asformat(format)
    getattr(A, field)[place] = value
    return A


BROKEN = {
    "an index beyond the columns": lambda: with_changed("indices", 1, 4),
    "an index far beyond": lambda: with_changed("indices", 1, 10**6),
    "a negative index": lambda: with_changed("indices", 0, -1),
    "indptr that decreases": lambda: with_changed("indptr", 1, 4),
    "indptr that starts late": lambda: with_changed("indptr", 0, 1),
    "indptr beyond the entries": lambda: with_changed("indptr", 3, 9),
    "a row beyond the rows, by columns": lambda: with_changed("indices", 1, 3, "csc"),
    "indptr that decreases, by columns": lambda: with_changed("indptr", 1, 4, "csc"),
    "a coordinate beyond the rows": lambda: with_changed("row", 1, 3, "coo"),
    "a negative coordinate": lambda: with_changed("col", 1, -2, "coo"),
    "a block beyond the columns": lambda: with_changed("indices", 0, 7, "bsr"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_indices_that_lead_outside_are_refused(name):
    A = BROKEN[name]()
    with pytest.raises(InputError, match="no well-formed sparse matrix"):
        RBF(1.0)(A)
    with pytest.raises(InputError, match="no well-formed sparse matrix"):
        SVC("RBF(1.0)").fit(A, [0, 1, 0])
    with pytest.raises(InputError, match="no well-formed sparse matrix"):
        KernelRidge("Linear()").fit(A, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("what", ["indices", "data", "both"])
def test_fewer_entries_than_are_counted_are_refused_however_few(format, missing, what):
    A = good().asformat(format)
    if what in ("indices", "both"):
        A.indices = A.indices[:-missing]
    if what in ("data", "both"):
        A.data = A.data[:-missing]
    with pytest.raises(InputError, match="entries are stored"):
        check_vectors(A)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_well_formed_format_is_read(format):
    A = good().asformat(format)
    np.testing.assert_array_equal(check_vectors(A).toarray(), good().toarray())


def test_entries_beyond_the_last_row_do_not_count():
    A = good()
    longer = sparse.csr_array(A.shape)
    longer.data, longer.indices, longer.indptr = np.r_[A.data, np.nan], np.r_[A.indices, 3], A.indptr
    assert variance(check_vectors(longer)) == variance(check_vectors(A))


@given(
    data=st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    indices=st.lists(st.integers(-2, 6), min_size=4, max_size=4),
    indptr=st.lists(st.integers(-1, 6), min_size=3, max_size=5),
)
def test_any_three_arrays_are_a_matrix_or_a_sentence(data, indices, indptr):
    A = sparse.csr_array((3, 4))
    A.data, A.indices, A.indptr = np.array(data), np.array(indices), np.array(indptr)
    try:
        K = RBF(1.0)(A)
    except MercerError:
        return
    assert np.all(np.isfinite(K))
    assert len(indptr) == 4 and np.all(np.diff(indptr) >= 0) and indptr[0] == 0 and indptr[-1] <= 4


def scattered(n, d, seed):
    """A few entries in each row, many of them in columns that other rows store too."""
    rng = np.random.default_rng(seed)
    columns = np.where(
        rng.random((n, 5)) < 0.7, rng.integers(0, 9, (n, 5)) * (d // 9), rng.integers(0, d, (n, 5))
    )
    rows = np.repeat(np.arange(n), 5)
    return sparse.csr_array(sparse.coo_array((rng.normal(size=5 * n), (rows, columns.ravel())), shape=(n, d)))


@pytest.mark.parametrize("other", [False, True])
def test_columns_that_nobody_stores_change_nothing(other):
    X, Z = scattered(12, 400, 0), scattered(7, 400, 1) if other else None
    A, _, columns = stored_columns(X, Z)
    assert A.shape[1] == len(columns) < 400
    weights = np.linspace(1.0, 2.0, 400)
    wide = (X.toarray(), None if Z is None else Z.toarray())
    np.testing.assert_allclose(dot_products(X, Z), dot_products(*wide), atol=1e-14)
    np.testing.assert_allclose(
        squared_distances(X, Z, weights), squared_distances(*wide, weights), atol=1e-13
    )
    np.testing.assert_allclose(squared_distances(X, Z, 0.5), squared_distances(*wide, 0.5), atol=1e-13)


def test_rows_that_store_nothing_are_zeros():
    X = sparse.csr_array((3, 50))
    np.testing.assert_array_equal(dot_products(*stored_columns(X, None)[:2]), np.zeros((3, 3)))
    np.testing.assert_array_equal(RBF(1.0)(X), np.ones((3, 3)))


@pytest.mark.parametrize("index", [[0], [3, 1], [2, 2, 0], [17, 3, 17, 16], list(range(18))])
def test_columns_of_sparse_rows_are_those_of_dense_ones(index):
    A = sparse.random_array((9, 18), density=0.3, rng=np.random.default_rng(0), format="csr")
    np.testing.assert_array_equal(take_columns(A, index).toarray(), A.toarray()[:, index])
    np.testing.assert_array_equal(Rows(A).take(tuple(index)).vectors.toarray(), A.toarray()[:, index])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_an_open_lengthscale_is_the_same_on_sparse_and_dense_rows(offset, density, weighted):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 6)) + offset) * (rng.random((20, 6)) < density)
    w = rng.integers(0, 4, 20).astype(float) if weighted else None
    thin = sparse.csr_array(X)
    rows = np.arange(20) if w is None else np.repeat(np.arange(20), w.astype(int))
    assert variance(thin, w) == pytest.approx(variance(X, w), rel=1e-12)
    assert variance(X, w) == pytest.approx(X[rows].var(), rel=1e-6)
    if X.any():
        dense_rows = resolve("RBF()", X, w).lengthscale
        assert resolve("RBF()", thin, w).lengthscale == pytest.approx(dense_rows, rel=1e-6)
        assert resolve("RBF()", X[rows]).lengthscale == pytest.approx(dense_rows, rel=1e-6)


def test_a_constant_has_no_variance_sparse_or_dense():
    X = np.full((7, 3), 0.1)
    assert variance(X) == variance(sparse.csr_array(X)) == 0.0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-100, 1e100])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_an_open_lengthscale_follows_the_unit_of_the_data(form, scale):
    X = np.array([[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5]])
    found = resolve("RBF()", form(X * scale))
    np.testing.assert_allclose(
        np.array(found.lengthscale) / scale, resolve("RBF()", X).lengthscale, rtol=1e-11
    )
    np.testing.assert_allclose(found(form(X * scale)), resolve("RBF()", X)(X), rtol=1e-9)


def test_an_input_gradient_of_sparse_rows_is_refused_in_words():
    with pytest.raises(InputError, match="toarray"):
        Linear().gram(good()).contract_inputs(np.ones(3))


WIDE = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    import numpy as np
    from scipy import sparse
    import mercer as m

    d, n, rng = 10**9, 30, np.random.default_rng(0)
    shared, few, any_column = rng.random((n, 5)) < 0.7, rng.integers(0, 9, (n, 5)), rng.integers(0, d, (n, 5))
    columns = np.where(shared, few * (d // 9), any_column)
    places = np.repeat(np.arange(n), 5), columns.ravel()
    wide = sparse.csr_array(sparse.coo_array((rng.normal(size=5 * n), places), shape=(n, d)))
    used = np.unique(wide.indices)
    narrow = np.zeros((n, len(used)))
    narrow[np.repeat(np.arange(n), np.diff(wide.indptr)), np.searchsorted(used, wide.indices)] = wide.data
    u, y = rng.normal(size=n), rng.normal(size=n)
    kernels = [m.RBF(1.3), m.Exponential(1.3), m.Matern(1.3, nu=0.7), m.Linear(), m.Polynomial(2),
               m.CosineSimilarity(), m.ArcCosine(1), m.ArcCosine(0), (m.Linear() + 1).normalized(),
               m.RBF(1.0) + m.White(0.1), m.RBF(1e-100)]
    for k in kernels:
        np.testing.assert_allclose(k(wide), k(narrow), atol=1e-9)
        np.testing.assert_allclose(k(wide, wide[:4]), k(narrow, narrow[:4]), atol=1e-9)
        np.testing.assert_allclose(k.diag(wide), k.diag(narrow), atol=1e-9)
        a, b = (k.gram(X, memory=1) for X in (wide, narrow))
        np.testing.assert_allclose(a @ u, b @ u, atol=1e-9)
        np.testing.assert_allclose(a.contract(u), b.contract(u), atol=1e-8)
    on_wide, on_narrow = m.RBF(1.0).on(int(used[3]), int(used[0])), m.RBF(1.0).on(3, 0)
    np.testing.assert_allclose(on_wide(wide), on_narrow(narrow), atol=1e-12)
    models = [m.GaussianProcessRegressor("RBF(1.0) + White(0.1)").fit(X, y) for X in (wide, narrow)]
    found = [model.predict(X, return_std=True) for model, X in zip(models, (wide, narrow))]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)
    m.SVC("RBF()").fit(wide, y > 0).predict(wide)
    for k in (m.Laplacian(1.0), m.AllSubsets()):
        try:
            k(wide)
        except m.errors.MemoryBudgetError as error:
            assert "written out" in str(error)
        else:
            raise AssertionError(k)
    print("done")
"""


def test_a_billion_columns_need_memory_for_the_stored_entries_alone():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(WIDE)],
        capture_output=True,
        text=True,
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin"},
        check=False,
    )
    assert found.stdout.strip() == "done", found.stderr[-2000:]


def test_wide_sparse_rows_give_the_dense_answer():
    X = scattered(15, 3000, 4)
    for k in (Exponential(1.0), Matern(1.0), Polynomial(2), CosineSimilarity()):
        np.testing.assert_allclose(k(X), k(X.toarray()), atol=1e-12)
