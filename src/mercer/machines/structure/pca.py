"""Principal components in feature space: curved directions of largest variance, and the way back (M12)."""

from __future__ import annotations

import numbers
import time
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError, ShapeError, warn
from mercer.gram.functions import Functions
from mercer.gram.on_rows import KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import (
    TABLE,
    CheckedBy,
    Choice,
    Declarations,
    Number,
    Whole,
    steps_allowed,
)
from mercer.machines.structure.centred import Centred, invalid_after_centring
from mercer.machines.structure.mercer_map import with_signs
from mercer.machines.structure.preimage import METHODS, RidgeMap, pre_images, way_back
from mercer.solve.eigen import top_eigenpairs
from mercer.solve.solution import Certificate
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Memory, Numbers, Seed, Setting, Table, Targets

SOLVERS = ("auto", "dense", "krylov", "lanczos")


def _check_components(m: Setting) -> None:
    whole = Whole(1).accepts(m)
    share = not isinstance(m, numbers.Integral) and Number(0.0, 1.0).accepts(m)
    if m is not None and not whole and not share:
        raise ParameterError(
            f"n_components must be None, a whole number >= 1, or a share between 0 and 1; got {m!r}."
        )


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine):
    """The directions of feature space along which φ(x) varies most.

        K̃ = HKH with H = I - 11ᵀ/n,     K̃ u_l = λ_l u_l
        y_l(x) = Σ_i u_il / √λ_l · k̃(x, x_i),     k̃(x, z) = (φ(x) - φ̄)·(φ(z) - φ̄)

    Centring is an operator, so K is stored only if it fits in `memory`. Noise (`White`) belongs to the
    observations of the sample: `fit_transform` has it, `transform` of new points does not.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    eigenvalues_, eigenvectors_ : λ_l, falling, and u_l as columns (the largest entry is positive).
    explained_variance_ : λ_l / (n - 1).
    explained_variance_ratio_ : λ_l / tr K̃, the trace being exact.
    certificate_ : with the residual of every eigenpair, relative to the largest eigenvalue, in `residuals`.
    kernel_, X_fit_, n_components_

    >>> from mercer import KernelPCA
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> pca = KernelPCA("Linear()", 1).fit(X)
    >>> pca.explained_variance_ratio_.round(6), pca.explained_variance_.round(6)
    (array([1.]), array([3.333333]))
    >>> bool(np.allclose(pca.inverse_transform(pca.transform(X)), X))
    True
    """

    on_cluster = True

    invalid: ClassVar[Invalid] = invalid_after_centring(
        "that part has no directions and is left out of the components"
    )
    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="The components of its features, by one singular value decomposition of n × features. "
            "Pre-images are sought with the kernel itself."
        ),
        "n_components": CheckedBy(
            by=_check_components,
            type="int, float or None",
            about="At most so many; a share of the variance 0 < s < 1, the fewest that explain it; None for "
            "all that are positive beyond rounding (the last two need all eigenvalues, n³ work).",
        ),
        "solver": Choice(
            SOLVERS,
            about='"dense" is LAPACK on the whole matrix, "lanczos" takes one vector at a time and "krylov" '
            'a block of them; "auto": dense for few rows or many components, lanczos where the matrix is in '
            "memory, krylov where its entries are computed anew. See `mercer.solve.top_eigenpairs`.",
        ),
        "inverse": Choice(
            METHODS,
            about='How `inverse_transform` finds pre-images: "linear" (exact, for `Linear`), "fixed-point" '
            '(for `RBF`, `Matern` and other functions of a distance), "ridge" (a kernel ridge regression '
            'from components to X, for any kernel), or "auto": '
            "the first of these that the kernel allows.",
        ),
        "ridge": Number(closed_low=True, about='The λ of inverse="ridge".'),
        "tol": Number(closed_low=True, about="Residuals ‖K̃u - λu‖, as a share of the largest λ."),
        "max_iter": Whole(1, none=True, about="Products with K allowed; None for no limit."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_components: int | float | None = 2,
        *,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = 300,
        inverse: str = "auto",
        ridge: float = 1.0,
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        random_state: Seed = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.inverse = inverse
        self.ridge = ridge
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.approximation = approximation

    # ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Table, y: Targets | None = None) -> Self:
        """Find the components of X; `y` is ignored."""
        start = time.perf_counter()
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        on = self._kernel_on(A)
        K = on.gram()
        notes = self._judged(on, K)
        centred = Centred(K)
        n, wanted = A.shape[0], self.n_components
        whole = not isinstance(wanted, numbers.Integral)
        count = n if whole else min(int(wanted), n)  # type: ignore[arg-type]
        factor = centred.low_rank_factor()
        most = n if factor is None else max(min(factor.shape), 1)
        found = top_eigenpairs(
            centred,
            min(count, most),
            method="dense" if whole else self.solver,  # type: ignore[arg-type]
            tol=float(self.tol),
            max_iter=steps_allowed(self.max_iter),
            random_state=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        values, vectors = found.value
        residuals = np.array(found.certificate.residuals)
        trace = float(centred.diag().sum())
        size = float(np.abs(K.diag()).max())
        rounding = n * np.finfo(float).eps * max(float(np.abs(values).max()), size)
        kept = int((values > np.maximum(rounding, residuals)).cumprod().sum())
        if whole and wanted is not None and kept:
            enough = np.flatnonzero(np.cumsum(values[:kept]) >= float(wanted) * trace * (1 - 1e-12))
            kept = int(enough[0]) + 1 if len(enough) else kept
        elif not whole and kept < count:
            notes = (
                *notes,
                f"{kept} of {count} components have variance beyond rounding; the others are left out",
            )
        self._keep(on, A, centred, values[:kept], with_signs(vectors[:, :kept]), trace)
        top = float(np.abs(found.value[0]).max(initial=0.0))
        self._certify(found.certificate, residuals[:kept] / top if top else residuals[:kept], notes, start)
        return self

    def _keep(
        self, on: KernelOnRows, A: Matrix, K: Centred, values: Array, vectors: Array, trace: float
    ) -> None:
        n = A.shape[0]
        self.X_fit_ = A
        self.eigenvalues_, self.eigenvectors_ = values.copy(), vectors
        self.explained_variance_ = self.eigenvalues_ / max(n - 1, 1)
        self.explained_variance_ratio_ = self.eigenvalues_ / trace if trace > 0 else np.zeros(len(values))
        self.total_variance_ = trace / max(n - 1, 1)
        self.n_components_ = self._n_features_out = len(values)
        scaled = vectors / np.sqrt(values)
        self._coef = np.ascontiguousarray(scaled - scaled.mean(axis=0)) if len(values) else scaled
        self._offset = K.means @ self._coef  # the mean of φ, seen from the components
        self._keep_feature_coef(on, self._coef)
        self._ridge: RidgeMap | None = None

    def _certify(self, found: Certificate, residuals: Array, notes: tuple[str, ...], start: float) -> None:
        self.certificate_ = replace(
            found,
            seconds=time.perf_counter() - start,
            residuals=tuple(residuals.tolist()),
            notes=(*notes, *found.notes),
        )
        if not found.status.as_asked:
            warn(
                f"the eigenpairs are not as exact as asked ({self.certificate_}).",
                ConvergenceWarning,
            )

    # ── there ───────────────────────────────────────────────────────────────────────────────────────────────

    def transform(self, X: Table) -> Array:
        """The components of new points, n × n_components."""
        check_is_fitted(self, "eigenvalues_")
        A = self.check_rows(X, reset=False)
        if self.n_components_ == 0:
            return np.empty((A.shape[0], 0))
        return self._products(A, self.X_fit_, self._coef) - self._offset

    def _functions(self) -> Functions:
        """The components: ⟨v_l, φ(x) - mean⟩."""
        check_is_fitted(self, "eigenvalues_")
        return self._functions_on(self.X_fit_, self._coef, -self._offset, what="the components")

    def fit_transform(self, X: Table, y: Targets | None = None, **fit_params: Setting) -> Array:
        """The components of the sample itself, √λ_l u_l."""
        self.fit(X, y, **fit_params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    # ── and back ────────────────────────────────────────────────────────────────────────────────────────────

    def inverse_transform(self, Y: Numbers) -> Array:
        """Input points whose φ is nearest to Σ_l y_l v_l + φ̄: exact, a local optimum, or a regression."""
        check_is_fitted(self, "eigenvalues_")
        if isinstance(self.kernel_, str):
            raise ParameterError(
                "a precomputed Gram matrix has no input space to go back to; give the kernel itself."
            )
        Y = np.asarray(Y, dtype=np.float64)
        if Y.ndim != 2 or Y.shape[1] != self.n_components_:
            raise ShapeError(
                f"components come as n rows and {self.n_components_} columns; got shape {Y.shape}."
            )
        X = dense(self.X_fit_)
        method = way_back(self.kernel_, self.inverse)
        if method == "ridge":
            if self._ridge is None:
                own = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
                self._ridge = RidgeMap(own, X, float(self.ridge), self.memory)
            return self._ridge(Y)
        gamma = self._coef, np.full(len(X), 1.0 / len(X))
        return pre_images(self.kernel_, X, Y, *gamma, method=method)

    def denoise(self, X: Table) -> Array:
        """X with what lies outside the components taken away: the pre-image of its projection."""
        return self.inverse_transform(self.transform(X))
