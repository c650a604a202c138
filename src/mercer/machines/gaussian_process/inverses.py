"""(K + noise)⁻¹ for a posterior: exactly by a Cholesky factor, or by conjugate gradients if n is too large.

Both answer `solve(B) = A⁻¹B`, and `explained(B)`: triples (P, Q, s) with Bᵀ A⁻¹ B ≈ Σ s PᵀQ. The exact one
has V = L⁻¹B, so that what is explained is a sum of squares. The iterative one has X ≈ A⁻¹B and BᵀX + XᵀB -
XᵀAX, which is never more than BᵀA⁻¹B: an error of the solver can only widen a band.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.errors import PrecisionWarning, warn
from mercer.gram import GramOperator, tiles
from mercer.kernels.base import Kernel
from mercer.kernels.terms import split_noise
from mercer.machines.gaussian_process.evidence import LOG_2PI, Evidence, factor_gram, gradient_of
from mercer.solve.cg import cg
from mercer.solve.direct import Cholesky
from mercer.solve.estimate import Estimate, logdet
from mercer.solve.precondition import LowRank, nystrom
from mercer.solve.solution import Certificate
from mercer.solve.system import PRECONDITIONER_ARRAYS
from mercer.threads import blas_for
from mercer.typing import Array, Seed

EPS = float(np.finfo(float).eps)
CONTRACTED = 6  # products that the contractions of a gradient cost
RANK = 8  # times √n: the highest rank of the preconditioner, if it fits in memory
LEAST_RANK = 100
PROBE_TOL = 1e-3  # of the probes: what is left is far below the error of so few of them

Explained = list[tuple[Array, Array, float]]


class Inverse(Protocol):
    """What prediction asks of A⁻¹."""

    def solve(self, B: Array) -> Array: ...

    def explained(self, B: Array) -> Explained: ...


@dataclass(frozen=True, eq=False)
class Later:
    """The factor of K + noise, made when something of it is first asked for."""

    K: GramOperator
    noise: Array | float

    @cached_property
    def found(self) -> Cholesky:
        # with the threads that the fit had, for the same bits
        with blas_for(self.K.shape[0]):
            return factor_gram(self.K, self.noise)

    @property
    def lower(self) -> Array:
        return self.found.lower

    def solve(self, B: Array) -> Array:
        return self.found.solve(B)

    def inverse_diag(self) -> Array:
        return self.found.inverse_diag()


@dataclass(frozen=True, eq=False)
class Exact:
    """A⁻¹ by the factor A = L Lᵀ."""

    factor: Cholesky | Later

    def solve(self, B: Array) -> Array:
        return self.factor.solve(B)

    def explained(self, B: Array) -> Explained:
        V = lapack.solve_triangular(self.factor.lower, B)
        return [(V, V, 1.0)]

    def inverse_diag(self) -> Array:
        return self.factor.inverse_diag()


@dataclass(frozen=True, eq=False)
class InFeatures:
    """A⁻¹ for A = ΦΦᵀ + D with a diagonal D > 0, in the posterior of the weights of the features.

        M = I + ΦᵀD⁻¹Φ = R Rᵀ,     A⁻¹ = D⁻¹ - D⁻¹ΦM⁻¹ΦᵀD⁻¹,     var f(x) = ‖R⁻¹φ(x)‖²

    The variance is a sum of squares: nothing cancels.

    >>> inverse = InFeatures.of(np.array([[1.0], [1.0]]), np.ones(2))
    >>> inverse.solve(np.array([[3.0], [0.0]]))[:, 0], inverse.spread(np.array([[1.0]]))[0]
    (array([ 2., -1.]), array([0.57735027]))
    """

    phi: Array
    noise: Array
    lower: Array

    @classmethod
    def of(cls, phi: Array, noise: Array) -> InFeatures:
        scaled = phi / np.sqrt(noise)[:, None]
        M = lapack.matmul(scaled.T, scaled)
        M[np.diag_indices_from(M)] += 1.0
        return cls(phi, noise, lapack.cholesky(M, overwrite_a=True))

    def weights(self, B: Array) -> Array:
        """M⁻¹ΦᵀD⁻¹B = ΦᵀA⁻¹B: the posterior mean of the weights."""
        return lapack.cho_solve(self.lower, self.phi.T @ (B / self.noise[:, None]))

    def solve(self, B: Array) -> Array:
        return (B - self.phi @ self.weights(B)) / self.noise[:, None]

    def explained(self, B: Array) -> Explained:
        return [(B, self.solve(B), 1.0)]

    def spread(self, phi: Array) -> Array:
        """R⁻¹φ(x) for every x, one column each: its squares sum to var f(x)."""
        return lapack.solve_triangular(self.lower, phi.T)

    def inverse_diag(self) -> Array:
        inside = np.einsum("rn,rn->n", V := self.spread(self.phi), V)
        return np.asarray((1.0 - inside / self.noise) / self.noise)

    def logdet(self) -> float:
        return 2.0 * float(np.log(self.lower.diagonal()).sum()) + float(np.log(self.noise).sum())


@dataclass(frozen=True, eq=False)
class Iterative:
    """A⁻¹ by preconditioned conjugate gradients on `op` + `shift`, never storing either."""

    op: GramOperator
    shift: float
    preconditioner: LowRank
    tol: float

    def solve(self, B: Array) -> Array:
        return self.run(B)[0]

    def run(
        self, B: Array, tol: float | None = None, start: Array | None = None
    ) -> tuple[Array, Certificate]:
        """A⁻¹B to a residual of `tol`, by default that of the model, from what is known of it already."""
        done = cg(
            self.op,
            B,
            self.shift,
            preconditioner=self.preconditioner,
            tol=self.tol if tol is None else tol,
            x0=start,
            keep=False,
            certified=True,
            after=1,
        )
        return done.value, done.certificate

    def explained(self, B: Array) -> Explained:
        X = self.solve(B)
        return [(B, X, 1.0), (X, B, 1.0), (X, self.op @ X + self.shift * X, -1.0)]


def iterative(
    kernel: Kernel,
    rows: Rows,
    noise: Array | float,
    *,
    tol: float,
    n_jobs: int | None,
    random_state: Seed,
    memory: int = 2 << 30,
) -> Iterative:
    """The iterative inverse of K + noise.

    The least noise of a row is the shift, the rest of it stays in the operator. The preconditioner has a
    higher rank than a single system would be worth: there are many right-hand sides, and what it leaves out
    is what the probes have to estimate.
    """
    latent, white = split_noise(kernel)
    op: GramOperator
    shift = white + float(np.min(noise))
    extra = np.asarray(noise, dtype=np.float64) - float(np.min(noise))
    if latent is None:
        latent, shift = kernel, float(np.min(noise))
    op = tiles(latent, rows, n_jobs=n_jobs, memory=memory)
    if np.any(extra):
        op = op.shifted(extra)
    n = op.shape[0]
    most = min(RANK * int(np.sqrt(n)), memory // (8 * n * PRECONDITIONER_ARRAYS))
    inverse = nystrom(
        op,
        shift / 10,
        max_rank=max(most, LEAST_RANK),
        gain=0.9,
        sketch="columns",
        random_state=random_state,
    )
    return Iterative(op, shift, replace(inverse, shift=shift), tol)


@dataclass(frozen=True)
class EstimatedEvidence:
    """An estimate of the evidence, of its gradient, and of the errors of both.

    `unsolved` bounds what yᵀα, summed over the targets, lacks of yᵀA⁻¹y because α has a residual.
    """

    evidence: Evidence
    logdet: Estimate
    gradient_error: Array | None
    certificate: Certificate
    seconds: float
    unsolved: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the 95 % interval of the evidence.

        That of the log-determinant (Student's t on the probes, and both ends of the Lanczos quadrature),
        halved and once for each target; and what the residual of α may change, which is certain.
        """
        low, high = self.logdet.interval
        return float(0.25 * (high - low) * self.evidence.alpha.shape[1]) + 0.5 * self.unsolved


def estimate_evidence(
    inverse: Iterative,
    K: GramOperator,
    Y: Array,
    *,
    probes: int = 16,
    gradient: bool = True,
    random_state: Seed = 0,
    start: Array | None = None,
) -> EstimatedEvidence:
    """The log evidence without a factor: α by conjugate gradients, log det A by Lanczos quadrature, and

        tr(A⁻¹ ∂K) = E[(A⁻¹z)ᵀ ∂K (P⁻¹z)],     z ~ N(0, P)

    with the preconditioner P, so that the better P is, the less the probes z scatter. The same random
    numbers are used at every θ, so the estimate is a smooth function of θ up to changes of rank. `start` is
    an α of a θ nearby. Where the seconds run out there is no gradient.
    """
    began = time.perf_counter()
    n, targets = Y.shape
    P = inverse.preconditioner
    normal = (
        np.random.default_rng(random_state).standard_normal((n, probes)) if gradient else np.empty((n, 0))
    )
    Z, dual = P.power(normal, 0.5), P.power(normal, -0.5)
    alpha, done = inverse.run(Y, start=start)
    solved = np.empty((n, 0))
    if gradient:
        solved, _ = inverse.run(Z, PROBE_TOL)
    volume = logdet(inverse.op, inverse.shift, preconditioner=P, probes=probes, random_state=random_state)
    value = -0.5 * (float(np.vdot(Y, alpha)) + targets * (volume.value + n * LOG_2PI))
    found: Array | None = None
    error: Array | None = None
    product = (done.seconds or 0.0) / (1 + (done.iterations or 0))
    if gradient and not clock.short_of(CONTRACTED * product):
        fit = gradient_of(K, alpha)
        # the scatter between groups is the error of their mean
        groups = np.array_split(np.arange(probes), 4)
        parts = [gradient_of(K, solved[:, g] / len(g), dual[:, g]) for g in clock.in_time(groups)]
        if len(parts) == len(groups):
            sizes = np.array([len(g) for g in groups])
            found = 0.5 * (fit - targets * (sizes @ np.array(parts)) / probes)
            error = 0.5 * targets * np.std(parts, axis=0, ddof=1) / np.sqrt(len(groups))
    seconds = time.perf_counter() - began
    left = _unsolved(Y, alpha, done, inverse.shift)
    return EstimatedEvidence(Evidence(value, found, alpha), volume, error, done, seconds, left)


def _unsolved(Y: Array, alpha: Array, done: Certificate, shift: float) -> float:
    """How far Σ yᵀα may be from Σ yᵀA⁻¹y: |αᵀr + rᵀA⁻¹r| with A >= shift and the residuals r = y - Aα."""
    if done.residuals is None:
        return np.inf
    size = np.asarray(done.residuals) * np.linalg.norm(Y, axis=0)
    change = np.linalg.norm(alpha, axis=0) * size
    if size.any():
        change = change + size**2 / shift
    return float(change.sum())


def nonnegative(variance: Array, prior: Array, n: int) -> Array:
    """Variances, with what rounding made negative set to 0.

    More than rounding is no variance, and is said.
    """
    beyond = variance < -10 * (n + 10) * EPS * np.abs(prior)
    if beyond.any():
        warn(
            f"the variance of {int(beyond.sum())} of {len(variance)} rows came out negative beyond "
            f"rounding, the lowest as {variance.min():.3g}, and was set to 0: the kernel is not positive "
            "semi-definite on these rows, or the noise is too small for float64. Look at k.validity().",
            PrecisionWarning,
        )
    return np.maximum(variance, 0.0)
