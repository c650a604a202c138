"""What a search must know of a machine, alone or at the end of a Pipeline.

Its targets, its numbers to tune and where they begin, its limits, and fresh copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline

from mercer.arrays import Rows
from mercer.choose.ascent import Guess
from mercer.errors import ParameterError
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels import White
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.targets import normalization
from mercer.machines.shared.base import as_machine_kernel
from mercer.params import is_real
from mercer.theory.alignment import are_labels, targets
from mercer.typing import Array, Labels, Setting, Targets

NOTHING_TO_CHOOSE = "a precomputed kernel has no parameters to choose; pass the kernel itself."
NOISE_ADDED = " A White term was added to a kernel without noise."
# the first λ, in units of the kernel
FIRST_NOISE = 0.1
# the tube that loses least under normal noise, in its deviations (Smola et al., 1998)
BEST_TUBE = 0.6
# the numbers of machines that are tuned by a search, and how large they may become
TUNED = {"alpha": np.inf, "C": np.inf, "epsilon": np.inf, "nu": 1.0}


@dataclass(frozen=True, eq=False)
class Subject:
    """What is tuned: an `estimator` that is a machine, or a Pipeline with the `machine` as its last step.

    `prefix` stands before the machine's parameters in those of the estimator, and `before` are the
    transformers, None where there are none.
    """

    estimator: BaseEstimator
    machine: BaseEstimator
    prefix: str = ""
    before: Pipeline | None = None

    @classmethod
    def of(cls, asked: Kernel | str | BaseEstimator, y: Targets) -> Subject:
        """A copy of the machine, or the usual one for a kernel on such targets."""
        if isinstance(asked, Kernel | str):
            if asked == PRECOMPUTED:
                raise ParameterError(NOTHING_TO_CHOOSE)
            machine = _usual_machine(asked, y)
            return cls(machine, machine)
        estimator = asked
        prefix = ""
        before = None
        machine = asked
        if isinstance(asked, Pipeline):
            estimator = clone(asked)
            name, machine = estimator.steps[-1]
            prefix = f"{name}__"
            if len(estimator.steps) > 1:
                before = estimator[:-1]
        if not hasattr(machine, "get_params") or "kernel" not in machine.get_params(deep=False):
            raise ParameterError(
                "choose tunes a machine with a kernel, alone or as the last step of a Pipeline, or a kernel; "
                f"got {type(machine).__name__}. Pass for example KernelRidge('RBF()')."
            )
        if before is None and not prefix:
            estimator = machine = clone(asked)
        return cls(estimator, machine, prefix, before)

    @property
    def name(self) -> str:
        return type(self.machine).__name__

    def parameter(self, name: str) -> Setting:
        return self.machine.get_params(deep=False).get(name)

    @property
    def is_ridge(self) -> bool:
        """Whether its leave-one-out error is known in closed form."""
        parameters = self.machine.get_params(deep=False)
        return "alpha" in parameters and "loss" not in parameters and not is_classifier(self.machine)

    @property
    def is_gaussian_process(self) -> bool:
        """Whether it tunes its kernel by a marginal likelihood of its own."""
        return "optimizer" in self.machine.get_params(deep=False)

    @property
    def has_margin(self) -> bool:
        """Whether a fit costs some passes over K, and no factor of it."""
        return "C" in self.machine.get_params(deep=False)

    @property
    def learns_labels(self) -> bool:
        return bool(is_classifier(self.machine))

    def numbers(self) -> dict[str, float]:
        """The numbers that are tuned with the kernel, where they are positive and finite.

        alpha or C, the tube epsilon where the loss has one, and nu where the machine has targets.
        """
        found: dict[str, float] = {}
        for name in TUNED:
            value = self.parameter(name)
            if not is_real(value) or not 0 < float(value) < np.inf:
                continue
            if name == "epsilon" and "epsilon" not in str(self.machine.get_params().get("loss", "epsilon")):
                continue
            found[name] = float(value)
        return found

    # ── how to tune it ──────────────────────────────────────────────────────────────────────────────────────

    def targets(self, t: Labels) -> Array:
        """Targets as numbers; labels as one column for each class. Centred for machines with an intercept."""
        if self.learns_labels:
            Y = targets(t, len(t))
        else:
            Y = np.asarray(t, dtype=np.float64).reshape(len(t), -1)
        if self.learns_labels or self.has_margin or self.parameter("fit_intercept"):
            Y = Y - Y.mean(axis=0)
        return Y

    def guess(self, by: str, kernel: Kernel, rows: Rows) -> Guess:
        """The kernel and the noise λ with which a search along gradients begins."""
        if by == "alignment":
            return Guess(kernel)
        if self.is_ridge:
            return Guess(kernel, self.numbers().get("alpha", 1.0))
        return Guess(kernel, None if own_noise(kernel, rows) > 0 else FIRST_NOISE)

    def begun(self, height: float, noise: float) -> dict[str, float]:
        """Where its numbers begin, by the evidence: f of this height, and noise of λ times it.

        alpha = λ        the penalty of the same mean
        C = √(2s/λ)      the slope of the error of Laplace noise, of variance sλ, in units of ½‖f‖²
        epsilon = 0.6 √(sλ)
        """
        found = self.numbers()
        if not (noise > 0 and height > 0):
            return found
        if self.is_ridge and "alpha" in found:
            found["alpha"] = noise
        if "C" in found:
            found["C"] = float(np.sqrt(2 * height / noise))
        if "epsilon" in found:
            found["epsilon"] = BEST_TUBE * float(np.sqrt(height * noise))
        return found

    def within_seconds(self, left: float | None) -> dict[str, float]:
        """The machine's own limit, if it has one, no longer than what is left; by the estimator's names."""
        parameters = self.machine.get_params(deep=False)
        if left is None or "max_seconds" not in parameters:
            return {}
        limit = parameters["max_seconds"]
        return {f"{self.prefix}max_seconds": left if limit is None else min(float(limit), left)}

    def with_kernel(self, kernel: Kernel, others: dict[str, float]) -> BaseEstimator:
        """A fresh estimator with this kernel, which does not tune again what was chosen."""
        wanted: dict[str, Setting] = {"kernel": kernel, **others}
        if self.is_gaussian_process:
            wanted["optimizer"] = None
        if isinstance(self.machine, GaussianProcessRegressor):
            wanted["normalize_y"] = _normalized(self.machine)
        fresh = clone(self.estimator)
        return fresh.set_params(**{f"{self.prefix}{name}": value for name, value in wanted.items()})

    def process(self, kernel: Kernel | str, left: float | None, restarts: int | None) -> BaseEstimator:
        """The Gaussian process itself, with this kernel to be tuned, within these seconds."""
        wanted: dict[str, Setting] = {"kernel": kernel, "approximation": None}
        if self.parameter("optimizer") is None:
            wanted["optimizer"] = "L-BFGS-B"
        if restarts is not None:
            wanted["n_restarts"] = restarts
        if isinstance(self.machine, GaussianProcessRegressor):
            wanted["normalize_y"] = _normalized(self.machine)
        for name, seconds in self.within_seconds(left).items():
            wanted[name.removeprefix(self.prefix)] = seconds
        return clone(self.machine).set_params(**wanted)


def _normalized(process: GaussianProcessRegressor) -> bool | str:
    """What an open kernel means for the targets, said in words that a closed one keeps."""
    if process.normalize_y != "auto":
        return process.normalize_y
    centred, scaled = normalization(process, 1)
    if centred and not scaled:
        return "mean"
    return scaled


def own_noise(kernel: Kernel, rows: Rows) -> float:
    """The noise that a kernel has of its own on the first row, 0 without a White term."""
    one = rows.rows(np.arange(1))
    whole = float(kernel(one)[0, 0])
    latent = float(kernel(one, one)[0, 0])
    return 0.0 if np.isclose(whole, latent, rtol=1e-9, atol=0.0) else whole - latent


def with_noise(
    asked: Kernel | str, process: BaseEstimator, rows: Rows, t: Labels
) -> tuple[Kernel | str, str]:
    """The kernel with a White term, if a process of numbers has no noise otherwise; and what to say of it."""
    kernel = as_machine_kernel(asked)
    if kernel is None or not isinstance(process, GaussianProcessRegressor):
        return asked, ""
    if process.noise is not None or own_noise(kernel.resolved(rows), rows) > 0:
        return asked, ""
    variance = 1.0
    if not normalization(process, 1)[1]:
        variance = float(np.var(np.asarray(t, dtype=float)))
    return kernel + White(FIRST_NOISE * variance or 1.0), NOISE_ADDED


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
