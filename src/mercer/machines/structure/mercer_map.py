"""Features of a sample: the eigen-expansion of its Gram matrix (K13)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer import lapack
from mercer.gram import Precomputed
from mercer.gram.functions import Functions
from mercer.gram.on_rows import check_gram
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Declarations, Whole
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Labels, Memory, Setting, Table, Targets


class MercerMap(TransformerMixin, Machine):
    """Finitely many features of any kernel, from its eigen-expansion on a sample.

        K = Σ λ_l u_l u_lᵀ,     φ_l(x) = Σ_i k(x, x_i) u_il / √λ_l

    On the sample itself φ_l = √λ_l u_l, so that with all components ΦΦᵀ = K to rounding; elsewhere it is
    the Nyström extension. Noise (`White`) belongs to the observations of the sample: `fit_transform` has
    it, `transform` does not.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    eigenvalues_, eigenvectors_ : the kept λ_l, falling, and u_l as columns (the largest entry is positive).
    negative_eigenvalues_ : those below zero beyond rounding, which were dropped; empty for a kernel.
    residual_trace_, residual_share_ : Σ|λ| of what was left out, and as a share of Σ|λ|.
    certificate_ : the residuals of the kept eigenpairs, and what was left out.
    kernel_, X_fit_, n_features_in_

    >>> from mercer import MercerMap, RBF
    >>> X = [[0.0], [1.0], [2.0]]
    >>> phi = MercerMap(RBF(1.0)).fit(X)
    >>> bool(np.allclose(phi.transform(X) @ phi.transform(X).T, RBF(1.0)(X)))
    True
    >>> round(MercerMap(RBF(1.0), n_components=2).fit(X).residual_share_, 3)
    0.069
    """

    invalid: ClassVar[Invalid] = Invalid(
        "That part is dropped: ΦΦᵀ is not the Gram matrix but its positive part.",
        "the kernel is not positive semi-definite: no real features reproduce it",
    )
    parameters: ClassVar[Declarations] = {
        "n_components": Whole(
            1,
            none=True,
            about="At most so many features, those of the largest eigenvalues; None for all that are "
            "positive beyond rounding.",
        ),
        "tolerance": TABLE["tolerance"].but(
            about="Stop at the fewest features that leave out at most this share of the trace, from 0 to 1.",
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_components: int | None = None,
        *,
        tolerance: float | None = None,
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.tolerance = tolerance
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets | None = None) -> Self:
        """Expand the Gram matrix of X; `y` is ignored."""
        start = time.perf_counter()
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        on = self._kernel_on(A)
        K = check_gram(on.gram().dense(), str(on.published))
        values, vectors = lapack.eigh(K)
        values = values[::-1]
        vectors = vectors[:, ::-1]
        rounding = len(K) * np.finfo(float).eps * float(np.abs(values).max())
        notes = self._judged(on, Precomputed(K))
        self.negative_eigenvalues_ = values[values < -rounding]
        kept = self._how_many(values[values > rounding], float(np.abs(values).sum()))
        self.X_fit_ = A
        self.eigenvalues_ = values[:kept].copy()
        self.eigenvectors_ = with_signs(vectors[:, :kept])
        self._keep_feature_coef(on, self._coef)
        self.residual_trace_ = float(np.abs(values[kept:]).sum())
        self.residual_share_ = self.residual_trace_ / float(np.abs(values).sum()) if np.any(values) else 0.0
        self.certificate_ = self._certify(K, notes, time.perf_counter() - start)
        return self

    def _certify(self, K: Array, judged: tuple[str, ...], seconds: float) -> Certificate:
        """‖Ku - λu‖ of each kept pair, relative to the largest λ, recomputed from the answer."""
        U = self.eigenvectors_
        top = float(self.eigenvalues_.max(initial=0.0))
        rest = np.linalg.norm(K @ U - U * self.eigenvalues_, axis=0) / top if top else np.zeros(0)
        notes = [f"{self.residual_share_:.3g} of the trace is left out"] if self.residual_share_ else []
        if len(self.negative_eigenvalues_):
            notes.append(f"negative eigenvalues dropped: {len(self.negative_eigenvalues_)}")
        return Certificate(
            Status.CONVERGED,
            "symmetric eigenvalues (LAPACK)",
            seconds=seconds,
            residual=float(rest.max(initial=0.0)),
            residuals=tuple(rest.tolist()),
            added_diagonal=0.0,
            notes=(*judged, *notes),
        )

    def _how_many(self, positive: Array, total: float) -> int:
        kept = len(positive)
        if self.tolerance is not None:
            left = total - np.concatenate([[0.0], np.cumsum(positive)])
            enough = np.flatnonzero(left <= self.tolerance * total)
            kept = int(enough[0]) if len(enough) else kept
            kept = max(kept, min(1, len(positive)))
        return kept if self.n_components is None else min(kept, int(self.n_components))

    def transform(self, X: Table) -> Array:
        """φ of new points, n × n_components, by the Nyström extension."""
        check_is_fitted(self, "eigenvalues_")
        A = self.check_rows(X, reset=False)
        return self._products(A, self.X_fit_, self._coef)

    @property
    def _coef(self) -> Array:
        """Coefficients of the rows of fit: u_l / √λ_l."""
        return self.eigenvectors_ / np.sqrt(self.eigenvalues_)

    def _functions(self) -> Functions:
        """The features φ_l = √λ_l u_l, extended to all points."""
        check_is_fitted(self, "eigenvalues_")
        return self._functions_on(self.X_fit_, self._coef, 0.0, observed=False, what="φ_l")

    def fit_transform(self, X: Table, y: Targets | None = None, **fit_params: Setting) -> Array:
        """φ of the sample itself, √λ_l u_l."""
        self.fit(X, y, **fit_params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Labels:
        """ "mercer0", "mercer1", …"""
        check_is_fitted(self, "eigenvalues_")
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array([f"mercer{i}" for i in range(self._n_features_out)], dtype=object)


def with_signs(U: Array) -> Array:
    """Each column with its first entry of (nearly) largest size made positive: the same on every machine."""
    if U.size == 0:
        return U.copy()
    size = np.abs(U)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return U * np.where(U[first, np.arange(U.shape[1])] < 0, -1.0, 1.0)
