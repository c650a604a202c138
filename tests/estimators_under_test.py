"""Every native estimator once, small and repeatable, with what it does and what it is excused from.

A new estimator of `mercer.__all__` joins with one `Subject`; `tests/machines/test_every_estimator.py` does
the rest. An excuse names the test it is for and says why; the tests read it, so that none is silent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer import (
    SVC,
    SVDD,
    SVR,
    Adatron,
    FalkonClassifier,
    FalkonRegressor,
    FeatureMachineClassifier,
    FeatureMachineRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLeastSquares,
    KernelMachine,
    KernelMeanEmbedding,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    MercerMap,
    MultipleKernelClassifier,
    MultipleKernelOneClass,
    MultipleKernelRegressor,
    NadarayaWatson,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    Perceptron,
    RandomFeatures,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
)
from mercer import sklearn as twins

KERNEL = "RBF(1.5)"
METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "transform")

_rng = np.random.default_rng(7)
# Multiples of 2⁻²⁰, so that X + 10⁶ is exact: what an offset changes is then the machine's own doing.
X = np.round(_rng.normal(size=(24, 3)) * 2**20) / 2**20
NEW = np.round(_rng.normal(size=(7, 3)) * 2**20) / 2**20
LABELS = (X[:, 0] + 0.5 * _rng.normal(size=24) > 0).astype(int)
NUMBERS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * _rng.normal(size=24)
COUNTS = _rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
THREE = np.digitize(X[:, 0] + 0.3 * _rng.normal(size=24), [-0.4, 0.4])
VIEW = np.column_stack([X[:, 0] ** 2, X[:, 1] + 0.1 * _rng.normal(size=24)])
for _fixed in (X, NEW, LABELS, NUMBERS, COUNTS, THREE, VIEW):
    _fixed.setflags(write=False)


@dataclass(frozen=True)
class Subject:
    """One estimator: how it is built, which target it takes, and what it is excused from."""

    name: str
    build: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)
    target: str = ""
    excuses: dict[str, str] = field(default_factory=dict)
    tolerance: float = 1e-9  # of equal problems whose floating-point sums come in another order

    def make(self, **changes: Any) -> Any:
        return self.build(**{**self.settings, **changes})

    @property
    def y(self) -> np.ndarray | None:
        return {"labels": LABELS, "numbers": NUMBERS, "counts": COUNTS, "three": THREE, "view": VIEW}.get(
            self.target
        )

    def fit(self, rows: Any = X, y: Any = ..., **changes: Any) -> Any:
        return self.make(**changes).fit(rows, self.y if y is ... else y)

    def excused(self, test: str) -> str | None:
        return self.excuses.get(test)


def outputs(model: Any, rows: Any = NEW) -> dict[str, np.ndarray]:
    """Everything that a fitted model says about new rows."""
    return {m: np.asarray(getattr(model, m)(rows)) for m in METHODS if hasattr(model, m)}


def _kernel(**more: Any) -> dict[str, Any]:
    return {"kernel": KERNEL, **more}


NO_WEIGHT = {"weight": "its fit takes no sample_weight"}
SET_OF_KERNELS = {"kernel parameters": "its kernels are a list, which is replaced as a whole"}
DRAWN = "landmarks are drawn from the rows, and other rows give other ones"
SETTINGS_OF_SET = {"kernels": ("RBF(1.5)", "RBF(0.5)"), "tol": 1e-8}
PROCESS = {"kernel": "RBF(1.5) + White(0.1)"}
SEARCHED = {
    "weight two": "leaving one out leaves a row of weight 2 out as a whole, and one of two equal rows alone",
    "function as kernel": "a function of two points has no slope, and it says so",
}
ESTIMATED = {
    **NO_WEIGHT,
    "memory": "where K does not fit, the evidence that is maximised is estimated from random probes",
}

SUBJECTS = [
    # ── margins ─────────────────────────────────────────────────────────────────────────────────────────────
    Subject("SVC", SVC, _kernel(C=2.0), "labels", tolerance=1e-6),
    Subject(
        "SVC, probabilities",
        SVC,
        _kernel(probability=True, random_state=0),
        "labels",
        {
            "weight two": "a row that comes twice may be held out in two folds",
            "two rows": "probabilities need two rows of each class, and it says so",
        },
        tolerance=1e-6,
    ),
    Subject(
        "SVC, projected gradient",
        SVC,
        _kernel(fit_intercept=False, solver="projected-gradient"),
        "labels",
        tolerance=1e-6,
    ),
    Subject("SVC, one against the rest", SVC, _kernel(multiclass="ovr"), "three", tolerance=1e-6),
    Subject("NuSVC", NuSVC, _kernel(nu=0.4), "labels", tolerance=1e-6),
    Subject("SVR", SVR, _kernel(C=2.0), "numbers", tolerance=1e-6),
    Subject("NuSVR", NuSVR, _kernel(), "numbers", tolerance=1e-6),
    Subject("OneClassSVM", OneClassSVM, _kernel(nu=0.3), tolerance=1e-6),
    Subject("SVDD", SVDD, _kernel(nu=0.3), tolerance=1e-6),
    Subject("KernelPerceptron", KernelPerceptron, _kernel(), "labels", NO_WEIGHT),
    Subject("KernelPerceptron, voted", KernelPerceptron, _kernel(average="voted"), "labels", NO_WEIGHT),
    Subject(
        "Perceptron",
        Perceptron,
        {"kernel": "Polynomial(2)"},
        "labels",
        {
            **NO_WEIGHT,
            "offset": "its kernel is a polynomial, which an offset changes by definition",
            "constant column": "a constant column is one more feature of a polynomial",
            "kernel parameters": "its kernel is a polynomial, which has no lengthscale",
            "function as kernel": "a function of two points has no known finite map, and it says so",
        },
    ),
    Subject("Adatron", Adatron, _kernel(C=1.0), "labels", NO_WEIGHT),
    Subject(
        "MultipleKernelClassifier",
        MultipleKernelClassifier,
        SETTINGS_OF_SET,
        "labels",
        SET_OF_KERNELS,
        tolerance=1e-5,
    ),
    Subject(
        "MultipleKernelOneClass", MultipleKernelOneClass, SETTINGS_OF_SET, "", SET_OF_KERNELS, tolerance=1e-5
    ),
    # ── losses and processes ────────────────────────────────────────────────────────────────────────────────
    Subject("KernelRidge", KernelRidge, _kernel(alpha=0.1), "numbers"),
    Subject(
        "KernelRidge, conjugate gradients",
        KernelRidge,
        _kernel(alpha=0.1, solver="cg", random_state=0),
        "numbers",
    ),
    Subject("KernelRidgeCV", KernelRidgeCV, _kernel(alphas=(0.01, 0.1, 1.0)), "numbers"),
    Subject(
        "FeatureMachineRegressor",
        FeatureMachineRegressor,
        _kernel(n_updates=2),
        "numbers",
        SEARCHED,
        tolerance=1e-6,
    ),
    Subject(
        "FeatureMachineClassifier",
        FeatureMachineClassifier,
        _kernel(n_updates=2),
        "labels",
        SEARCHED,
        tolerance=1e-6,
    ),
    Subject("KernelLeastSquares", KernelLeastSquares, _kernel(max_iter=40, tol=0.1), "numbers"),
    *(
        Subject(f"KernelMachine, {loss}", KernelMachine, _kernel(loss=loss), target, tolerance=1e-6)
        for loss, target in {
            "squared": "numbers",
            "huber": "numbers",
            "epsilon_insensitive": "numbers",
            "quantile": "numbers",
            "poisson": "counts",
            "logistic": "three",
            "squared_hinge": "labels",
            "hinge": "labels",
        }.items()
    ),
    Subject(
        "GaussianProcessRegressor",
        GaussianProcessRegressor,
        {**PROCESS, "optimizer": None},
        "numbers",
        NO_WEIGHT,
    ),
    Subject(
        "GaussianProcessRegressor, tuned",
        GaussianProcessRegressor,
        PROCESS,
        "numbers",
        ESTIMATED,
        tolerance=1e-4,
    ),
    Subject("GaussianProcessClassifier", GaussianProcessClassifier, _kernel(optimizer=None), "labels"),
    Subject("RelevanceVectorRegressor", RelevanceVectorRegressor, _kernel(), "numbers", tolerance=1e-5),
    Subject(
        "RelevanceVectorClassifier",
        RelevanceVectorClassifier,
        _kernel(),
        "labels",
        {"labels of two rows": "two rows are no evidence for any weight: both classes stay equally likely"},
        tolerance=1e-5,
    ),
    Subject(
        "MultipleKernelRegressor",
        MultipleKernelRegressor,
        SETTINGS_OF_SET,
        "numbers",
        SET_OF_KERNELS,
        tolerance=1e-5,
    ),
    Subject(
        "FalkonRegressor", FalkonRegressor, _kernel(alpha=0.1, random_state=0), "numbers", tolerance=1e-6
    ),
    Subject(
        "FalkonRegressor, few landmarks",
        FalkonRegressor,
        _kernel(n_landmarks=8, alpha=0.1, random_state=0),
        "numbers",
        {"weight two": DRAWN, "weight zero": DRAWN},
        tolerance=1e-6,
    ),
    Subject(
        "FalkonClassifier", FalkonClassifier, _kernel(alpha=0.1, random_state=0), "labels", tolerance=1e-6
    ),
    Subject("NadarayaWatson", NadarayaWatson, _kernel(), "numbers"),
    # ── structure ───────────────────────────────────────────────────────────────────────────────────────────
    Subject("KernelMeanEmbedding", KernelMeanEmbedding, _kernel()),
    Subject(
        "KernelKMeans",
        KernelKMeans,
        _kernel(n_clusters=2, random_state=0),
        excuses={
            "finite": "a cluster without rows has no centre: its distance is infinite, and the fit warns"
        },
    ),
    Subject("KernelPCA", KernelPCA, _kernel(n_components=2), "", NO_WEIGHT),
    Subject(
        "KernelCCA", KernelCCA, _kernel(n_components=1, regularization=0.1), "view", NO_WEIGHT, tolerance=1e-7
    ),
    Subject("MercerMap", MercerMap, _kernel(n_components=3), "", NO_WEIGHT),
    Subject("Nystroem", Nystroem, _kernel(n_components=8, random_state=0), "", NO_WEIGHT, tolerance=1e-7),
    Subject(
        "RandomFeatures",
        RandomFeatures,
        _kernel(n_components=16, random_state=0),
        "",
        {
            **NO_WEIGHT,
            "constant column": "its frequencies are drawn for every column, constant or not",
            "function as kernel": "a function of two points has no known frequencies, and it says so",
            "offset": "its cosines have their phase at the origin; only their products are free of it",
        },
    ),
]

TWINS = [
    Subject("twin of SVC", twins.SVC, {}, "labels"),
    Subject("twin of SVC, probabilities", twins.SVC, {"probability": True, "random_state": 0}, "labels"),
    Subject("twin of NuSVC", twins.NuSVC, {"nu": 0.4}, "three"),
    Subject("twin of SVR", twins.SVR, {}, "numbers"),
    Subject("twin of NuSVR", twins.NuSVR, {}, "numbers"),
    Subject("twin of OneClassSVM", twins.OneClassSVM, {"nu": 0.3}),
    Subject("twin of KernelRidge", twins.KernelRidge, {"kernel": "rbf"}, "numbers"),
    Subject("twin of KernelPCA", twins.KernelPCA, {"n_components": 2, "kernel": "rbf"}),
    Subject(
        "twin of GaussianProcessRegressor",
        twins.GaussianProcessRegressor,
        {"alpha": 0.1},
        "numbers",
        {"unfitted": "before its fit it answers from its prior, as scikit-learn's does"},
    ),
    Subject("twin of GaussianProcessClassifier", twins.GaussianProcessClassifier, {}, "labels"),
    Subject("twin of GaussianProcessClassifier, three", twins.GaussianProcessClassifier, {}, "three"),
]
"""scikit-learn's estimators as `mercer.sklearn` has them."""
