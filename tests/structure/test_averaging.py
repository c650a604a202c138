"""Several kernels at once: weights by slow searches, the laws of both rules, and who predicts when."""

from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import RBF, GaussianProcessRegressor, Periodic, White
from mercer.structure import averaging, scoring
from mercer.structure.answer import Structure
from mercer.structure.door import _averaged

T = np.arange(72.0)
Y = 0.05 * T + np.sin(2 * np.pi * T / 12) + 0.1 * np.random.default_rng(0).normal(size=72)


@pytest.fixture(scope="module")
def found() -> Structure:
    return mercer.choose.structure(T, Y, units="months", rounds=0, verbose=0)


def judged_as(kernel, forecasts, blocks=()):
    densities = tuple(scoring.normal_density(*one) for one in forecasts)
    return scoring.Candidate(kernel, 0.0, 100, densities, forecasts, blocks=blocks)


def drawn(rng, kernels=2, rows=50):
    means = rng.normal(size=(kernels, rows))
    variances = rng.uniform(0.2, 2.0, size=(kernels, rows))
    return means, variances, rng.normal(size=rows)


def split_in_five(mean, variance, y):
    return tuple(zip(*(np.split(part, 5) for part in (mean, variance, y)), strict=True))


# ── who takes part ──────────────────────────────────────────────────────────────────────────────────────────


def test_complements_are_those_of_a_slow_search():
    rng = np.random.default_rng(0)
    k = 1.0 * RBF(1.0) + White(0.1)
    pool = [scoring.Candidate(k, 0.0, 50, (rng.normal(-1.0, 1.0, size=50),)) for _ in range(5)]
    best, *others = pool
    (first,) = averaging.complements(best, others, 1)
    values = []
    for other in others:
        pair = np.array([best.densities[0], other.densities[0]])
        weights = averaging.mixture_weights(pair, rounds=30)
        values.append(np.mean(np.log(weights[0] * np.exp(pair[0]) + weights[1] * np.exp(pair[1]))))
    assert first is others[int(np.argmax(values))]
    # nobody takes part who brings nothing
    assert averaging.complements(best, [replace(best)], 2) == []


def test_a_cautious_kernel_takes_part_where_the_best_is_too_sure_of_itself():
    rng = np.random.default_rng(0)
    y = rng.normal(0.0, 0.1, size=(5, 20))
    # in each split one row that the best kernel holds for all but impossible
    y[:, 0] = 2.0
    sure = tuple((np.zeros(20), np.full(20, 0.03), row) for row in y)
    wide = tuple((np.zeros(20), np.full(20, 1.0), row) for row in y)
    best = judged_as(1.0 * RBF(1.0) + White(0.1), sure)
    cautious = judged_as(1.0 * Periodic(1.0) + White(0.1), wide)
    team = _averaged([best, best, best, cautious]).team
    assert [candidate for candidate, _ in team][-1] is cautious
    assert team[-1][1] > 0.01
    assert sum(weight for _, weight in team) == pytest.approx(1.0)
    assert _averaged([cautious]).team == ((cautious, 1.0),)
    # where nothing surprises the best one, it stays alone
    calm = tuple((np.zeros(20), np.full(20, 0.01), 0.1 * rng.normal(size=20)) for _ in y)
    loose = tuple((mean, np.full(20, 1.0), row) for mean, _, row in calm)
    alone = _averaged([judged_as(best.kernel, calm), judged_as(cautious.kernel, loose)])
    assert len(alone.team) == 1


def test_in_a_table_the_plain_kernel_is_the_cautious_one():
    # one that says nothing of any row is never surprised; far behind, it would only widen the others
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    kernels = (1.0 * RBF(1.0), 1.0 * RBF(1.0) ** 2, 1.0 * Periodic(1.0))
    best, plain, blind = (
        judged_as(kernel, split_in_five(y + spread * rng.normal(size=100), np.full(100, variance), y))
        for kernel, spread, variance in zip(kernels, (0.1, 0.11, 0.0), (0.01, 0.012, 100.0), strict=True)
    )
    members = [candidate for candidate, _ in _averaged([best, plain, blind], plain).team]
    assert members == [best, plain]


def test_a_best_kernel_that_is_best_by_luck_does_not_predict_alone():
    # of forty kernels that are equally good, the one that the held-out rows like most
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    pool = [
        judged_as(1.0 * RBF(1.0) + White(0.1), split_in_five(0.3 * rng.normal(size=100), np.ones(100), y))
        for _ in range(40)
    ]
    pool.sort(key=lambda candidate: -candidate.held_out)
    average = averaging.averaged([pool[0], *pool[-2:]])
    assert len(average.team) == 3
    assert average.rule == "mixture"


def test_of_a_kernel_that_knows_half_the_rows_and_one_that_knows_the_others_the_product_is_taken():
    # each says how little it knows where it knows little; a mixture is as wide as the wider one
    rng = np.random.default_rng(0)
    half = np.arange(100) % 2 == 0
    y = rng.normal(size=100)
    near = y + 0.01 * rng.normal(size=100)
    one = judged_as(1.0 * RBF(1.0), split_in_five(np.where(half, near, 0.0), np.where(half, 1e-4, 1.0), y))
    two = judged_as(
        1.0 * Periodic(1.0), split_in_five(np.where(half, 0.0, near), np.where(half, 1.0, 1e-4), y)
    )
    assert averaging.averaged([one, two]).rule == "product"
    # rows that follow one another are wrong together: they do not tell
    blocks = (-20.0,) * 5
    series = [replace(candidate, blocks=blocks) for candidate in (one, two)]
    assert averaging.averaged(series).rule == "mixture"


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_mixture_weights_are_the_best_of_a_grid():
    rng = np.random.default_rng(0)
    densities = rng.normal(size=(2, 60)) - 1.0
    weights = averaging.mixture_weights(densities, rounds=2000)
    grid = np.linspace(0.0, 1.0, 2001)
    values = [
        averaging.mixture_density(densities, np.array([w, 1 - w])).sum() + np.log(w) + np.log(1 - w)
        for w in grid[1:-1]
    ]
    best = grid[1:-1][int(np.argmax(values))]
    assert weights[0] == pytest.approx(best, abs=2e-3)
    assert weights.sum() == pytest.approx(1.0)


def test_product_weights_are_the_best_of_a_grid():
    means, variances, y = drawn(np.random.default_rng(0))
    weights = averaging.product_weights(means, variances, y)
    grid = np.linspace(0.005, 1.5, 300)
    best = (-np.inf, 0.0, 0.0)
    for one in grid:
        for two in grid:
            precision = one / variances[0] + two / variances[1]
            mean = (one * means[0] / variances[0] + two * means[1] / variances[1]) / precision
            value = 0.5 * np.sum(np.log(precision) - precision * (y - mean) ** 2)
            best = max(best, (value + np.log(one) + np.log(two) - 2 * one - 2 * two, one, two))
    np.testing.assert_allclose(weights, best[1:], atol=0.006)


# ── laws ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_no_average_is_worse_than_its_parts_in_the_mean(seed):
    rng = np.random.default_rng(seed)
    means, variances, y = drawn(rng, kernels=4)
    weights = rng.dirichlet(np.ones(4))
    densities = scoring.normal_density(means, variances, y)
    least = weights @ densities - 1e-12
    assert np.all(averaging.mixture_density(densities, weights) >= least)
    assert np.all(scoring.normal_density(*averaging.multiplied(means, variances, weights), y) >= least)


def test_the_product_of_normal_laws_is_the_normal_law_of_the_product():
    means, variances, _ = drawn(np.random.default_rng(0), kernels=3, rows=1)
    weights = np.array([0.5, 0.2, 0.6])
    y = np.linspace(-12.0, 12.0, 20_001)
    density = np.exp(weights @ scoring.normal_density(means, variances, y, floor=-np.inf))
    density /= density.sum()
    mean, variance = averaging.multiplied(means, variances, weights)
    assert mean[0] == pytest.approx(density @ y)
    assert variance[0] == pytest.approx(density @ y**2 - (density @ y) ** 2)


def test_an_average_is_the_mixture_of_its_models(found):
    other = GaussianProcessRegressor("1.0*RBF(20.0) + White(0.1)", optimizer=None, normalize_y=True).fit(
        T[:, None], Y
    )
    mixed = replace(found, weight=0.25, others=((other, 0.75),))
    rng = np.random.default_rng(0)
    mean, std = mixed.predict([100.0], return_std=True)
    one = found.model.predict([[100.0]], return_std=True)
    two = other.predict([[100.0]], return_std=True)
    # drawn from the mixture, by hand
    pick = rng.random(400_000) < 0.25
    draws = np.where(
        pick,
        one[0][0] + one[1][0] * rng.normal(size=400_000),
        two[0][0] + two[1][0] * rng.normal(size=400_000),
    )
    assert mean[0] == pytest.approx(draws.mean(), abs=0.01)
    assert std[0] == pytest.approx(draws.std(), rel=0.01)


def test_a_product_predicts_by_the_precisions_of_its_models(found):
    other = GaussianProcessRegressor("1.0*RBF(20.0) + White(0.1)", optimizer=None, normalize_y=True).fit(
        T[:, None], Y
    )
    product = replace(found, weight=0.25, others=((other, 0.75),), rule="product", sharpness=1.2)
    new = np.array([40.5, 71.0, 90.0])
    one = found.model.predict(new[:, None], return_std=True, noise=True)
    two = other.predict(new[:, None], return_std=True, noise=True)
    precision = 1.2 * (0.25 / one[1] ** 2 + 0.75 / two[1] ** 2)
    mean, std = product.predict(new, return_std=True, noise=True)
    np.testing.assert_allclose(std, precision**-0.5)
    np.testing.assert_allclose(
        mean, 1.2 * (0.25 * one[0] / one[1] ** 2 + 0.75 * two[0] / two[1] ** 2) / precision
    )
    # f has the same mean, and a band that is narrower by the noise
    latent_mean, latent_std = product.predict(new, return_std=True)
    np.testing.assert_allclose(latent_mean, mean)
    assert np.all(latent_std < std)
    assert np.ptp(std**2 - latent_std**2) == pytest.approx(0.0, abs=1e-9)
