"""Members together: quantiles, means and the factor of the back-test against slow ways to have them."""

import numpy as np
import pytest
from scipy import stats

from mercer.scales import IDENTITY, Scale
from mercer.series.members import Normals, Values, backtested, refined, searched, some
from mercer.series.mixture import LEAST, LESS_LIKELY, WIDEST, Mixture, covered, likely, score, widening
from mercer.series.shapes import TRENDS, Season, Shape
from mercer.series.study import rolling_origins


def two(rng: np.random.Generator, n: int = 6) -> Mixture:
    plain = Normals(rng.normal(10, 1, n), rng.uniform(0.5, 2, n), IDENTITY)
    logs = Normals(rng.normal(2.3, 0.1, n), rng.uniform(0.05, 0.4, n), Scale(0.0))
    return Mixture((plain, logs))


def test_quantiles_and_means_of_a_mixture_are_those_of_many_draws():
    rng = np.random.default_rng(0)
    mixture = two(rng)
    plain, logs = mixture.parts
    draws = 400_000
    first = plain.mean + plain.std * rng.normal(size=(draws, 6))
    second = np.exp(logs.mean + logs.std * rng.normal(size=(draws, 6)))
    both = np.concatenate([first, second])
    np.testing.assert_allclose(mixture.mean(), both.mean(axis=0), rtol=5e-3)
    for p in (0.025, 0.3, 0.5, 0.975):
        np.testing.assert_allclose(mixture.quantile(p), np.quantile(both, p, axis=0), rtol=2e-2)
        np.testing.assert_allclose(mixture.cdf(mixture.quantile(p)), p, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_value_is_covered_where_it_lies_in_the_interval(seed):
    rng = np.random.default_rng(seed)
    mixture = two(rng, 200)
    y = rng.normal(10, 3, 200)
    lower, upper = mixture.interval(0.8)
    assert np.array_equal(covered(mixture, y, 0.8), (y >= lower) & (y <= upper))


def test_the_factor_is_the_least_that_would_have_held_the_share():
    rng = np.random.default_rng(1)
    mixture = Mixture((Normals(np.zeros(2000), np.ones(2000), IDENTITY),))
    y = 2.5 * rng.normal(size=2000)
    factor = widening([mixture], [y])
    assert covered(mixture.wider(factor), y, 0.95).mean() >= 0.95
    assert covered(mixture.wider(0.99 * factor), y, 0.95).mean() < 0.95
    assert widening([mixture], [0.1 * y]) == LEAST
    assert widening([mixture], [1000 * np.sign(y)]) == WIDEST


def test_the_score_is_near_the_continuous_ranked_probability_score():
    rng = np.random.default_rng(2)
    m, s, y = rng.normal(size=400), rng.uniform(0.5, 2, 400), rng.normal(size=400)
    z = (y - m) / s
    crps = s * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert score([Normals(m, s, IDENTITY)], [y]) == pytest.approx(crps.mean(), rel=0.05)


def test_members_far_less_likely_than_the_best_are_left_out_and_none_where_one_is_unknown():
    near, far = -100.0 - 0.9 * LESS_LIKELY * 200, -100.0 - 1.1 * LESS_LIKELY * 200
    assert likely(np.array([far, -100.0, near]), 200).tolist() == [1, 2]
    assert likely(np.array([far, np.nan, near]), 200).tolist() == [0, 1, 2]


# ── members ─────────────────────────────────────────────────────────────────────────────────────────────────


def airline_like(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = (np.arange(n) - n + 1) / 12
    level = np.cumsum(0.02 * rng.normal(size=n)) + 0.1 * t
    return t, np.exp(5 + level + 0.2 * np.sin(2 * np.pi * t) + 0.02 * rng.normal(size=n))


@pytest.mark.parametrize("scale", [IDENTITY, Scale(0.0), Scale(0.5)])
def test_the_evidence_is_the_log_density_of_the_values_themselves(scale):
    t, y = airline_like(40)
    values = Values.of(t, y, 1 / 12, scale)
    model, evidence = searched(Shape("slope").kernel(values.span, values.step), values, len(t), 3)
    K = np.asarray(model.kernel_(t[:, None]))
    at = scale.forward(y)
    by_hand = stats.multivariate_normal(np.full(40, values.centre), values.spread**2 * K).logpdf(at)
    by_hand += np.sum(np.log((scale.forward(y * (1 + 1e-6)) - scale.forward(y * (1 - 1e-6))) / (2e-6 * y)))
    assert evidence == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("trend", TRENDS)
def test_what_follows_an_origin_changes_nothing_of_its_forecast(trend):
    t, y = airline_like()
    tests = rolling_origins(t, 12, ())
    later = y.copy()
    later[tests[0].start :] *= np.linspace(1, 2, len(y) - tests[0].start)
    centre, spread = float(np.log(y).mean()), float(np.log(y).std())
    shape = Shape(trend, (Season(1.0),))
    both = []
    for seen in (y, later):
        values = Values(t, seen, 1 / 12, Scale(0.0), centre, spread)
        both.append(backtested(shape, values, tests).tests[0])
    assert np.array_equal(both[0].mean, both[1].mean)
    assert np.array_equal(both[0].std, both[1].std)


def test_the_kernel_on_all_values_comes_with_its_own_evidence():
    t, y = airline_like(60)
    member = backtested(Shape("level"), Values.of(t, y, 1 / 12, Scale(0.0)), rolling_origins(t, 6, ()))
    kernel, evidence = refined(member, 5)
    values = member.values
    normal = stats.multivariate_normal(np.zeros(60), np.asarray(kernel(t[:, None])))
    by_hand = normal.logpdf(values.z) - np.sum(np.log(y)) - 60 * np.log(values.spread)
    assert evidence == pytest.approx(by_hand, abs=1e-4)


def test_every_shape_has_a_role_for_each_term_and_is_proved():
    for trend in TRENDS:
        shape = Shape(trend, (Season(1.0), Season(7.0, 0.5)), "rough", (-2.0,))
        kernel = shape.kernel(30.0, 0.1)
        from mercer.kernels.terms import terms_of

        assert len(terms_of(kernel)) == len(shape.roles())
        assert kernel.proof()


def test_some_of_many_values_are_the_last_and_a_part_of_the_others():
    index = some(10_000, 500)
    assert len(np.unique(index)) == 500
    assert np.array_equal(index[-300:], np.arange(9700, 10_000))
    assert np.all(np.diff(index) > 0)
    assert np.array_equal(some(10, 500), np.arange(10))


@pytest.mark.parametrize("n", [8, 9, 20, 100, 1000])
@pytest.mark.parametrize("horizon", [1, 5, 50, 10_000])
def test_origins_leave_values_before_and_after(n, horizon):
    tests = rolling_origins(np.arange(float(n)), horizon, ())
    assert 1 <= len(tests) <= 5
    for part in tests:
        assert 2 <= part.start < part.stop <= n
    assert tests[-1].stop == n


def test_no_forecast_of_the_past_is_asked_beyond_a_break():
    t = np.arange(100.0)
    for part in rolling_origins(t, 20, (79.5,)):
        assert part.start >= 80 or part.stop <= 80
