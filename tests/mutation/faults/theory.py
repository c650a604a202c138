"""Faults in what the theory measures."""

from __future__ import annotations

from mutation.fault import Fault

THEORY = "src/mercer/theory/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "a p-value forgets the sample itself",
        THEORY + "permutation.py",
        "return (1 + int((null >= statistic - close).sum())) / (1 + len(null))",
        "return int((null >= statistic - close).sum()) / len(null)",
        "tests/theory/test_two_sample.py tests/theory/test_independence.py",
    ),
    Fault(
        "ties count for the rejection",
        THEORY + "permutation.py",
        "(null >= statistic - close)",
        "(null > statistic + close)",
        "tests/theory/test_two_sample.py tests/theory/test_independence.py",
    ),
    Fault(
        "the unbiased discrepancy keeps the pairs of a row with itself in one sample",
        THEORY + "two_sample.py",
        "xx, zz = inside - own, zz - (self.diag.sum() - own)",
        "xx, zz = inside - own, zz",
        "tests/theory/test_two_sample.py",
    ),
    Fault(
        "Cover's sum has a term too many",
        THEORY + "cover.py",
        "shorter = min(m + 1, n - 1 - m)",
        "shorter = min(m + 2, n - 1 - m)",
        "tests/theory/test_cover.py",
    ),
)
