"""What fitted machines write: the functions f = Σ c_j k(z_j, ·) + b that they come to, and what follows.

An output has a name, a tensor, and the machine's own answer, with which the finished graph is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from mercer.arrays import Rows
from mercer.errors import ModelFileError, ParameterError
from mercer.gram.functions import ByFeatures, ByRows
from mercer.gram.on_rows import Evaluated
from mercer.kernels.base import Kernel
from mercer.machines.kernel_sets.ridge import MultipleKernelRegressor
from mercer.machines.landmarks.approximation import Approximation
from mercer.machines.landmarks.falkon import FalkonClassifier, FalkonRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.loss.kernel_machine import KernelMachine
from mercer.machines.margin.classify import MarginClassifier
from mercer.machines.margin.one_by_one import Expansion
from mercer.machines.margin.one_class import OneClassSVM
from mercer.machines.margin.svr import MarginRegressor
from mercer.machines.ridge.feature_machine import FeatureMachineClassifier
from mercer.machines.ridge.least_squares import KernelLeastSquares
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.shared.machine import Machine
from mercer.onnx.functions import numbers, where
from mercer.onnx.graph import FLAGS, NUMBERS, TEXTS, WHOLES, Operand, Tensor, as_tensor
from mercer.onnx.writing import Place, spread, write
from mercer.theory.functions import function_of
from mercer.typing import Array, Labels, Table


@dataclass(frozen=True, eq=False)
class Output:
    """A result of the graph, what it is, and the machine's own answer for the same rows."""

    tensor: Tensor
    meaning: str
    ask: Callable[[Table], Labels]


Outputs = dict[str, Output]


class Expanded(NamedTuple):
    """f = Σ c_j k(z_j, ·) + b: a column of coefficients for each function."""

    kernel: Kernel
    rows: Rows
    coef: Array
    offset: Array

    def place(self, x: Tensor) -> Place:
        return Place(x, self.rows)

    def values(self, x: Tensor) -> Tensor:
        """Every function at new rows, rows × functions."""
        if len(self.coef) == 0:
            zeros: Tensor = 0.0 * x[:, [0]] + self.offset[None, :]
            return zeros
        at = self.place(x)
        products = spread(write(self.kernel, at), at) @ np.ascontiguousarray(self.coef)
        found: Tensor = products + self.offset[None, :]
        return found


def expanded(model: object) -> Expanded:
    """The functions of a machine over the rows or the landmarks that it keeps."""
    try:
        f = function_of(model)
    except ParameterError as error:
        raise ModelFileError(f"{type(model).__name__} is not written as ONNX: {error}") from error
    if isinstance(f, ByRows):
        if not isinstance(f.on, Evaluated):
            raise ModelFileError(
                "This model was fitted to a precomputed Gram matrix, and a graph of new rows needs the "
                "kernel. Fit with the kernel itself."
            )
        return Expanded(f.on.kernel, f.on.rows, f.coefficients, f.offset)
    if isinstance(model, Machine) and model.is_approximated:
        assert isinstance(f, ByFeatures)
        return _through_landmarks(model.approximation_, f.weights.T, f.offset)
    if isinstance(model, RidgeMachine) and isinstance(model.kernel_, Kernel):
        # solved in explicit features; the same function by its rows
        coef = model.dual_coef_.reshape(len(model.dual_coef_), -1)
        return Expanded(model.kernel_, model.as_rows(model.X_fit_), coef, f.offset)
    raise ModelFileError(
        f"{type(model).__name__} predicts by explicit features, which are not written as ONNX."
    )


def _through_landmarks(approximation: Approximation, weights: Array, offset: Array) -> Expanded:
    """φ(x)·β as a function of the kernel at the landmarks, by which the features φ are made."""
    if not isinstance(approximation, Nystroem) or not isinstance(approximation.kernel_, Kernel):
        raise ModelFileError(
            f"This model has {type(approximation).__name__} in place of its kernel, and of the "
            "approximations only Nystroem with a kernel is written as ONNX. Fit with "
            "approximation=Nystroem(...), or keep the model with mercer.save."
        )
    rows = approximation.as_rows(approximation.landmarks_)
    coef = approximation.basis_.coefficients(weights)
    return Expanded(approximation.kernel_, rows, coef, offset)


# ── machines ────────────────────────────────────────────────────────────────────────────────────────────────


@singledispatch
def outputs_of(model: object, x: Tensor | None = None) -> Outputs:
    """The outputs of a fitted machine; here of one that is not exported."""
    raise ModelFileError(
        f"{type(model).__name__} is not written as ONNX. Of mercer's machines these are: SVC, NuSVC, SVR, "
        "NuSVR, OneClassSVM, KernelRidge, KernelRidgeCV, the feature machines, KernelLeastSquares, "
        "KernelMachine, KernelPerceptron, Adatron, GaussianProcessRegressor, FalkonRegressor, "
        "FalkonClassifier, the machines of several kernels, and the support vector machines of "
        "mercer.sklearn. Keep others with mercer.save."
    )


def require_known(model: object) -> None:
    """Refuse a machine that is not exported."""
    if outputs_of.dispatch(type(model)) is outputs_of.dispatch(object):
        outputs_of.dispatch(object)(model)


def single(values: Tensor) -> Tensor:
    """One function, as a vector."""
    return values[:, 0]


def _means(model: object, x: Tensor, ask: Callable[[Table], Labels], *, vector: bool) -> Outputs:
    values = expanded(model).values(x)
    if vector:
        values = single(values)
    return {"mean": Output(values, "predictions", ask)}


@outputs_of.register
def _(model: MarginRegressor, x: Tensor) -> Outputs:
    return _means(model, x, model.predict, vector=True)


@outputs_of.register
def _(model: FalkonRegressor, x: Tensor) -> Outputs:
    return _means(model, x, model.predict, vector=True)


@outputs_of.register
def _(model: RidgeMachine, x: Tensor) -> Outputs:
    return _means(model, x, model.predict, vector=model.dual_coef_.ndim == 1)


@outputs_of.register
def _(model: KernelLeastSquares, x: Tensor) -> Outputs:
    return _means(model, x, model.predict, vector=model.dual_coef_.ndim == 1)


@outputs_of.register
def _(model: MultipleKernelRegressor, x: Tensor) -> Outputs:
    return _means(model, x, model.predict, vector=model.dual_coef_.ndim == 1)


@outputs_of.register
def _(model: OneClassSVM, x: Tensor) -> Outputs:
    decision = single(expanded(model).values(x))
    side = where(decision >= 0.0, 1.0, -1.0)
    label = x.graph.node("Cast", side, shape=side.shape, kind=WHOLES, to=7)
    return {
        "label": Output(label, "1 inside, -1 outside", model.predict),
        "decision": Output(decision, "positive inside, negative outside", model.decision_function),
    }


# ── classes ─────────────────────────────────────────────────────────────────────────────────────────────────


def chosen(classes: Labels, places: Tensor) -> Tensor:
    """The labels at some places in the list of classes: text, whole numbers, numbers, or true and false."""
    graph = places.graph
    if classes.dtype.kind in "UO" and all(isinstance(c, str) for c in classes.tolist()):
        table = graph.constant(np.array(classes.tolist(), dtype=object), TEXTS)
    elif classes.dtype.kind in "iu":
        table = graph.constant(classes.astype(np.int64), WHOLES)
    elif classes.dtype.kind == "b":
        table = graph.constant(classes, FLAGS)
    elif classes.dtype.kind == "f":
        table = graph.constant(classes.astype(np.float64), NUMBERS)
    else:
        raise ModelFileError(
            f"The classes have labels of type {classes.dtype}, which ONNX does not have. Fit with text or "
            "whole numbers for labels."
        )
    return graph.node("Gather", table, places, shape=places.shape, kind=table.kind, axis=0)


def winners(scores: Tensor) -> Tensor:
    """The place of the class with the largest score; of one score, 1 where it is positive."""
    graph = scores.graph
    if scores.ndim == 1:
        return graph.node("Cast", scores > 0.0, shape=scores.shape, kind=WHOLES, to=7)
    return graph.node("ArgMax", scores, shape=(None,), kind=WHOLES, axis=1, keepdims=0)


def votes(values: Tensor, k: int, *, ties_to_first: bool) -> tuple[Tensor, Tensor]:
    """The votes of the duels of two classes, and the sum of how clear they were."""
    pairs = list(combinations(range(k), 2))
    first = np.zeros((len(pairs), k))
    second = np.zeros((len(pairs), k))
    for row, (a, b) in enumerate(pairs):
        first[row, a] = 1.0
        second[row, b] = 1.0
    won = numbers(values >= 0.0 if ties_to_first else values > 0.0)
    return won @ first + (1.0 - won) @ second, values @ (first - second)


def votes_and_confidence(values: Tensor, k: int) -> Tensor:
    """Votes of the duels, plus a share below one third of a vote for how clear they were."""
    counted, sure = votes(values, k, ties_to_first=True)
    found: Tensor = counted + sure / (3.0 * (np.abs(sure) + 1.0))
    return found


def softmax(scores: Tensor) -> Tensor:
    return scores.graph.node("Softmax", scores, shape=scores.shape, axis=1)


def side_by_side(*columns: Tensor) -> Tensor:
    return columns[0].graph.concat([column[:, None] for column in columns], 1)


def _decided(
    scores: Tensor, model: MarginClassifier | FalkonClassifier | FeatureMachineClassifier | Expansion
) -> Outputs:
    classes = model.classes_
    return {
        "label": Output(chosen(classes, winners(scores)), "the class", model.predict),
        "decision": Output(scores, "the largest one wins, or the sign", model.decision_function),
    }


@outputs_of.register
def _(model: Expansion, x: Tensor) -> Outputs:
    return _decided(single(expanded(model).values(x)), model)


def margin_scores(model: MarginClassifier, values: Tensor) -> Tensor:
    """What the classes of a margin machine have: one score of two classes, or one of each."""
    k = len(model.classes_)
    if k == 2:
        return single(values)
    if model.multiclass == "ovr":
        return values
    return votes_and_confidence(values, k)


def calibrated(model: MarginClassifier | FeatureMachineClassifier, scores: Tensor) -> Tensor:
    """Probabilities by the slopes that were found on held-out rows."""
    slopes = model.calibration_.slopes
    if scores.ndim == 1:
        below, above = slopes
        z = where(scores < 0.0, below, above) * scores
        return softmax(side_by_side(0.0 * z, z))
    return softmax(slopes[0] * scores)


@outputs_of.register
def _(model: MarginClassifier, x: Tensor) -> Outputs:
    scores = margin_scores(model, expanded(model).values(x))
    found = _decided(scores, model)
    if model.probability:
        found["probabilities"] = Output(
            calibrated(model, scores), "of the classes, in their order", model.predict_proba
        )
    return found


@outputs_of.register
def _(model: FeatureMachineClassifier, x: Tensor) -> Outputs:
    values = expanded(model).values(x)
    scores = single(values) if len(model.classes_) == 2 else values
    shares = Output(calibrated(model, scores), "of the classes, in their order", model.predict_proba)
    return {**_decided(scores, model), "probabilities": shares}


@outputs_of.register
def _(model: FalkonClassifier, x: Tensor) -> Outputs:
    values = expanded(model).values(x)
    scores = single(values) if len(model.classes_) == 2 else values
    found = _decided(scores, model)
    if model.loss == "logistic":
        found["probabilities"] = Output(
            _shares(scores), "of the classes, in their order", model.predict_proba
        )
    return found


def _shares(scores: Tensor) -> Tensor:
    """The logistic function of each score, normalised over the classes."""
    p = expit(scores)
    if scores.ndim == 1:
        return side_by_side(1.0 - p, p)
    total = p.sum(1, keepdims=True)
    k = scores.shape[1]
    assert k is not None
    return where(total > 0.0, p / where(total > 0.0, total, 1.0), 1.0 / k)


@outputs_of.register
def _(model: KernelMachine, x: Tensor) -> Outputs:
    values = expanded(model).values(x)
    if model.loss_.kind == "classification":
        return _classes_of_loss(model, values)
    if values.shape[1] == 1:
        # the function that the loss predicts by, called with a tensor
        predict: Callable[[Operand], Operand] = model.loss_.predict
        return {"mean": Output(as_tensor(predict(single(values))), "predictions", model.predict)}
    k = values.shape[1]
    assert k is not None
    size = x.graph.whole_numbers([k])
    levels = x.graph.node("TopK", values, size, shape=values.shape, results=2, axis=1, largest=0, sorted=1)
    return {"quantiles": Output(levels, "the levels, in rising order", model.predict)}


def _classes_of_loss(model: KernelMachine, values: Tensor) -> Outputs:
    scores = single(values) if values.shape[1] == 1 else values
    found = {
        "label": Output(chosen(model.classes_, winners(scores)), "the class", model.predict),
        "decision": Output(scores, "the largest one wins, or the sign", model.decision_function),
    }
    if hasattr(model, "predict_proba"):
        if scores.ndim == 1:
            shares = side_by_side(expit(-scores), expit(scores))
        else:
            shares = softmax(scores)
        found["probabilities"] = Output(shares, "of the classes, in their order", model.predict_proba)
    return found
