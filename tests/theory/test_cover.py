"""Laws of Cover's counting theorem."""

from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.errors import ParameterError
from mercer.theory import cover_probability


def exact(n, m):
    return Fraction(1) if n <= m + 1 else Fraction(sum(comb(n - 1, i) for i in range(m + 1)), 2 ** (n - 1))


@given(st.integers(1, 300), st.integers(0, 300))
def test_it_is_the_formula_correctly_rounded(n, m):
    assert cover_probability(n, m) == float(exact(n, m))


@given(st.integers(2, 200), st.integers(1, 200))
def test_one_more_point_obeys_the_recursion_of_the_proof(n, m):
    # C(n + 1, m) = C(n, m) + C(n, m - 1) separable labellings, so P averages
    assert exact(n + 1, m) == (exact(n, m) + exact(n, m - 1)) / 2
    assert cover_probability(n + 1, m) == pytest.approx(
        (cover_probability(n, m) + cover_probability(n, m - 1)) / 2
    )


@pytest.mark.parametrize("m", [0, 1, 10, 1000, 10**6, 10**9])
def test_half_of_all_labellings_are_separable_at_the_capacity(m):
    assert cover_probability(2 * (m + 1), m) == 0.5


@pytest.mark.parametrize("m", [0, 3, 10**6])
def test_few_points_are_always_separable(m):
    assert cover_probability(m + 1, m) == cover_probability(1, m) == 1.0
    assert cover_probability(m + 2, m) <= 1.0


@pytest.mark.parametrize("n", [30_000, 10**6])
@pytest.mark.parametrize("sigmas", [0.5, 3, 12, 30])
def test_it_is_accurate_for_a_million_points(n, sigmas):
    m = int(n / 2 - sigmas * n**0.5 / 2)
    with mpmath.workdps(40):
        total, ratio, i = mpmath.mpf(0), mpmath.mpf(1), m
        while ratio > 1e-25:
            total, ratio, i = total + ratio, ratio * i / (n - i), i - 1
        logarithm = (
            mpmath.loggamma(n) - mpmath.loggamma(m + 1) - mpmath.loggamma(n - m) - (n - 1) * mpmath.log(2)
        )
        expected = float(total * mpmath.exp(logarithm))
    assert cover_probability(n, m) == pytest.approx(expected, rel=1e-11)
    assert cover_probability(n, n - 2 - m) == pytest.approx(1 - expected, rel=1e-14)


def test_huge_n_with_few_dimensions_underflows_to_zero_quietly():
    assert cover_probability(10**6, 40) == 0.0
    assert cover_probability(1100, 1) == pytest.approx(1100 * 2.0**-1074 * 2.0**-25, abs=5e-324)


@pytest.mark.parametrize(
    "bad", [(0, 1), (-1, 1), (3, -1), (2.5, 1), (3, 1.0), (True, 1), ("3", 1), (None, 1)]
)
def test_what_is_no_number_of_points_or_dimensions_is_refused(bad):
    with pytest.raises(ParameterError, match="whole number"):
        cover_probability(*bad)


def test_numbers_beyond_double_precision_are_refused():
    with pytest.raises(ParameterError, match=r"2\^53"):
        cover_probability(10**400, 5)


def test_numpy_integers_are_whole_numbers():
    assert cover_probability(np.int64(4), np.int32(2)) == 0.875
