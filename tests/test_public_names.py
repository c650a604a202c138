"""The public names, pinned: adding or losing one is a decision, not an accident.
All are loaded on first use.
"""

import subprocess
import sys

import mercer

KERNELS = [
    "GlobalAlignment",
    "Signature",
    "Jaccard",
    "MinMax",
    "EditDistance",
    "Subsequence",
    "WeightedDegree",
    "Mismatch",
    "After",
    "AllSubsets",
    "ArcCosine",
    "Before",
    "Bilinear",
    "Brownian",
    "Categorical",
    "Chi2",
    "Coded",
    "Constant",
    "Cosine",
    "CosineSimilarity",
    "Counted",
    "Custom",
    "Date",
    "Diffusion",
    "Dot",
    "DotProduct",
    "ExpDot",
    "Exponential",
    "Fact",
    "Filled",
    "Graph",
    "Graphlet",
    "Hamming",
    "Intersection",
    "Kernel",
    "Known",
    "Laplacian",
    "Leaf",
    "Linear",
    "Logistic",
    "Matern",
    "Metric",
    "OptimalAssignment",
    "PerColumn",
    "Periodic",
    "Polynomial",
    "Proof",
    "Proved",
    "ProvedAsDeclared",
    "RBF",
    "Radial",
    "RandomWalk",
    "Ranked",
    "RationalQuadratic",
    "Reading",
    "Refuted",
    "RegularizedLaplacian",
    "ShortestPath",
    "Sigmoid",
    "SpectralMixture",
    "Spectrum",
    "Standardized",
    "Stationary",
    "Text",
    "Undecided",
    "Validity",
    "WeisfeilerLehman",
    "White",
    "ZeroMeanPeriodic",
    "as_kernel",
    "leaf",
    "parse",
    "read_tu",
    "reading",
]
ROOMS = ["choose", "conformal", "errors", "gram", "kernels", "plot", "sklearn", "solve", "studio", "theory"]
TABLES = ["Layout", "Proposal", "TableFile", "TableClassifier", "TableRegressor"]
TABLES += [
    "Comparison",
    "Estimate",
    "compare",
    "describe_table",
    "fit",
    "read_table",
    "table_kernel",
    "write_table",
]
OTHERS = [
    "cluster",
    "ConformalClassifier",
    "ConformalRegressor",
    "Guarantee",
    "Forecast",
    "forecast",
    "GramReport",
    "Interrupted",
    "MercerMap",
    "Verification",
    "gram_report",
    "verify",
]
STRUCTURE = ["KernelCCA", "KernelKMeans", "KernelPCA"]
MACHINES = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "KernelPerceptron", "Perceptron", "Adatron"]
PROCESSES = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
REGRESSION = [
    "FeatureMachineClassifier",
    "FeatureMachineRegressor",
    "KernelLeastSquares",
    "KernelMachine",
    "KernelRidge",
    "KernelRidgeCV",
    "NadarayaWatson",
]
REGRESSION += ["RelevanceVectorClassifier", "RelevanceVectorRegressor"]
KERNEL_SETS = ["MultipleKernelClassifier", "MultipleKernelOneClass", "MultipleKernelRegressor"]
NOVELTY = ["KernelMeanEmbedding", "SVDD"]
FILES = ["Exported", "Saved", "export_onnx", "load", "save"]
SMALLER_GRAMS = ["Batches", "FalkonClassifier", "FalkonRegressor", "Nystroem", "RandomFeatures"]


def test_the_public_names_are_these():
    groups = [
        KERNELS,
        ROOMS,
        OTHERS,
        TABLES,
        STRUCTURE,
        MACHINES,
        PROCESSES,
        REGRESSION,
        KERNEL_SETS,
        NOVELTY,
        SMALLER_GRAMS,
        FILES,
    ]
    assert sorted(mercer.__all__) == sorted(["__version__", *(name for group in groups for name in group)])
    assert dir(mercer) == sorted(mercer.__all__)


def test_every_kernel_name_is_found_on_first_use():
    for name in KERNELS:
        assert getattr(mercer, name).__module__.startswith("mercer.kernels"), name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(mercer, "NoSuchKernel")


def test_importing_mercer_loads_neither_pictures_nor_machines():
    heavy = ("matplotlib", "sklearn", "pandas", "typer")
    code = f"import sys, mercer; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
