"""What each machine claims, recomputed: one function for each kind of machine, all by the protocol of `theory.claims`.

    @examine.register
    def _(model: Machine, exam: Examination, X, y, sample_weight) -> None

hands every published number, and the same number found again from the data, to `exam`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from mercer.errors import ParameterError
from mercer.theory.claims import Examination


@singledispatch
def examine(model: Any, exam: Examination, X: Any, y: Any, sample_weight: Any) -> None:
    """Hold what `model` published against its data."""
    raise ParameterError(f"{type(model).__name__} publishes no certificate that could be verified.")


# each module registers the machines it knows
from mercer.machines.examine import (  # noqa: E402
    descent,
    features,
    margin,
    means,
    perceptron,
    process,
    ridge,
    sets,
    structure,
)

__all__ = [
    "descent",
    "examine",
    "features",
    "margin",
    "means",
    "perceptron",
    "process",
    "ridge",
    "sets",
    "structure",
]
