"""Faults in proofs, witnesses and formulas."""

from __future__ import annotations

from mutation.fault import Fault

KERNELS = "src/mercer/kernels/"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "the series of an exponential forgets one over n",
        KERNELS + "expansion.py",
        "step.get(made, Fraction(0)) + c * r / n",
        "step.get(made, Fraction(0)) + c * r",
        "tests/laws/test_proofs.py tests/test_validity.py",
    ),
    Fault(
        "a payer of exponentials keeps what it has paid",
        KERNELS + "expansion.py",
        "                purses[payer] -= paid\n",
        "",
        "tests/laws/test_proofs.py tests/test_validity.py",
    ),
    Fault(
        "the product of two intervals forgets two of its corners",
        KERNELS + "intervals.py",
        "            (self.low, other.high),\n            (self.high, other.low),\n",
        "",
        "tests/laws/test_witnesses.py",
    ),
)
