"""Pictures. Each function returns a matplotlib Figure and touches no global state; needs `mercer[plot]`."""

from mercer.plot.contributions import contributions
from mercer.plot.decision import decision
from mercer.plot.features import feature_weights
from mercer.plot.kernel import kernel
from mercer.plot.lifting import lifting
from mercer.plot.panels import panels, ridge_panels
from mercer.plot.path import path
from mercer.plot.regression import regression
from mercer.plot.structure import clusters, embedding, gram_matrix, spectrum

__all__ = [
    "clusters",
    "contributions",
    "decision",
    "embedding",
    "feature_weights",
    "gram_matrix",
    "kernel",
    "lifting",
    "panels",
    "path",
    "regression",
    "ridge_panels",
    "spectrum",
]
