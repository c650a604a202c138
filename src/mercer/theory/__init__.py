"""What the theory lets you check, on numbers."""

from mercer.theory.gram_report import GramReport, gram_report

__all__ = ["GramReport", "gram_report"]
