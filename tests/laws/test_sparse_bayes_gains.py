"""What one step of sparse Bayesian learning is said to gain is what the evidence gains by its definition,
for every column of random models.

L(α, σ²) = log N(t | 0, σ²I + Σ_m φ_m φ_mᵀ / α_m)        by `slogdet` and `solve` of the n×n matrix
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mercer import RBF
from mercer.gram import Precomputed
from mercer.machines.relevance.sparse_bayes import Basis, Proposal, _Regression, propose

LOG_2PI = np.log(2 * np.pi)


def definition(phi, alpha, noise, t):
    """The evidence, with nothing of the library."""
    n = len(t)
    C = noise * np.eye(n) + (phi / alpha) @ phi.T
    sign, logdet = np.linalg.slogdet(C)
    assert sign == 1
    return -0.5 * (n * LOG_2PI + logdet + t @ np.linalg.solve(C, t))


def random_model(seed):
    """A model with columns and precisions that nobody chose: some too high, some too low,
    some not worth having.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 25))
    X = rng.uniform(-3, 3, size=(n, 1))
    t = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    basis = Basis(Precomputed(RBF(rng.uniform(0.3, 1.0))(X)), intercept=bool(seed % 2))
    run = _Regression(basis, t, float(n), float(10 ** rng.uniform(-3, 0)))
    active = rng.permutation(basis.size)[: int(rng.integers(0, min(8, basis.size)))]
    run.active = active.astype(np.intp)
    run.alpha = 10 ** rng.uniform(-2, 3, size=len(active))
    run.phi = np.column_stack([np.zeros((n, 0)), *(basis.column(int(m)) for m in active)])
    run.G = np.column_stack([np.zeros((basis.size, 0)), *(basis.project(c) for c in run.phi.T)])
    run.refresh()
    return run


def step_for(run, m) -> Proposal | None:
    """What is proposed for column m alone."""
    others = [j for j in range(run.basis.size) if j != m]
    here = run.S, run.Q, run.active, run.alpha, run.mu, run.sigma.diagonal()
    return propose(*here, tol=0.0, worth=0.0, closed=others)


def with_column(run, m, alpha):
    """The columns and precisions of the model in which column m has this α; infinite leaves it out."""
    keep = run.active != m
    phi, precisions = run.phi[:, keep], run.alpha[keep]
    if np.isfinite(alpha):
        phi, precisions = np.column_stack([phi, run.basis.column(m)]), np.append(precisions, alpha)
    return phi, precisions


def evidence_at(run, m, alpha):
    return definition(*with_column(run, m, alpha), run.noise, run.t)


SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gain_that_is_said_is_the_gain_of_the_definition(seed):
    run = random_model(seed)
    before = definition(run.phi, run.alpha, run.noise, run.t)
    assert run.evidence == pytest.approx(before, abs=1e-7)
    for m in range(run.basis.size):
        step = step_for(run, m)
        if step is None:
            continue
        assert step.index == m and step.gain >= 0
        assert step.gain == pytest.approx(evidence_at(run, m, step.alpha) - before, abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_precision_that_is_proposed_is_the_best_and_no_proposal_means_none_is_better(seed):
    run = random_model(seed)
    for m in range(run.basis.size):
        step = step_for(run, m)
        there = np.inf if step is None else step.alpha
        best = evidence_at(run, m, there)
        trials = np.geomspace(1e-4, 1e8, 25)
        if np.isfinite(there):
            trials = np.append(trials, there * np.array([0.8, 1.25]))
            assert best >= evidence_at(run, m, np.inf) - 1e-7
        assert max(evidence_at(run, m, a) for a in trials) <= best + 1e-7


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_taken_leads_where_the_definition_does(seed):
    run = random_model(seed)
    best = None
    for m in np.random.default_rng(seed).permutation(run.basis.size):
        best = step_for(run, int(m)) or best
    if best is None:
        pytest.skip("no column of this model would move")
    run.take(best)
    said = run.evidence
    taken = {name: np.array(getattr(run, name)) for name in ("mu", "sigma", "S", "Q")}
    run.refresh()
    assert said == pytest.approx(definition(run.phi, run.alpha, run.noise, run.t), abs=1e-6)
    for name, value in taken.items():
        exact = getattr(run, name)
        np.testing.assert_allclose(
            value, exact, atol=1e-6 * (1 + np.abs(exact).max(initial=0.0)), err_msg=name
        )


def test_all_kinds_of_steps_are_met():
    """The laws above would be empty of a kind of step that no random model proposes."""
    met = Counter()
    for seed in SEEDS:
        run = random_model(seed)
        steps = (step_for(run, m) for m in range(run.basis.size))
        met.update(step.move for step in steps if step is not None)
    assert min(met["add"], met["delete"], met["re-estimate"]) >= 10
