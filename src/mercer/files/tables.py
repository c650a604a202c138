"""The tables, filled: those of the machines at once, those of twins and of tables when they are needed."""

from __future__ import annotations

from importlib import import_module

# Imported to fill the registry.
from mercer.files import conformal, features, forms, machines  # noqa: F401
from mercer.files.nodes import Value
from mercer.files.registry import REGISTRY, MachineForm

TWINS = "sklearn."
MODELS_OF_TABLES = "Table"


def with_twins() -> None:
    """Fill in the twins of scikit-learn's estimators."""
    import_module("mercer.files.twins")


def with_models_of_tables() -> None:
    """Fill in the models of `mercer.fit`, which are built on top of all this."""
    import_module("mercer.recipe.stored")


def with_more_for(name: Value) -> None:
    """Fill in the twins, or the models of tables, if a file names one."""
    if type(name) is not str:
        return
    if name.startswith(TWINS):
        with_twins()
    if name.startswith(MODELS_OF_TABLES):
        with_models_of_tables()


def machine_of(model: Value) -> MachineForm | None:
    """The row of a machine; None for anything else."""
    if type(model).__module__.startswith("mercer.sklearn"):
        with_twins()
    if type(model).__module__.startswith("mercer.recipe"):
        with_models_of_tables()
    return REGISTRY.machine_of(model)
