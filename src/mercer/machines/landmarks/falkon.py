"""Falkon: ridge and logistic regression on the span of landmarks, for more rows than fit in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer import lapack
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.batches import Batch
from mercer.machines.landmarks.falkon_blocks import Shared, newton_in_blocks
from mercer.machines.landmarks.falkon_fit import Falkon
from mercer.machines.landmarks.falkon_newton import newton, remember
from mercer.machines.landmarks.streamed import Scan, Streamed
from mercer.machines.shared.base import duels_of
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Number
from mercer.machines.shared.targets import as_labels, check_finite_targets, check_numbers
from mercer.solve.solution import Certificate
from mercer.typing import Array, Labels, Memory, Numbers, Seed, Table, Targets, Weights

# Entries of k(x, Z), rows times landmarks, up to which two classes are solved by sums of products for every
# step of Newton's. Beyond it, features that are made once serve all steps: by size alone, so that the answer
# of a small problem does not depend on `memory`.
SUMMED_ENTRIES = 1 << 22


class FalkonRegressor(RegressorMixin, Falkon):
    """Kernel ridge regression on the span of landmarks, in memory that does not grow with the rows.

        min Σ w_i (y_i - f(x_i))² + α‖f‖²   over   f = Σ_j c_j k(·, z_j)

    With all rows as landmarks it is kernel ridge regression. White noise σ² in the kernel counts as penalty,
    α + σ².

    Parameters
    ----------
    {shared parameters}

    `fit` takes arrays (memory-mapped ones are read in slices), or `Batches` and other re-iterable sources of
    (X, y) or (X, y, weight), whose rows are numbers.

    Attributes
    ----------
    landmarks_, coef_ : f(x) = k(x, landmarks_) @ coef_.
    certificate_ : residual; `gap` bounds by how much the objective could still fall; landmarks dropped.
    alpha_ : the penalty used. n_iter_ : passes over the rows. basis_, kernel_, noise_ (of `White` terms),
    n_rows_fit_

    >>> from mercer import FalkonRegressor
    >>> X = np.linspace(0.0, 3.0, 400)[:, None]
    >>> model = FalkonRegressor("RBF(0.5)", 20, alpha=1e-3, landmarks="pivoted").fit(X, np.sin(3 * X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(3 * X[:, 0])).max() < 0.01)
    True
    """

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_landmarks: int = 1000,
        alpha: float | None = None,
        *,
        landmarks: str | Numbers = "uniform",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 500,
        max_seconds: float | None = None,
        strict: bool = False,
        dtype: str = "float64",
        memory: Memory = "2GiB",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.landmarks = landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.dtype = dtype
        self.memory = memory
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_targets(self, y: Targets | None, n: int) -> Labels:
        return check_numbers(y, n, type(self).__name__)

    def _look(self, y: Labels) -> None:
        if y.dtype.kind not in "fiub":
            raise InputError(f"y must hold numbers; a batch has type {y.dtype}.")
        check_finite_targets(y)

    def _solve(self, system: Streamed, found: Scan) -> tuple[Array, Certificate]:
        return self._ridge(system, found, lambda y, rows: np.asarray(y, dtype=np.float64)[:, None])

    def predict(self, X: Table) -> Array:
        """k(x, landmarks_) @ coef_."""
        return self._values(X)[:, 0]


def _is_logistic(self: FalkonClassifier) -> bool:
    if self.loss != "logistic":
        raise AttributeError(f"predict_proba is there with loss='logistic'; this one has loss={self.loss!r}.")
    return True


class FalkonClassifier(ClassifierMixin, Falkon):
    """Kernel logistic (or least-squares) classification on the span of landmarks, in bounded memory.

        min Σ w_i log(1 + e^(-t_i f(x_i))) + α/2 ‖f‖²,   t_i = ±1,   over   f = Σ_j c_j k(·, z_j)

    by Newton's method; each step is a weighted ridge problem, solved as in `FalkonRegressor`.
    `loss="squared"` is one ridge problem Σ w_i (t_i - f(x_i))² + α‖f‖². More than two classes: one against
    the rest, each with its own f, all at once: a pass over the rows and a preconditioner serve all of them,
    and the steps are found by conjugate gradients (one after the other with `solver="direct"`). Newton's
    method keeps some numbers for each row and class, of as many classes at a time as fit in 256 MiB, and
    k(x, Z) if that fits in `memory`. White noise in the kernel is a part of every row's own, as in
    `KernelMachine`: with all rows as landmarks both are the same.

    Attributes are those of `FalkonRegressor`. `gap` in the certificate is ‖gradient‖² / 2α, the most by which
    the objective could still fall.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import FalkonClassifier
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> y = np.where(np.sin(4 * X[:, 0]) > 0, "up", "down")
    >>> model = FalkonClassifier("RBF(0.3)", 20, alpha=0.01, landmarks="pivoted").fit(X, y)
    >>> bool(model.score(X, y) > 0.98), model.predict_proba(X).shape
    (True, (200, 2))
    """

    parameters: ClassVar[Declarations] = {
        "loss": Choice(
            ("logistic", "squared"), about="Logistic loss by Newton's method, or one ridge problem."
        ),
        "tol": Number(
            about="The length of the gradient, relative to that at f = 0; of the squared loss, the relative "
            "residual of the normal equations."
        ),
        "max_iter": TABLE["max_iter"].but(
            about="Newton steps, or passes of conjugate gradients for the squared loss; None for no limit."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_landmarks: int = 1000,
        alpha: float | None = None,
        *,
        loss: str = "logistic",
        landmarks: str | Numbers = "uniform",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = 100,
        max_seconds: float | None = None,
        strict: bool = False,
        dtype: str = "float64",
        memory: Memory = "2GiB",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.loss = loss
        self.landmarks = landmarks
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.strict = strict
        self.dtype = dtype
        self.memory = memory
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Table | Iterable[Batch], y: Targets | None = None, sample_weight: Weights = None
    ) -> Self:
        """Learn from rows X and labels y, or from `Batches`; a row of weight 2 counts twice."""
        self._labels: Labels | None = None
        return super().fit(X, y, sample_weight)

    def _check_targets(self, y: Targets | None, n: int) -> Labels:
        return as_labels(y, n, type(self).__name__)

    def _function_facts(self) -> dict[str, Any]:
        return {"classes": self.classes_, "duels": duels_of(self.classes_)}

    def _look(self, y: Labels) -> None:
        check_finite_targets(y)
        fresh = np.unique(y)
        if self._labels is not None:
            fresh = np.unique(np.concatenate([self._labels, fresh]))
        self._labels = fresh

    def _say_noise(self) -> str:
        if self.loss == "squared":
            return super()._say_noise()
        return (
            f"White noise of {self.noise_:.6g} in the kernel: every row has a part of its own, minimised "
            "away in the loss"
        )

    def _solve(self, system: Streamed, found: Scan) -> tuple[Array, Certificate]:
        assert self._labels is not None
        self.classes_: Labels = self._labels
        del self._labels
        k = len(self.classes_)
        if k < 2:
            raise InputError(
                f"y has one class only, {self.classes_[0]!r}, and a classifier needs at least two (the "
                "number of classes has to be greater than one; got 1 class)."
            )
        wanted = self.classes_[1:] if k == 2 else self.classes_

        def targets(y: Labels, rows: slice) -> Array:
            return np.where(y[:, None] == wanted[None, :], 1.0, -1.0)

        if self.loss == "squared":
            return self._ridge(system, found, targets)
        known = self._penalty(system, found, targets, logistic=True)
        labels, weights = remember(system)
        few = k == 2 and found.n * self.basis_.rank <= SUMMED_ENTRIES
        one_by_one = few or self.solver == "direct"
        if one_by_one:
            system.keep()
            w, c = newton(
                system,
                labels,
                weights,
                wanted,
                self.alpha_,
                noise=self.noise_,
                direct=self._direct and not known.late,
                tol=float(self.tol),
                max_iter=self.max_iter,
                tell=self._teller(),
            )
        else:
            w, c = newton_in_blocks(
                system,
                labels,
                weights,
                wanted,
                self.alpha_,
                self._shared(system, found, known.values, known.vectors),
                noise=self.noise_,
                tol=float(self.tol),
                max_iter=self.max_iter,
                tell=self._teller(),
            )
        return w, replace(c, notes=(*known.said, *c.notes))

    def _shared(self, system: Streamed, found: Scan, values: Array | None, vectors: Array | None) -> Shared:
        """The preconditioner of all classes: by the sums over all rows, or else by the landmarks."""
        if values is None or vectors is None:
            lower = np.tril(self.basis_.lower)
            share = found.weight / self.basis_.rank
            values, vectors = lapack.eigh(share * lapack.matmul(lower.T, lower), overwrite_a=True)
        return Shared.of(self.basis_, values, vectors, found.weight)

    def decision_function(self, X: Table) -> Array:
        """Two classes: n values, positive for `classes_[1]`. More: n × classes, the largest one wins."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Table) -> Labels:
        """The class with the largest decision value."""
        scores = self.decision_function(X)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Labels = self.classes_[winners]
        return labels

    @available_if(_is_logistic)
    def predict_proba(self, X: Table) -> Array:
        """Probabilities n × classes: the logistic function of the decision values, normalised."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1 - p, p])
        total = p.sum(axis=1, keepdims=True)
        shares: Array = np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
        return shares
