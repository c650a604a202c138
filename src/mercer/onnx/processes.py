"""What Gaussian processes and the twins of scikit-learn's machines write."""

from __future__ import annotations

import numpy as np

from mercer import lapack
from mercer.gram.on_rows import Approximated
from mercer.machines.gaussian_process.inverses import Exact, InFeatures
from mercer.machines.gaussian_process.posterior import Posterior
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.margin.classify import MarginClassifier
from mercer.onnx.graph import Tensor, as_tensor
from mercer.onnx.machines import (
    Output,
    Outputs,
    calibrated,
    chosen,
    expanded,
    margin_scores,
    outputs_of,
    single,
    votes,
    winners,
)
from mercer.onnx.writing import Place, spread, write
from mercer.sklearn.margin import MarginTwin
from mercer.typing import Array, Labels, Table


@outputs_of.register
def _(model: GaussianProcessRegressor, x: Tensor) -> Outputs:
    means = expanded(model).values(x)
    vector = model.posterior_.units.single

    def mean(X: Table) -> Labels:
        return np.asarray(model.predict(X))

    def deviation(X: Table) -> Labels:
        return np.asarray(model.predict(X, return_std=True)[1])

    if vector:
        means = single(means)
    found = {"mean": Output(means, "of f, in units of y", mean)}
    variance = _variance(model.posterior_, x)
    if variance is None:
        return found
    scale = model.posterior_.units.scale
    std = as_tensor(np.sqrt(np.maximum(variance, 0.0)) * scale[None, :])
    if vector:
        std = single(std)
    found["std"] = Output(std, "standard deviation of f, in units of y", deviation)
    return found


def _variance(posterior: Posterior, x: Tensor) -> Tensor | None:
    """var f at new rows, n × 1, in units of the model; None where it takes conjugate gradients."""
    if isinstance(posterior.inverse, InFeatures):
        return _in_features(posterior, posterior.inverse, x)
    if not isinstance(posterior.inverse, Exact):
        return None
    at = Place(x, posterior.rows)
    across = spread(write(posterior.kernel, at), at)
    prior = write(posterior.kernel, at.itself(observed=False))
    V = _solved(across, np.tril(posterior.inverse.factor.lower))
    found: Tensor = prior - (V * V).sum(1, keepdims=True)
    return found


def _solved(B: Tensor, lower: Array) -> Tensor:
    """B L⁻ᵀ, by the inverse of L and one step of refinement, which makes up for its rounding."""
    inverse = lapack.solve_triangular(lower, np.eye(len(lower)))
    right = np.ascontiguousarray(inverse.T)
    V = B @ right
    left_over = B - V @ np.ascontiguousarray(lower.T)
    found: Tensor = V + left_over @ right
    return found


def _in_features(posterior: Posterior, inverse: InFeatures, x: Tensor) -> Tensor:
    """‖R⁻¹φ(x)‖² and what the features leave out of k(x, x)."""
    assert isinstance(posterior.on, Approximated)
    approximation = posterior.on.approximation
    assert isinstance(approximation, Nystroem)
    at = Place(x, approximation.as_rows(approximation.landmarks_))
    across = spread(write(posterior.kernel, at), at)
    phi = _solved(across, np.tril(approximation.basis_.lower))
    V = _solved(phi, np.tril(inverse.lower))
    prior = write(posterior.kernel, at.itself(observed=False))
    left_out = np.maximum(prior - (phi * phi).sum(1, keepdims=True), 0.0)
    found: Tensor = (V * V).sum(1, keepdims=True) + left_out
    return found


# ── twins ───────────────────────────────────────────────────────────────────────────────────────────────────


@outputs_of.register
def _(model: MarginTwin, x: Tensor) -> Outputs:
    """The twins of scikit-learn's support vector machines: the machine inside, with the twin's answers."""
    machine = model.machine_
    if not isinstance(machine, MarginClassifier):
        inside = outputs_of(machine, x)
        names = {"mean": "predict", "label": "predict", "decision": "decision_function"}
        return {
            name: Output(output.tensor, output.meaning, getattr(model, names[name]))
            for name, output in inside.items()
        }
    return _twin_classes(model, machine, x)


def _twin_classes(model: MarginTwin, machine: MarginClassifier, x: Tensor) -> Outputs:
    values = expanded(machine).values(x)
    k = len(model.classes_)
    scores = margin_scores(machine, values)
    decision = scores
    voted = scores
    if k > 2:
        if model.decision_function_shape == "ovo":
            decision = values
        if not model.break_ties:
            voted = votes(values, k, ties_to_first=False)[0]
    found = {
        "label": Output(chosen(model.classes_, winners(voted)), "the class", model.predict),
        "decision": Output(decision, "the largest one wins, or the sign", model.decision_function),
    }
    if hasattr(machine, "calibration_"):
        found["probabilities"] = Output(
            calibrated(machine, scores), "of the classes, in their order", model.predict_proba
        )
    return found
