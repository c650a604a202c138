"""mercer: kernel methods that prove what they claim.

>>> import mercer
>>> k = mercer.parse("RBF(2.0) * Periodic(1.0) + 0.1*White(1.0)")
>>> k.validity().status
'proved'

Every name is loaded when it is first used, so that `import mercer` and `mercer --help` stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# What type checkers and editors see; at run time `__getattr__` below finds the same names.
if TYPE_CHECKING:
    from mercer import errors, gram, kernels, plot, sklearn, solve, theory
    from mercer.choose import choose
    from mercer.conformal import conformal
    from mercer.conformal.classifier import ConformalClassifier
    from mercer.conformal.guarantee import Guarantee
    from mercer.conformal.regressor import ConformalRegressor
    from mercer.errors import Interrupted
    from mercer.files.load import load
    from mercer.files.save import Saved, save
    from mercer.gram.cluster import cluster
    from mercer.kernels import (
        RBF,
        After,
        AllSubsets,
        ArcCosine,
        Before,
        Bilinear,
        Brownian,
        Categorical,
        Chi2,
        Coded,
        Constant,
        Cosine,
        CosineSimilarity,
        Counted,
        Custom,
        Date,
        Diffusion,
        Dot,
        DotProduct,
        EditDistance,
        ExpDot,
        Exponential,
        Fact,
        Filled,
        GlobalAlignment,
        Graph,
        Graphlet,
        Hamming,
        Intersection,
        Jaccard,
        Kernel,
        Known,
        Laplacian,
        Leaf,
        Linear,
        Logistic,
        Matern,
        Metric,
        MinMax,
        Mismatch,
        OptimalAssignment,
        PerColumn,
        Periodic,
        Polynomial,
        Proof,
        Proved,
        ProvedAsDeclared,
        Radial,
        RandomWalk,
        Ranked,
        RationalQuadratic,
        Reading,
        Refuted,
        RegularizedLaplacian,
        ShortestPath,
        Sigmoid,
        Signature,
        SpectralMixture,
        Spectrum,
        Standardized,
        Stationary,
        Subsequence,
        Text,
        Undecided,
        Validity,
        WeightedDegree,
        WeisfeilerLehman,
        White,
        ZeroMeanPeriodic,
        as_kernel,
        leaf,
        parse,
        read_tu,
        reading,
    )
    from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
    from mercer.machines.kernel_sets.margin import MultipleKernelClassifier, MultipleKernelOneClass
    from mercer.machines.kernel_sets.ridge import MultipleKernelRegressor
    from mercer.machines.landmarks.batches import Batches
    from mercer.machines.landmarks.falkon import FalkonClassifier, FalkonRegressor
    from mercer.machines.landmarks.nystroem import Nystroem
    from mercer.machines.landmarks.random_features import RandomFeatures
    from mercer.machines.loss.kernel_machine import KernelMachine
    from mercer.machines.margin.adatron import Adatron
    from mercer.machines.margin.nu import NuSVC
    from mercer.machines.margin.one_class import OneClassSVM
    from mercer.machines.margin.perceptron import KernelPerceptron, Perceptron
    from mercer.machines.margin.svc import SVC
    from mercer.machines.margin.svdd import SVDD
    from mercer.machines.margin.svr import SVR, NuSVR
    from mercer.machines.relevance.relevance import RelevanceVectorClassifier, RelevanceVectorRegressor
    from mercer.machines.ridge.feature_machine import FeatureMachineClassifier, FeatureMachineRegressor
    from mercer.machines.ridge.least_squares import KernelLeastSquares
    from mercer.machines.ridge.ridge import KernelRidge
    from mercer.machines.ridge.ridge_cv import KernelRidgeCV
    from mercer.machines.structure.cca import KernelCCA
    from mercer.machines.structure.kmeans import KernelKMeans
    from mercer.machines.structure.mercer_map import MercerMap
    from mercer.machines.structure.pca import KernelPCA
    from mercer.machines.windows.mean_embedding import KernelMeanEmbedding
    from mercer.machines.windows.nadaraya_watson import NadarayaWatson
    from mercer.onnx.export import export_onnx
    from mercer.onnx.exported import Exported
    from mercer.recipe.compare import Comparison, compare
    from mercer.recipe.door import fit
    from mercer.recipe.estimate import Estimate
    from mercer.recipe.estimators import TableClassifier, TableRegressor
    from mercer.series.answer import Forecast
    from mercer.series.door import forecast
    from mercer.studio import studio
    from mercer.tables.delimited import Layout
    from mercer.tables.intake import TableFile, read_table
    from mercer.tables.outlet import write_table
    from mercer.tables.propose import Proposal, describe_table, table_kernel
    from mercer.theory.gram_report import GramReport, gram_report
    from mercer.theory.verify import Verification, verify

    __version__: str

__all__ = [
    "RBF",
    "SVC",
    "SVDD",
    "SVR",
    "Adatron",
    "After",
    "AllSubsets",
    "ArcCosine",
    "Batches",
    "Before",
    "Bilinear",
    "Brownian",
    "Categorical",
    "Chi2",
    "Coded",
    "Comparison",
    "ConformalClassifier",
    "ConformalRegressor",
    "Constant",
    "Cosine",
    "CosineSimilarity",
    "Counted",
    "Custom",
    "Date",
    "Diffusion",
    "Dot",
    "DotProduct",
    "EditDistance",
    "Estimate",
    "ExpDot",
    "Exponential",
    "Exported",
    "Fact",
    "FalkonClassifier",
    "FalkonRegressor",
    "FeatureMachineClassifier",
    "FeatureMachineRegressor",
    "Filled",
    "Forecast",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "GlobalAlignment",
    "GramReport",
    "Graph",
    "Graphlet",
    "Guarantee",
    "Hamming",
    "Interrupted",
    "Intersection",
    "Jaccard",
    "Kernel",
    "KernelCCA",
    "KernelKMeans",
    "KernelLeastSquares",
    "KernelMachine",
    "KernelMeanEmbedding",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRidge",
    "KernelRidgeCV",
    "Known",
    "Laplacian",
    "Layout",
    "Leaf",
    "Linear",
    "Logistic",
    "Matern",
    "MercerMap",
    "Metric",
    "MinMax",
    "Mismatch",
    "MultipleKernelClassifier",
    "MultipleKernelOneClass",
    "MultipleKernelRegressor",
    "NadarayaWatson",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OptimalAssignment",
    "PerColumn",
    "Perceptron",
    "Periodic",
    "Polynomial",
    "Proof",
    "Proposal",
    "Proved",
    "ProvedAsDeclared",
    "Radial",
    "RandomFeatures",
    "RandomWalk",
    "Ranked",
    "RationalQuadratic",
    "Reading",
    "Refuted",
    "RegularizedLaplacian",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "Saved",
    "ShortestPath",
    "Sigmoid",
    "Signature",
    "SpectralMixture",
    "Spectrum",
    "Standardized",
    "Stationary",
    "Subsequence",
    "TableClassifier",
    "TableFile",
    "TableRegressor",
    "Text",
    "Undecided",
    "Validity",
    "Verification",
    "WeightedDegree",
    "WeisfeilerLehman",
    "White",
    "ZeroMeanPeriodic",
    "__version__",
    "as_kernel",
    "choose",
    "cluster",
    "compare",
    "conformal",
    "describe_table",
    "errors",
    "export_onnx",
    "fit",
    "forecast",
    "gram",
    "gram_report",
    "kernels",
    "leaf",
    "load",
    "parse",
    "plot",
    "read_table",
    "read_tu",
    "reading",
    "save",
    "sklearn",
    "solve",
    "studio",
    "table_kernel",
    "theory",
    "verify",
    "write_table",
]

_MODULES = (
    "choose",
    "conformal",
    "errors",
    "gram",
    "kernels",
    "plot",
    "sklearn",
    "solve",
    "studio",
    "theory",
)
# Reached by name, but not public.
_ROOMS = ("applications", "arrays", "cli", "files", "machines", "memory", "onnx", "params", "threads")
# Where a public name lives; those that are not here live in mercer.kernels.
_ELSEWHERE = {
    "GaussianProcessClassifier": "mercer.machines.gaussian_process.classification",
    "GaussianProcessRegressor": "mercer.machines.gaussian_process.regression",
    "MercerMap": "mercer.machines.structure.mercer_map",
    "MultipleKernelClassifier": "mercer.machines.kernel_sets.margin",
    "MultipleKernelOneClass": "mercer.machines.kernel_sets.margin",
    "MultipleKernelRegressor": "mercer.machines.kernel_sets.ridge",
    "KernelMeanEmbedding": "mercer.machines.windows.mean_embedding",
    "SVDD": "mercer.machines.margin.svdd",
    "SVC": "mercer.machines.margin.svc",
    "SVR": "mercer.machines.margin.svr",
    "NadarayaWatson": "mercer.machines.windows.nadaraya_watson",
    "NuSVC": "mercer.machines.margin.nu",
    "NuSVR": "mercer.machines.margin.svr",
    "OneClassSVM": "mercer.machines.margin.one_class",
    "FeatureMachineClassifier": "mercer.machines.ridge.feature_machine",
    "FeatureMachineRegressor": "mercer.machines.ridge.feature_machine",
    "KernelLeastSquares": "mercer.machines.ridge.least_squares",
    "KernelMachine": "mercer.machines.loss.kernel_machine",
    "KernelCCA": "mercer.machines.structure.cca",
    "KernelKMeans": "mercer.machines.structure.kmeans",
    "KernelPCA": "mercer.machines.structure.pca",
    "KernelPerceptron": "mercer.machines.margin.perceptron",
    "KernelRidge": "mercer.machines.ridge.ridge",
    "KernelRidgeCV": "mercer.machines.ridge.ridge_cv",
    "Perceptron": "mercer.machines.margin.perceptron",
    "Adatron": "mercer.machines.margin.adatron",
    "RelevanceVectorClassifier": "mercer.machines.relevance.relevance",
    "RelevanceVectorRegressor": "mercer.machines.relevance.relevance",
    "Batches": "mercer.machines.landmarks.batches",
    "FalkonClassifier": "mercer.machines.landmarks.falkon",
    "FalkonRegressor": "mercer.machines.landmarks.falkon",
    "Nystroem": "mercer.machines.landmarks.nystroem",
    "RandomFeatures": "mercer.machines.landmarks.random_features",
    "ConformalClassifier": "mercer.conformal.classifier",
    "ConformalRegressor": "mercer.conformal.regressor",
    "Guarantee": "mercer.conformal.guarantee",
    "cluster": "mercer.gram.cluster",
    "Interrupted": "mercer.errors",
    "Saved": "mercer.files.save",
    "load": "mercer.files.load",
    "save": "mercer.files.save",
    "Exported": "mercer.onnx.exported",
    "export_onnx": "mercer.onnx.export",
    "Verification": "mercer.theory.verify",
    "verify": "mercer.theory.verify",
    "Comparison": "mercer.recipe.compare",
    "compare": "mercer.recipe.compare",
    "Layout": "mercer.tables.delimited",
    "TableFile": "mercer.tables.intake",
    "read_table": "mercer.tables.intake",
    "write_table": "mercer.tables.outlet",
    "Proposal": "mercer.tables.propose",
    "describe_table": "mercer.tables.propose",
    "Estimate": "mercer.recipe.estimate",
    "TableClassifier": "mercer.recipe.estimators",
    "TableRegressor": "mercer.recipe.estimators",
    "fit": "mercer.recipe.door",
    "forecast": "mercer.series.door",
    "Forecast": "mercer.series.answer",
    "table_kernel": "mercer.tables.propose",
    "GramReport": "mercer.theory.gram_report",
    "gram_report": "mercer.theory.gram_report",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"mercer.{name}")
    if name not in __all__:
        raise AttributeError(_unknown(name))
    if name in _MODULES:
        return import_module(f"mercer.{name}")
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("mercer")
    else:
        found = getattr(import_module(_ELSEWHERE.get(name, "mercer.kernels")), name)
    globals()[name] = found
    return found


def _unknown(name: str) -> str:
    """What to say of a name that is not here; Python itself asks for some, and wants a quick answer."""
    if name.startswith("_"):
        return f"module 'mercer' has no attribute {name!r}"
    from mercer.names import unknown_name

    return unknown_name(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
