"""Let scikit-learn's own names mean the twins, in this process."""

from __future__ import annotations

import sys

import sklearn.gaussian_process
import sklearn.svm

from mercer.sklearn import gaussian_process, svm

# scikit-learn's class -> its twin; a new twin is one more row
TWINS: dict[type, type] = {
    getattr(room, twin.__name__): twin
    for room, twins in (
        (sklearn.svm, (svm.SVC, svm.SVR, svm.NuSVC, svm.NuSVR, svm.OneClassSVM)),
        (
            sklearn.gaussian_process,
            (gaussian_process.GaussianProcessClassifier, gaussian_process.GaussianProcessRegressor),
        ),
    )
    for twin in twins
}


def patch() -> None:
    """Let `sklearn.svm.SVC` and its siblings name the twins from now on, also where scikit-learn itself imported them."""
    _rebind(TWINS)


def unpatch() -> None:
    """Undo `patch`."""
    _rebind({twin: original for original, twin in TWINS.items()})


def _rebind(change: dict[type, type]) -> None:
    for name, module in list(sys.modules.items()):
        if name == "sklearn" or name.startswith("sklearn."):
            for key, value in list(vars(module).items()):
                if isinstance(value, type) and value in change:
                    setattr(module, key, change[value])
