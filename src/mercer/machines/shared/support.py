"""Machines whose functions are sums over support vectors.

f = Σ_j β_j k(x_j, ·) + b,    over the rows with a coefficient
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import ShapeError
from mercer.gram.functions import Functions
from mercer.gram.on_rows import Approximated, KernelOnRows
from mercer.machines.shared.base import check_weights
from mercer.machines.shared.machine import Machine
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Table, Targets, Weights


class SupportMachine(Machine):
    """`support_` are places among the rows of fit, `support_vectors_` those rows.

    `dual_coef_` is functions × support vectors.
    """

    support_: Integers
    support_vectors_: Matrix
    dual_coef_: Array
    intercept_: Array
    n_rows_fit_: int

    def _keep_support(self, on: KernelOnRows, A: Matrix, used: Integers, coef: Array) -> None:
        """Keep the rows `used` and their coefficients, functions × rows used."""
        self.support_ = used.astype(np.int32)
        self.support_vectors_ = np.empty((len(used), 0)) if on.kernel is None else A[used]
        self.dual_coef_ = np.ascontiguousarray(coef)
        self.n_rows_fit_ = A.shape[0]
        if isinstance(on, Approximated):
            self._keep_feature_coef(on.part(used), self.dual_coef_.T)

    def _values(self, X: Table) -> Array:
        """Every function on new rows, n × functions; only kernel products with support vectors."""
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        return self._products(A, self.support_vectors_, self.dual_coef_.T, self.support_) + self.intercept_

    def _functions(self) -> Functions:
        check_is_fitted(self, "dual_coef_")
        return self._functions_on(
            self.support_vectors_,
            self.dual_coef_.T,
            self.intercept_,
            self.support_,
            known_norms=getattr(self, "norms_", None),
            **self._function_facts(),
        )

    def _function_facts(self) -> dict[str, Any]:
        """What is special about the functions of this machine: classes, duels, a name."""
        return {}

    def check_again(self, X: Table, y: Targets, sample_weight: Weights) -> tuple[Matrix, Any, Array]:
        """Data and targets checked against the fitted model, for `mercer.verify` and `mercer.theory`."""
        check_is_fitted(self, "dual_coef_")
        A = self.check_rows(X, reset=False)
        if A.shape[0] != self.n_rows_fit_:
            raise ShapeError(
                f"X has {A.shape[0]} rows; the model was fitted on {self.n_rows_fit_}. "
                "Pass the training data."
            )
        return A, *self._targets_again(y, check_weights(sample_weight, A.shape[0]))

    def _targets_again(self, y: Targets, w: Array) -> tuple[Any, Array]:
        """Targets and weights of a fitted model, as its problems take them."""
        raise NotImplementedError
