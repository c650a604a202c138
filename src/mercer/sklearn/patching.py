"""Let scikit-learn's own names mean the twins, in this process."""

from __future__ import annotations

import sys

import sklearn.decomposition
import sklearn.svm

from mercer.sklearn import kernel_pca, svm

# scikit-learn's class -> its twin; a new twin is one more row
TWINS: dict[type, type] = {
    getattr(sklearn.svm, twin.__name__): twin
    for twin in (svm.SVC, svm.SVR, svm.NuSVC, svm.NuSVR, svm.OneClassSVM)
}
TWINS[sklearn.decomposition.KernelPCA] = kernel_pca.KernelPCA


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
