"""A model judged from itself and the data: everything it claims again, without the solver's word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from sklearn.exceptions import NotFittedError

from mercer.errors import InputError, InputTypeError, MemoryBudgetError, MercerError, ParameterError
from mercer.notebook import as_printed
from mercer.solve.solution import Certificate, Status
from mercer.theory.claims import Examination
from mercer.typing import Table, Targets, Weights


@runtime_checkable
class Verifiable(Protocol):
    """A machine that can hold what it published against its training data."""

    def _examine(self, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None: ...


@dataclass(frozen=True)
class Quality:
    """How good a fit is, by the numbers that were recomputed; what does not apply is None.

    `status` is the worst of all problems, `gap` the sum of their duality gaps and `relative_gap` that gap as
    a share of the objective; `violation` the worst violation of an optimality condition and `residual` the
    worst relative residual.
    """

    status: Status
    gap: float | None
    relative_gap: float | None
    violation: float | None
    residual: float | None

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    def __str__(self) -> str:
        parts = []
        if self.gap is not None and self.relative_gap is not None:
            parts.append(f"gap {self.gap:.3g} ({_share(self.relative_gap)} of the objective)")
        if self.violation is not None:
            parts.append(f"worst violation {self.violation:.3g}")
        if self.residual is not None:
            parts.append(f"residual {self.residual:.3g}")
        head = "the fit converged"
        if not self.converged:
            head = f"BUT THE FIT DID NOT CONVERGE ({self.status}: {self.status.meaning})"
        return f"{head}: {', '.join(parts)}" if parts else head


@dataclass(frozen=True)
class Verification:
    """What `verify` found: `ok`, its truth value, says that every claim holds; `quality` how good the fit is.

    A model that stopped early and says so has true claims. `certificates` are recomputed, `claimed` those of
    the model; `findings` has a sentence for each claim that does not hold, `unchecked` one for each number
    that the data cannot confirm.
    """

    ok: bool
    quality: Quality
    certificates: tuple[Certificate, ...]
    claimed: tuple[Certificate, ...]
    findings: tuple[str, ...]
    unchecked: tuple[str, ...] = ()
    asked: int = 0

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        return as_printed(str(self))

    def __str__(self) -> str:
        head = "claims hold" if self.ok else "CLAIMS DO NOT HOLD"
        lines = [f"{head} ({self.asked} compared); {self.quality}"]
        lines += [f"  {_numbers(c)}" for c in self.certificates]
        lines += [f"  not true: {finding}" for finding in self.findings]
        lines += [f"  not checked: {sentence}" for sentence in self.unchecked]
        return "\n".join(lines)


def verify(model: object, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Verification:
    """Hold everything that a fitted model claims against its training data.

    Whatever `predict` uses and whatever the certificate states is computed again from the data, the
    hyperparameters and the least that a solution consists of (coefficients, labels, landmarks): kernel
    products, feasibility, objectives, gaps, residuals, norms, intercepts, weights of features. One number
    changed by one per cent is found.

    The answer keeps two questions apart. *Are the claims true?* is `ok` and the truth value. *Is the fit any
    good?* is `quality`: a model that stopped at a limit with a wide gap, and says so, has true claims and a
    poor quality.

    >>> from mercer import SVC, verify
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = SVC("Linear()").fit(X, y)
    >>> found = verify(model, X, y)
    >>> bool(found), found.quality.status
    (True, 'converged')
    >>> model.dual_coef_[0, 0] *= 1.01
    >>> bool(verify(model, X, y))
    False
    """
    if not isinstance(model, Verifiable):
        raise ParameterError(
            "verify takes a fitted machine of mercer, or a twin of mercer.sklearn; "
            f"got {type(model).__name__}."
        )
    exam = Examination()
    try:
        with np.errstate(all="ignore"):
            model._examine(exam, X, y, sample_weight)
    except (InputError, InputTypeError, ParameterError, MemoryBudgetError, NotFittedError):
        raise
    except (MercerError, ArithmeticError, LookupError, ValueError, TypeError) as error:
        exam.findings.append(
            f"what it published cannot be recomputed at all: {type(error).__name__}: {error}"
        )
    return Verification(
        not exam.findings,
        _quality(exam.certificates),
        tuple(exam.certificates),
        tuple(exam.claimed),
        tuple(exam.findings),
        tuple(exam.unchecked),
        exam.asked,
    )


def examine_inside(
    exam: Examination, model: object, X: Table, y: Targets | None, sample_weight: Weights
) -> bool:
    """Add the claims of a model that is part of another; False where it makes none that can be checked."""
    if not isinstance(model, Verifiable):
        return False
    model._examine(exam, X, y, sample_weight)
    return True


def _quality(found: list[Certificate]) -> Quality:
    if not found:
        return Quality(Status.FAILED, None, None, None, None)
    gaps = [c.gap for c in found if c.gap is not None]
    gap = sum(gaps) if gaps else None
    size = sum(max(abs(c.primal or 0.0), abs(c.dual or 0.0)) for c in found)
    relative = None
    if gap is not None and size > 0:
        relative = gap / size
    violations = [c.kkt for c in found if c.kkt is not None]
    residuals = [c.residual for c in found if c.residual is not None]
    return Quality(
        Status.worst(c.status for c in found),
        gap,
        relative,
        max(violations) if violations else None,
        max(residuals) if residuals else None,
    )


def _share(share: float) -> str:
    return f"{100 * share:.3g} %" if share >= 1e-4 else f"{share:.2g}"


def _numbers(c: Certificate) -> str:
    known = [f"{name} {getattr(c, name):.9g}" for name in ("primal", "dual") if getattr(c, name) is not None]
    if c.gap is not None:
        known.append(f"gap {c.gap:.3g}")
    where = "" if c.worst_row is None else f" at row {c.worst_row}"
    if c.kkt is not None:
        known.append(f"worst violation {c.kkt:.3g}{where}")
    elif c.residual is not None:
        known.append(f"residual {c.residual:.3g}{where}")
    return f"{c.status}: " + ", ".join(known)
