"""Estimates: near the truth, inside the interval as often as promised, and better with a preconditioner."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import NotPositiveDefiniteError, ParameterError
from mercer.solve import logdet, nystrom, pivoted_cholesky, trace
from mercer.solve.estimate import _ends
from solve.laboratory import CountingOperator, rbf, with_spectrum


def coverage(hits):
    return np.mean([low <= truth <= high for truth, (low, high) in hits])


def random_matrix(seed, n=80):
    rng = np.random.default_rng(seed)
    return with_spectrum(rng.gamma(0.5, size=n) + 1e-3, seed)


def test_trace_intervals_cover_the_truth_as_often_as_promised():
    hits = [
        (np.trace(A), trace(A, products=36, random_state=s).interval)
        for s in range(200)
        for A in [random_matrix(s)]
    ]
    assert 0.91 <= coverage(hits) <= 0.99
    half = [
        (t, trace(random_matrix(s), products=36, level=0.5, random_state=s).interval)
        for s, (t, _) in enumerate(hits)
    ]
    assert 0.40 <= coverage(half) <= 0.60


@pytest.mark.parametrize("deflated", [False, True])
def test_logdet_intervals_cover_the_truth_as_often_as_promised(deflated):
    hits = []
    for s in range(200):
        A, shift = random_matrix(s), 0.05
        P = nystrom(A, shift, rank=20, random_state=s) if deflated else None
        found = logdet(A, shift, preconditioner=P, probes=12, random_state=s)
        hits.append((np.linalg.slogdet(A + shift * np.eye(80))[1], found.interval))
    assert coverage(hits) >= 0.90


def test_hutch_plus_plus_is_nearly_exact_when_the_rank_is_low():
    F = np.random.default_rng(0).normal(size=(300, 10))
    found = trace(F @ F.T, shift=2.0, products=60)
    assert found.value == pytest.approx(np.sum(F**2) + 600.0, rel=1e-12)
    assert found.standard_error < 1e-8


def test_trace_uses_the_products_allowed_and_no_entries():
    op = CountingOperator(rbf(200))
    trace(op, products=60)
    assert op.columns == 60 and op.entries == 0


@pytest.mark.parametrize("n", [1, 5, 20])
def test_small_matrices_are_done_exactly(n):
    A = with_spectrum(np.linspace(1, 3, n))
    assert trace(A).value == pytest.approx(np.trace(A), rel=1e-12) and trace(A).standard_error == 0.0
    found = logdet(A, 0.1)
    assert found.value == pytest.approx(np.linalg.slogdet(A + 0.1 * np.eye(n))[1], rel=1e-9)
    assert found.standard_error == 0.0 and found.certificate.converged


@pytest.mark.parametrize("make", [nystrom, pivoted_cholesky], ids=lambda f: f.__name__)
def test_a_preconditioner_cuts_the_error_and_the_steps(make):
    K, shift = rbf(500, 2), 1e-2
    truth = np.linalg.slogdet(K + shift * np.eye(500))[1]
    plain = logdet(K, shift)
    helped = logdet(K, shift, preconditioner=make(K, shift, rank=100))
    assert plain.interval[0] <= truth <= plain.interval[1]
    assert helped.interval[0] <= truth <= helped.interval[1]
    assert helped.standard_error < plain.standard_error / 20
    assert helped.certificate.iterations < plain.certificate.iterations


def test_the_quadrature_bracket_holds_the_truth_for_every_number_of_steps():
    A, shift = rbf(20, 2), 1e-3  # fewer rows than probes: no random part at all
    truth = np.linalg.slogdet(A + shift * np.eye(20))[1]
    widths = []
    for steps in range(1, 12):
        found = logdet(A, shift, probes=20, steps=steps)
        slack = 1e-9 * abs(truth)
        assert found.interval[0] - slack <= truth <= found.interval[1] + slack
        widths.append(found.bracket)
    assert widths[-1] < 0.05 * widths[0]


def test_too_few_steps_are_reported():
    found = logdet(rbf(300, 2), 1e-6, steps=3)
    assert found.certificate.status == "limit" and "quadrature" in found.certificate.notes[0]


def test_without_a_shift_the_error_is_said_to_be_unbounded():
    found = logdet(with_spectrum(np.linspace(1, 2, 60)), steps=5)
    assert found.interval[0] == -np.inf and np.isfinite(found.value)
    assert "shift 0" in found.certificate.notes[0]


def test_an_indefinite_matrix_has_no_logdet():
    with pytest.raises(NotPositiveDefiniteError, match="does not exist"):
        logdet(with_spectrum(np.linspace(-1, 1, 50)), 0.1)


def test_the_seed_decides_and_float32_works():
    K = rbf(200)
    assert logdet(K, 0.1, random_state=3).value == logdet(K, 0.1, random_state=3).value
    assert logdet(K, 0.1, random_state=3).value != logdet(K, 0.1, random_state=4).value
    assert logdet(K.astype(np.float32), 0.1).value == pytest.approx(logdet(K, 0.1).value, rel=1e-4)
    assert trace(K.astype(np.float32)).value == pytest.approx(trace(K).value, rel=1e-5)


def test_a_preconditioner_for_another_shift_is_refused():
    with pytest.raises(ParameterError, match="shift"):
        logdet(np.eye(30), 0.1, preconditioner=nystrom(np.eye(30), 0.2))
    with pytest.raises(ParameterError, match="level"):
        trace(np.eye(3), level=1.0)


# ── both ends of a quadrature ───────────────────────────────────────────────────────────────────────────────


def lanczos(values, z, steps):
    """The tridiagonal matrix of `steps` steps on diag(values), orthogonalised twice."""
    alpha, beta, basis = np.zeros(steps), np.zeros(steps), [z / np.linalg.norm(z)]
    for k in range(steps):
        w = values * basis[k]
        alpha[k] = w @ basis[k]
        for q in basis + basis:
            w = w - q * (q @ w)
        beta[k] = np.linalg.norm(w)
        basis.append(w / beta[k])
    return alpha, beta


@pytest.mark.parametrize("share", [1.0, 0.5, 1e-3])
@pytest.mark.parametrize("seed", range(8))
def test_the_ends_of_a_quadrature_hold_the_truth_and_close_in_on_it(seed, share):
    rng = np.random.default_rng(seed)
    values, z = np.exp(rng.normal(size=12) * 2), rng.normal(size=12)
    truth = float(z**2 @ np.log(values)) / float(z @ z)
    ends = [_ends(*lanczos(values, z, k), share * values.min()) for k in range(1, 9)]
    low, high = np.array(ends).T
    assert np.all(low <= truth + 1e-10) and np.all(truth <= high + 1e-10)
    assert np.all(np.diff(low) >= -1e-10) and np.all(np.diff(high) <= 1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_a_bound_that_is_an_eigenvalue_saves_one_step(seed):
    # a rule with a node at the bound and k more is exact where the spectrum has no other k + 1 points
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    values, z = np.exp(rng.normal(size=k + 1)), rng.normal(size=k + 1)
    truth = float(z**2 @ np.log(values)) / float(z @ z)
    low, high = _ends(*lanczos(values, z, k), float(values.min()))
    assert low == pytest.approx(truth, abs=1e-8) and high > truth
