"""What the theory lets you check, on numbers."""

from mercer.theory.cover import cover_probability
from mercer.theory.gram_report import GramReport, gram_report

__all__ = ["GramReport", "cover_probability", "gram_report"]
