"""Gaussian processes: evidence with gradient, prediction with bands, and the CO₂ fit,
beside the peers that are installed.

The certificate column holds the log evidence: the same number on all sides for the same hyperparameters, the
higher the better for a fit. Peers that compile (tinygp on jax) do so before the clock starts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.measure import HEAD, race, report
from benchmarks.peers import have
from mercer import RBF, GaussianProcessRegressor, White
from mercer.applications.co2 import co2_kernel, load_co2
from mercer.arrays import Rows
from mercer.gram import Tiles
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.machines.gaussian_process.inverses import estimate_evidence, iterative

Call = Callable[[], Any]
SCALE, NOISE = 1.5, 0.1


def run(options: argparse.Namespace) -> None:
    print("ratio = strongest peer / mercer; the certificate is the log evidence")
    print(HEAD)
    for threads in options.threads:
        for n in (60, 120) if options.quick else (500, 2000):
            X, y = data.waves(n, 8)
            _cell(f"GP evidence+gradient n={n} d=8", _evidence_sides(X, y), threads, options)
        X, y = data.waves(120 if options.quick else 2000, 8)
        _cell(f"GP predict mean+std n={len(y)} m={len(y)}", _predict_sides(X, y), threads, options, bare=True)
        _many_rows(threads, options)
        _cell("GP fit CO₂, 11 parameters", _co2_sides(1965 if options.quick else 2003), threads, options)


def _cell(
    name: str, sides: dict[str, Call], threads: int, options: argparse.Namespace, *, bare: bool = False
) -> None:
    if options.only in name:
        found = race(name, sides, threads, options.repeat)
        report(name, threads, found, None, lambda side, value: "" if bare else f"{float(value):.6f}")


def _many_rows(threads: int, options: argparse.Namespace) -> None:
    """Fits by default, without a peer: scikit-learn would take hours; and one evaluation by either solver."""
    n = 150 if options.quick else 8611
    X, y = data.waves(n, 4)
    fit = {"mercer": lambda: GaussianProcessRegressor(random_state=0).fit(X, y).log_evidence_}
    _cell(f"GP fit, default, n={n} d=4", fit, threads, options)
    n = 150 if options.quick else 16_000
    A, b = data.waves(n, 8)
    kernel = SCALE * RBF(_lengths(8)) + White(NOISE)
    K = Tiles(kernel, A)
    sides: dict[str, Call] = {
        "exact": lambda: log_evidence(K, b[:, None]).value,
        "mercer": lambda: _estimated(kernel, K, A, b),
    }
    _cell(f"GP evidence+gradient, exact or estimated, n={n} d=8", sides, threads, options)


def _estimated(kernel: Any, K: Tiles, X: np.ndarray, y: np.ndarray) -> float:
    inverse = iterative(kernel, Rows.of(X), 0.0, tol=1e-8, n_jobs=None, random_state=0)
    return estimate_evidence(inverse, K, y[:, None]).evidence.value


def _lengths(d: int) -> list[float]:
    return [2.0 + 0.1 * i for i in range(d)]


def _evidence_sides(X: np.ndarray, y: np.ndarray) -> dict[str, Call]:
    d = X.shape[1]
    kernel = SCALE * RBF(_lengths(d)) + White(NOISE)
    sides: dict[str, Call] = {}
    from sklearn.gaussian_process import GaussianProcessRegressor as Peer

    peer = Peer(_sklearn_ard(d), alpha=0.0, optimizer=None).fit(X, y)
    theta = peer.kernel_.theta
    sides["sklearn"] = lambda: peer.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)[0]
    if have("GPy"):
        sides["GPy"] = _gpy_evidence(X, y)
    if have("gpytorch"):
        sides["gpytorch"] = _gpytorch_evidence(X, y)
    if have("tinygp", "jax"):
        sides["tinygp"] = _tinygp_evidence(X, y)
    sides["mercer"] = lambda: log_evidence(Tiles(kernel, X), y[:, None]).value
    return sides


def _sklearn_ard(d: int) -> Any:
    from sklearn.gaussian_process import kernels

    return kernels.ConstantKernel(SCALE) * kernels.RBF(_lengths(d)) + kernels.WhiteKernel(NOISE)


def _gpy_evidence(X: np.ndarray, y: np.ndarray) -> Call:
    import GPy

    kernel = GPy.kern.RBF(X.shape[1], variance=SCALE, lengthscale=_lengths(X.shape[1]), ARD=True)
    model = GPy.models.GPRegression(X, y[:, None], kernel, noise_var=NOISE)

    def call() -> float:
        model.parameters_changed()  # evidence and gradient at the present parameters
        return float(model.log_likelihood())

    return call


def _gpytorch_evidence(X: np.ndarray, y: np.ndarray) -> Call:
    import gpytorch
    import torch

    A, t = torch.from_numpy(X), torch.from_numpy(y)

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(A, t, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = NOISE
    model = Exact(likelihood).double()
    model.covar_module.outputscale = SCALE
    model.covar_module.base_kernel.lengthscale = torch.tensor([_lengths(X.shape[1])])
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def call() -> float:
        model.zero_grad()
        with gpytorch.settings.fast_computations(False, False, False):
            value = objective(model(A), t) * len(y)
            value.backward()
        return float(value)

    return call


def _tinygp_evidence(X: np.ndarray, y: np.ndarray) -> Call:
    import jax
    import jax.numpy as jnp
    from tinygp import GaussianProcess, kernels, transforms

    jax.config.update("jax_enable_x64", True)
    A, t = jnp.asarray(X), jnp.asarray(y)

    def value(p: Any) -> Any:
        square = kernels.ExpSquared(distance=kernels.distance.L2Distance())
        kernel = jnp.exp(p[0]) * transforms.Linear(jnp.exp(-p[1:-1]), square)
        return GaussianProcess(kernel, A, diag=jnp.exp(p[-1])).log_probability(t)

    both = jax.jit(jax.value_and_grad(value))
    start = jnp.log(jnp.array([SCALE, *_lengths(X.shape[1]), NOISE]))
    both(start)[1].block_until_ready()

    def call() -> float:
        found, gradient = both(start)
        gradient.block_until_ready()
        return float(found)

    return call


def _predict_sides(X: np.ndarray, y: np.ndarray) -> dict[str, Call]:
    from sklearn.gaussian_process import GaussianProcessRegressor as Peer

    Z = np.random.default_rng(1).normal(size=X.shape)
    kernel = SCALE * RBF(_lengths(X.shape[1])) + White(NOISE)
    peer = Peer(_sklearn_ard(X.shape[1]), alpha=0.0, optimizer=None).fit(X, y)
    ours = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    return {
        "sklearn": lambda: peer.predict(Z, return_std=True),
        "mercer": lambda: ours.predict(Z, return_std=True, noise=True),
    }


def _co2_sides(train_to: int) -> dict[str, Call]:
    series = load_co2().until(train_to)
    X, y = series.time[:, None], series.ppm - series.ppm.mean()
    sides: dict[str, Call] = {"sklearn": lambda: _sklearn_co2_fit(X, y)}
    if have("tinygp", "jax"):
        sides["tinygp"] = _tinygp_co2_fit(X, y)
    sides["mercer"] = lambda: GaussianProcessRegressor(co2_kernel()).fit(X, y).log_evidence_
    return sides


def _sklearn_co2_fit(X: np.ndarray, y: np.ndarray) -> float:
    import warnings

    from sklearn.gaussian_process import GaussianProcessRegressor as Peer
    from sklearn.gaussian_process.kernels import RBF as Gauss
    from sklearn.gaussian_process.kernels import ConstantKernel as C
    from sklearn.gaussian_process.kernels import ExpSineSquared, RationalQuadratic, WhiteKernel

    season = C(4.0) * Gauss(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
    kernel = C(2500.0) * Gauss(50.0) + season + C(0.25) * RationalQuadratic(1.0, 1.0)
    kernel = kernel + C(0.01) * Gauss(0.1) + WhiteKernel(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Peer(kernel, alpha=0.0).fit(X, y).log_marginal_likelihood_value_


def _tinygp_co2_fit(X: np.ndarray, y: np.ndarray) -> Call:
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize
    from tinygp import GaussianProcess, kernels

    jax.config.update("jax_enable_x64", True)
    A, t = jnp.asarray(X[:, 0]), jnp.asarray(y)

    def loss(theta: Any) -> Any:
        p = jnp.exp(theta)
        square = kernels.distance.L2Distance()
        kernel = p[0] * kernels.ExpSquared(p[1], distance=square)
        year = kernels.ExpSineSquared(scale=1.0, gamma=2 / p[4] ** 2)
        kernel = kernel + p[2] * kernels.ExpSquared(p[3], distance=square) * year
        kernel = kernel + p[5] * kernels.RationalQuadratic(scale=p[6], alpha=p[7], distance=square)
        kernel = kernel + p[8] * kernels.ExpSquared(p[9], distance=square)
        return -GaussianProcess(kernel, A, diag=p[10]).log_probability(t)

    both = jax.jit(jax.value_and_grad(loss))
    start = np.log([2500.0, 50.0, 4.0, 100.0, 1.0, 0.25, 1.0, 1.0, 0.01, 0.1, 0.01])
    both(start)[1].block_until_ready()

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(theta)
        return float(value), np.asarray(gradient)

    return lambda: -minimize(objective, start, jac=True, method="L-BFGS-B").fun
