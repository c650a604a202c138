"""What the theory lets you check, on numbers."""

from mercer.theory.alignment import alignment
from mercer.theory.bounds import (
    margin_bound,
    margin_estimate,
    novikoff_bound,
    perceptron_estimate,
    radius_of,
    support_vector_bound,
)
from mercer.theory.complementarity import Duality, Essential, duality, essential
from mercer.theory.contributions import Contributions, contributions
from mercer.theory.cover import cover_probability
from mercer.theory.feature_weights import FeatureWeights, feature_weights
from mercer.theory.functions import function_of, named_rows
from mercer.theory.gram_report import GramReport, gram_report
from mercer.theory.independence import hsic, hsic_test
from mercer.theory.integral import MercerIntegral, mercer_integral
from mercer.theory.margins import Margins, margins
from mercer.theory.permutation import KernelTest
from mercer.theory.saddle import Saddle, convex_duality, lagrangian
from mercer.theory.span import Representer, representer
from mercer.theory.summary import Report, report
from mercer.theory.two_sample import TwoSampleTest, mmd, mmd_test
from mercer.theory.verify import Verification, verify

__all__ = [
    "Contributions",
    "Duality",
    "Essential",
    "FeatureWeights",
    "GramReport",
    "KernelTest",
    "Margins",
    "MercerIntegral",
    "Report",
    "Representer",
    "Saddle",
    "TwoSampleTest",
    "Verification",
    "alignment",
    "contributions",
    "convex_duality",
    "cover_probability",
    "duality",
    "essential",
    "feature_weights",
    "function_of",
    "gram_report",
    "hsic",
    "hsic_test",
    "lagrangian",
    "margin_bound",
    "margin_estimate",
    "margins",
    "mercer_integral",
    "mmd",
    "mmd_test",
    "named_rows",
    "novikoff_bound",
    "perceptron_estimate",
    "radius_of",
    "report",
    "representer",
    "support_vector_bound",
    "verify",
]
