"""Let scikit-learn's own names mean the twins, in this process."""

from __future__ import annotations

import sys

import sklearn.decomposition
import sklearn.gaussian_process
import sklearn.kernel_ridge
import sklearn.svm

from mercer.sklearn import gaussian_process, kernel_pca, kernel_ridge, svm

# scikit-learn's class -> its twin; a new twin is one more row
TWINS: dict[type, type] = {
    sklearn.svm.SVC: svm.SVC,
    sklearn.svm.SVR: svm.SVR,
    sklearn.svm.NuSVC: svm.NuSVC,
    sklearn.svm.NuSVR: svm.NuSVR,
    sklearn.svm.OneClassSVM: svm.OneClassSVM,
    sklearn.gaussian_process.GaussianProcessClassifier: gaussian_process.GaussianProcessClassifier,
    sklearn.gaussian_process.GaussianProcessRegressor: gaussian_process.GaussianProcessRegressor,
    sklearn.kernel_ridge.KernelRidge: kernel_ridge.KernelRidge,
    sklearn.decomposition.KernelPCA: kernel_pca.KernelPCA,
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
