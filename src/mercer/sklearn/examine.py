"""The claims of the twins: what they publish follows from the machine inside, and that from the data."""

from __future__ import annotations

import warnings
from functools import singledispatch
from itertools import combinations
from typing import TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.gaussian_process.kernels import Kernel as PeerKernel
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError
from mercer.machines.shared.examine import examine_machine
from mercer.machines.shared.examined import HISTORY, same_published, same_rows
from mercer.sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.sklearn.gp_process import BinaryLaplace, Process
from mercer.sklearn.kernel_pca import TIGHTEST, KernelPCA
from mercer.sklearn.kernel_ridge import KernelRidge
from mercer.sklearn.margin import MarginTwin
from mercer.solve.operator import relative
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.theory.claims import AS_DEFINED, SOLVED, Examination, Reached, at_most, opaque
from mercer.typing import Array, Integers, Labels, Table, Targets, Weights

# of numbers that are published in single precision
FLOAT32 = 1e-5
# a twin whose kernel is found by a search
Searched = TypeVar("Searched", bound=Process)

STATE = frozenset({"machine_", "_last", "_rng", "rng", "_likelihood"})


def examine_twin(
    twin: BaseEstimator, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights
) -> None:
    """Hold what a twin published against its data; what scikit-learn would warn of was said by `fit`."""
    check_is_fitted(twin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _examine(twin, exam, X, y, sample_weight)


@singledispatch
def _examine(
    twin: BaseEstimator, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights
) -> None:
    raise ParameterError(f"{type(twin).__name__} publishes no certificate that could be verified.")


def _same_parameters(exam: Examination, machine: BaseEstimator, asked: BaseEstimator) -> None:
    """The machine inside is the one that the parameters of the twin ask for."""
    mine = machine.get_params(deep=False)
    for name, value in asked.get_params(deep=False).items():
        if not opaque(value):
            exam.same(f"machine_.{name}", mine[name], value)


# ── machines inside ─────────────────────────────────────────────────────────────────────────────────────────


@_examine.register
def _(twin: MarginTwin, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    draft: MarginTwin = clone(twin)
    prepared = draft._prepare(X, y, sample_weight)
    if prepared.products is None:
        exam.cannot("anything: its kernel returned products of other rows, and it cannot predict")
        return
    machine = twin.machine_
    _same_parameters(exam, machine, draft._asked())
    examine_machine(machine, exam, prepared.products, prepared.targets, prepared.weights)
    draft._take(machine, prepared.rows, len(prepared.targets))
    same_published(exam, twin, draft, skip=HISTORY | STATE)
    exam.copies("certificate_ of the twin", twin.certificate_, machine.certificate_)


@_examine.register
def _(twin: KernelRidge, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    draft: KernelRidge = clone(twin)
    prepared = draft._prepare(X, y, sample_weight)
    exam.same("n_features_in_", twin.n_features_in_, prepared.rows.shape[1])
    same_rows(exam, "X_fit_", twin.X_fit_, prepared.rows)
    single = twin.dual_coef_.dtype == np.float32
    if "machine_" not in vars(twin):
        coef = draft._least_squares(prepared)
        exam.same("dual_coef_", twin.dual_coef_, coef, within=FLOAT32 if single else SOLVED)
        exam.certificates.append(Certificate(Status.STAGNATED, "least squares of a singular system"))
        return
    machine = twin.machine_
    _same_parameters(exam, machine, prepared.machine)
    examine_machine(machine, exam, prepared.products, prepared.targets, prepared.weights)
    exam.same("dual_coef_", twin.dual_coef_, machine.dual_coef_.astype(twin.dual_coef_.dtype), within=0.0)
    exam.copies("certificate_ of the twin", twin.certificate_, machine.certificate_)


# ── Gaussian processes ──────────────────────────────────────────────────────────────────────────────────────


def _same_form(exam: Examination, part: Process, default: PeerKernel) -> None:
    """A search moves the free parameters of the kernel asked for, and nothing else."""
    asked = default if part.kernel is None else part.kernel
    searched = part.optimizer is not None and asked.n_dims > 0
    found = part.kernel_
    alike = type(found) is type(asked) and found.n_dims == asked.n_dims
    if alike:
        # exp(log ℓ) is not quite ℓ
        alike = asked.clone_with_theta(found.theta) == found.clone_with_theta(found.theta)
    if alike and not searched:
        alike = np.allclose(found.theta, asked.theta, rtol=0.0, atol=SOLVED)
    exam.true(alike, f"kernel_ is {found}, which is no form of {asked}")


def _at_kernel_found(part: Searched) -> Searched:
    """The same estimator with the kernel that it found, and nothing to search."""
    draft: Searched = clone(part)
    draft.kernel = clone(part.kernel_)
    draft.optimizer = None
    return draft


@_examine.register
def _(
    twin: GaussianProcessRegressor, exam: Examination, X: Table, y: Targets, sample_weight: Weights
) -> None:
    _same_form(exam, twin, ConstantKernel() * RBF())
    draft = _at_kernel_found(twin).fit(X, y)
    same_published(exam, twin, draft, skip=HISTORY | STATE, within=SOLVED)
    Y = draft._columns
    alpha = np.asarray(twin.alpha_).reshape(Y.shape)
    # by the kernel's own formula, not by the engine that fitted
    K = np.asarray(twin.kernel_(draft.X_train_), dtype=float)
    K[np.diag_indices_from(K)] += draft._noise
    exam.same("L_ L_ᵀ", np.asarray(twin.L_) @ np.asarray(twin.L_).T, K, within=SOLVED)
    each = relative(Y - K @ alpha, Y)
    claimed = twin.certificate_
    found = Certificate(
        claimed.status,
        "recomputed",
        residual=float(each.max(initial=0.0)),
        residuals=tuple(each.tolist()),
        added_diagonal=0.0,
    )
    unit = max(1.0, 1e-9 * float(np.abs(alpha).max(initial=0.0)) / max(float(np.abs(Y).max()), 1e-300))
    exam.certificate(claimed, found, reached=AS_DEFINED, unit=unit)


@_examine.register
def _(
    twin: GaussianProcessClassifier, exam: Examination, X: Table, y: Targets, sample_weight: Weights
) -> None:
    rows = twin._check(X)
    labels: Labels = np.asarray(y)
    exam.same("classes_", twin.classes_, np.unique(labels))
    exam.same("n_classes_", twin.n_classes_, len(np.unique(labels)))
    exam.same("n_features_in_", twin.n_features_in_, rows.shape[1])
    inside = vars(twin.base_estimator_).get("n_features_in_")
    if inside is not None:
        exam.same("n_features_in_ of base_estimator_", inside, rows.shape[1])
    posed = _two_class_problems(twin, labels)
    exam.same("the number of problems", len(twin._parts), len(posed))
    for k, (part, (kept, codes)) in enumerate(zip(twin._parts, posed, strict=False)):
        _laplace(exam, part, rows[kept], codes, f"problem {k}: " if len(posed) > 1 else "")
    values = [part.log_marginal_likelihood_value_ for part in twin._parts]
    exam.same(
        "log_marginal_likelihood_value_",
        twin.log_marginal_likelihood_value_,
        float(np.mean(values)),
        within=SOLVED,
    )


def _two_class_problems(twin: GaussianProcessClassifier, labels: Labels) -> list[tuple[Integers, Labels]]:
    """Rows and codes of each problem, as scikit-learn's classifiers of many classes pose them."""
    every = np.arange(len(labels))
    classes = np.unique(labels)
    if len(classes) == 2:
        return [(every, labels)]
    if twin.multi_class == "one_vs_rest":
        return [(every, (labels == c).astype(int)) for c in classes]
    out: list[tuple[Integers, Labels]] = []
    for a, b in combinations(classes, 2):
        kept = np.flatnonzero((labels == a) | (labels == b))
        out.append((kept, (labels[kept] == b).astype(int)))
    return out


def _laplace(exam: Examination, part: BinaryLaplace, X: Matrix, codes: Labels, of: str) -> None:
    _same_form(exam, part, ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed"))
    draft = _at_kernel_found(part)
    draft.warm_start = False
    draft.fit(X, codes)
    same_published(exam, part, draft, skip=HISTORY | STATE, within=SOLVED)
    # the mode f = K(y - π), by the kernel's own formula
    K = np.asarray(part.kernel_(X), dtype=float)
    claimed = part.certificate_
    again = draft.certificate_
    pull = draft.y_train_ - np.asarray(part.pi_)
    slack = (again.residual or 0.0) * len(pull) * float(np.abs(K).max()) + SOLVED
    exam.same(f"{of}f_cached and K(y - π)", part.f_cached, K @ pull, within=SOLVED, scale=slack / SOLVED)
    found = Certificate(claimed.status, "recomputed", residual=again.residual, added_diagonal=0.0)
    reached = Reached(again.converged, "Newton's method ends before its tolerance is met")
    exam.certificate(claimed, found, reached=reached, of=of)


# ── components ──────────────────────────────────────────────────────────────────────────────────────────────


@_examine.register
def _(twin: KernelPCA, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    draft: KernelPCA = clone(twin)
    A = draft._check(X)
    for name in ("n_features_in_", "gamma_"):
        exam.same(name, getattr(twin, name), getattr(draft, name))
    same_rows(exam, "X_fit_", twin.X_fit_, A)
    K = draft._centred(draft._products(A))
    exam.same("the means of columns", twin._column_means, draft._column_means)
    single = twin.eigenvalues_.dtype == np.float32
    within = FLOAT32 if single else SOLVED
    values = twin.eigenvalues_.astype(np.float64)
    U = twin.eigenvectors_.astype(np.float64)
    _eigenpairs(exam, twin, np.asarray(K.dense(), dtype=np.float64), values, U, within)
    draft.eigenvalues_ = values
    draft.eigenvectors_ = U
    draft._keep_coefficients()
    exam.same("the coefficients", twin._coef, draft._coef, within=within)
    size = float((np.abs(draft._column_means) @ np.abs(draft._coef)).max(initial=0.0))
    exam.same("the offset", twin._offset, draft._offset, within=within, scale=size)
    if twin.fit_inverse_transform:
        Y = U * np.sqrt(values)
        exam.same("X_transformed_fit_", twin.X_transformed_fit_, Y, within=within)
        inner = np.asarray(draft._products(Y).dense(), dtype=np.float64)
        back = inner @ twin.dual_coef_ + float(twin.alpha) * twin.dual_coef_
        exam.same("(k(Y, Y) + α) dual_coef_", back, A, within=1e-6 if not single else 1e-4)


def _eigenpairs(exam: Examination, twin: KernelPCA, K: Array, values: Array, U: Array, within: float) -> None:
    """K u = λ u, orthonormal, the largest, in order and signed as scikit-learn signs them."""
    n = len(K)
    kept = len(values)
    every = np.linalg.eigvalsh(K)[::-1]
    top = max(float(np.abs(every).max(initial=0.0)), np.finfo(float).tiny)
    exam.same("eigenvalues_", values, np.maximum(every[:kept], 0.0), within=within, scale=top)
    exam.same("eigenvectors_ᵀ eigenvectors_", U.T @ U, np.eye(kept), within=within)
    exam.same("the signs of eigenvectors_", np.sign(svd_flip(u=U, v=None)[0][0]), np.sign(U[0]))
    wanted = n if twin.n_components is None else min(n, twin.n_components)
    drops = twin.remove_zero_eig or twin.n_components is None
    sure = int((every[:wanted] > 1e-6 * top).sum())
    exam.true(
        kept <= wanted and (kept == wanted or (drops and kept >= sure)), f"{kept} of {wanted} components"
    )
    claimed = twin.certificate_
    rest = np.linalg.norm(K @ U - U * values, axis=0)
    dropped = np.asarray(claimed.residuals or ())[kept:]
    exam.true(np.all(dropped <= within * top), "a component that was dropped has a residual")
    found = Certificate(
        claimed.status,
        "recomputed",
        residual=max(float(rest.max(initial=0.0)) / top, float(dropped.max(initial=0.0)) / top),
        residuals=(*rest.tolist(), *dropped.tolist()),
    )
    goal = max(float(twin.tol), TIGHTEST) + within
    reached = at_most("the worst residual", found.residual, goal)
    exam.certificate(claimed, found, reached=reached, unit=max(1.0, top) * within / SOLVED)


__all__ = ["examine_twin"]
