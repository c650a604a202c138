"""What a fit of a Gaussian process says of itself: residual, status, errors of estimates, what was added."""

from __future__ import annotations

import time

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import PrecisionWarning, warn
from mercer.gram.on_rows import Approximated
from mercer.kernels.terms import split_noise
from mercer.machines.gaussian_process.features import left_share
from mercer.machines.gaussian_process.inverses import EstimatedEvidence
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.machines.gaussian_process.tune import Tuned
from mercer.machines.ridge.machine import WORTH_A_WORD
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array

LITTLE = 0.01  # of the variation of y: a function that explains less has learned nothing worth the name


def certify(
    posterior: Posterior,
    tuned: Tuned | None,
    estimated: EstimatedEvidence | None,
    *,
    added: float,
    tol: float,
    objective: str,
    notes: list[str],
    start: float,
) -> Certificate:
    """The certificate of a fit; what the reader must not miss is warned of as well."""
    if tuned is not None and tuned.status == Status.INTERRUPTED:
        return _interrupted(tuned, estimated, added, notes, start)
    Y = posterior.Y
    R = posterior.residual(posterior.alpha)
    each = relative(R, Y)
    worst = float(each.max(initial=0.0))
    method = "Cholesky" if estimated is None else estimated.certificate.method
    if isinstance(posterior.on, Approximated):
        method += f" in {posterior.on.approximation.dimension} features"
        share = left_share(posterior.on)
        notes.append(
            f"At the rows of fit the features leave out {share:.3g} of the prior variance; bands are wider "
            "by that part at each x."
        )
    status: Status = Status.CONVERGED if estimated is None else estimated.certificate.status
    if tuned is not None:
        maximised = "log evidence" if objective == "evidence" else "leave-one-out likelihood"
        method += f", L-BFGS-B on the {maximised}"
        status = tuned.status if status == Status.CONVERGED else status
        if status == Status.STAGNATED and estimated is not None and _within_noise(estimated):
            status = Status.CONVERGED
            notes.append("The search ended where the gradient is within two standard errors of its estimate.")
        elif status == Status.STAGNATED and estimated is not None and estimated.evidence.gradient is None:
            # whether what is left of the gradient is its error was not looked at
            status = Status.LIMIT
        notes += _say_outcome(posterior, tuned, Y, Y - R)
    if status == Status.CONVERGED and worst > 10 * tol:
        status = Status.STAGNATED
        notes.append(_say_rounding(worst, tol))
    if estimated is not None:
        notes.append(_say_error(estimated))
        notes += estimated.certificate.notes
    if added:
        # (K + N)⁻¹ before and after differ by -added·(K + N)⁻¹(K + N + added)⁻¹, and ‖K(K + N)⁻¹‖ ≤ 1
        moved = float((added * np.linalg.norm(posterior.alpha, axis=0) * posterior.units.scale).max())
        told = (
            f"{added:.3g} was added to the diagonal, because the Gram matrix could not be factored without: "
            "as if every observation had that much more noise. It moves the mean at the training rows by "
            f"at most {moved:.3g}."
        )
        notes.append(told)
        warn(told, PrecisionWarning)
    done = Certificate(
        status,
        method,
        iterations=0 if tuned is None else tuned.iterations,
        seconds=time.perf_counter() - start,
        residual=worst,
        residuals=tuple(each.tolist()),
        worst_row=int(np.argmax(np.abs(R).max(axis=1))),
        added_diagonal=added,
        notes=tuple(notes),
    )
    if status == Status.STAGNATED and worst > 10 * tol:
        if worst > WORTH_A_WORD:
            warn(_say_rounding(worst, tol), PrecisionWarning)
    elif not status.as_asked:
        warn(
            f"the fit stopped early ({done}). Raise max_iter or max_seconds, or start nearer.",
            ConvergenceWarning,
        )
    return done


def _interrupted(
    tuned: Tuned,
    estimated: EstimatedEvidence | None,
    added: float,
    notes: list[str],
    start: float,
) -> Certificate:
    """After Ctrl-C nothing more is computed: the residual is not measured."""
    method = "Cholesky" if estimated is None else estimated.certificate.method
    return Certificate(
        Status.INTERRUPTED,
        f"{method}, L-BFGS-B cut short",
        iterations=tuned.iterations,
        seconds=time.perf_counter() - start,
        added_diagonal=added,
        notes=(*notes, "The residual was not measured: Ctrl-C was pressed."),
    )


def _say_outcome(posterior: Posterior, tuned: Tuned, Y: Array, reached: Array) -> list[str]:
    """Warn of hyperparameters at the ends of the search, and of an optimum that calls all of y noise."""
    if tuned.ends:
        warn(tuned.ends, ConvergenceWarning)
    latent, white = split_noise(posterior.kernel)
    fitted = reached - (white + np.reshape(posterior.noise, (-1, 1))) * posterior.alpha
    about = Y - Y.mean(axis=0)
    total = float(np.sum(about**2))
    if latent is None or total == 0:
        return []
    explained = 1.0 - float(np.sum((Y - fitted) ** 2)) / total
    if explained >= LITTLE:
        return []
    told = (
        f"The function found explains {100 * max(explained, 0.0):.2g} % of the variation of y at the rows "
        "of fit; the rest it calls noise. Either y does not depend on X by this kernel, or a better optimum "
        "was missed: try n_restarts=10, or another kernel."
    )
    warn(told, PrecisionWarning)
    return [told]


def _say_rounding(worst: float, tol: float) -> str:
    return (
        f"The system is ill-conditioned: the residual is {worst:.1e} of the targets, above tol={tol:g}, and "
        "rounding allows no less. Raise the noise, or remove rows that are nearly equal."
    )


def _within_noise(found: EstimatedEvidence) -> bool:
    g, e = found.evidence.gradient, found.gradient_error
    return (
        g is not None
        and e is not None
        and bool(np.all(np.abs(g) <= 2 * e + 1e-4 * (1 + abs(found.evidence.value))))
    )


def _say_error(found: EstimatedEvidence) -> str:
    text = f"The log evidence {found.evidence.value:.6g} is an estimate, ±{found.half_width:.2g} at 95 %"
    if found.gradient_error is not None and len(found.gradient_error):
        text += f"; its gradient carries a standard error of at most {found.gradient_error.max():.2g}"
    text += f" ({found.logdet.certificate.method})."
    return f"{text} The mean is exact to the residual; bands can only be too wide."
