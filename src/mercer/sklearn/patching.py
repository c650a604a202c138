"""Let scikit-learn's own names mean the twins, in this process."""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable

import sklearn.decomposition
import sklearn.gaussian_process
import sklearn.kernel_ridge
import sklearn.svm
from sklearn.base import BaseEstimator

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
    """Let `sklearn.svm.SVC` and its siblings name the twins from now on.

    That holds where scikit-learn itself imported them, too. Classes imported before stay what they were, and
    their models can still be pickled: the private module that defines a class keeps it. Where that module is
    the public one, models are pickled by the name of their class.
    """
    _rebind(TWINS)
    for original in TWINS:
        if not _is_private(original.__module__):
            copyreg.pickle(original, _by_name)


def unpatch() -> None:
    """Undo `patch`."""
    _rebind({twin: original for original, twin in TWINS.items()})
    for original in TWINS:
        copyreg.dispatch_table.pop(original, None)


def _rebind(change: dict[type, type]) -> None:
    for name, module in list(sys.modules.items()):
        if name == "sklearn" or name.startswith("sklearn."):
            for key, value in list(vars(module).items()):
                if not isinstance(value, type) or value not in change:
                    continue
                if value.__module__ != name or not _is_private(name):
                    setattr(module, key, change[value])


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def _by_name(
    model: BaseEstimator,
) -> tuple[Callable[[str, str], BaseEstimator], tuple[str, str], dict[str, object]]:
    """How to pickle a model of a class whose public name means its twin."""
    kind = type(model)
    return empty_original, (kind.__module__, kind.__qualname__), model.__reduce_ex__(2)[2]


def empty_original(module: str, name: str) -> BaseEstimator:
    """A model of scikit-learn's own class of that name, before its state is put in; patched or not."""
    for original in TWINS:
        if (original.__module__, original.__qualname__) == (module, name):
            return object.__new__(original)
    raise LookupError(f"{module}.{name} is no class that mercer.sklearn replaces.")
