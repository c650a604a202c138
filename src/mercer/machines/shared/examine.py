"""What each machine claims, recomputed: one function for each kind of machine.

All go by the protocol of `theory.claims`:

    @examine.register
    def _(model: Machine, exam: Examination, X, y, sample_weight) -> None

hands every published number, and the same number found again from the data, to `exam`.
"""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module

from mercer.errors import ParameterError
from mercer.theory.claims import Examination
from mercer.typing import Table, Targets, Weights

# Each of these registers the machines it knows.
_KNOWN = (
    "mercer.machines.margin.examine",
    "mercer.machines.margin.examine_perceptron",
    "mercer.machines.loss.examine",
    "mercer.machines.ridge.examine",
    "mercer.machines.ridge.examine_descent",
    "mercer.machines.windows.examine",
    "mercer.machines.gaussian_process.examine",
    "mercer.machines.relevance.examine",
    "mercer.machines.structure.examine",
    "mercer.machines.landmarks.examine",
    "mercer.machines.kernel_sets.examine",
)


def examine_machine(
    model: object, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights
) -> None:
    """Hold what `model` published against its data, by the function registered for its kind."""
    for module in _KNOWN:
        import_module(module)
    examine(model, exam, X, y, sample_weight)


@singledispatch
def examine(model: object, exam: Examination, X: Table, y: Targets | None, sample_weight: Weights) -> None:
    """Hold what `model` published against its data."""
    raise ParameterError(f"{type(model).__name__} publishes no certificate that could be verified.")
