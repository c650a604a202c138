"""The perceptron in an explicit feature space (Algorithm 29) and by kernel products alone (Algorithm 30).

Both see the rows in the same order, so they make the same mistakes: w = Σ α_n φ(x_n) throughout (Theorem
12). The two sums round differently, so a score that is no further from 0 than its own rounding counts as 0
in both, and 0 is a mistake.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ParameterError
from mercer.gram.functions import ByFeatures, Functions
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.margin.one_by_one import Expansion, MistakeDriven, Row, row_of
from mercer.machines.shared.base import duels_of, resolve
from mercer.machines.shared.parameters import (
    TABLE,
    Declarations,
)
from mercer.sparse import Matrix, dense
from mercer.typing import Array, Integers, Labels, Seed, Table, Targets
from mercer.vectors import check_vectors

if TYPE_CHECKING:
    pass


class KernelPerceptron(Expansion):
    """The perceptron that sees data only through kernel products.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    mistakes_ : rows in the order of the mistakes made on them; `n_mistakes_` their number, to hold against
        Novikoff's bound; `alpha_` the coefficients of all rows, `support_`, `support_vectors_`,
        `dual_coef_`, `intercept_`.
    certificate_ : "converged" after a pass without a mistake.

    >>> from mercer import KernelPerceptron
    >>> model = KernelPerceptron("Polynomial(2)").fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1])
    >>> model.predict([[0, 0], [0, 1]]).tolist(), model.converged_
    ([0, 1], True)
    """

    parameters: ClassVar[Declarations] = {
        "approximation": TABLE["approximation"].but(
            about="Features in place of the kernel, learned from the rows of `fit` or of the first "
            "`partial_fit`."
        ),
    }

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        *,
        max_iter: int | None = 100,
        average: str = "last",
        fit_intercept: bool = True,
        shuffle: bool = False,
        random_state: Seed = None,
        approximation: Approximation | None = None,
        strict: bool = False,
    ) -> None:
        self.kernel = kernel
        self.max_iter = max_iter
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.approximation = approximation
        self.strict = strict

    def fit(self, X: Table, y: Targets) -> Self:
        """Algorithm 30."""
        start = time.perf_counter()
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        y = self._signs(y, A.shape[0])
        _, K = self._learn_from(A)
        row = row_of(K)
        self._begin(A)
        self._norms = np.sqrt(np.abs(K.diag()))
        self._y = y
        order = np.arange(len(y))
        if self.shuffle:
            np.random.default_rng(self.random_state).shuffle(order)
        last, status = self._passes(lambda: self._pass(row, y, order))
        self._finish()
        self._certify(start, last=last, status=status)
        return self

    def _begin(self, A: Matrix) -> None:
        n = A.shape[0]
        self._A = A
        # α ← 0, b ← 0; f = Kα
        self.alpha_ = np.zeros(n)
        self.b_ = 0.0
        self._f = np.zeros(n)
        self._sum = np.zeros(n)
        self._sum_b = 0.0
        self._steps = 0
        self._made = []
        self._reach = 0.0
        self._lives: list[int] = [0]

    def _pass(self, row: Row, y: Array, order: Integers, first: int = 0) -> None:
        for n in order:
            a = self._f[n] + self.b_  # a ← Σ_m α_m k(x_m, x_n) + b
            if self._mistaken(a, y[n], self._norms[n]):
                self.alpha_[n] += y[n]  # α_n ← α_n + y_n
                self._f += y[n] * row(n - first)
                self._sum[n] += y[n] * self._steps
                self._reach += self._norms[n]
                if self.fit_intercept:
                    self.b_ += y[n]  # b ← b + y_n
                    self._sum_b += y[n] * self._steps
                self._made.append(int(n))
                self._lives.append(0)
            self._lives[-1] += 1
            self._steps += 1

    def _finish(self) -> None:
        self.mistakes_ = np.array(self._made, dtype=np.intp)
        self.n_mistakes_ = len(self._made)
        alpha = self.alpha_
        b = self.b_
        if self.average == "averaged" and self._steps:
            alpha = alpha - self._sum / self._steps
            b = b - self._sum_b / self._steps
        self.intercept_ = np.array([b])
        self.lives_ = np.array(self._lives)
        used = np.flatnonzero(alpha) if self.average != "voted" else np.unique(self.mistakes_)
        on = self._fitted_on(self._A)
        self._keep_support(on, self._A, used, alpha[used].reshape(1, -1))
        if self.average == "voted":
            self._keep_feature_coef(on.part(used), self._versions())

    def partial_fit(self, X: Table, y: Targets, classes: Labels | None = None) -> Self:
        """One pass over some more rows; the first call must see, or be told, both classes."""
        start = time.perf_counter()
        first = not hasattr(self, "alpha_")
        if first:
            self._check_parameters()
            A = self.check_rows(X, reset=True)
            signs = self._signs(y, A.shape[0], classes)
            if self._kernel_on(A).kernel is None:
                raise ParameterError(
                    "partial_fit cannot grow a precomputed Gram matrix; give the kernel itself."
                )
            self._begin(A[:0])
        else:
            A = self.check_rows(X, reset=False)
            signs = self._signs(y, A.shape[0], self.classes_)
        old, new = self._A.shape[0], A.shape[0]
        self._A = _stack(self._A, A) if old else A
        self._y = np.concatenate([self._y, signs]) if old else signs
        grow = np.zeros(new)
        self.alpha_ = np.concatenate([self.alpha_, grow])
        self._sum = np.concatenate([self._sum, grow])
        on = self.again_on(self._A)
        whole = on.gram(memory=0)
        self._notes = self._judged(on, whole)
        K = whole.block(slice(old, None), slice(None))
        self._f = np.concatenate([self._f, K @ self.alpha_])
        self._norms = np.sqrt(np.abs(whole.diag()))
        before = len(self._made)
        self._pass(K.__getitem__, self._y, np.arange(old, old + new), first=old)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self.converged_ = len(self._made) == before
        self._finish()
        self._certify(start, last=len(self._made) - before)
        return self

    def decision_function(self, X: Table) -> Array:
        """Σ α_n k(x_n, x) + b over the rows with mistakes; or the share of votes, from -1 to 1."""
        if self.average != "voted":
            return super().decision_function(X)
        check_is_fitted(self, "dual_coef_")
        biases = np.concatenate([[0.0], np.cumsum(self._mistake_signs())]) if self.fit_intercept else 0.0
        A = self.check_rows(X, reset=False)
        products = self._products(A, self.support_vectors_, self._versions(), self.support_)
        votes = np.sign(products + biases)
        return np.asarray(votes @ self.lives_ / max(int(self.lives_.sum()), 1))

    def _functions(self) -> Functions:
        if self.average == "voted":
            raise ParameterError(
                "average='voted' lets many planes vote, and their vote is no function in the span of the "
                "data. Fit with average='last' or 'averaged' to ask for f."
            )
        return super()._functions()

    def _mistake_signs(self) -> Array:
        return np.sign(self.alpha_[self.mistakes_])

    def _versions(self) -> Array:
        """The coefficients after each mistake, one column for each version."""
        at = np.searchsorted(self.support_, self.mistakes_)
        steps = np.zeros((len(self.support_), self.n_mistakes_ + 1))
        steps[at, np.arange(1, self.n_mistakes_ + 1)] = self._mistake_signs()
        return np.cumsum(steps, axis=1)


class Perceptron(MistakeDriven):
    """The perceptron in an explicit feature space: the primal twin of `KernelPerceptron`.

    The space is that of a kernel with a finite map φ; of "Linear()", the columns themselves.

    Parameters
    ----------
    {shared parameters}

    >>> from mercer import Perceptron
    >>> model = Perceptron("Polynomial(2)").fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1])
    >>> model.predict([[0, 0], [0, 1]]).tolist(), model.coef_.shape
    ([0, 1], (1, 6))
    """

    parameters: ClassVar[Declarations] = {
        "kernel": TABLE["kernel"].but(about="A kernel with a finite map, or its text."),
    }

    def __init__(
        self,
        kernel: Kernel | str = "Linear()",
        *,
        max_iter: int | None = 100,
        average: str = "last",
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.max_iter = max_iter
        self.average = average
        self.fit_intercept = fit_intercept

    def fit(self, X: Table, y: Targets) -> Self:
        """Algorithm 29."""
        start = time.perf_counter()
        self._check_parameters()
        if self.average == "voted":
            raise ParameterError("average='voted' is for KernelPerceptron; the primal twin keeps one w.")
        A = self.check_rows(X, reset=True)
        y = self._signs(y, A.shape[0])
        self._begin(A)
        phi = self._phi(A)
        last, status = self._passes(lambda: self._pass(phi, y))
        self._finish()
        self._certify(start, last=last, status=status)
        return self

    def partial_fit(self, X: Table, y: Targets, classes: Labels | None = None) -> Self:
        """One pass over some more rows; the first call must see, or be told, both classes."""
        start = time.perf_counter()
        first = not hasattr(self, "coef_")
        if first:
            self._check_parameters()
        A = self.check_rows(X, reset=first)
        signs = self._signs(y, A.shape[0], classes if first else self.classes_)
        if first:
            self._begin(A)
        before = len(self._made)
        self._pass(self._phi(A), signs)
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        self.converged_ = len(self._made) == before
        self._finish()
        self._certify(start, last=len(self._made) - before)
        return self

    def _begin(self, A: Matrix) -> None:
        kernel = resolve(self.kernel, self.as_rows(A))
        if kernel is None:
            raise ParameterError("kernel must be one with a finite map, not 'precomputed'.")
        columns = self.as_rows(A).columns
        if columns is None:
            raise ParameterError(
                "kernel must be one with a finite map of numbers; X holds things that have no columns."
            )
        self.map_ = kernel.features(columns)
        # w ← 0, b ← 0
        self._w = np.zeros(self.map_.dimension)
        self._b = 0.0
        self._w_sum = np.zeros(self.map_.dimension)
        self._b_sum = 0.0
        self._steps = 0
        self._made = []
        self._reach = 0.0

    def _phi(self, A: Matrix) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # the check names what overflowed
            phi = np.asarray(dense(self.map_(self.as_rows(dense(A)))))
        return np.asarray(check_vectors(phi, f"the map of {self.kernel}"))

    def _pass(self, phi: Array, y: Array) -> None:
        norms = np.sqrt(np.einsum("ij,ij->i", phi, phi))
        for n in range(len(y)):
            a = self._w @ phi[n] + self._b  # a ← w·φ(x) + b
            if self._mistaken(a, y[n], norms[n]):
                self._w = self._w + y[n] * phi[n]  # w ← w + y φ(x)
                self._b += y[n] * self.fit_intercept  # b ← b + y
                self._reach += norms[n]
                self._made.append(n)
            self._w_sum = self._w_sum + self._w
            self._b_sum += self._b
            self._steps += 1

    def _finish(self) -> None:
        self.mistakes_ = np.array(self._made, dtype=np.intp)
        self.n_mistakes_ = len(self._made)
        w = self._w
        b = self._b
        if self.average == "averaged":
            w = self._w_sum / max(self._steps, 1)
            b = self._b_sum / max(self._steps, 1)
        self.coef_ = w.reshape(1, -1).copy()
        self.intercept_ = np.array([b])

    def _functions(self) -> Functions:
        check_is_fitted(self, "coef_")
        return ByFeatures(
            map=self._phi,
            weights=self.coef_,
            offset=self.intercept_,
            classes=self.classes_,
            duels=duels_of(self.classes_),
        )

    def decision_function(self, X: Table) -> Array:
        """w·φ(x) + b."""
        check_is_fitted(self, "coef_")
        phi = self._phi(self.check_rows(X, reset=False))
        return np.asarray(phi @ self.coef_[0] + self.intercept_[0])


def _stack(A: Matrix, B: Matrix) -> Matrix:
    return np.vstack([dense(A), dense(B)])
