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
from mercer.theory.margins import Margins, Representer, margins, representer
from mercer.theory.verify import Verification, verify

__all__ = [
    "GramReport",
    "Margins",
    "Representer",
    "Verification",
    "alignment",
    "cover_probability",
    "gram_report",
    "margin_bound",
    "margins",
    "novikoff_bound",
    "perceptron_estimate",
    "radius_of",
    "representer",
    "support_vector_bound",
    "verify",
]
