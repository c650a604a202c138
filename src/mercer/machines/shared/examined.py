"""Claims that many machines make.

The kernel is the one asked for, kept rows are rows of X, features are what they were.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import clone

from mercer.arrays import Rows
from mercer.gram.blocks import block
from mercer.gram.explicit import FeatureGram
from mercer.gram.on_rows import PRECOMPUTED
from mercer.gram.on_rows import features_of as mapped_rows
from mercer.kernels.base import Kernel
from mercer.kernels.things.sparse_map import SparseMap
from mercer.machines.landmarks.approximation import Approximation, Frozen
from mercer.machines.shared.base import KernelEstimator, resolve
from mercer.machines.shared.machine import Machine
from mercer.machines.shared.support import SupportMachine
from mercer.sparse import Matrix, dense
from mercer.theory.claims import EXACT, Examination, opaque
from mercer.typing import Array, Integers, Setting, Table, Targets, Weights

# How a fit came about, not what came of it: no data can confirm them, and nothing is computed from them
HISTORY = frozenset({"n_iter_", "solver_", "witness_", "crossings_"})
# Support vectors whose kernel products are compared with those of their features.
SOME_ROWS = 200

Fitted = TypeVar("Fitted", bound=KernelEstimator)


def same_kernel(exam: Examination, model: KernelEstimator, A: Matrix, weight: Array | None = None) -> None:
    """`kernel_` is what `kernel=` means on these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = resolve(model.kernel, model.as_rows(A), weight)
    exam.same("kernel_", model.kernel_, PRECOMPUTED if found is None else found)


def same_rows(exam: Examination, what: str, kept: Matrix, A: Matrix, index: Integers | None = None) -> None:
    """Kept rows are rows of X, bit for bit."""
    rows = A if index is None else A[index]
    if sparse.issparse(rows) != sparse.issparse(kept):
        rows = sparse.csr_array(rows)
        kept = sparse.csr_array(kept)
    exam.same(what, kept, rows, within=0.0)


def same_width(exam: Examination, model: KernelEstimator, A: Matrix) -> None:
    """The model knows how many columns it saw; things that are no vectors have none."""
    if A.ndim == 2:
        exam.same("n_features_in_", model.n_features_in_, A.shape[1])


def same_approximation(exam: Examination, model: Machine, A: Matrix, weight: Array) -> None:
    """The approximation is the one asked for, and its features follow from its landmarks or its seed."""
    from mercer.machines.landmarks.examine import examine_features

    if model.approximation is None:
        exam.true(not model.is_approximated, "the model has an approximation_, and none was asked for")
        return
    mine = {k: v for k, v in model.approximation_.get_params(deep=False).items() if k != "kernel"}
    asked = {k: v for k, v in model.approximation.get_params(deep=False).items() if k != "kernel"}
    for name in asked:
        if not opaque(asked[name]):
            exam.same(f"approximation_.{name}", mine[name], asked[name])
    exam.same("approximation_.kernel_", model.approximation_.kernel_, model.kernel_)
    examine_features(model.approximation_, exam, A, weight)


def same_feature_coef(exam: Examination, model: Machine, A: Matrix, coef: Array) -> None:
    """β = Φᵀ coef: what `predict` uses follows from the coefficients that the certificate is of."""
    if not model.is_approximated:
        return
    phi = features_of(model.approximation_, model, A)
    exam.same("feature_coef_", model.feature_coef_, phi.T @ coef)


def same_coef(exam: Examination, model: SupportMachine) -> None:
    """w = Σ c_j φ(x_j): what `predict` uses follows from the coefficients that the certificate is of."""
    if "coef_" not in vars(model):
        return
    rows = model.as_rows(model.support_vectors_)
    assert isinstance(model.kernel_, Kernel)
    if isinstance(model.feature_map_, SparseMap):
        _same_weights(exam, model, FeatureGram(_examined_map(exam, model, model.feature_map_, rows)))
        return
    phi = model.kernel_.features(rows.columns, memory=model.memory)
    exam.true(
        model.feature_map_.kernel == phi.kernel and model.feature_map_.dimension == phi.dimension,
        "feature_map_ is not the map of kernel_",
    )
    exam.same("feature_map_.space", model.feature_map_.space, phi.space)
    _same_weights(exam, model, FeatureGram(mapped_rows(phi, rows)))


def _examined_map(exam: Examination, model: SupportMachine, phi: SparseMap, rows: Rows) -> Matrix:
    """Φ of the support vectors by the map of the model, whose products are those of the kernel."""
    assert isinstance(model.kernel_, Kernel)
    features = phi(rows)
    if len(rows):
        some = np.unique(np.linspace(0, len(rows) - 1, SOME_ROWS).astype(np.intp))
        K = np.asarray(block(model.kernel_, rows.rows(some), None, slice(None), slice(None)))
        ours = np.asarray(dense(features[some] @ features[some].T))
        exam.same("feature_map_", ours, K, scale=float(np.abs(K).max(initial=0.0)))
    return features


def _same_weights(exam: Examination, model: SupportMachine, K: FeatureGram) -> None:
    """`coef_` is what the coefficients of the rows come to in these features."""
    # The largest weights that these coefficients could give.
    reach = np.abs(model.dual_coef_) @ np.sqrt(K.diag())
    exam.same("coef_", model.coef_, K.weights(model.dual_coef_.T).T, scale=float(reach.max(initial=0.0)))


def features_of(approximation: Approximation, model: KernelEstimator, A: Matrix) -> Array:
    """Φ of checked rows."""
    return approximation.features(model.as_rows(A))


def plain_gram(model: KernelEstimator, A: Matrix, B: Matrix | None = None) -> Array:
    """K of these rows by the formula in NumPy, and not by the core that the fit used.

    Between A and B it has no noise.
    """
    if isinstance(model, Machine) and model.is_approximated:
        phi = features_of(model.approximation_, model, A)
        if B is not None:
            across: Array = phi @ features_of(model.approximation_, model, B).T
            return across
        K: Array = phi @ phi.T + model.approximation_.noise_ * np.eye(len(phi))
        return K
    if isinstance(model.kernel_, str):
        return np.asarray(dense(A), dtype=np.float64)
    z = None if B is None else model.as_rows(B)
    every = slice(None)
    return np.asarray(block(model.kernel_, model.as_rows(A), z, every, every), dtype=np.float64)


def again(model: Fitted, X: Table, y: Targets | None, sample_weight: Weights, **changes: Setting) -> Fitted:
    """A machine without a choice of its own, fitted once more: this computation defines what it publishes."""
    twin: Any = clone(model)
    for name, value in changes.items():
        setattr(twin, name, value)
    if isinstance(model, Machine) and model.is_approximated:
        # The features are examined by themselves; drawn again they would be others.
        twin.approximation = Frozen(model.approximation_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "sample_weight" in inspect.signature(twin.fit).parameters:
            twin.fit(X, y, sample_weight=sample_weight)
        else:
            twin.fit(X, y)
    found: Fitted = twin
    return found


def same_published(
    exam: Examination,
    model: KernelEstimator,
    twin: KernelEstimator,
    *,
    skip: frozenset[str] = HISTORY,
    within: float = EXACT,
) -> None:
    """Every number that the machine keeps is that of its twin."""
    parameters = model.get_params(deep=False)
    for name, found in vars(twin).items():
        if name in parameters or name in skip or name.startswith("certificate") or opaque(found):
            continue
        exam.true(name in vars(model), f"{name} is missing")
        exam.same(name, vars(model).get(name), found, within=within)
