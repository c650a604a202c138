"""Laws of `mercer.gram_report`: three tests of a matrix, and what each can and cannot say."""

import json
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import mercer
from mercer import gram_report
from mercer.errors import MercerError, NotFiniteError, ParameterError, ShapeError

ENTRIES = st.floats(-3, 3).map(lambda v: round(v, 3))
MATRICES = st.integers(1, 8).flatmap(lambda n: hnp.arrays(float, (n, n), elements=ENTRIES))
FACTORS = st.tuples(st.integers(1, 8), st.integers(1, 4)).flatmap(
    lambda s: hnp.arrays(float, s, elements=ENTRIES)
)


def says(report):
    return {t.name: t.says for t in report.tests}


def test_the_identity_is_positive_definite_by_every_test():
    report = gram_report(np.eye(4))
    assert report.verdict == "positive definite"
    assert says(report)["leading minors"] == "positive definite"
    assert report.agree == ("eigenvalues", "leading minors", "quadratic form")
    assert (report.condition, report.rank) == (1.0, 4)
    assert report.effective_rank == pytest.approx(4.0)
    assert report.duplicates == ()


def test_the_matrix_of_ones_is_semidefinite_of_rank_one_with_every_pair_a_duplicate():
    report = gram_report(np.ones((3, 3)))
    assert report.verdict == "positive semi-definite to rounding"
    assert report.minor_signs == (1, 0, 0)
    assert says(report)["leading minors"] == "cannot say"
    assert report.duplicates == ((0, 1), (0, 2), (1, 2))
    assert report.rank == 1
    assert report.effective_rank == pytest.approx(1.0)


def test_an_indefinite_matrix_shows_its_most_negative_direction():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    report = gram_report(K)
    assert report.verdict == "indefinite"
    assert report.minor_signs == (1, -1)
    assert report.agree == ("eigenvalues", "leading minors", "quadratic form")
    assert report.direction @ K @ report.direction == pytest.approx(-1.0)
    assert report.smallest_form == pytest.approx(-1.0)


def test_leading_minors_without_a_negative_one_do_not_hide_a_negative_direction():
    report = gram_report([[0, 0], [0, -1]])
    assert report.minor_signs == (0, 0)
    assert report.verdict == "negative semi-definite to rounding"
    assert report.agree == ("eigenvalues", "quadratic form")
    assert [name for name, _ in report.differ] == ["leading minors"]
    assert "another principal block" in str(report)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e20, 1e300])
@pytest.mark.parametrize("K", [np.eye(3), np.ones((3, 3)), np.array([[1.0, 2.0], [2.0, 1.0]])], ids=repr)
def test_the_scale_of_a_matrix_does_not_change_what_is_said_of_it(K, scale):
    one, other = gram_report(K), gram_report(scale * K)
    assert (one.verdict, one.minor_signs, one.rank, one.duplicates) == (
        other.verdict,
        other.minor_signs,
        other.rank,
        other.duplicates,
    )
    assert other.largest_eigenvalue == pytest.approx(scale * one.largest_eigenvalue)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(5, "positive definite"), (0, "positive semi-definite to rounding"), (-2.0, "negative definite")],
)
def test_one_number_is_a_matrix_too(value, verdict):
    report = gram_report([[value]])
    assert report.verdict == verdict
    assert report.eigenvalues.tolist() == [value]


def test_an_asymmetric_matrix_is_named_so_with_the_worst_pair():
    report = gram_report([[1.0, 0.5, 0.0], [0.5, 1.0, 2.0], [0.0, 0.0, 1.0]])
    assert report.verdict == "not symmetric"
    assert report.asymmetry == 2.0
    assert report.asymmetric_at == (1, 2)
    assert "(K + Kᵀ)/2" in str(report)


def test_asymmetry_by_rounding_is_forgiven_and_reported():
    K = np.eye(2)
    K[0, 1] = 1e-16
    report = gram_report(K)
    assert report.verdict == "positive definite"
    assert report.asymmetry == 1e-16


@given(FACTORS)
def test_a_product_with_its_transpose_is_never_called_indefinite(F):
    report = gram_report(F @ F.T)
    assert report.verdict in ("positive definite", "positive semi-definite to rounding")
    assert report.rank <= min(F.shape)
    assert report.differ == ()


@given(MATRICES)
def test_the_verdict_follows_the_smallest_eigenvalue_and_the_search_never_goes_below_it(A):
    K = A + A.T
    report = gram_report(K)
    values = np.linalg.eigvalsh(K)
    low, high, size = values[0], values[-1], np.abs(values).max()
    if abs(low) > 1e-9 * size and abs(high) > 1e-9 * size:
        of_one_sign = "positive definite" if low > 0 else "negative definite"
        assert report.verdict == (of_one_sign if low * high > 0 else "indefinite")
    assert report.smallest_form >= low - 1e-9 * size
    assert report.form_vector @ K @ report.form_vector == pytest.approx(
        report.smallest_form, abs=1e-9 * size + 1e-300
    )
    assert 0 <= report.effective_rank <= len(K) * (1 + 1e-9)


@given(MATRICES)
def test_signs_of_leading_minors_are_those_of_the_determinants(A):
    K = A + A.T
    for m, sign in enumerate(gram_report(K).minor_signs, 1):
        values = np.linalg.eigvalsh(K[:m, :m])
        if np.abs(values).min() > 1e-9 * np.abs(K).max():
            assert sign == np.prod(np.sign(values))


# ── graded matrices, against 60 digits ──────────────────────────────────────────────────────────────────────


def exact_signs(K):
    """The lowest and the highest eigenvalue of the numbers in K, in 60 digits."""
    with mpmath.workdps(60):
        values = mpmath.eigsy(mpmath.matrix(np.asarray(K).tolist()), eigvals_only=True)
        return values[0], values[len(values) - 1]


def graded_matrix(rng, kind, n):
    """A matrix of a kind, with rows of sizes from 1e-9 to 1e9."""
    F = rng.normal(size=(n, n))
    S = {
        "positive": F @ F.T + 0.1 * np.eye(n),
        "singular": F[:, : n - 1] @ F[:, : n - 1].T,
        "indefinite": F + F.T,
        "slightly": F @ F.T - rng.uniform(0.5, 1.5) * np.linalg.eigvalsh(F @ F.T)[0] * np.eye(n),
        "negative": -(F @ F.T) - 0.1 * np.eye(n),
    }[kind]
    d = 10.0 ** rng.uniform(-9, 9, size=n)
    K = d[:, None] * S * d[None, :]
    return np.tril(K) + np.tril(K, -1).T


@pytest.mark.parametrize("kind", ["positive", "singular", "indefinite", "slightly", "negative"])
@pytest.mark.parametrize("seed", range(12))
def test_the_verdict_on_a_graded_matrix_is_true_in_sixty_digits(kind, seed):
    rng = np.random.default_rng([seed, len(kind)])
    K = graded_matrix(rng, kind, int(rng.integers(2, 6)))
    low, high = exact_signs(K)
    report = gram_report(K)
    true = {
        "positive definite": low > 0,
        "negative definite": high < 0,
        "indefinite": low < 0 < high,
        "positive semi-definite to rounding": kind in ("singular", "slightly"),
        "negative semi-definite to rounding": kind in ("singular", "slightly") and low < 0,
    }
    assert true[report.verdict], (report.verdict, low, high)
    if kind in ("positive", "negative"):
        assert report.verdict == f"{kind} definite"
    if report.verdict in ("indefinite", "negative definite"):
        q = [Fraction(v) for v in report.direction.tolist()]
        rows = [[Fraction(v) for v in row] for row in K.tolist()]
        assert sum(q[i] * rows[i][j] * q[j] for i in range(len(q)) for j in range(len(q))) < 0
        assert report.smallest_eigenvalue < 0
    if report.verdict == "positive definite":
        assert report.smallest_eigenvalue == pytest.approx(float(low), rel=1e-6)


def test_a_tiny_negative_entry_beside_a_huge_one_is_not_rounding():
    report = gram_report(np.diag([1e20, 1, -1e-2]))
    assert report.verdict == "indefinite"
    assert report.direction.tolist() == [0.0, 0.0, 1.0]
    assert report.smallest_eigenvalue == -1e-2
    assert report.rank == 3
    assert gram_report(np.diag([1e300, 1, 1e-300])).verdict == "positive definite"
    assert gram_report([[1e-300, 1.0], [1.0, 1e-300]]).verdict == "indefinite"
    assert gram_report(np.array([[1e300, 1e300], [1e300, 1e-300]])).verdict == "indefinite"


def test_negative_definite_is_not_called_indefinite():
    report = gram_report([[-2.0, 1.0], [1.0, -2.0]])
    assert report.verdict == "negative definite"
    assert says(report)["leading minors"] == "negative definite"
    assert report.differ == ()
    assert gram_report([[-1.0, 1.0], [1.0, -1.0]]).verdict == "negative semi-definite to rounding"


def test_a_zero_on_the_diagonal_with_a_neighbour_is_indefinite():
    assert gram_report([[0.0, 1e-12], [1e-12, 1e12]]).verdict == "indefinite"
    assert gram_report([[0.0, 1e-9], [1e-9, 0.0]]).verdict == "indefinite"
    assert gram_report(np.zeros((2, 2))).verdict == "positive semi-definite to rounding"


def test_the_search_finds_a_direction_hidden_among_many_points():
    K = np.eye(60)
    K[40:43, 40:43] = [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]
    report = gram_report(K)
    assert report.smallest_form == pytest.approx(report.smallest_eigenvalue, rel=1e-6)
    assert report.agree == ("eigenvalues", "leading minors", "quadratic form")


def test_minors_beyond_the_first_hundred_are_not_computed_and_that_is_said():
    report = gram_report(np.eye(130))
    assert report.minors_checked == 100
    assert "first 100 of 130" in str(report)
    assert says(report)["leading minors"] == "cannot say"


def test_float32_is_judged_by_its_own_rounding():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    report = gram_report(X @ X.T)
    assert report.verdict == "positive semi-definite to rounding"
    assert report.rank == 3


def test_lists_sparse_and_read_only_matrices_give_the_same_report():
    K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    K.setflags(write=False)
    whole = gram_report(K).to_dict()
    assert gram_report(K.tolist()).to_dict() == whole
    assert gram_report(sparse.csr_array(K)).to_dict() == whole
    assert gram_report(np.asfortranarray(K)).to_dict() == whole


def test_equal_diagonal_sums_alone_do_not_make_duplicates():
    assert gram_report([[1.0, 2.0], [2.0, 3.0]]).duplicate_count == 0  # K₁₁ + K₂₂ - 2K₁₂ = 0, yet indefinite


def test_repeated_points_are_found_through_the_kernel():
    K = mercer.RBF(1.0)([[0.0], [1.0], [0.0], [5.0]])
    assert gram_report(K).duplicates == ((0, 2),)


@pytest.mark.parametrize(
    ("K", "error", "words"),
    [
        (np.zeros((4, 2)), ShapeError, "kernel(X)"),
        (np.zeros(3), ShapeError, "two dimensions"),
        ([[1.0, np.nan], [np.nan, 1.0]], NotFiniteError, "(0, 1)"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), NotFiniteError, "points 0 and 1"),
        (np.zeros((0, 0)), ShapeError, "minimum of 1"),
        ([["a", "b"], ["c", "d"]], MercerError, "text"),
    ],
)
def test_what_is_no_gram_matrix_is_refused_with_what_to_do(K, error, words):
    with pytest.raises(error) as caught:
        gram_report(K)
    assert words in str(caught.value)


@pytest.mark.parametrize("tolerance", [-1.0, 2.0, float("nan")])
def test_a_tolerance_outside_its_range_is_refused(tolerance):
    with pytest.raises(ParameterError):
        gram_report(np.eye(2), tolerance=tolerance)


def test_a_tolerance_of_the_callers_own_decides_what_counts_as_zero():
    K = np.diag([1.0, -1e-6])
    assert gram_report(K).verdict == "indefinite"
    assert gram_report(K, tolerance=1e-5).verdict == "positive semi-definite to rounding"


def test_the_dictionary_is_json_without_infinities():
    text = json.dumps(gram_report(np.ones((2, 2))).to_dict(), allow_nan=False)
    assert json.loads(text)["condition"] is None
