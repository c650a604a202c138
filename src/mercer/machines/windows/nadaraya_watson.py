"""The Nadaraya–Watson smoother: the other meaning of the word kernel, a window of weights (M15)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError, PrecisionWarning, warn
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Evaluated, Given, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Invalid, Machine
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Switch
from mercer.machines.shared.targets import check_target_block
from mercer.machines.windows.bandwidth import by_leave_one_out, windows
from mercer.solve.solution import Certificate, Status
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Memory, Table, Targets, Weights


class NadarayaWatson(MultiOutputMixin, RegressorMixin, Machine):
    """A weighted mean of the targets, with the kernel as a window around x.

        f(x) = Σ w_i k(x_i, x) y_i / Σ w_i k(x_i, x)

    Nothing is solved and nothing need be positive semi-definite: the kernel is a weight that must be nowhere
    negative. f is a mean of targets, so it never leaves their range, and it is no combination Σ c_j k(x_j,
    ·): `KernelRidge` and `GaussianProcessRegressor` find one of those with the same kernel.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    loo_predictions_, loo_error_ : for each row the prediction without it, and the mean of the squared errors
        (by weight).
    kernel_, X_fit_, y_fit_, weights_, certificate_

    >>> from mercer import NadarayaWatson
    >>> model = NadarayaWatson("Laplacian(1.0)").fit([[0.0], [1.0]], [0.0, 1.0])
    >>> model.predict([[0.5]]).tolist(), model.loo_predictions_.tolist()
    ([0.5], [1.0, 0.0])
    """

    invalid: ClassVar[Invalid] = Invalid(
        "",
        "the kernel is not positive semi-definite; a window of weights need not be, so nothing is lost",
        needed=False,
    )
    parameters: ClassVar[Declarations] = {
        "kernel": TABLE["kernel"].but(
            about='A kernel, its text, or "precomputed" (a block of weights, rows = new, columns = training).'
        ),
        "bandwidth": Choice(
            ("kernel", "loo"),
            about="The lengthscale of the kernel as it is, or the multiple of it with the smallest error of "
            "leaving one out, which has a closed form: the row is left out of both sums.",
        ),
        "strict": Switch(
            about="Refuse a kernel that is not positive semi-definite; else the certificate says so, and "
            "nothing is lost."
        ),
    }

    X_fit_: Matrix
    y_fit_: Array
    weights_: Array

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        bandwidth: str = "kernel",
        strict: bool = False,
        memory: Memory = "2GiB",
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.strict = strict
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: Table, y: Targets, sample_weight: Weights = None) -> Self:
        """Remember rows, targets and weights, and leave each row out once.

        A row of weight 2 counts twice, of weight 0 not at all.
        """
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        Y, self._single = check_target_block(y, A.shape[0], type(self).__name__)
        w = check_weights(sample_weight, A.shape[0])
        on = self._kernel_on(A, w)
        self.X_fit_ = on.matrix if isinstance(on, Given) else A
        self.y_fit_ = Y
        self.weights_ = w
        notes: tuple[str, ...] = ()
        if self.bandwidth == "loo":
            self.kernel_, note = by_leave_one_out(on.kernel, self._error_of)
            on = self.again_on(A)
            notes = (note,)
        left, _ = self._left_out(on)
        self.loo_predictions_ = left[:, 0] if self._single else left
        self.loo_error_ = self._error(left)
        notes += self._judged(on, rows=np.flatnonzero(w > 0))
        self.certificate_ = Certificate(Status.CONVERGED, "weighted means", residual=0.0, notes=notes)
        return self

    def predict(self, X: Table) -> Array:
        """Σ w k y / Σ w k. Where no row is in the window, the mean of all targets, with a warning."""
        check_is_fitted(self, "weights_")
        A = self.check_rows(X, reset=False)
        found, empty = self._means(A)
        if empty:
            warn(
                f"{empty} of {A.shape[0]} rows have no training row in their window: k(x, x_i) is 0 to the "
                "last digit. They get the mean of all targets. Use a longer lengthscale, or a kernel with "
                "heavier tails.",
                PrecisionWarning,
            )
        return found[:, 0] if self._single else found

    def _means(self, A: Matrix) -> tuple[Array, int]:
        """The weighted means at checked rows, and how many rows have an empty window."""
        out = np.empty((A.shape[0], self.y_fit_.shape[1]))
        empty = 0
        for part, K in windows(self._fitted_on(self.X_fit_), A):
            out[part], lost = self._mean(K)
            empty += lost
        return out, empty

    def _left_out(self, on: KernelOnRows) -> tuple[Array, int]:
        """The prediction for each row of fit without itself, and how many are alone in their window."""
        A = self.X_fit_
        out = np.empty_like(self.y_fit_)
        empty = 0
        for part, K in windows(on, A):
            rows = np.arange(A.shape[0])[part]
            K = K.copy()
            K[np.arange(len(rows)), rows] = 0.0
            out[part], lost = self._mean(K, rows)
            empty += lost
        return out, empty

    def _error_of(self, kernel: Kernel) -> float:
        """The error of leaving one out; infinite where a row is alone, so that nothing predicts it."""
        on = Evaluated.of(kernel, self.as_rows(self.X_fit_), n_jobs=self.n_jobs)
        left, empty = self._left_out(on)
        return np.inf if empty else self._error(left)

    def _mean(self, K: Array, without: Integers | None = None) -> tuple[Array, int]:
        """Means by the weights K; where they are all 0 the mean of all targets, or of all but `without`."""
        weights = K * self.weights_
        # a common factor of a row cancels; without it sums of tiny weights would lose their digits
        top = weights.max(axis=1, keepdims=True)
        empty = top[:, 0] == 0
        weights = np.divide(weights, top, out=np.zeros_like(weights), where=top > 0)
        total = weights.sum(axis=1, keepdims=True)
        means = np.divide(
            weights @ self.y_fit_, total, out=np.zeros((len(K), self.y_fit_.shape[1])), where=total > 0
        )
        w = self.weights_
        Y = self.y_fit_
        own = np.zeros(len(K))
        part = np.zeros((len(K), Y.shape[1]))
        if without is not None:
            own = w[without]
            part = w[without, None] * Y[without]
        rest = np.maximum(w.sum() - own, np.finfo(float).tiny)[:, None]
        means[empty] = ((w @ Y - part) / rest)[empty]
        return means, int(empty.sum())

    def _error(self, left: Array) -> float:
        squares = np.square(left - self.y_fit_).mean(axis=1)
        return float(self.weights_ @ squares / self.weights_.sum())

    def _functions(self) -> Functions:
        raise ParameterError(
            "NadarayaWatson is a ratio of two sums, no function Σ c_j k(x_j, ·) + b: it has no norm and no "
            "place in the span of the data. KernelRidge and GaussianProcessRegressor have, with the same "
            "kernel."
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
