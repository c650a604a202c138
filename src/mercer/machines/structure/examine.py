"""The claims of machines that find structure: clusters, components, maps and means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer.arrays import Rows
from mercer.gram import GramOperator
from mercer.gram.blocks import block
from mercer.gram.on_rows import PRECOMPUTED
from mercer.machines.landmarks.examine import examine_features
from mercer.machines.shared.base import check_weights, resolve
from mercer.machines.shared.examine import examine
from mercer.machines.shared.examined import (
    HISTORY,
    again,
    plain_gram,
    same_approximation,
    same_feature_coef,
    same_kernel,
    same_published,
    same_rows,
    same_width,
)
from mercer.machines.structure.cca import KernelCCA, second_view
from mercer.machines.structure.centred import Centred
from mercer.machines.structure.kmeans import KernelKMeans
from mercer.machines.structure.lloyd import filled
from mercer.machines.structure.mercer_map import MercerMap
from mercer.machines.structure.pca import KernelPCA
from mercer.machines.structure.spectral import spectral_start
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix
from mercer.theory.claims import EXACT, SOLVED, Examination, Reached, at_most
from mercer.typing import Array, Flags, Integers, Table, Targets, Weights

ALL_EIGENVALUES = 2000  # rows up to which it is checked that no larger eigenvalue was missed


def _kept(
    exam: Examination, model: KernelKMeans | KernelPCA | KernelCCA, A: Matrix, w: Array | None = None
) -> None:
    same_width(exam, model, A)
    same_kernel(exam, model, A, w)
    same_rows(exam, "X_fit_", model.X_fit_, A)


# ── clusters ────────────────────────────────────────────────────────────────────────────────────────────────


@examine.register
def _(model: KernelKMeans, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    w = check_weights(sample_weight, A.shape[0])
    _kept(exam, model, A, w)
    same_approximation(exam, model, A, w)
    K = model.again_on(A).gram()
    k = int(model.n_clusters)
    members = np.flatnonzero(w > 0)
    exam.same("the rows with weight", model._members, members)
    codes = np.asarray(model._codes)
    masses = np.bincount(codes, w[members], minlength=k)
    exam.same("cluster_weights_", model.cluster_weights_, masses)
    exam.same("α", model._alpha, w[members] / masses[codes])
    exam.same("the number of clusters", model._n_features_out, k)
    memberships = np.zeros((len(w), k))
    memberships[members, codes] = w[members] / masses[codes]
    G = np.asarray(K @ memberships, dtype=np.float64)
    norms = np.where(masses > 0, np.einsum("ij,ij->j", memberships, G), np.inf)
    own = np.asarray(K.diag(), dtype=np.float64)
    size = float(np.abs(own).max(initial=0.0))
    exam.same("‖centre‖²", model._norms, norms, scale=size)
    same_feature_coef(exam, model, A, memberships)
    _assigned(exam, model, norms - 2 * G, own, w, codes)
    found = Certificate(
        model.certificate_.status, "recomputed", primal=model.inertia_, dual=_bound(model, K, w, own, k)
    )
    if found.dual is not None:
        found = Certificate(
            found.status, found.method, primal=found.primal, dual=found.dual, gap=model.inertia_ - found.dual
        )
    still = np.array_equal(codes, np.asarray(model.labels_)[members])
    reached = Reached(still, "the last step moved a row")
    if not still and model.tol > 0:
        reached = Reached(None, "how little the last step gained is not known")
    exam.certificate(model.certificate_, found, reached=reached, scale=float(w @ np.abs(own)))


def _assigned(
    exam: Examination, model: KernelKMeans, D: Array, own: Array, w: Array, codes: Integers
) -> None:
    """Every row is with its nearest centre, as far as the run came."""
    size = float(np.abs(own).max(initial=0.0))
    slack = EXACT * size
    least = D.min(axis=1)
    inertia = float(w @ np.maximum(least + own, 0.0))
    exam.same("inertia_", model.inertia_, inertia, scale=max(abs(inertia), 1e-6 * float(w @ np.abs(own))))
    inner = float(w[model._members] @ (D[model._members, codes] + own[model._members]))
    exam.same(
        "the last of objective_", model.objective_[-1], inner, within=SOLVED, scale=float(w @ np.abs(own))
    )
    labels = np.asarray(model.labels_)
    rows = np.arange(len(w))
    exam.true(labels.min() >= 0 and labels.max() < D.shape[1], "labels_ names a cluster that is none")
    nearest = D.argmin(axis=1)
    before = nearest.copy()
    before[model._members] = codes
    after = np.where(D[rows, nearest] < D[rows, before] - slack, nearest, before)
    after = filled(after, w, w * np.maximum(least + own, 0.0), D.shape[1], slack)
    apart = np.abs(D[rows, labels] - D[rows, after]) > slack
    exam.true(
        not apart.any(), f"row {int(np.argmax(apart))} is not in the cluster to which the last step moved it"
    )


def _bound(model: KernelKMeans, K: GramOperator, w: Array, own: Array, k: int) -> float | None:
    """The spectral bound below any clustering."""
    if not (isinstance(model.init, str) and model.init == "spectral"):
        return None
    return spectral_start(K, w, own, k, np.random.RandomState(0))[1]


# ── components ──────────────────────────────────────────────────────────────────────────────────────────────


@examine.register
def _(model: KernelPCA, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    A = model.check_rows(X, reset=False)
    _kept(exam, model, A)
    same_approximation(exam, model, A, np.ones(A.shape[0]))
    n = A.shape[0]
    centred = Centred(model.again_on(A).gram())
    values = model.eigenvalues_
    U = model.eigenvectors_
    trace = float(centred.diag().sum())
    every = _eigenpairs(exam, model, centred, values, U)
    if every is not None:
        _enough_components(exam, model, every, float(np.abs(centred.inner.diag()).max()), trace)
    exam.same("explained_variance_", model.explained_variance_, values / max(n - 1, 1))
    ratio = values / trace if trace > 0 else np.zeros(len(values))
    exam.same("explained_variance_ratio_", model.explained_variance_ratio_, ratio)
    exam.same("total_variance_", model.total_variance_, trace / max(n - 1, 1))
    exam.same("n_components_", (model.n_components_, model._n_features_out), (len(values), len(values)))
    scaled = U / np.sqrt(values)
    coef = scaled - scaled.mean(axis=0) if len(values) else scaled
    exam.same("the coefficients", model._coef, coef)
    exam.same("the offset", model._offset, centred.means @ coef, scale=_product_size(centred.means, coef))
    same_feature_coef(exam, model, A, coef)


def _product_size(a: Array, B: Array) -> float:
    return float((np.abs(a) @ np.abs(B)).max(initial=0.0))


def _eigenpairs(
    exam: Examination, model: KernelPCA | MercerMap, K: GramOperator, values: Array, U: Array
) -> Array | None:
    """K u = λ u, orthonormal, in order, signed; and, where it is affordable, all eigenvalues."""
    claimed = model.certificate_
    exam.same("the number of eigenvectors", U.shape[1], len(values))
    rest = np.linalg.norm(np.asarray(K @ U) - U * values, axis=0)
    every = None
    if K.shape[0] <= ALL_EIGENVALUES:
        every = np.asarray(np.linalg.eigvalsh(K.dense())[::-1], dtype=np.float64)
        top = max(float(np.abs(every).max(initial=0.0)), np.finfo(float).tiny)
        exam.same("eigenvalues_", values, every[: len(values)], within=SOLVED, scale=top)
    else:
        top = max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        exam.cannot("that no larger eigenvalue was missed: there are too many rows to compute all")
    residuals = rest / top
    found = Certificate(
        claimed.status,
        "recomputed",
        residual=float(residuals.max(initial=0.0)),
        residuals=tuple(residuals.tolist()),
        added_diagonal=claimed.added_diagonal and 0.0,
    )
    tol = model.tol if isinstance(model, KernelPCA) else 0.0
    rounding = 64 * np.finfo(float).eps * np.sqrt(K.shape[0])
    reached = at_most("the worst residual", found.residual, float(tol) + rounding + SOLVED)
    exam.certificate(claimed, found, reached=reached)
    exam.same("eigenvectors_ᵀ eigenvectors_", U.T @ U, np.eye(len(values)), within=SOLVED)
    if U.size:
        size = np.abs(U)
        first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
        exam.true(np.all(U[first, np.arange(U.shape[1])] > 0), "an eigenvector points the other way")
    return every


def _enough_components(exam: Examination, model: KernelPCA, every: Array, size: float, trace: float) -> None:
    """As many as were asked for, or as have variance beyond rounding."""
    rounding = len(every) * np.finfo(float).eps * max(float(np.abs(every).max()), size)
    kept = model.n_components_
    wanted = model.n_components
    sure = int((every > 1e3 * rounding).sum())
    possible = int((every > 1e-3 * rounding).sum())
    if isinstance(wanted, float):
        covered = float(every[:kept].sum()) >= wanted * trace * (1 - 1e-9)
        fewer = float(every[: max(kept - 1, 0)].sum()) < wanted * trace * (1 + 1e-9)
        exam.true(
            (covered or kept >= sure) and fewer,
            f"{kept} components are not what n_components={wanted} asks for",
        )
        return
    most = len(every) if wanted is None else int(wanted)
    exam.true(
        min(sure, most) <= kept <= min(possible, most),
        f"{kept} components were kept, and n_components={wanted} asks for {min(sure, most)}",
    )


@examine.register
def _(model: MercerMap, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    twin = again(model, X, y, None)
    same_published(exam, model, twin, skip=HISTORY | {"eigenvectors_"}, within=SOLVED)
    A = model.check_rows(X, reset=False)
    same_approximation(exam, model, A, np.ones(A.shape[0]))
    _eigenpairs(exam, model, model.again_on(A).gram(), model.eigenvalues_, model.eigenvectors_)


# ── two views ───────────────────────────────────────────────────────────────────────────────────────────────


@examine.register
def _(model: KernelCCA, exam: Examination, X: Table, y: Targets, sample_weight: Weights) -> None:
    """By the definition: (L̃ + c)²β ∝ L̃f and (K̃ + c)²α ∝ K̃g, and no pair of functions agrees better."""
    A = model.check_rows(X, reset=False)
    B = second_view(y, A.shape[0])
    n = A.shape[0]
    k = min(int(model.n_components), A.shape[0] - 1)
    _kept(exam, model, A)
    same_rows(exam, "Y_fit_", model.Y_fit_, B)
    kernel_y = resolve(model.kernel if model.kernel_y is None else model.kernel_y, B, name="kernel_y")
    exam.same("kernel_y_", model.kernel_y_, PRECOMPUTED if kernel_y is None else kernel_y)
    exam.same("n_components_", (model.n_components_, model._n_features_out), (k, k))
    first = _View.of(plain_gram(model, A), model.regularization)
    second = _View.of(_gram_of_y(model, B), model.regularization)
    same_approximation(exam, model, A, np.ones(n))
    same_feature_coef(exam, model, A, model.alpha_)
    _features_of_y(exam, model, B)
    exam.same(
        "the offset",
        model._offset,
        first.means @ model.alpha_,
        scale=_product_size(first.means, model.alpha_),
    )
    exam.same(
        "the offset of y",
        model._offset_y,
        second.means @ model.beta_,
        scale=_product_size(second.means, model.beta_),
    )
    f = first.K @ model.alpha_
    g = second.K @ model.beta_
    # what rounding of the two Gram matrices moves, beside what is common to the two functions
    seen = 1e8 * (first.rounding + second.rounding) <= np.square(model.singular_values_)
    if not seen.all():
        exam.cannot(f"{int((~seen).sum())} components: their functions are made of rounding")
    found = np.einsum("ij,ij->j", f, g) / n
    exam.same("correlations_", model.correlations_[seen], found[seen], within=1e-6, scale=1.0)
    for what, view, coef, values, other in (
        ("alpha_", first, model.alpha_, f, g),
        ("beta_", second, model.beta_, g, f),
    ):
        variance = (values[:, seen] ** 2).mean(axis=0)
        exam.same(f"the variance along {what}", variance, np.ones(len(variance)), within=1e-6)
        size = float(np.abs(coef).max(initial=0.0))
        exam.same(f"the mean of {what}", coef.mean(axis=0), np.zeros(k), scale=size)
        wanted = view.twice_solved(view.K @ other)
        length = np.linalg.norm(coef, axis=0) / np.maximum(
            np.linalg.norm(wanted, axis=0), np.finfo(float).tiny
        )
        exam.same(what, coef[:, seen], (wanted * length)[:, seen], within=1e-5)
    _agreements(exam, model, first, second, seen)


class _View(NamedTuple):
    """K̃ = HKH, the means of the rows of K, the ridge c, and the rounding of K in units of c."""

    K: Array
    means: Array
    c: float
    rounding: float

    @classmethod
    def of(cls, K: Array, regularization: float) -> _View:
        means = K.mean(axis=1)
        centred = K - means - means[:, None] + means.mean()
        c = float(regularization) * max(float(np.trace(centred)), np.finfo(float).tiny)
        return cls(centred, means, c, float(np.finfo(float).eps * np.linalg.norm(K)) / c)

    def ridged(self) -> Array:
        return self.K + self.c * np.eye(len(self.K))

    def twice_solved(self, V: Array) -> Array:
        """(K̃ + c)⁻² V."""
        A = self.ridged()
        return np.linalg.solve(A, np.linalg.solve(A, V))


def _features_of_y(exam: Examination, model: KernelCCA, B: Array) -> None:
    """The features of the second view, and β by which it predicts."""
    if model.approximation is None:
        return
    rows = Rows.of(B, "y")
    examine_features(model.approximation_y_, exam, B, np.ones(len(B)))
    phi = model.approximation_y_.features(rows)
    exam.same("feature_coef_y_", model.feature_coef_y_, phi.T @ model.beta_)


def _gram_of_y(model: KernelCCA, B: Array) -> Array:
    if model.approximation is not None:
        phi = model.approximation_y_.features(Rows.of(B, "y"))
        return np.asarray(phi @ phi.T + model.approximation_y_.noise_ * np.eye(len(phi)))
    kernel = model.kernel_y_
    if isinstance(kernel, str):
        return B
    every = slice(None)
    return np.asarray(block(kernel, Rows.of(B, "y"), None, every, every), dtype=np.float64)


def _agreements(exam: Examination, model: KernelCCA, first: _View, second: _View, seen: Flags) -> None:
    """The singular values of SR, R = K̃(K̃ + c)⁻¹ and S of the other view.

    And the residuals of the vectors kept.
    """
    R, S = (np.linalg.solve(view.ridged(), view.K) for view in (first, second))
    both = S @ R
    every = np.linalg.svd(both, compute_uv=False)
    close = max(1e-6, 100 * (first.rounding + second.rounding))
    exam.same(
        "singular_values_", model.singular_values_, every[: model.n_components_], within=close, scale=1.0
    )
    U = first.ridged() @ model.alpha_
    U = U / np.maximum(np.linalg.norm(U, axis=0), np.finfo(float).tiny)
    size = np.abs(U)
    leading = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    exam.true(np.all(U[leading, np.arange(U.shape[1])][seen] > 0), "a component points the other way")
    rest = np.linalg.norm(both.T @ (both @ U) - U * np.square(model.singular_values_), axis=0)
    claimed = model.certificate_
    said = np.asarray(claimed.residuals if claimed.residuals is not None else rest)
    rest = np.where(seen, rest, said)
    worst = float(rest.max(initial=0.0)) / max(float(every[0]) ** 2, np.finfo(float).tiny)
    found = Certificate(claimed.status, "recomputed", residual=worst, residuals=tuple(rest.tolist()))
    reached = at_most("the worst residual", worst, float(model.tol) + 1e-6)
    exam.certificate(claimed, found, reached=reached)
