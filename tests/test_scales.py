"""Scales of a target: there and back, densities by the Jacobian, and what y is where t is normal."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from mercer.errors import DomainError, ParameterError
from mercer.scales import IDENTITY, Scale, candidates

SCALES = [
    Scale(),
    Scale(0.0),
    Scale(0.5),
    Scale(1 / 3),
    Scale(0.2),
    Scale(0.75),
    Scale(0.0, 1.0),
    Scale(0.5, 2.5),
]
CURVED = SCALES[1:]


def by_words(scale):
    return scale.words


@pytest.mark.parametrize("scale", SCALES, ids=by_words)
def test_the_inverse_brings_y_back(scale):
    y = np.array([1e-3, 0.5, 1.0, 7.0, 1e6])
    np.testing.assert_allclose(scale.inverse(scale.forward(y)), y, rtol=1e-10)


@pytest.mark.parametrize("scale", [s for s in SCALES if not s.shift], ids=by_words)
def test_numbers_of_every_size_come_back(scale):
    y = np.array([1e-300, 1e-150, 1e-20, 1.0, 1e150, 1e300])
    np.testing.assert_allclose(scale.inverse(scale.forward(y)), y, rtol=1e-11)


def test_the_smallest_number_has_a_logarithm():
    least = 5e-324
    assert Scale(0.0).forward(least) == np.log(least)
    assert Scale(0.0).log_jacobian([least]) == -np.log(least)


@pytest.mark.parametrize("scale", SCALES, ids=by_words)
def test_the_order_is_kept(scale):
    t = scale.forward(np.linspace(0.01, 50, 200))
    assert np.all(np.diff(t) > 0)


@pytest.mark.parametrize("scale", SCALES, ids=by_words)
def test_the_jacobian_is_the_sum_of_the_slopes(scale):
    y = np.array([0.3, 1.0, 4.0, 90.0])
    h = 1e-6 * y
    slopes = (scale.forward(y + h) - scale.forward(y - h)) / (2 * h)
    assert scale.log_jacobian(y) == pytest.approx(np.log(slopes).sum(), rel=1e-7, abs=1e-7)


def test_the_density_of_a_log_normal_is_that_of_its_logarithm_with_the_jacobian():
    y = np.array([0.2, 1.0, 3.0, 11.0])
    scale = Scale(0.0)
    found = stats.norm(0.7, 1.3).logpdf(scale.forward(y)).sum() + scale.log_jacobian(y)
    assert found == pytest.approx(stats.lognorm(1.3, scale=np.exp(0.7)).logpdf(y).sum(), rel=1e-12)


@pytest.mark.parametrize("scale", CURVED, ids=by_words)
@pytest.mark.parametrize(("m", "s"), [(1.0, 0.1), (2.0, 1.0), (0.0, 0.7), (-1.0, 0.8), (6.0, 0.01)])
def test_mean_and_deviation_are_the_integrals(scale, m, s):
    def integral(function):
        # where t has no inverse, y is -shift: the pieces are smooth
        cuts = sorted({m - 12 * s, min(max(0.0, m - 12 * s), m + 12 * s), m, m + 12 * s})
        density = stats.norm(m, s).pdf
        pieces = pairwise(cuts)
        return sum(
            integrate.quad(lambda t: function(scale.inverse(t)) * density(t), a, b, epsabs=0, epsrel=1e-12)[0]
            for a, b in pieces
        )

    mean = integral(lambda y: y)
    assert float(scale.mean(m, s)) == pytest.approx(mean, rel=1e-7, abs=1e-12)
    variance = integral(lambda y: (y - mean) ** 2)
    assert float(scale.std(m, s)) == pytest.approx(np.sqrt(variance), rel=1e-8)


@pytest.mark.parametrize("scale", SCALES, ids=by_words)
def test_mean_deviation_and_quantiles_are_those_of_many_draws(scale):
    draws = scale.inverse(np.random.default_rng(0).normal(1.2, 0.6, 400_000))
    assert float(scale.mean(1.2, 0.6)) == pytest.approx(draws.mean(), rel=0.01)
    assert float(scale.std(1.2, 0.6)) == pytest.approx(draws.std(), rel=0.02)
    for p in (0.025, 0.5, 0.975):
        assert float(scale.quantile(1.2, 0.6, p)) == pytest.approx(np.quantile(draws, p), rel=0.02, abs=0.01)


def test_the_square_of_a_normal_has_the_moments_of_the_book():
    m = np.array([-3.0, 0.0, 0.5, 40.0])
    s = 1.7
    scale = Scale(0.5)
    # y = (max(t, 0) / 2)²: the second moment of a normal that is cut at 0
    inside = (m**2 + s**2) * stats.norm.cdf(m / s) + m * s * stats.norm.pdf(m / s)
    np.testing.assert_allclose(scale.mean(m, s), inside / 4, rtol=1e-12)


@pytest.mark.parametrize("scale", SCALES, ids=by_words)
def test_without_deviation_the_mean_is_the_value(scale):
    t = scale.forward([0.5, 3.0, 40.0])
    np.testing.assert_allclose(scale.mean(t, 0.0), [0.5, 3.0, 40.0], rtol=1e-12)
    np.testing.assert_allclose(scale.std(t, 0.0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scale.quantile(t, 0.0, 0.9), [0.5, 3.0, 40.0], rtol=1e-12)


@pytest.mark.parametrize("scale", CURVED, ids=by_words)
def test_small_deviations_keep_their_digits(scale):
    # then std(y) is s dy/dt, which a difference of second moments would lose
    y = 5.0
    slope = np.exp(scale.log_jacobian([y]))
    s = 1e-9
    assert float(scale.std(scale.forward(y), s)) == pytest.approx(s / slope, rel=1e-5)


def test_large_numbers_overflow_to_infinity_and_not_to_nonsense():
    log = Scale(0.0)
    assert log.mean(800.0, 1.0) == np.inf
    assert log.std(600.0, 5.0) == pytest.approx(np.exp(600 + 12.5) * np.sqrt(np.expm1(25.0)))
    root = Scale(0.5)
    m = root.forward(1e300)
    assert root.mean(m, 0.0) == pytest.approx(1e300)
    assert np.isfinite(root.std(m, 0.01 * m))


def test_where_a_root_has_no_inverse_y_is_as_small_as_it_can_be():
    scale = Scale(0.5, 1.0)
    assert scale.inverse(-3.0) == -1.0
    assert scale.quantile(0.0, 1.0, 0.01) == -1.0
    assert scale.mean(-50.0, 1.0) == pytest.approx(-1.0)
    assert scale.std(-50.0, 1.0) == pytest.approx(0.0, abs=1e-12)


def test_scales_are_stored_as_numbers():
    for scale in SCALES:
        assert Scale.from_dict(scale.to_dict()) == scale
    with pytest.raises(ParameterError, match="a power and a shift"):
        Scale.from_dict({"power": 1.0})


@pytest.mark.parametrize(
    ("power", "shift"), [(-0.5, 0.0), (1.5, 0.0), (np.nan, 0.0), (0.5, -1.0), (0.0, np.inf), (1.0, 1.0)]
)
def test_scales_without_meaning_are_refused(power, shift):
    with pytest.raises(ParameterError):
        Scale(power, shift)


def test_a_logarithm_of_zero_is_refused_with_what_to_do():
    with pytest.raises(DomainError, match="needs y above 0; got -2"):
        Scale(0.0).forward([3.0, -2.0])
    with pytest.raises(DomainError, match="cannot be negative"):
        Scale(0.0).mean(0.0, -1.0)


def test_words():
    assert [s.words for s in (Scale(), Scale(0.0), Scale(0.5), Scale(1 / 3))] == [
        "y as it is",
        "the logarithm of y",
        "the square root of y",
        "the cube root of y",
    ]
    assert Scale(0.0, 1.0).words_of("price") == "the logarithm of price + 1"
    assert Scale(0.25).words == "the power 0.25 of y"


# ── candidates ──────────────────────────────────────────────────────────────────────────────────────────────


def test_positive_numbers_may_have_every_scale():
    assert [s.power for s in candidates(np.linspace(0.1, 9, 50))] == [1.0, 0.0, 1 / 3, 0.5]
    assert all(s.shift == 0 for s in candidates([1e-300, *np.arange(1.0, 12.0), 1e300]))


def test_zeros_are_shifted_by_the_smallest_number():
    y = np.concatenate([[0.0], np.linspace(0.2, 9, 60)])
    assert {s.shift for s in candidates(y) if not s.is_identity} == {0.2}
    counts = np.random.default_rng(0).poisson(3.0, 400).astype(float) * 2
    counts[counts > 40] = 41.0
    assert {s.shift for s in candidates(np.append(counts, np.arange(20))) if not s.is_identity} == {1.0}


def test_one_tiny_number_is_not_the_unit_of_all():
    y = np.concatenate([[0.0, 1e-12], np.linspace(1, 9.5, 60)])
    (shift,) = {s.shift for s in candidates(y) if not s.is_identity}
    assert shift == pytest.approx(1e-3 * np.median(y[y > 0]))


@pytest.mark.parametrize(
    "y",
    [
        [2.0] * 50,
        np.tile([1.0, 2.0, 5.0], 20),
        np.linspace(-1, 1, 50),
        np.append(np.zeros(20), np.linspace(0.1, 1.1, 50)),
        [*np.linspace(1, 2, 50), np.inf],
    ],
    ids=["constant", "few values", "negative", "many zeros", "infinite"],
)
def test_other_targets_stay_as_they_are(y):
    assert candidates(y) == (IDENTITY,)
