"""Machines whose functions are sums over support vectors.

f = Σ_j β_j k(x_j, ·) + b,    over the rows with a coefficient
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InputError
from mercer.gram import GramOperator
from mercer.gram.explicit import FeatureGram
from mercer.gram.functions import Functions
from mercer.gram.met_features import map_on
from mercer.gram.on_rows import Approximated, Evaluated, FeatureSize, KernelOnRows, feature_products
from mercer.kernels import Kernel
from mercer.kernels.things.sparse_map import SparseMap
from mercer.machines.shared.base import check_weights, require_rows_of_fit
from mercer.machines.shared.machine import Machine
from mercer.memory import memory_limit
from mercer.solve.operator import Operator
from mercer.solve.plan import entry_cost, in_features, sparse_entry_cost, too_few_for_features
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Table, Targets, Weights

if TYPE_CHECKING:
    from mercer.kernels.maps.explicit import FeatureMap


class SupportMachine(Machine):
    """`support_` are places among the rows of fit, `support_vectors_` those rows.

    `dual_coef_` is functions × support vectors.
    """

    support_: Integers
    support_vectors_: Matrix
    dual_coef_: Array
    intercept_: Array
    n_rows_fit_: int
    coef_: Array
    feature_map_: FeatureMap | SparseMap

    def _in_features(self, on: KernelOnRows) -> FeatureGram | None:
        """K by explicit features, where they promise to cost less than entries of K; else None."""
        if too_few_for_features(len(on)):
            return None
        size = on.feature_size()
        if size is None:
            return None
        rows = self._rows_entry_cost(on, size)
        limit = memory_limit(self.memory)
        if not in_features(len(on), size.features, size.numbers, entry=rows, memory=limit):
            return None
        return on.explicit()

    @staticmethod
    def _rows_entry_cost(on: KernelOnRows, size: FeatureSize) -> float:
        """What one entry of K costs, as the planner counts."""
        if not isinstance(on, Evaluated):
            return entry_cost(on.phi.shape[1]) if isinstance(on, Approximated) else entry_cost(None)
        if isinstance(on.feature_map, SparseMap):
            return sparse_entry_cost(size.numbers / max(len(on), 1))
        data: Matrix = on.rows.data
        if sparse.issparse(data):
            return sparse_entry_cost(data.nnz / max(len(on), 1))
        return entry_cost(on.rows.width)

    def _keep_coef(self, on: KernelOnRows, K: GramOperator | None, coef: Array) -> None:
        """w = Σ_j coef_j φ(x_j), functions × features, by which `predict` works; `coef` is for all rows.

        Only where the kernel itself was replaced by its explicit features. Of things the map is that of the
        support vectors, from which a model that is loaded makes it again: other features have no weight.
        """
        for name in ("coef_", "feature_map_"):
            self.__dict__.pop(name, None)
        if not isinstance(K, FeatureGram) or not isinstance(on, Evaluated):
            return
        assert on.feature_map is not None
        if not isinstance(on.feature_map, SparseMap):
            self.coef_ = np.ascontiguousarray(K.weights(coef.T).T)
            self.feature_map_ = on.feature_map
        elif len(self.support_):
            phi = self._map_of_support()
            self.coef_ = np.ascontiguousarray(FeatureGram(phi.matrix).weights(self.dual_coef_.T).T)
            self.feature_map_ = phi.without_rows()

    def _map_of_support(self) -> SparseMap:
        """φ on the features that the support vectors have."""
        assert isinstance(self.kernel_, Kernel)
        phi = map_on(self.kernel_, self.as_rows(self.support_vectors_))
        if phi is None:
            raise InputError(f"{self.kernel_} has no sparse features on the support vectors.")
        return phi

    def map_again(self) -> None:
        """Make `feature_map_` anew from the support vectors: for a model from a file, which leaves it out."""
        phi = self._map_of_support()
        if phi.dimension != self.coef_.shape[1]:
            raise InputError(f"{self.coef_.shape[1]} weights are not those of the features of these rows.")
        self.feature_map_ = phi.without_rows()

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
        self.require_fit("dual_coef_")
        A = self.check_rows(X, reset=False)
        if "coef_" in self.__dict__:
            return feature_products(self.feature_map_, self.as_rows(A), self.coef_.T) + self.intercept_
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
        require_rows_of_fit(A.shape[0], self.n_rows_fit_)
        return A, *self._targets_again(y, check_weights(sample_weight, A.shape[0]))

    def _targets_again(self, y: Targets, w: Array) -> tuple[Any, Array]:
        """Targets and weights of a fitted model, as its problems take them."""
        raise NotImplementedError


def in_words(K: Operator, method: str) -> str:
    """How a problem was solved, for its certificate: in explicit features, where K has them."""
    if isinstance(K, FeatureGram):
        return f"primal, {method} in {K.dimension} features"
    return method
