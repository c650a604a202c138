"""The kernel language: expressions, their algebra, their text, their proofs, their feature maps."""

from mercer.kernels.base import Kernel, as_kernel
from mercer.kernels.leaves.angles import ArcCosine, CosineSimilarity
from mercer.kernels.leaves.columns import (
    AllSubsets,
    Brownian,
    Chi2,
    Cosine,
    Intersection,
    Laplacian,
    Periodic,
    ZeroMeanPeriodic,
)
from mercer.kernels.leaves.dot import Dot, ExpDot, Linear, Logistic, Polynomial, Sigmoid
from mercer.kernels.leaves.families import DotProduct, PerColumn, Radial
from mercer.kernels.leaves.functions import Custom, Stationary
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.leaves.radial import RBF, Exponential, Matern, RationalQuadratic
from mercer.kernels.leaves.special import Bilinear, Constant, SpectralMixture, White
from mercer.kernels.proofs.answers import Proved, ProvedAsDeclared, Refuted, Undecided, Validity
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.text import parse
from mercer.kernels.things.alignments import GlobalAlignment
from mercer.kernels.things.categories import Categorical, Hamming
from mercer.kernels.things.coded import Coded
from mercer.kernels.things.counted import Counted
from mercer.kernels.things.dates import Date
from mercer.kernels.things.edits import EditDistance
from mercer.kernels.things.gaps import Subsequence
from mercer.kernels.things.gates import After, Before
from mercer.kernels.things.graphs.files import read_tu
from mercer.kernels.things.graphs.graph import Graph
from mercer.kernels.things.graphs.graphlets import Graphlet
from mercer.kernels.things.graphs.nodes import Diffusion, RegularizedLaplacian
from mercer.kernels.things.graphs.paths import ShortestPath
from mercer.kernels.things.graphs.walks import RandomWalk
from mercer.kernels.things.graphs.weisfeiler_lehman import OptimalAssignment, WeisfeilerLehman
from mercer.kernels.things.metric import Metric
from mercer.kernels.things.paths import Signature
from mercer.kernels.things.positions import WeightedDegree
from mercer.kernels.things.reading import Reading, reading
from mercer.kernels.things.scaling import Filled, Known, Ranked, Standardized
from mercer.kernels.things.sets import Jaccard, MinMax
from mercer.kernels.things.strings import Mismatch, Spectrum
from mercer.kernels.things.text import Text

__all__ = [
    "RBF",
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
    "EditDistance",
    "ExpDot",
    "Exponential",
    "Fact",
    "Filled",
    "GlobalAlignment",
    "Graph",
    "Graphlet",
    "Hamming",
    "Intersection",
    "Jaccard",
    "Kernel",
    "Known",
    "Laplacian",
    "Leaf",
    "Linear",
    "Logistic",
    "Matern",
    "Metric",
    "MinMax",
    "Mismatch",
    "OptimalAssignment",
    "PerColumn",
    "Periodic",
    "Polynomial",
    "Proof",
    "Proved",
    "ProvedAsDeclared",
    "Radial",
    "RandomWalk",
    "Ranked",
    "RationalQuadratic",
    "Reading",
    "Refuted",
    "RegularizedLaplacian",
    "ShortestPath",
    "Sigmoid",
    "Signature",
    "SpectralMixture",
    "Spectrum",
    "Standardized",
    "Stationary",
    "Subsequence",
    "Text",
    "Undecided",
    "Validity",
    "WeightedDegree",
    "WeisfeilerLehman",
    "White",
    "ZeroMeanPeriodic",
    "as_kernel",
    "leaf",
    "parse",
    "read_tu",
    "reading",
]
