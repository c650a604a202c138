"""What a search must know of a machine: its targets, its numbers to tune, its limits, and fresh copies."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from mercer.arrays import Rows
from mercer.choose.search import FirstGuess
from mercer.errors import ParameterError
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import White
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import as_machine_kernel
from mercer.theory.alignment import are_labels, targets
from mercer.typing import Array, Labels, Targets

NOTHING_TO_CHOOSE = "a precomputed kernel has no parameters to choose; pass the kernel itself."
NOISE_ADDED = " A White term was added to a kernel without noise."


def machine_for(asked: Kernel | str | BaseEstimator, y: Targets) -> BaseEstimator:
    """A copy of the machine, or the usual one for a kernel on such targets."""
    if isinstance(asked, Kernel | str):
        if asked == PRECOMPUTED:
            raise ParameterError(NOTHING_TO_CHOOSE)
        return _usual_machine(asked, y)
    if not hasattr(asked, "get_params") or "kernel" not in asked.get_params(deep=False):
        raise ParameterError(
            f"choose tunes a machine with a kernel, or a kernel; got {type(asked).__name__}. "
            "Pass for example KernelRidge('RBF()')."
        )
    return clone(asked)


def take_things(kernels: Sequence[Kernel | str]) -> bool:
    """Whether all of these kernels take things that are no vectors: strings, graphs, mixed tables."""
    found = [as_machine_kernel(kernel) for kernel in kernels]
    return all(kernel is not None and not kernel.reads_numbers() for kernel in found)


def _usual_machine(kernel: Kernel | str, y: Targets) -> BaseEstimator:
    """A support vector machine for labels, ridge regression for numbers."""
    if are_labels(np.asarray(y)):
        from mercer.machines.margin.svc import SVC

        return SVC(kernel)
    from mercer.machines.ridge.ridge import KernelRidge

    return KernelRidge(kernel)


# ── what it is ──────────────────────────────────────────────────────────────────────────────────────────────


def is_ridge(machine: BaseEstimator) -> bool:
    """Whether its leave-one-out error is known in closed form."""
    parameters = machine.get_params(deep=False)
    return "alpha" in parameters and "loss" not in parameters and not is_classifier(machine)


def is_gaussian_process(machine: BaseEstimator) -> bool:
    """Whether it tunes its kernel by a marginal likelihood of its own."""
    return "optimizer" in machine.get_params(deep=False)


def penalties(machine: BaseEstimator) -> dict[str, float]:
    """The numbers that are tuned with the kernel: alpha or C, where they are positive and finite."""
    parameters = machine.get_params(deep=False)
    found: dict[str, float] = {}
    for name in ("alpha", "C"):
        value = parameters.get(name)
        if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < np.inf:
            found[name] = float(value)
    return found


# ── how to tune it ──────────────────────────────────────────────────────────────────────────────────────────


def first_guess(by: str, machine: BaseEstimator, kernel: Kernel, rows: Rows, t: Labels) -> FirstGuess:
    """The kernel and the noise λ with which a search along gradients begins."""
    if by == "alignment":
        return FirstGuess(kernel)
    one = rows.rows(np.arange(1))
    noisy = not np.isclose(kernel(one)[0, 0], kernel(one, one)[0, 0], rtol=1e-9, atol=0.0)
    if is_ridge(machine):
        return FirstGuess(kernel, penalties(machine).get("alpha", 1.0), "alpha")
    if is_gaussian_process(machine):
        if noisy or machine.get_params(deep=False).get("noise") is not None:
            return FirstGuess(kernel)
        level = 0.1 * float(np.var(np.asarray(t, dtype=float))) or 1.0
        return FirstGuess(kernel + White(level), note=NOISE_ADDED)
    return FirstGuess(kernel, None if noisy else 0.1)


def targets_for(machine: BaseEstimator, t: Labels) -> Array:
    """Targets as numbers: centred for an intercept, and of size 1 for machines that have no scale of y."""
    labels = is_classifier(machine)
    Y: Array = targets(t, len(t)) if labels else np.asarray(t, dtype=np.float64).reshape(len(t), -1)
    if labels or machine.get_params(deep=False).get("fit_intercept"):
        Y = Y - Y.mean(axis=0)
    if not is_ridge(machine) and not is_gaussian_process(machine):
        size = float(np.sqrt(np.mean(Y**2)))
        if size > 0:
            Y = Y / size
    return Y


def within_seconds(machine: BaseEstimator, left: float) -> dict[str, float]:
    """The machine's own limit, if it has one, no longer than what is left."""
    parameters = machine.get_params(deep=False)
    if "max_seconds" not in parameters:
        return {}
    limit = parameters["max_seconds"]
    return {"max_seconds": left if limit is None else min(float(limit), left)}


def with_kernel(machine: BaseEstimator, kernel: Kernel, others: dict[str, float]) -> BaseEstimator:
    """A fresh machine with this kernel, which does not tune again what was chosen."""
    fresh = clone(machine).set_params(kernel=kernel, **others)
    if is_gaussian_process(machine):
        fresh.set_params(optimizer=None)
    return fresh
