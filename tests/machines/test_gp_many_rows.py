"""Gaussian processes of many rows: the search begins on some, goes on with all, and says so;
the solver is chosen by what it costs.
"""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import GaussianProcessRegressor
from mercer.errors import ParameterError
from mercer.machines.gaussian_process import search, starts
from mercer.machines.gaussian_process.refine import BELIEVED, EXACT, descend, inverse_curvature
from mercer.machines.gaussian_process.starts import row_ladder
from mercer.solve.plan import choose_evidence, estimate_cost, evidence_cost

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=300)


@pytest.fixture
def few(monkeypatch):
    """What is done with thousands of rows, with some hundred."""
    for module in (starts, search):
        monkeypatch.setattr(module, "CHEAP", 80)
        monkeypatch.setattr(module, "MIDDLE", 150)


KERNELS = ["1.0*RBF() + White(0.1)", "1.0*RBF(ard=True) + White(0.1)", "1.0*RBF(1.0) + White(0.1)"]


@pytest.mark.parametrize("objective", ["evidence", "loo"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_by_way_of_fewer_rows_the_same_optimum_is_found(kernel, objective, few, monkeypatch):
    short = GaussianProcessRegressor(kernel, objective=objective).fit(X, Y)
    monkeypatch.undo()
    long = GaussianProcessRegressor(kernel, objective=objective).fit(X, Y)
    assert short.certificate_.status == long.certificate_.status == "converged"
    assert abs(short.log_evidence_ - long.log_evidence_) <= (
        2 * EXACT.gain if objective == "evidence" else 0.5
    )
    np.testing.assert_allclose(short.predict(X), long.predict(X), atol=0.01)
    assert "of the 300 rows" in str(short.certificate_) and "of the 300 rows" not in str(long.certificate_)
    assert mercer.verify(short, X, Y)


def test_few_evaluations_are_made_on_all_rows(few, monkeypatch):
    sizes = []
    log_evidence = mercer.machines.gaussian_process.evidence.log_evidence

    def counted(K, *args, **options):
        sizes.append(K.shape[0])
        return log_evidence(K, *args, **options)

    monkeypatch.setitem(mercer.machines.gaussian_process.conditioning.OBJECTIVES, "evidence", counted)
    GaussianProcessRegressor().fit(X, Y)
    assert set(sizes) == {80, 150, 300} and sizes == sorted(sizes)
    assert sizes.count(300) <= 8


def test_a_kernel_as_given_that_all_rows_prefer_is_gone_on_with(few, monkeypatch):
    """Some rows may be the wrong ones: here what they find is far from what all rows know."""
    given = "1.0*RBF(1.0) + White(0.01)"
    right = GaussianProcessRegressor(given).fit(X, Y)
    run = search._Task.run

    def wrong(self, starts, rows, **options):
        found = run(self, starts, rows, **options)
        far = found.theta + np.array([0.0, 5.0, 4.0])
        return search.replace(found, theta=far, value=-1e6, inverse=np.zeros((3, 3)))

    monkeypatch.setattr(
        search._Task,
        "upward",
        lambda self, found, ladder, *, shared: wrong(self, [search._from(found)], None),
    )
    model = GaussianProcessRegressor(given).fit(X, Y)
    assert "the kernel as given has the higher log evidence" in str(model.certificate_)
    assert model.log_evidence_ == pytest.approx(right.log_evidence_, abs=EXACT.gain)


def test_the_same_seed_gives_the_same_model(few):
    one, two = (GaussianProcessRegressor(n_restarts=2, random_state=3).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one.kernel_.theta, two.kernel_.theta)


@pytest.mark.parametrize("n", [3, 500, 501, 1999, 2000, 3999, 4000, 15_999, 16_000, 10**6])
def test_the_ladder_of_rows_rises_to_all_of_them(n):
    ladder = row_ladder(n)
    assert ladder == sorted(set(ladder)) and ladder[-1] == n and ladder[0] <= 500
    assert all(2 * count <= n for count in ladder[1:-1])


# ── descent near the minimum ────────────────────────────────────────────────────────────────────────────────


def quadratic(A, centre):
    seen = []

    def value(u):
        seen.append(u.copy())
        return float(0.5 * (u - centre) @ A @ (u - centre)), A @ (u - centre)

    return value, seen


@pytest.mark.parametrize("seed", range(5))
def test_the_curvature_by_differences_is_positive_and_right_where_the_function_is_bowl(seed):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    bends = np.array([3.0, 1.0, 0.2, 0.05])
    A = (Q * bends) @ Q.T
    slope = rng.normal(size=4)
    np.testing.assert_allclose(inverse_curvature(lambda u: slope + A @ u, 4), np.linalg.inv(A), rtol=1e-9)
    # Bent the other way, and flat: as long a step, and a bounded one.
    odd = (Q * np.array([3.0, -1.0, 0.0, 0.05])) @ Q.T
    found = np.linalg.eigvalsh(inverse_curvature(lambda u: odd @ u, 4))
    np.testing.assert_allclose(found, np.sort([1 / 3, 1.0, 20.0, 1 / (3 * BELIEVED)]), rtol=1e-6)


def test_a_column_that_faded_on_few_rows_can_return(few):
    """The second column moves y so little that 80 rows do not show it; all of them do."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(900, 2))
    y = np.sin(2 * A[:, 0]) + 0.06 * A[:, 1] + 0.25 * rng.normal(size=900)
    y = (y - y.mean()) / y.std()
    model = GaussianProcessRegressor("1.0*RBF(ard=True) + White(0.1)", normalize_y=False).fit(A, y)
    whole = GaussianProcessRegressor("1.0*RBF([1.0, 3.0]) + White(0.1)", normalize_y=False).fit(A, y)
    assert model.log_evidence_ >= whole.log_evidence_ - 0.1


def test_with_the_true_curvature_one_step_is_enough():
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    value, seen = quadratic(A, np.array([0.3, -0.4]))
    wide = np.full(2, 10.0)
    done = descend(value, np.linalg.inv(A), -wide, wide, size=1e6, max_iter=10)
    assert done.status == "converged" and done.steps == 1 and len(seen) == 2
    np.testing.assert_allclose(seen[-1], [0.3, -0.4])


@pytest.mark.parametrize("factor", [0.01, 0.3, 30.0])
def test_a_wrong_curvature_is_corrected(factor):
    A = np.diag([2.0, 0.1, 1.0])
    value, seen = quadratic(A, np.array([0.3, -0.4, 0.9]))
    wide = np.full(3, 10.0)
    done = descend(value, factor * np.eye(3), -wide, wide, size=1e6, max_iter=60)
    assert done.status == "converged" and value(seen[-2])[0] * 1e6 <= 1.0


def test_the_box_is_not_left_and_a_limit_pressed_upon_is_an_end():
    value, seen = quadratic(np.eye(2), np.array([5.0, 0.2]))
    done = descend(value, np.eye(2), np.array([-1.0, -1.0]), np.array([0.5, 1.0]), size=1e6, max_iter=20)
    assert done.status == "converged" and all(np.all(u <= [0.5, 1.0]) for u in seen)
    np.testing.assert_allclose(seen[-1], [0.5, 0.2], atol=1e-3)


def test_steps_are_limited_and_no_descent_is_said():
    value, _ = quadratic(np.eye(1), np.array([50.0]))
    assert (
        descend(value, np.eye(1), np.array([-99.0]), np.array([99.0]), size=1.0, max_iter=3).status == "limit"
    )
    uphill = descend(
        lambda u: (abs(float(u[0])), np.ones(1)), np.eye(1), -np.ones(1), np.ones(1), size=1e6, max_iter=9
    )
    assert uphill.status == "stagnated"


# ── the choice of the solver ────────────────────────────────────────────────────────────────────────────────


def test_the_factor_is_taken_where_it_fits_and_an_estimate_is_not_much_cheaper():
    gib = 1 << 30
    assert choose_evidence(16_000, entry=1.2, columns=17, memory=2 * gib).method == "cholesky"
    assert choose_evidence(16_400, entry=1.2, columns=17, memory=2 * gib).method == "cg"
    n = 100_000
    chosen = choose_evidence(n, entry=1.2, columns=17, memory=8 * n * n)
    assert chosen.method == "cg" and "times as much" in chosen.note
    assert evidence_cost(n, 1.2) > 3 * estimate_cost(n, 1.2, 17)


def test_a_factor_that_does_not_fit_gives_an_estimate_that_says_why():
    model = GaussianProcessRegressor("1.0*RBF(1.0) + White(0.1)", memory="500KiB", random_state=0, max_iter=2)
    with pytest.warns(Warning, match="stopped early"):
        model.fit(X, Y)
    said = str(model.certificate_)
    assert "does not fit in the memory allowed" in said and "is an estimate" in said
    with pytest.raises(ParameterError, match="needs the inverse itself"):
        GaussianProcessRegressor("1.0*RBF(1.0) + White(0.1)", memory="500KiB", objective="loo").fit(X, Y)


def test_what_will_take_long_is_said_before_it_begins(few, monkeypatch, capsys):
    monkeypatch.setattr("mercer.machines.gaussian_process.regression.TIMED_ROWS", 100)
    GaussianProcessRegressor(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert "each factor" in lines[0]
    assert any("300 rows: each evaluation of the log evidence will take some" in line for line in lines)
