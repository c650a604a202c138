"""Where data are dense: the kernel mean embedding as a score of novelty, and perhaps as a density."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Evaluated, Given
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import Choice, Declarations, Number
from mercer.machines.windows.bandwidth import by_leave_one_out, windows
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Memory, Table, Targets, Weights


class KernelMeanEmbedding(OutlierMixin, Machine):
    """The mean of the data in feature space, as a score: how alike x is to the rows of fit, on average.

        score(x) = ⟨μ, φ(x)⟩ = Σ w_i k(x_i, x) / Σ w_i,      μ = Σ w_i φ(x_i) / Σ w_i

    For a radial kernel that can be integrated this is a Parzen density up to a constant; `log_density` has it
    exactly for RBF (the constant is (2π)^(d/2) Π ℓ_j) and Laplacian (Π 2ℓ_j). Nothing is solved: the answer
    is exact, and fit takes one product.

    Parameters
    ----------
    kernel : Kernel, str
        A kernel, its text, or "precomputed". The open lengthscale of "RBF()" is that of `SVC`: smooth, for a
        few broad clusters.
    {shared parameters}

    Attributes
    ----------
    offset_ : the score below which a point is an outlier, midway between two scores of rows of fit. norm_ :
        ‖μ‖, known without another product.

    >>> from mercer import KernelMeanEmbedding
    >>> model = KernelMeanEmbedding("RBF(1.0)", contamination=0.2).fit([[0.0], [0.1], [0.2], [0.3], [9.0]])
    >>> model.predict([[0.15], [5.0]]).tolist()
    [1, -1]
    >>> round(float(np.exp(model.log_density([[9.0]])[0])), 6)    # 0.2/√(2π)
    0.079788
    """

    invalid: ClassVar[Invalid] = Invalid(
        "There is then no mean in feature space behind the score, and its norm means nothing.",
        "the kernel is not positive semi-definite: a mean of products, and of nothing else",
    )
    parameters: ClassVar[Declarations] = {
        "bandwidth": Choice(
            ("kernel", "loo"),
            about="The lengthscale of the kernel as it is, or the multiple of it under which the rows, each "
            "left out once, have the largest density. For RBF and Laplacian kernels.",
        ),
        "contamination": Number(
            0.0,
            0.5,
            closed_low=True,
            closed_high=True,
            about="The share of the rows of fit that `predict` calls outliers (-1). A row counts itself "
            "among its neighbours.",
        ),
    }

    weights_: Array
    offset_: float
    norm_: float
    X_fit_: Matrix | None
    certificate_: Certificate

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        contamination: float = 0.1,
        bandwidth: str = "kernel",
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
        approximation: Approximation | None = None,
    ) -> None:
        self.kernel = kernel
        self.contamination = contamination
        self.bandwidth = bandwidth
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs
        self.approximation = approximation

    def fit(self, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Remember the rows X and their weights, and find the offset; y is ignored."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        w = check_weights(sample_weight, A.shape[0])
        on = self._kernel_on(A, w)
        notes: tuple[str, ...] = ()
        if self.bandwidth == "loo":
            if self.approximation is not None:
                raise ParameterError(
                    "bandwidth='loo' looks for a lengthscale, and an approximation is of one kernel. Find "
                    "the lengthscale without approximation=, and pass that kernel."
                )
            self.kernel_, note = by_leave_one_out(on.kernel, lambda k: -self._held_out(k, A, w))
            on = self.again_on(A)
            notes = (note,)
        K = on.gram()
        self.weights_ = w / w.sum()
        self.X_fit_ = None if isinstance(on, Given) else A
        self._keep_feature_coef(on, self.weights_)
        scores = np.asarray(K @ self.weights_, dtype=float)
        self.norm_ = float(np.sqrt(max(float(self.weights_ @ scores), 0.0)))
        self.offset_ = _between(scores, self.weights_, float(self.contamination))
        said = (*notes, *K.notes, *self._judged(on, K, np.flatnonzero(w > 0)))
        self.certificate_ = Certificate(Status.CONVERGED, "mean of kernel products", residual=0.0, notes=said)
        return self

    def _held_out(self, kernel: Kernel, A: Matrix, w: Array) -> float:
        """The mean logarithm of the density of each row, made of the others."""
        constant = log_integral(kernel, self.n_features_in_)
        total = 0.0
        for part, K in windows(Evaluated.of(kernel, self.as_rows(A), n_jobs=self.n_jobs), A):
            mine = np.arange(A.shape[0])[part]
            K = K.copy()
            K[np.arange(len(mine)), mine] = 0.0
            others = np.maximum(w.sum() - w[mine], np.finfo(float).tiny)
            density = np.maximum(K @ w / others, np.finfo(float).tiny)
            total += float(w[mine] @ (np.log(density) - constant))
        return total / float(w.sum())

    @property
    def loo_log_density_(self) -> float:
        """The mean log-density of the rows of fit, each by the others: what `bandwidth="loo"` raises most."""
        check_is_fitted(self, "weights_")
        kernel = self._fitted_kernel
        if kernel is None:
            raise ParameterError("a precomputed Gram matrix has no density. Fit with the kernel itself.")
        return self._held_out(kernel, self.X_fit_, self.weights_)

    def score_samples(self, X: Table) -> Array:
        """⟨μ, φ(x)⟩: large where the data are."""
        check_is_fitted(self, "weights_")
        A = self.check_rows(X, reset=False)
        return self._products(A, self.X_fit_, self.weights_)

    def _functions(self) -> Functions:
        """⟨μ, ·⟩."""
        check_is_fitted(self, "weights_")
        return self._functions_on(
            self.X_fit_, self.weights_, 0.0, known_norms=np.array([self.norm_]), what="⟨μ, ·⟩, the mean"
        )

    def decision_function(self, X: Table) -> Array:
        """The score less the offset."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Table) -> Array:
        """+1 for rows like those of fit, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def log_density(self, X: Table) -> Array:
        """The logarithm of the Parzen density, whose integral is 1; for RBF and Laplacian kernels."""
        check_is_fitted(self, "weights_")
        constant = log_integral(self.kernel_, self.n_features_in_)
        scores = self.score_samples(X)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(scores, 0.0)) - constant


def log_integral(kernel: Kernel | str, d: int) -> float:
    """log ∫ k(x, t) dt over d columns."""
    constant = kernel.log_integral(d) if isinstance(kernel, Kernel) else None
    if constant is None:
        raise ParameterError(
            f"the integral of {kernel} is not known here, so its mean is a density only up to a constant: "
            "use score_samples, or an RBF or Laplacian kernel on all columns."
        )
    return constant


def _between(scores: Array, weights: Array, share: float) -> float:
    """An offset with at most `share` of the weight below it; between two scores, beyond rounding."""
    scores = scores[weights > 0]
    weights = weights[weights > 0]
    order = np.argsort(scores, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    at = int(np.flatnonzero(before <= share + 1e-12)[-1])
    value = float(scores[order[at]])
    lower = scores[scores < value - 1e-11 * np.abs(scores).max()]
    if len(lower) == 0:
        return value - 1e-9 * float(np.abs(scores).max())
    return 0.5 * (value + float(lower.max()))
