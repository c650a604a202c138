"""What a solver says beside its answer is true: the status of several sides, the worst row,
the kind of failure.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NotPositiveDefiniteError
from mercer.solve import cg, direct
from mercer.solve.mixture import Answer, holder_slack, learn_weights
from mercer.solve.primal import FeatureRidge
from mercer.solve.solution import Certificate, joined_certificate
from solve.laboratory import CountingOperator, rbf, relative_residual, with_spectrum


def true_worst_row(A, X, B, shift=0.0):
    """The row of the largest entry of B - (A + shift) X, each side relative to its length;
    in extended precision.
    """
    A, X, B = (np.asarray(v, dtype=np.longdouble) for v in (A, X, B))
    R = (B - A @ X - shift * X).reshape(len(A), -1)
    size = np.linalg.norm(B.reshape(len(A), -1).astype(float), axis=0)
    return int(np.argmax(np.abs(R / size).max(axis=1)))


class Disagreeing(CountingOperator):
    """Every product is wrong in one row, to and fro, so that no refinement removes
    the residual that is just there.
    """

    def __init__(self, A, row, by):
        super().__init__(A)
        self.row, self.by = row, by

    def __matmul__(self, V):
        out = super().__matmul__(V)
        self.by = -self.by
        out[self.row] += self.by
        return out


def test_one_unsettled_side_of_several_is_the_status_of_all():
    A = with_spectrum(np.geomspace(1, 1e4, 80))
    easy = np.linalg.eigh(A)[1][:, 3]
    hard = np.random.default_rng(0).normal(size=80)
    for sides in ((easy, hard), (hard, easy)):
        done = cg(A, np.column_stack(sides), tol=1e-8, max_iter=4).certificate
        assert done.status == "limit"
        assert "1 of 2 right-hand sides" in done.notes[0]
        assert sum(r <= 1e-8 for r in done.residuals) == 1
        assert done.residual == max(done.residuals)


@pytest.mark.parametrize("seed", range(12))
def test_conjugate_gradients_name_the_row_of_the_largest_residual(seed):
    rng = np.random.default_rng(seed)
    K = rbf(60, 2, seed=seed)
    B = rng.normal(size=(60, 2)) * [1.0, 1e4]
    found = cg(K, B, 1e-2, max_iter=int(rng.integers(1, 6)))
    assert found.certificate.status == "limit"
    assert found.certificate.worst_row == true_worst_row(K, found.value, B, 1e-2)


@pytest.mark.parametrize("row", [0, 7, 29])
def test_a_direct_solution_names_the_row_of_the_largest_residual(row):
    A, b = rbf(30), np.ones(30)
    done = direct(Disagreeing(A, row, 1e-3), b, 0.5).certificate
    assert done.status == "stagnated"
    assert done.worst_row == row


def unsolvable(seed):
    """A matrix with flat or negative directions, a right-hand side that needs them,
    and a start near the best there is.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    values = (
        np.r_[np.ones(n // 2), np.zeros(n - n // 2)]
        if seed % 2
        else np.r_[np.geomspace(1, 1e-4, n - 1), -0.1]
    )
    A = with_spectrum(values, seed)
    b = rng.normal(size=n)
    near = np.linalg.lstsq(A, b, rcond=1e-10)[0] * (1 + 1e-6 * rng.normal(size=n))
    return A, b, np.zeros(n) if seed % 2 else near


@pytest.mark.parametrize("seed", range(30))
def test_what_could_not_be_solved_is_left_no_worse_than_it_was(seed):
    A, b, x0 = unsolvable(seed)
    found = cg(A, b, tol=1e-14, x0=x0)
    assert found.certificate.status in ("stagnated", "failed")
    residual = relative_residual(A, found.value, b)
    assert residual <= relative_residual(A, x0, b) * (1 + 1e-9)
    assert found.certificate.residual == pytest.approx(residual, rel=1e-6)


def test_a_flat_direction_is_not_called_a_negative_one():
    done = cg(np.diag([1.0, 0.0]), np.array([0.0, 1.0])).certificate
    assert done.status == "stagnated"
    assert not any("not positive semi-definite" in note for note in done.notes)
    done = cg(np.diag([1.0, -1.0]), np.array([0.0, 1.0])).certificate
    assert done.status == "failed"
    assert "= -1" in done.notes[0]


@pytest.mark.parametrize("seed", range(20))
def test_features_that_float64_cannot_tell_apart_are_refused_without_a_penalty(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=40)
    P = np.column_stack([x, x * (1 + 1e-9 * rng.normal(size=40)), rng.normal(size=40)])
    problem = FeatureRidge(lambda: iter([(slice(0, 40), P)]), 3, np.ones(40), alpha=0.0)
    with pytest.raises(NotPositiveDefiniteError, match="linearly dependent"):
        problem.solve(rng.normal(size=(40, 1)))


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_gap_of_kernel_weights_has_the_gap_of_the_machine_in_it(p):
    y = np.array([1.0, 2.0, 1.5])

    def machine(d):
        """½ Σ y² / (d + 1), said to be known to 0.25 only."""
        value = 0.5 * float(y**2 @ (1 / (d + 1)))
        return Answer(value, 0.25, (y / (d + 1)) ** 2, lambda: np.diag(y**2 / (d + 1) ** 3))

    found = learn_weights(machine, np.full(3, 1 / 3), p=p, tol=1e-6, max_iter=30)
    d, answer = found.value
    assert found.certificate.gap == pytest.approx(0.25 + holder_slack(answer.q, d, p))
    assert found.certificate.primal - found.certificate.dual == pytest.approx(found.certificate.gap)
    assert found.certificate.status != "converged"


@pytest.mark.parametrize("seed", range(20))
def test_one_certificate_for_several_problems_says_the_worst_of_them_in_any_order(seed):
    rng = np.random.default_rng(seed)
    severity = ["converged", "stagnated", "limit", "stopped", "failed", "interrupted"]
    parts = [
        Certificate(
            severity[rng.integers(len(severity))],
            "pairs",
            iterations=int(rng.integers(100)),
            gap=float(rng.random()),
            primal=float(rng.normal()),
            kkt=float(rng.random()),
            worst_row=i,
            notes=(f"note {i % 2}",),
        )
        for i in range(4)
    ]
    worst = max(parts, key=lambda c: severity.index(c.status)).status
    for _ in range(4):
        parts = [parts[i] for i in rng.permutation(4)]
        whole = joined_certificate(parts)
        assert whole.status == worst
        assert whole.converged == all(c.status == "converged" for c in parts)
        assert whole.iterations == sum(c.iterations for c in parts)
        assert whole.gap == pytest.approx(sum(c.gap for c in parts))
        assert whole.primal == pytest.approx(sum(c.primal for c in parts))
        assert whole.kkt == max(c.kkt for c in parts)
        assert [c.worst_row for c in parts if c.kkt == whole.kkt] == [whole.worst_row]
        assert sorted(whole.notes) == ["note 0", "note 1"]
