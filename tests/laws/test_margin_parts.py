"""The small parts that margin machines are judged by: multipliers, the rank of a label set,
the counts of a calibration.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import RBF, SVC
from mercer.errors import InputError
from mercer.gram import Precomputed
from mercer.machines.margin.calibrate import Calibration, calibrate, conformal_threshold
from mercer.solve import active
from mercer.solve.box import BoxProblem
from mercer.solve.qp import working_sets


def random_problem(rng, equality, free):
    n = 8
    signs = rng.choice([-1.0, 1.0], n)
    signs[:2] = [1.0, -1.0]
    C = rng.uniform(0.5, 2.0, n)
    alpha = np.where(rng.random(n) < 0.5, 0.0, C)
    if free:
        alpha[rng.integers(n)] *= 0.5
    return BoxProblem(np.arange(n), signs, rng.normal(size=n), C, equality), alpha, rng.normal(size=n)


def worst_violation(problem, alpha, f, m):
    """The largest violation for multipliers m, one variable at a time."""
    worst = 0.0
    for i in range(len(alpha)):
        g = problem.signs[i] * f[i] + problem.p[i] + (m[0] if problem.signs[i] > 0 else m[1])
        if alpha[i] > 0:
            worst = max(worst, g)
        if alpha[i] < problem.C[i]:
            worst = max(worst, -g)
    return worst


@pytest.mark.parametrize("equality", [1, 2])
def test_where_no_variable_is_free_no_multiplier_violates_less(equality):
    rng = np.random.default_rng(0)
    for _ in range(200):
        problem, alpha, f = random_problem(rng, equality, free=False)
        m = problem.multipliers(alpha, f)
        here = worst_violation(problem, alpha, f, m)
        for change in rng.normal(size=20):
            other = (m[0] + change, m[1] - change) if equality == 1 else (m[0] + change, m[1])
            assert here <= worst_violation(problem, alpha, f, other) + 1e-12
            if equality == 2:
                assert here <= worst_violation(problem, alpha, f, (m[0], m[1] + change)) + 1e-12


def test_where_every_variable_may_move_one_way_only_the_multiplier_just_satisfies_it():
    """All at 0 with one sign: b may be anything up to the first condition;
    that condition is where it is put.
    """
    problem = BoxProblem(np.arange(3), np.ones(3), np.array([1.0, 2.0, 3.0]), np.ones(3), 1)
    assert problem.multipliers(np.zeros(3), np.zeros(3)) == (-1.0, 1.0)
    assert problem.multipliers(np.ones(3), np.zeros(3)) == (-3.0, 3.0)


def test_a_free_variable_settles_the_multiplier():
    rng = np.random.default_rng(1)
    for equality in (1, 2):
        for _ in range(50):
            problem, alpha, f = random_problem(rng, equality, free=True)
            free = (alpha > 0) & (alpha < problem.C)
            g = problem.slack(f, problem.multipliers(alpha, f))
            if free.sum() == 1:
                assert abs(g[free][0]) < 1e-12


@pytest.mark.parametrize("n", [1, 4, 9, 10, 19, 99])
def test_the_rank_of_a_label_set_is_the_smallest_that_promises_its_coverage(n):
    """With n + 1 exchangeable scores the r-th smallest of n covers the last with probability r / (n + 1)."""
    scores = np.arange(1.0, n + 1)
    for text in ("0.05", "0.1", "0.5", "0.8", "0.9", "0.95"):
        promised = Fraction(text)
        enough = [r for r in range(1, n + 1) if Fraction(r, n + 1) >= promised]
        if not enough:
            least = math.ceil(promised / (1 - promised))
            with pytest.raises(InputError, match=f"at least {least} are needed"):
                conformal_threshold(scores, float(text))
            continue
        assert conformal_threshold(scores, float(text)) == enough[0]


def test_label_sets_cover_as_promised_over_every_order():
    """Each of the n + 1 rows is the new one in turn: the share that is covered is counted, not estimated."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, 0)
    model = SVC("RBF(1.0)").fit(X[:30], y[:30])
    rest = np.arange(30, 60)
    for coverage in (0.5, 0.8, 0.9):
        covered = 0
        for i in rest:
            others = rest[rest != i]
            model.conformalize(X[others], y[others])
            covered += bool(model.predict_set(X[[i]], coverage)[0, y[i]])
        assert covered / len(rest) >= coverage


def test_calibration_counts_each_class_by_its_weight():
    """The likelihood with Platt's targets, (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2), written out;
    N counts weights.
    """
    rng = np.random.default_rng(3)
    f = rng.normal(size=40)
    codes = (f + rng.normal(size=40) > 0.3).astype(int)
    w = rng.uniform(0.2, 3.0, size=40)
    plus, minus = sum(w[codes == 1]), sum(w[codes == 0])

    def loss(logs):
        total = 1e-3 * float(logs @ logs)
        for i in range(40):
            z = math.exp(logs[0] if f[i] < 0 else logs[1]) * f[i]
            target = (plus + 1) / (plus + 2) if codes[i] else 1 / (minus + 2)
            total += w[i] * (math.log1p(math.exp(z)) - target * z)
        return total

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose(np.log(calibrate(f[:, None], codes, w).slopes), best.x, atol=1e-3)


def test_a_row_of_weight_two_calibrates_as_the_row_twice():
    rng = np.random.default_rng(4)
    f = rng.normal(size=(30, 1))
    codes = (f[:, 0] + rng.normal(size=30) > 0).astype(int)
    w = rng.integers(1, 4, size=30)
    once = calibrate(f, codes, w.astype(float))
    twice = calibrate(np.repeat(f, w, axis=0), np.repeat(codes, w), np.ones(w.sum()))
    np.testing.assert_allclose(once.slopes, twice.slopes, rtol=1e-6)
    scores = rng.normal(size=(30, 3))
    codes = rng.integers(0, 3, size=30)
    once = calibrate(scores, codes, w.astype(float))
    twice = calibrate(np.repeat(scores, w, axis=0), np.repeat(codes, w), np.ones(w.sum()))
    np.testing.assert_allclose(once.slopes, twice.slopes, rtol=1e-6)


@pytest.mark.parametrize("share", [0.2, 0.9, 1.0, 1.3])
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_of_a_hard_margin_hold_its_optimum_however_far_the_multipliers_are(seed, share):
    """Two points: α = 2/‖x - z‖² and ½‖w‖² = 2/‖x - z‖².
    Only a plane that keeps the margin has a primal value.
    """
    X = np.random.default_rng(seed).normal(size=(2, 3))
    optimum = 2 / float(np.sum((X[0] - X[1]) ** 2))
    problem = BoxProblem(np.arange(2), np.array([1.0, -1.0]), np.full(2, -1.0), np.full(2, np.inf))
    alpha = np.full(2, share * optimum)
    f = X @ X.T @ (problem.signs * alpha)
    found = problem.certify(alpha, f, problem.multipliers(alpha, f))
    assert found.dual <= optimum * (1 + 1e-12)
    assert found.primal >= optimum * (1 - 1e-12)
    assert found.gap == pytest.approx(found.primal - found.dual)


@pytest.mark.parametrize("seed", range(4))
def test_each_side_of_the_boundary_has_the_slope_that_was_fitted_on_it(seed):
    """Scores that say less below the boundary than above it: the map that was fitted is likelier than the one
    with its sides exchanged.
    """
    rng = np.random.default_rng(seed)
    f = rng.normal(size=400)
    steep = np.where(f < 0, 0.3, 5.0)
    codes = (rng.random(400) < 1 / (1 + np.exp(-steep * f))).astype(int)
    found = calibrate(f[:, None], codes, np.ones(400))
    exchanged = Calibration(found.slopes[::-1])
    likely, other = (np.log(c(f)[np.arange(400), codes]).sum() for c in (found, exchanged))
    assert likely > other + 10


# ── what a box problem states of any α, and what a polish does to it ────────────────────────────────────────


def random_state(seed, *, indefinite=False):
    """A problem with any prices and bounds, a point of its box, and the Gram matrix."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    F = rng.normal(size=(n, int(rng.integers(1, n + 1))))
    K = F @ F.T
    if indefinite:
        K -= np.diag(rng.uniform(0.0, 1.5 * np.abs(K).max(), n))
    signs = rng.choice([-1.0, 1.0], n)
    C = rng.choice([0.1, 1.0, 30.0], n)
    share = rng.choice([0.0, 1.0, rng.uniform(0.1, 0.9)], n)
    problem = BoxProblem(np.arange(n), signs, rng.normal(size=n), C, int(rng.integers(3)))
    return problem, share * C, K, rng


@pytest.mark.parametrize("seed", range(40))
def test_a_certificate_is_what_loops_over_rows_say(seed):
    problem, alpha, K, rng = random_state(seed)
    m = tuple(rng.normal(size=2))
    f = K @ (problem.signs * alpha)
    stated = problem.certify(alpha, f, m)
    primal, dual, worst, row = 0.0, 0.0, -1.0, -1
    for i, (a, s, p, C) in enumerate(zip(alpha, problem.signs, problem.p, problem.C, strict=True)):
        mine = m[0] if s > 0 else m[1]
        g = s * f[i] + p + mine
        primal += 0.5 * s * a * f[i] + C * max(-g, 0.0) + mine * a
        dual -= 0.5 * s * a * f[i] + p * a
        wrong = max(g if a > 0 else 0.0, -g if a < C else 0.0)
        if wrong > worst:
            worst, row = wrong, i
    size = abs(primal) + abs(dual)
    assert stated.primal == pytest.approx(primal, abs=1e-12 * size)
    assert stated.dual == pytest.approx(dual, abs=1e-12 * size)
    assert stated.gap == pytest.approx(primal - dual, abs=1e-12 * size)
    assert stated.gap == pytest.approx(problem.gap(alpha, problem.slack(f, m)), abs=1e-12 * size)
    assert stated.kkt == pytest.approx(worst) and stated.worst_row == row


@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_polish_stays_in_the_box_and_never_raises_the_objective(seed, indefinite):
    problem, alpha, K, _ = random_state(seed, indefinite=indefinite)
    f = K @ (problem.signs * alpha)
    problem = replace(problem, start=alpha)
    new, new_f = active.descend(Precomputed(K), problem, alpha, f)
    size = float(np.abs(alpha) @ (np.abs(f) + np.abs(problem.p))) + float(np.abs(new) @ np.abs(new_f)) + 1.0
    assert np.all((new >= 0) & (new <= problem.C))
    assert problem.unkept(new) <= 1e-9 * (1.0 + float(alpha.sum()))
    np.testing.assert_allclose(new_f, K @ (problem.signs * new), atol=1e-9 * size)
    assert problem.objective(new, new_f) <= problem.objective(alpha, f) + 1e-10 * size


@pytest.mark.parametrize("seed", range(30))
def test_sums_that_an_equality_keeps_are_looked_at_one_by_one(seed):
    problem, alpha, _, rng = random_state(seed)
    problem = replace(problem, start=rng.random(len(alpha)))
    moved = [0.0, 0.0]
    for a, a0, s in zip(alpha, problem.start, problem.signs, strict=True):
        moved[int(s < 0)] += a - a0
    kept = {0: [], 1: [moved[0] - moved[1]], 2: moved}[problem.equality]
    assert problem.unkept(alpha) == pytest.approx(max(map(abs, kept), default=0.0))
    # what only the negative signs break is broken too
    down = problem.start + (problem.signs < 0)
    broken = problem.equality > 0 and bool((problem.signs < 0).any())
    assert (problem.unkept(down) > 0) == broken


@pytest.mark.parametrize("max_iter", [-1, 3, 20, 45])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_every_stretch_are_counted(monkeypatch, seed, max_iter):
    rng = np.random.default_rng(seed)
    K = Precomputed(RBF(1.5)(rng.normal(size=(40, 2))))
    problems = [
        BoxProblem(np.arange(40), rng.choice([-1.0, 1.0], 40), -np.ones(40), np.full(40, C))
        for C in (1.0, 1e4)
    ]
    taken = {id(q): [] for q in problems}

    def spy(K, some, starts, **options):
        found = working_sets(K, some, starts, **options)
        for q, each in zip(some, found, strict=True):
            taken[id(q)].append(each)
        return found

    monkeypatch.setattr(active, "working_sets", spy)
    monkeypatch.setattr(active, "AT_LEAST", 10)
    monkeypatch.setattr(active, "PATIENCE", 0)
    found = active.finished_sets(K, problems, [q.start for q in problems], tol=1e-6, max_iter=max_iter)
    for q, result in zip(problems, found, strict=True):
        stretches = taken[id(q)]
        assert result.certificate.iterations == sum(s.certificate.iterations for s in stretches)
        assert result.value.kernel_rows == sum(s.value.kernel_rows for s in stretches)
        assert result.certificate.seconds == pytest.approx(sum(s.certificate.seconds for s in stretches))
        assert max_iter < 0 or result.certificate.iterations <= max_iter
    assert max_iter == 3 or max(map(len, taken.values())) > 1
