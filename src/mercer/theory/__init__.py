"""What the theory lets you check, on numbers."""

from mercer.theory.alignment import alignment
from mercer.theory.bounds import (
    margin_bound,
    novikoff_bound,
    perceptron_estimate,
    radius_of,
    support_vector_bound,
)
from mercer.theory.cover import cover_probability
from mercer.theory.gram_report import GramReport, gram_report
from mercer.theory.independence import hsic, hsic_test
from mercer.theory.integral import MercerIntegral, mercer_integral
from mercer.theory.margins import Margins, Representer, margins, representer
from mercer.theory.permutation import KernelTest
from mercer.theory.two_sample import TwoSampleTest, mmd, mmd_test
from mercer.theory.verify import Verification, verify

__all__ = [
    "GramReport",
    "KernelTest",
    "Margins",
    "MercerIntegral",
    "Representer",
    "TwoSampleTest",
    "Verification",
    "alignment",
    "cover_probability",
    "gram_report",
    "hsic",
    "hsic_test",
    "margin_bound",
    "margins",
    "mercer_integral",
    "mmd",
    "mmd_test",
    "novikoff_bound",
    "perceptron_estimate",
    "radius_of",
    "representer",
    "support_vector_bound",
    "verify",
]
