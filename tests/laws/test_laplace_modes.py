"""Newton's way to the mode of a latent process: it never goes downhill,
and says converged only where it is.
"""

import numpy as np
import pytest

from mercer import RBF
from mercer.machines.gaussian_process.laplace import Logistic, Softmax

SEEDS = range(6)
EPS = np.finfo(float).eps


def problem(seed, kind, scale):
    """A likelihood of random labels and weights, and a Gram matrix of height `scale`."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 20))
    K = scale * RBF(float(rng.uniform(0.3, 2.0)))(rng.normal(size=(n, 2)))
    w = rng.choice([0.1, 1.0, 3.0], size=n)
    if kind == "two classes":
        return Logistic(rng.choice([-1.0, 1.0], size=n), w), K
    return Softmax(rng.integers(3, size=n), 3, w), K


def psi(likelihood, K, a):
    """-½ aᵀKa + Σ w log p(y | Ka), by loops over rows."""
    f = K @ a
    total = -0.5 * float(np.sum(a * f))
    for i, w in enumerate(likelihood.w):
        if isinstance(likelihood, Logistic):
            total -= w * np.logaddexp(0.0, -likelihood.signs[i] * f[i])
        else:
            total -= w * (np.logaddexp.reduce(f[i]) - f[i, likelihood.codes[i]])
    return total


def misleading_start(likelihood, K, rng):
    """Better than 0 as a whole, but with a row so far on the wrong side that it has no curvature left;
    None if there is none.
    """
    good = likelihood.mode(K).f
    for height in (12.0, 8.0, 5.0):
        wanted = 2.0 * good
        row = rng.integers(len(good))
        wanted[row] = -height * np.sign(good[row])
        start = np.linalg.lstsq(K, wanted, rcond=1e-10)[0]
        if psi(likelihood, K, start) > psi(likelihood, K, 0.0 * start):
            return start
    return None


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_no_step_to_the_mode_goes_downhill(scale, kind):
    for seed in SEEDS:
        likelihood, K = problem(seed, kind, scale)
        start = misleading_start(likelihood, K, np.random.default_rng(seed))
        path = [likelihood.mode(K, start, max_iter=steps).a for steps in range(8)]
        values = np.array([psi(likelihood, K, a) for a in path])
        assert np.all(np.diff(values) >= -1e-10 * (1.0 + np.abs(values[1:])))


def with_noisy_slopes(likelihood, size, seed):
    """The same, with slopes known to `size` only, as those of a likelihood that is
    itself computed by sampling.
    """
    rng = np.random.default_rng(seed)
    exact = likelihood.gradient
    likelihood.gradient = lambda f: exact(f) + size * rng.standard_normal(f.shape)
    return likelihood


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e10, 1e14])
@pytest.mark.parametrize("tol", [1e-9, 1e-12])
def test_a_mode_is_converged_only_where_its_residual_is_small(tol, scale, kind):
    for seed in SEEDS:
        likelihood, K = problem(seed, kind, scale)
        found = likelihood.mode(K, tol=tol)
        residual = np.abs(found.a - likelihood.gradient(K @ found.a)).max() / likelihood.w.max()
        known = EPS * float(K.diagonal().max()) * float(np.abs(found.a).sum())
        if found.status == "converged":
            assert residual <= 2 * max(tol, known)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
@pytest.mark.parametrize("size", [1e-8, 1e-7])
def test_slopes_known_to_few_digits_end_in_stagnation(size, kind):
    for seed in SEEDS:
        likelihood, K = problem(seed, kind, 1.0)
        found = with_noisy_slopes(likelihood, size, seed).mode(K, tol=1e-11)
        assert found.residual > 1e-11 and found.status == "stagnated"
