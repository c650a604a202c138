"""What things are called elsewhere in the field, and here.

A name that mercer does not have is met with the one that it has: in the text of a kernel, at the command line
and as an attribute of the package.

>>> import mercer
>>> mercer.Gaussian
Traceback (most recent call last):
...
AttributeError: mercer has no 'Gaussian'; it is called RBF here: mercer.RBF.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# By the name in small letters, without spaces, hyphens and underscores.
KERNELS: dict[str, str] = {
    "gaussian": "RBF",
    "gauss": "RBF",
    "gaussiankernel": "RBF",
    "se": "RBF",
    "sqexp": "RBF",
    "squaredexponential": "RBF",
    "exponentiatedquadratic": "RBF",
    "expquad": "RBF",
    "rbfkernel": "RBF",
    "tanh": "Sigmoid",
    "hyperbolictangent": "Sigmoid",
    "mlp": "Sigmoid",
    "neuralnetwork": "ArcCosine",
    "poly": "Polynomial",
    "monomial": "Polynomial",
    "innerproduct": "Linear",
    "expsinesquared": "Periodic",
    "season": "Periodic",
    "seasonal": "Periodic",
    "laplace": "Laplacian",
    "ou": "Exponential",
    "ornsteinuhlenbeck": "Exponential",
    "absoluteexponential": "Exponential",
    "matern12": "Exponential",
    "matern32": "Matern(nu=1.5)",
    "matern52": "Matern(nu=2.5)",
    "rq": "RationalQuadratic",
    "rationalquad": "RationalQuadratic",
    "whitekernel": "White",
    "whitenoise": "White",
    "noise": "White",
    "delta": "White",
    "constantkernel": "Constant",
    "bias": "Constant",
    "wiener": "Brownian",
    "brownianmotion": "Brownian",
    "anova": "AllSubsets",
    "document": "Text",
    "bagofwords": "Text",
    "tfidf": "Text",
    "tanimoto": "Jaccard",
    "histogram": "Intersection",
    "histogramintersection": "Intersection",
    "wl": "WeisfeilerLehman",
    "kmer": "Spectrum",
    "ngram": "Spectrum",
    "gak": "GlobalAlignment",
}
MACHINES: dict[str, str] = {
    "svm": "SVC",
    "linearsvc": "SVC",
    "supportvectormachine": "SVC",
    "supportvectorclassifier": "SVC",
    "supportvectorregressor": "SVR",
    "gp": "GaussianProcessRegressor",
    "gpr": "GaussianProcessRegressor",
    "gaussianprocess": "GaussianProcessRegressor",
    "gpc": "GaussianProcessClassifier",
    "krr": "KernelRidge",
    "ridge": "KernelRidge",
    "kpca": "KernelPCA",
    "pca": "KernelPCA",
    "kmeans": "KernelKMeans",
    "cca": "KernelCCA",
    "rvm": "RelevanceVectorRegressor",
    "rvr": "RelevanceVectorRegressor",
    "rvc": "RelevanceVectorClassifier",
    "rbfsampler": "RandomFeatures",
    "nystrom": "Nystroem",
    "falkon": "FalkonRegressor",
    "parzen": "KernelMeanEmbedding",
    "logisticregression": "KernelMachine",
    "mkl": "MultipleKernelClassifier",
    "rfm": "FeatureMachineRegressor",
    "oneclass": "OneClassSVM",
}


def called_here(name: str, known: Iterable[str], others: dict[str, str]) -> str | None:
    """The name of something in mercer that someone knows by another name or spells otherwise, or None."""
    plain = "".join(c for c in name.lower() if c.isalnum())
    if plain in others:
        return others[plain]
    known = list(known)
    for mine in known:
        if mine.lower() == plain:
            return mine
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None


def unknown_name(name: str, public: Iterable[str]) -> str:
    """What to say of a name that the package does not have."""
    found = called_here(name, public, KERNELS | MACHINES)
    if found is None:
        return f"module 'mercer' has no attribute {name!r}"
    return f"mercer has no {name!r}; it is called {found} here: mercer.{found}."
