"""The model that answers: rows of cells in, what JSON says of them out."""

from __future__ import annotations

import math
import re
from importlib.metadata import version

import numpy as np
import polars
from sklearn.base import is_classifier

from mercer.errors import InputError, MercerError
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.recipe.estimate import LEVEL
from mercer.recipe.estimators import TableMachine, TableRegressor
from mercer.scales import half_width
from mercer.serve.bodies import UNREADABLE
from mercer.serve.columns import Cell, Cells, Column, Model, columns_of, frame_of, zeros_or_kept
from mercer.serve.limits import Refusal
from mercer.typing import Array

Answer = dict[str, object]
# Where a message of the library names the row of the table that it was given.
_PLACE = re.compile(r" (in|at|of) row \d+ of X")


class Served:
    """A fitted model, the columns that it reads, and its answers."""

    def __init__(self, model: Model) -> None:
        if not callable(getattr(model, "predict", None)):
            raise InputError(f"a {type(model).__name__} does not predict, so that there is nothing to serve.")
        self.model = model
        self.name = type(model).__name__
        self.columns: list[Column] | None = columns_of(model)
        self.width = int(model.n_features_in_)
        self.sample = self._sample()
        self.gaps = self._takes_gaps()
        self.classes = self._classes()
        # once now, so that what a compact file leaves out is computed before the first request
        self.predict([self.sample], LEVEL)

    def _sample(self) -> list[Cell]:
        """A row that the model can be asked about."""
        if self.columns is None:
            row: list[Cell] = zeros_or_kept(self.model)[0].tolist()
            return row
        return [column.sample for column in self.columns]

    def _takes_gaps(self) -> bool:
        """Whether a model of rows without names answers where a number is missing."""
        if self.columns is not None:
            return any(column.gaps for column in self.columns)
        try:
            self.model.predict(np.full((1, self.width), np.nan))
        except (MercerError, ValueError):
            return False
        return True

    def _classes(self) -> list[object] | None:
        """The classes in the order of the probabilities; None of a model that has no probabilities."""
        if not is_classifier(self.model) or not callable(getattr(self.model, "predict_proba", None)):
            return None
        try:
            self.model.predict_proba(self._table([self.sample]))
        except (MercerError, ValueError, AttributeError):
            return None
        found: list[object] = np.asarray(self.model.classes_).tolist()
        return found

    def _table(self, rows: Cells) -> polars.DataFrame | Array:
        if self.columns is not None:
            return frame_of(self.columns, rows)
        return np.array(rows, dtype=np.float64)

    # ── predictions ─────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, rows: Cells, level: float | None) -> Answer:
        """Predictions, with intervals of numbers and probabilities of classes."""
        try:
            return self._predicted(rows, level)
        except MercerError as error:
            raise self._blamed(rows, error) from error

    def _predicted(self, rows: Cells, level: float | None) -> Answer:
        table = self._table(rows)
        if self.classes is not None:
            probabilities = np.asarray(self.model.predict_proba(table))
            labels = np.asarray(self.model.predict(table)).tolist()
            told = _finite(probabilities)
            return {"predictions": labels, "classes": self.classes, "probabilities": told}
        if level is None or not self._has_bands():
            return {"predictions": _finite(np.asarray(self.model.predict(table)))}
        mean, low, high = self._bands(table, level)
        ends = _finite(np.stack([low, high], axis=1))
        return {"predictions": _finite(mean), "level": level, "intervals": ends}

    def _has_bands(self) -> bool:
        if isinstance(self.model, TableRegressor):
            return True
        # of several targets the bands are left out
        return isinstance(self.model, GaussianProcessRegressor) and np.ndim(self.model.alpha_) == 1

    def _bands(self, table: polars.DataFrame | Array, level: float) -> tuple[Array, Array, Array]:
        """Means, and the ends of the intervals of a new observation."""
        if isinstance(self.model, TableRegressor):
            said = self.model.predicted(table)
            return said.mean, *said.interval(level)
        mean, std = self.model.predict(table, return_std=True, noise=True)
        reach = half_width(level) * std
        return mean, mean - reach, mean + reach

    # ── what went wrong ─────────────────────────────────────────────────────────────────────────────────────

    def _blamed(self, rows: Cells, error: MercerError) -> Refusal:
        """The first row that is refused alone, and the column that heals it when it is replaced."""
        first = 0
        last = len(rows)
        while last - first > 1:
            middle = (first + last) // 2
            if self._failure(rows[first:middle]) is not None:
                last = middle
            else:
                first = middle
        alone = self._failure(rows[first:last])
        if alone is None:
            # each row is answered alone: it is all of them that cannot be
            return Refusal(UNREADABLE, str(error))
        sentence = _PLACE.sub("", str(alone))
        number = first + 1
        column = self._column_at_fault(rows[first])
        if column is None:
            return Refusal(UNREADABLE, f"row {number}: {sentence}", number)
        return Refusal(UNREADABLE, f"row {number}, column {column!r}: {sentence}", number, column)

    def _failure(self, rows: Cells) -> MercerError | None:
        try:
            self._predicted(rows, None)
        except MercerError as error:
            return error
        return None

    def _column_at_fault(self, row: list[Cell]) -> str | None:
        for j in range(len(row)):
            healed = [*row[:j], self.sample[j], *row[j + 1 :]]
            if healed != row and self._failure([healed]) is None:
                return str(j + 1) if self.columns is None else self.columns[j].name
        return None

    # ── what it is ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def explains(self) -> bool:
        """Whether POST /explain is there."""
        return isinstance(self.model, TableMachine)

    def explain(self, row: list[Cell]) -> Answer:
        """What the prediction for one row rests on."""
        try:
            found = self.model.explain(self._table([row]))
        except MercerError as error:
            raise self._blamed([row], error) from error
        effects = [
            {"column": e.column, "value": _plain(e.value), "typical": _plain(e.typical), "effect": e.effect}
            for e in found.effects
        ]
        alike = [
            {
                "row": None if other.row is None else other.row + 1,
                "likeness": other.likeness,
                "target": _plain(other.target),
            }
            for other in found.alike
        ]
        return {"said": found.said, "effects": effects, "alike": alike}

    def health(self) -> Answer:
        """That the server is there."""
        return {"status": "ok", "model": self.name, "version": version("mercer")}

    def described(self) -> Answer:
        """What the model is, for people and programs."""
        model = self.model
        kernel = getattr(model, "kernel_", None)
        certificate = getattr(model, "certificate_", None)
        task = "classes" if is_classifier(model) else "numbers"
        told: Answer = {
            "machine": self.name,
            "task": task,
            "target": getattr(model, "target_", None),
            "columns": None if self.columns is None else [_described(column) for column in self.columns],
            "width": self.width,
            "kernel": None if kernel is None else str(kernel),
            "scale": None,
            "estimate": None,
            "certificate": None if certificate is None else str(certificate),
            "steps": [],
        }
        if isinstance(model, TableMachine):
            estimate = model.estimate_
            told["scale"] = model.scale_.to_dict()
            told["estimate"] = {
                "how": estimate.how,
                "measures": _known(estimate.measures),
                "nothing_learned": _known(estimate.nothing_learned),
            }
            told["steps"] = [str(step) for step in model.steps_]
        return told


def _described(column: Column) -> Answer:
    return {
        "name": column.name,
        "role": column.role,
        "why": column.why,
        "types": list(column.types),
        "used": column.used,
        "null": column.gaps,
        "example": column.example,
    }


def _known(measures: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in measures.items() if math.isfinite(value)}


def _finite(values: Array) -> list[object]:
    """Numbers as lists; those that JSON cannot hold are refused."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("what is predicted there is not a finite number.")
    listed: list[object] = values.tolist()
    return listed


def _plain(value: object) -> object:
    """A value of the library as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
