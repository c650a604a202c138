"""A model judged from itself and the data: the certificate again, without the solver's word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import ParameterError
from mercer.solve.solution import Certificate

ROUNDING = 1e-9  # of sums and kernel products, relative
AGREEMENT = 1e-6  # between what the model claims and what was found, relative


@dataclass(frozen=True)
class Verification:
    """What `verify` found: `ok`, the recomputed certificate of every problem, and a sentence for each trouble."""

    ok: bool
    certificates: tuple[Certificate, ...]
    claimed: tuple[Certificate, ...]
    findings: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = "verified" if self.ok else "NOT verified"
        lines = [f"{head}: {len(self.certificates)} problem{'s' if len(self.certificates) != 1 else ''}"]
        lines += [f"  {_numbers(c)}" for c in self.certificates]
        return "\n".join(lines + [f"  {finding}" for finding in self.findings])


def verify(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
    """Recompute the certificate of a fitted margin, kernel or ridge machine from its coefficients and its training data.

    The kernel products are computed anew from `kernel_` and X; feasibility, primal, dual, gap and optimality conditions
    follow from `dual_coef_` and `intercept_` alone. The model is verified if the coefficients are feasible, the support
    vectors are rows of X, and the numbers agree with those it claims; one changed coefficient breaks that.

    >>> from mercer import SVC, verify
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = SVC("Linear()").fit(X, y)
    >>> bool(verify(model, X, y))
    True
    >>> model.dual_coef_[0, 0] *= 1.01
    >>> bool(verify(model, X, y))
    False
    """
    if not hasattr(model, "_restate") and hasattr(model, "machine_"):
        raise ParameterError("verify the machine inside: verify(model.machine_, X, codes of y).")
    if not hasattr(model, "_check_again"):
        raise ParameterError(
            "verify knows SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD, KernelMachine, KernelRidge and KernelRidgeCV; "
            f"got {type(model).__name__}."
        )
    A, targets, w = model._check_again(X, y, sample_weight)
    findings = _strange_vectors(model, A)
    if hasattr(model, "_certify_again"):
        now = model._certify_again(A, targets, w)
        findings += _disagreements(now, model.certificate_)
        return Verification(not findings, (now,), (model.certificate_,), tuple(findings))
    K = model._fresh_operator(A)
    if hasattr(model, "_recertify"):
        again = tuple(model._recertify(K, targets, w))
        for k, (c, claimed) in enumerate(zip(again, model.certificates_, strict=True)):
            of = f"problem {k}: " if len(again) > 1 else ""
            findings += [of + text for text in _disagreements(c, claimed)]
        return Verification(not findings, again, tuple(model.certificates_), tuple(findings))
    found = []
    for k, (problem, alpha, m, beta) in enumerate(model._restate(A, targets, w)):
        of = f"problem {k}: " if len(model.certificates_) > 1 else ""
        f = np.asarray(K @ beta)[problem.rows]
        findings += [of + text for text in _infeasible(problem, alpha, beta)]
        alpha = np.where(np.abs(alpha - problem.C) <= ROUNDING * np.abs(beta).max(), problem.C, alpha)
        claimed = model.certificates_[k]
        c = problem.certify(alpha, f, m, status=claimed.status, method="recomputed")
        findings += [of + text for text in _disagreements(c, claimed)]
        found.append(c)
    return Verification(not findings, tuple(found), tuple(model.certificates_), tuple(findings))


def _strange_vectors(model: Any, A: Any) -> list[str]:
    if isinstance(model.kernel_, str):
        return []
    index = model.support_ if hasattr(model, "support_") else np.arange(A.shape[0])
    mine, theirs = (model.support_vectors_ if hasattr(model, "support_") else model.X_fit_), A[index]
    differ = abs(mine - theirs)
    rows = (differ.max(axis=1).toarray().ravel() if sparse.issparse(differ) else differ.max(axis=1)) > 0
    if mine.shape[0] == 0 or not np.any(rows):
        return []
    i = int(np.argmax(rows))
    return [f"support vector {i} is not row {int(index[i])} of X"]


def _infeasible(problem: Any, alpha: np.ndarray, beta: np.ndarray) -> list[str]:
    out = []
    scale = max(float(np.abs(beta).max(initial=0.0)), 1e-300)
    stray = np.abs(problem.beta(alpha, len(beta)) - beta)
    if stray.max(initial=0.0) > ROUNDING * scale:
        out.append(
            f"the coefficient of row {int(np.argmax(stray))} has the wrong sign, or the row has no weight"
        )
    over = alpha - problem.C
    if over.max(initial=-1.0) > ROUNDING * scale:
        i = int(np.argmax(over))
        out.append(
            f"α = {alpha[i]:.9g} of row {int(problem.rows[i])} exceeds its bound C = {problem.C[i]:.9g}"
        )
    unkept = problem.unkept(alpha)
    if (
        problem.equality == 2 and problem.p.any()
    ):  # ν-regression: α and α* of one row may both be positive, and cancel
        plus, minus = problem.sums(alpha)
        unkept = abs(plus - minus)
    if unkept > 1e-7 * max(float(alpha.sum()), 1e-300):
        out.append(f"the coefficients do not keep their sum: it is off by {unkept:.3g}")
    return out


def _numbers(c: Certificate) -> str:
    known = [f"{name} {getattr(c, name):.9g}" for name in ("primal", "dual") if getattr(c, name) is not None]
    known += [f"gap {c.gap:.3g}"] if c.gap is not None else []
    where = "" if c.worst_row is None else f" at row {c.worst_row}"
    known += (
        [f"residual {c.residual:.3g}{where}"] if c.kkt is None else [f"worst violation {c.kkt:.3g}{where}"]
    )
    return ", ".join(known)


def _disagreements(found: Certificate, claimed: Certificate) -> list[str]:
    out = []
    scale = max(abs(claimed.primal or 0.0), abs(claimed.dual or 0.0), 1e-12)
    for name in ("primal", "dual"):
        now, then = getattr(found, name), getattr(claimed, name)
        if now is None or then is None:
            if (now is None) != (then is None):
                out.append(f"the {name} value is {now}, not {then} as claimed")
        elif not np.isclose(now, then, rtol=0, atol=AGREEMENT * scale):
            out.append(f"the {name} value is {now:.9g}, not {then:.9g} as claimed")
    if found.kkt is not None and claimed.kkt is not None and found.kkt > claimed.kkt + 1e-6 * max(1.0, scale):
        out.append(
            f"the optimality conditions are violated by {found.kkt:.3g} at row {found.worst_row}, not {claimed.kkt:.3g} as claimed"
        )
    if found.kkt is None and (found.residual or 0.0) > (claimed.residual or 0.0) + AGREEMENT:
        out.append(
            f"the residual is {found.residual:.3g}, worst at row {found.worst_row}, not {claimed.residual or 0.0:.3g} as claimed"
        )
    return out
