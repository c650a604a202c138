"""The tables, filled: those of the machines at once, those of scikit-learn's twins when they are needed."""

from __future__ import annotations

from importlib import import_module

# Imported to fill the registry.
from mercer.files import features, forms, machines  # noqa: F401
from mercer.files.nodes import Value
from mercer.files.registry import REGISTRY, MachineForm

TWINS = "sklearn."


def with_twins() -> None:
    """Fill in the twins of scikit-learn's estimators."""
    import_module("mercer.files.twins")


def with_twins_for(name: Value) -> None:
    """Fill in the twins if a file names one."""
    if type(name) is str and name.startswith(TWINS):
        with_twins()


def machine_of(model: Value) -> MachineForm | None:
    """The row of a machine; None for anything else."""
    if type(model).__module__.startswith("mercer.sklearn"):
        with_twins()
    return REGISTRY.machine_of(model)
