"""What every twin is: a scikit-learn estimator that shows its fit whole, and can be verified.

Its checks are scikit-learn's own. For the plain case, an array of finite float64 numbers and parameters that
have passed before, it is known what they come to, and a small fit would take as long as they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.gram import GramOperator
from mercer.gram.on_rows import KernelOnRows
from mercer.machines.shared.machine import Machine
from mercer.machines.shared.parameters import constructor
from mercer.machines.shared.publish import Published
from mercer.sparse import Matrix
from mercer.theory.claims import Examination
from mercer.typing import Integers, Labels, Table, Targets, Weights
from mercer.vectors import check_vectors

# Values of these types say all of themselves, so that one which passed a check passes it again.
_PLAIN = (float, int, str, bool)


class Twin(Published, BaseEstimator):
    """A drop-in twin of an estimator of scikit-learn."""

    _parameter_constraints: ClassVar[Mapping[str, object]]

    def _examine(self, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
        """Hand what was published, and the same numbers recomputed, to `mercer.verify`."""
        from mercer.sklearn.examine import examine_twin

        examine_twin(self, exam, X, y, sample_weight)

    def _validate_params(self) -> None:
        """scikit-learn's check of the parameters; defaults are known to pass it."""
        kind: type = type(self)
        for name, given in constructor(kind).items():
            value = getattr(self, name)
            if value is given.default:
                continue
            if type(value) in _PLAIN:
                _accepted(kind, name, value)
            else:
                _check_parameter(kind, name, value)

    def _check_fitted(self) -> None:
        """Refuse a twin that is not fitted, in the words of scikit-learn."""
        if "n_features_in_" not in self.__dict__:
            check_is_fitted(self)

    def _checked_rows(self, X: Table, *, reset: bool = False, **checks: object) -> Matrix:
        """X as `validate_data` of scikit-learn returns it."""
        if _plain_numbers(X) and self._known_columns(X, reset):
            return X
        return validate_data(self, X, reset=reset, **checks)

    def _checked_pair(self, X: Table, y: Targets, **checks: object) -> tuple[Matrix, Labels]:
        """X and y of a fit as `validate_data` of scikit-learn returns them."""
        if _plain_numbers(X) and _plain_targets(y, X) and self._known_columns(X, reset=True):
            return X, y
        rows, targets = validate_data(self, X, y, **checks)
        return rows, targets

    def _known_columns(self, X: np.ndarray, reset: bool) -> bool:
        """Whether rows without names have the columns they should have; `reset` remembers them."""
        if "feature_names_in_" in self.__dict__:
            return False
        if reset:
            self.n_features_in_ = X.shape[1]
        return bool(self.__dict__.get("n_features_in_") == X.shape[1])


class Quiet(Machine):
    """A machine inside a twin: scikit-learn does not judge kernels, and words its own warnings."""

    def _judged(
        self, on: KernelOnRows, K: GramOperator | None = None, rows: Integers | None = None
    ) -> tuple[str, ...]:
        return ()

    def _report(self) -> None:
        """Said by the twin, or in the certificate."""

    def check_rows(self, X: Matrix, *, reset: bool) -> Matrix:
        """Names and width are the twin's affair."""
        if reset:
            self.n_features_in_ = X.shape[1]
        return check_vectors(X).astype(np.float64, copy=False)


def check_twin(model: BaseEstimator) -> None:
    """scikit-learn's check of the parameters, where it has one: for model files."""
    if isinstance(model, Twin) and hasattr(model, "_parameter_constraints"):
        model._validate_params()


def _check_parameter(kind: type, name: str, value: object) -> None:
    constraints = kind._parameter_constraints  # type: ignore[attr-defined]
    validate_parameter_constraints(constraints, {name: value}, caller_name=kind.__name__)


@lru_cache(maxsize=1024, typed=True)
def _accepted(kind: type, name: str, value: float | int | str | bool) -> None:
    """Check a plain value once; one that is refused is refused each time."""
    _check_parameter(kind, name, value)


def _plain_numbers(X: object) -> TypeGuard[np.ndarray]:
    """Whether X is what every check of rows returns as it came: a table of finite float64 numbers."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype == np.float64
        and X.flags.c_contiguous
        and X.size > 0
        and bool(np.isfinite(np.vdot(X, X)))
    )


def _plain_targets(y: object, X: np.ndarray) -> TypeGuard[np.ndarray]:
    """Whether y is what every check of targets returns as it came: one finite number for each row."""
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        return False
    if y.dtype == np.float64:
        return bool(np.isfinite(np.vdot(y, y)))
    return y.dtype.kind in "iu"
