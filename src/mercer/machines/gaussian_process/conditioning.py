"""Conditioning a Gaussian process on data: (K + N) α = Y at given hyperparameters, and its likelihood.

K + N is factored, or only multiplied with (conjugate gradients), or it is that of features. Where it cannot
be factored a diagonal is missing: that is refused, or it is added and stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mercer import clock
from mercer.errors import NotPositiveDefiniteError, ParameterError
from mercer.gram import GramOperator, Tiles
from mercer.gram.on_rows import Approximated, Evaluated, check_gram
from mercer.kernels.base import Kernel
from mercer.kernels.terms import has_noise, is_noise, terms_of
from mercer.machines.gaussian_process.evidence import LOG_2PI, Evidence, factor_gram, log_evidence, log_loo
from mercer.machines.gaussian_process.features import in_features
from mercer.machines.gaussian_process.inverses import (
    EstimatedEvidence,
    Exact,
    InFeatures,
    Inverse,
    Iterative,
    Later,
    estimate_evidence,
    iterative,
)
from mercer.machines.gaussian_process.posterior import Observed
from mercer.machines.gaussian_process.tune import Objective, Tuned
from mercer.memory import memory_limit
from mercer.solve.operator import relative
from mercer.solve.plan import choose_evidence, entry_cost
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor

# rows that are conditioned on quickly enough after Ctrl-C
SOON = 2000
# of α, where one solve leaves more than `tol`
REFINEMENTS = 3
# of the largest variance: the least that leaves some digits of α when a diagonal has to be added
ADDED = 1e-10
OBJECTIVES = {"evidence": log_evidence, "loo": log_loo}
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Conditioned:
    """(K + N)⁻¹, α and the log evidence; `estimated` where that is an estimate."""

    inverse: Inverse
    alpha: Array
    value: float
    estimated: EstimatedEvidence | None = None


@dataclass(frozen=True, eq=False)
class System(Observed):
    """(K + N) α = Y, and how it is solved; `added` is the part of N that only makes it solvable.

    If `exact`, K + N is factored. `probes` and `seed` are those of estimates, and `memory` bounds their
    preconditioner.
    """

    exact: bool
    tol: float
    objective: str
    probes: int
    seed: int
    memory: int
    added: float = 0.0

    def at(self, kernel: Kernel) -> System:
        """The same rows, targets and noise with another kernel."""
        if not isinstance(self.on, Evaluated):
            return self
        return replace(self, on=replace(self.on, kernel=kernel))

    def with_more_noise(self, more: float) -> System:
        return replace(self, noise=self.noise + more, added=self.added + more)

    # ── the likelihood ──────────────────────────────────────────────────────────────────────────────────────

    def likelihood(self, kernel: Kernel, some: Integers | None, n_jobs: int | None) -> Objective:
        """What is maximised, as a function of the θ of a kernel: on all rows, or on some of them."""
        if self.exact or some is not None:
            return self._exact_likelihood(kernel, some, n_jobs)

        last: list[Array] = []

        def estimated(theta: Array) -> tuple[Any, ...]:
            start = last[-1] if last else None
            kept = self.at(kernel.with_theta(theta)).estimate(gradient=True, start=start)
            found = kept[1].evidence
            last[:] = [found.alpha]
            if found.gradient is None:
                raise clock.OutOfTime((found.value, kept))
            return found.value, found.gradient, kept

        return estimated

    def height(self) -> float:
        """What is maximised, at the kernel as it is, without its gradient."""
        if not self.exact:
            return self.estimate(gradient=False)[1].evidence.value
        likelihood = OBJECTIVES[self.objective]
        return likelihood(self.gram(), self.Y, self.noise, gradient=False, diagnose=False).value

    def _exact_likelihood(self, kernel: Kernel, some: Integers | None, n_jobs: int | None) -> Objective:
        rows = self.rows
        targets = self.Y
        noise = self.noise
        if some is not None:
            rows = rows.rows(some)
            targets = targets[some]
            if isinstance(noise, np.ndarray) and noise.ndim:
                noise = noise[some]

        def exact(theta: Array) -> tuple[Any, ...]:
            K = Tiles(kernel.with_theta(theta), rows, n_jobs=n_jobs)
            found = OBJECTIVES[self.objective](K, targets, noise, diagnose=False)
            whole = some is None and self.objective == "evidence"
            kept = replace(found, gradient=None) if whole else None
            if found.gradient is None:
                raise clock.OutOfTime((found.value, kept))
            return found.value, found.gradient, kept

        return exact

    def estimate(self, *, gradient: bool, start: Array | None = None) -> tuple[Iterative, EstimatedEvidence]:
        """The evidence without a factor, and the inverse by which it was found."""
        assert isinstance(self.on, Evaluated)
        inverse = iterative(
            self.on.kernel,
            self.rows,
            self.noise,
            tol=self.tol,
            n_jobs=self.n_jobs,
            random_state=self.seed,
            memory=self.memory,
        )
        found = estimate_evidence(
            inverse,
            self.gram(),
            self.Y,
            probes=self.probes,
            gradient=gradient,
            random_state=self.seed,
            start=start,
        )
        return inverse, found

    # ── α ───────────────────────────────────────────────────────────────────────────────────────────────────

    def condition(self, tuned: Tuned | None, *, gradient: bool) -> Conditioned:
        """α and (K + N)⁻¹; what the search kept of them if there is no time for more.

        An estimate has a `gradient` if that is asked for.
        """
        interrupted = tuned is not None and tuned.status == Status.INTERRUPTED
        if interrupted and tuned is not None and tuned.kept is None and len(self.Y) > SOON:
            raise KeyboardInterrupt
        if tuned is not None and tuned.kept is not None and (interrupted or clock.short_of(tuned.seconds)):
            return self._from_search(tuned.kept)
        if isinstance(self.on, Approximated):
            weights = in_features(self.on, self.noise)
            return self._solved(weights, weights.solve(self.Y), weights.logdet())
        if self.exact:
            factor = factor_gram(self.gram(), self.noise)
            inverse = Exact(factor)
            return self._solved(inverse, self._refined(inverse, factor.solve(self.Y)), factor.logdet())
        start = None
        if tuned is not None and tuned.kept is not None:
            # The α of the best θ, if that is the one asked for: there is little left to do.
            start = tuned.kept[1].evidence.alpha
        iterated, estimated = self.estimate(gradient=gradient, start=start)
        return Conditioned(iterated, estimated.evidence.alpha, estimated.evidence.value, estimated)

    def _solved(self, inverse: Exact | InFeatures, alpha: Array, logdet: float) -> Conditioned:
        n, targets = self.Y.shape
        value = -0.5 * (float(np.vdot(self.Y, alpha)) + targets * (logdet + n * LOG_2PI))
        return Conditioned(inverse, alpha, value)

    def _from_search(self, kept: Any) -> Conditioned:
        """α and the evidence of the best θ, as the search had them.

        A factor is made when it is first asked for.
        """
        if isinstance(kept, Evidence):
            return Conditioned(Exact(Later(self.gram(), self.noise)), kept.alpha, kept.value)
        inverse, estimated = kept
        return Conditioned(inverse, estimated.evidence.alpha, estimated.evidence.value, estimated)

    def _refined(self, inverse: Inverse, alpha: Array) -> Array:
        """α with what its residual says added, as long as that halves the residual: rounding of one solve."""
        R = self.residual(alpha)
        worst = float(relative(R, self.Y).max(initial=0.0))
        for _ in range(REFINEMENTS):
            if worst <= self.tol:
                break
            better = alpha + inverse.solve(R)
            R = self.residual(better)
            now = float(relative(R, self.Y).max(initial=0.0))
            if not now < 0.5 * worst:
                break
            alpha = better
            worst = now
        return alpha


# ── a diagonal that is missing ──────────────────────────────────────────────────────────────────────────────


def is_factored(
    model: GaussianProcessRegressor, A: Matrix, kernel: Kernel | None, targets: int, notes: list[str]
) -> bool:
    """Whether K + N of the rows A is factored, or only multiplied with; a note says why it is not."""
    if model.solver == "cholesky" or kernel is None:
        return True
    if model.solver == "auto":
        columns = 0 if A.dtype.kind == "O" or A.ndim < 2 else A.shape[1]
        chosen = choose_evidence(
            A.shape[0],
            entry=entry_cost(columns),
            columns=targets + model.probes,
            memory=memory_limit(model.memory),
        )
        if chosen.method == "cholesky":
            return True
        notes.append(chosen.note)
    if model.objective == "loo":
        raise ParameterError(
            "objective='loo' needs the inverse itself; use solver='cholesky', or the evidence."
        )
    return False


def gram_to_judge(system: System) -> GramOperator:
    """K as it is judged: if it will be factored and nothing proves it, its symmetry is looked at first."""
    K = system.gram()
    kernel = system.on.kernel
    if system.exact and kernel is not None and kernel.known_proof() is None:
        check_gram(K.dense(), str(kernel))
    return K


def with_enough_noise(
    system: System, act: Callable[[System], T], asked: Kernel | None, *, refuse: bool
) -> tuple[T, System]:
    """What `act` gives, and the system with all that had to be added to its diagonal before it did.

    `asked` is the kernel that an error speaks of.
    """
    while True:
        try:
            return act(system), system
        except NotPositiveDefiniteError as error:
            more = _missing_noise(system, error, asked, refuse)
            system = system.with_more_noise(max(more, system.added))


def _missing_noise(
    system: System, error: NotPositiveDefiniteError, asked: Kernel | None, refuse: bool
) -> float:
    """What to add that is enough, of a Gram matrix that cannot be factored.

    If that is to be refused, the error has the whole diagnosis.
    """
    if error.sufficient_diagonal is None and system.exact:
        try:
            factor_gram(system.gram(), system.noise)
        except NotPositiveDefiniteError as whole:
            error = whole
    if refuse or error.sufficient_diagonal is None:
        raise NotPositiveDefiniteError(
            f"{error} {_why_singular(asked, system.noise)}",
            error.pivot,
            error.duplicates,
            error.smallest_eigenvalue,
            error.sufficient_diagonal,
        ) from error
    prior = float(np.max(system.gram().diag()))
    return max(2.0 * error.sufficient_diagonal, ADDED * prior)


def _why_singular(kernel: Kernel | None, noise: Array | float) -> str:
    """What in the model leaves the Gram matrix singular, and what to do."""
    if kernel is None:
        return "Pass noise=variance, or singular='add' to have it added and stated."
    terms = [str(t) for t in terms_of(kernel) if is_noise(t)]
    if np.any(noise) or has_noise(kernel):
        if np.any(noise):
            terms.append(f"noise={float(np.min(noise)):.3g}")
        return (
            f"The noise of the model ({' and '.join(terms)}) is too small for float64 beside the other "
            "terms. Raise it, or pass singular='add'."
        )
    return (
        f"No term of {kernel} is noise and noise is None, so equal rows must have equal targets and smooth "
        "kernels have no digits left: add + White(0.01), pass noise=variance, or singular='add' to have it "
        "added and stated."
    )
