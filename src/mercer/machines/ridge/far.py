"""Ridge regression in features of rows that are on the workers of a cluster: the sums are made there.

The normal equations are summed in one pass, with an intercept after one for the mean; every gradient is one
more. D × D numbers come back from the first, n from each of the others; Φ is nowhere as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer.gram.far_features import FarFeatures, FeatureSums
from mercer.solve.primal import FeatureRidge
from mercer.typing import Array


@dataclass(frozen=True, eq=False)
class FarRidge(FeatureRidge):
    """`FeatureRidge` with the sums over rows made by the workers."""

    far: FarFeatures = field(kw_only=True)

    @property
    def _mean(self) -> Array | None:
        return self.mean if self.intercept else None

    def _sums(self, Y: Array) -> FeatureSums:
        """The sums of a pass, of which the products and the lengths are kept for those who ask later."""
        found = self.far.sums(self.weight, Y, self._mean)
        self.__dict__["_summed"] = found
        return found

    @property
    def _known(self) -> FeatureSums:
        known: FeatureSums | None = self.__dict__.get("_summed")
        return self._sums(np.empty((len(self.weight), 0))) if known is None else known

    def _weighted_sum(self) -> Array:
        return self.far.pull(self.weight)

    def _products(self) -> Array:
        # It is overwritten by its factor.
        return self._known.products.copy()

    def _goal(self, Y: Array) -> Array:
        return self._sums(Y).goal

    def _gradient(self, Y: Array, beta: Array) -> tuple[Array, Array]:
        R, pull = self.far.errors(Y, self.weight, beta, self._mean)
        return R, pull - self.alpha * beta

    def _squares(self) -> Array:
        return self.far.squares(self.factor.lower, self._mean)

    def image(self, V: Array) -> Array:
        return self.far.push(V)

    def pull(self, R: Array) -> Array:
        return self.far.pull(R)

    def held(self) -> float:
        return float(self._known.norms.sum())

    def plain(self) -> FarRidge:
        return FarRidge(self.blocks, self.dimension, np.ones(len(self.weight)), 0.0, far=self.far)
