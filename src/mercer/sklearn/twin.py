"""What every twin is: a scikit-learn estimator that shows its fit whole, and can be verified."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from mercer.machines.shared.publish import Published
from mercer.theory.claims import Examination
from mercer.typing import Table, Targets, Weights


class Twin(Published, BaseEstimator):
    """A drop-in twin of an estimator of scikit-learn."""

    def _examine(self, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
        """Hand what was published, and the same numbers recomputed, to `mercer.verify`."""
        from mercer.sklearn.examine import examine_twin

        examine_twin(self, exam, X, y, sample_weight)
