"""Drop-in twins of scikit-learn's kernel machines: its signatures and attributes on mercer's machines.

    from mercer.sklearn import SVC                 instead of   from sklearn.svm import SVC
    mercer.sklearn.patch()                         every later `from sklearn.svm import SVC` gets the twin
    python -m mercer.sklearn script.py …           runs a script so patched, untouched

A twin translates parameters into a kernel and a machine, and the fitted machine (`machine_`, with its
`certificate_`) back into scikit-learn's attributes. Two things are better than in the original: weight 2 is a
row twice exactly (`gamma="scale"` counts rows by weight), and `predict_proba` never contradicts `predict`.
"""

from __future__ import annotations

from mercer.sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.sklearn.gp_kernels import to_mercer, to_peer
from mercer.sklearn.kernel_pca import KernelPCA
from mercer.sklearn.kernel_ridge import KernelRidge
from mercer.sklearn.patching import patch, unpatch
from mercer.sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelPCA",
    "KernelRidge",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "patch",
    "to_mercer",
    "to_peer",
    "unpatch",
]
