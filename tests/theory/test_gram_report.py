"""Laws of `mercer.gram_report`: three tests of a matrix, and what each can and cannot say."""

import json

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


def test_leading_minors_without_a_negative_one_do_not_hide_an_indefinite_matrix():
    report = gram_report([[0, 0], [0, -1]])
    assert report.minor_signs == (0, 0)
    assert report.verdict == "indefinite"
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
    [(5, "positive definite"), (0, "positive semi-definite to rounding"), (-2.0, "indefinite")],
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
    low, size = np.linalg.eigvalsh(K)[0], np.abs(np.linalg.eigvalsh(K)).max()
    if abs(low) > 1e-9 * size:
        assert report.verdict == ("positive definite" if low > 0 else "indefinite")
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
