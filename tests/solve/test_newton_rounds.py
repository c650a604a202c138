"""Newton's steps by the core against the same steps in Python, which is their referee."""

from dataclasses import replace

import numpy as np
import pytest

from mercer import RBF, SVC, SVR
from mercer.solve import active
from mercer.solve.box import BoxProblem
from mercer.solve.operator import ArrayOperator
from mercer.solve.qp import newton_rounds, working_sets


def problem_of(seed, *, n=40, equality=1, hard=False, noise=0.3):
    """A problem with a unique solution, any prices and bounds, and its K."""
    rng = np.random.default_rng(seed)
    K = RBF(1.5)(rng.normal(size=(n, 3))) + noise * np.eye(n)
    signs = rng.choice([-1.0, 1.0], n)
    C = np.full(n, np.inf) if hard else rng.choice([0.5, 1.0, 4.0], n)
    start = np.zeros(n)
    if equality == 2:
        start = np.minimum(rng.uniform(0.0, 0.4, n), C)
    return BoxProblem(np.arange(n), signs, -rng.uniform(0.5, 1.5, n), C, equality, start), K


def nearly_solved(problem, K):
    found = working_sets(K, [problem], tol=1e-2)[0].value
    return found.alpha, found.f


def rounds_of_core(K, problem, alpha, f, *, limit=400, rounds=3000):
    alpha, f = alpha.copy(), f.copy()
    free = (alpha > 0) & (alpha < problem.C)
    ended = newton_rounds(K, problem, alpha, f, free, limit=limit, rounds=rounds)
    return alpha, f, free, ended


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("equality", [0, 1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_core_ends_where_python_ends(isa, seed, equality, hard):
    problem, K = problem_of(seed, equality=equality, hard=hard)
    alpha, f = nearly_solved(problem, K)
    mine, mine_f, _, (ended, left) = rounds_of_core(K, problem, alpha, f)
    assert ended == "done" and left > 2000
    free = (alpha > 0) & (alpha < problem.C)
    theirs, theirs_f = active.newton_steps(ArrayOperator(K), problem, alpha, f, free)
    np.testing.assert_allclose(mine, theirs, atol=1e-9)
    np.testing.assert_allclose(mine_f, theirs_f, atol=1e-9)
    stated = problem.certify(mine, mine_f, problem.multipliers(mine, mine_f))
    assert stated.kkt <= 1e-9
    assert problem.unkept(mine) <= 1e-10 * max(1.0, mine.sum())
    np.testing.assert_allclose(mine_f, K @ (problem.signs * mine), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 130, 300])
def test_systems_of_every_size_are_solved(isa, n):
    problem, K = problem_of(n, n=n, equality=0, hard=True)
    alpha = np.full(n, 0.5)
    f = K @ (problem.signs * alpha)
    mine, _, _, (ended, _) = rounds_of_core(K, problem, alpha, f)
    assert ended == "done"
    Q = problem.signs[:, None] * K * problem.signs
    g = Q @ mine + problem.p
    assert np.all(mine >= 0) and g.min() > -1e-8
    assert abs(mine @ g) < 1e-8 * n


def test_a_singular_system_is_handed_over_untouched(isa):
    rows = np.array([0, 1, 2, 0])
    K = np.array([[2.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 2.0]])
    problem = BoxProblem(rows, np.ones(4), -np.ones(4), np.full(4, 10.0), 0)
    alpha = np.full(4, 0.1)
    f = (K @ problem.beta(alpha, 3))[rows]
    mine, mine_f, free, ended = rounds_of_core(K, problem, alpha, f)
    assert ended == ("hard", 3000)
    assert np.array_equal(mine, alpha) and np.array_equal(mine_f, f) and free.all()
    done, done_f = active.descend(ArrayOperator(K), problem, alpha, f)
    assert problem.certify(done, done_f, (0.0, 0.0)).kkt < 1e-9


def test_what_is_not_a_matrix_of_numbers_is_handed_over():
    problem, K = problem_of(0, equality=0)
    alpha, f = nearly_solved(problem, K)
    K[0, 0] = np.nan
    alpha[0] = 0.5 * problem.C[0]
    assert rounds_of_core(K, problem, alpha, f)[3][0] == "hard"


def test_rounds_and_free_variables_are_limited():
    problem, K = problem_of(3)
    alpha = np.minimum(problem.C, 0.25)
    problem = replace(problem, equality=0, start=alpha)
    f = K @ (problem.signs * alpha)
    assert rounds_of_core(K, problem, alpha, f, rounds=1)[3] == ("rounds", 0)
    same, same_f, _, ended = rounds_of_core(K, problem, alpha, f, limit=10)
    assert ended == ("done", 3000)
    assert np.array_equal(same, alpha) and np.array_equal(same_f, f)
    # some at a time is the same as all at once
    whole = active.descend(ArrayOperator(K), problem, alpha, f)[0]
    steps, step_f = alpha.copy(), f.copy()
    free = (alpha > 0) & (alpha < problem.C)
    while newton_rounds(K, problem, steps, step_f, free, limit=400, rounds=1)[0] == "rounds":
        pass
    assert np.array_equal(whole, steps)


def test_bad_arguments_are_named():
    problem, K = problem_of(0)
    alpha, f = nearly_solved(problem, K)
    free = np.zeros(len(f), dtype=bool)
    for change, said in (
        ({"K": K[:, :5].copy()}, "square"),
        ({"K": K.astype(np.float32)}, "float64"),
        ({"f": f[:3].copy()}, "f"),
        ({"free": free[:3].copy()}, "free"),
        ({"free": free.astype(float)}, "bool"),
        ({"alpha": alpha - 5.0}, "between 0 and C"),
    ):
        given = {"K": K, "alpha": alpha.copy(), "f": f.copy(), "free": free, **change}
        with pytest.raises(ValueError, match=said):
            newton_rounds(given["K"], problem, given["alpha"], given["f"], given["free"], limit=400, rounds=3)


@pytest.mark.parametrize("make", [lambda k, **o: SVC(k, **o), lambda k, **o: SVR(k, epsilon=0.05, **o)])
def test_a_fit_is_the_same_with_steps_of_the_core_and_of_python(monkeypatch, make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120))
    native = make(RBF(2.0)).fit(X, y)
    monkeypatch.setattr(active, "newton_rounds", lambda *args, rounds, **options: ("hard", rounds))
    plain = make(RBF(2.0)).fit(X, y)
    np.testing.assert_allclose(native.intercept_, plain.intercept_, atol=1e-9)
    assert np.array_equal(native.support_, plain.support_)
    np.testing.assert_allclose(native.dual_coef_, plain.dual_coef_, atol=1e-8)
    assert native.certificate_.gap < 1e-8 and plain.certificate_.gap < 1e-8
