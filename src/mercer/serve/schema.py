"""The columns of a model as pydantic models, which check the bodies of requests and are shown as OpenAPI.

A column may have any name: its field is called `column_3`, and the name is the alias.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, create_model
from pydantic.types import FailFast

from mercer.recipe.estimate import LEVEL
from mercer.serve.columns import BOOLEAN, NUMBER, Column
from mercer.serve.limits import Limits

STRICT = ConfigDict(extra="forbid", strict=True)
FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[float, Field(strict=True, gt=0, lt=1)]
# Types are made at run time here, which type checkers do not follow.
Kind = Any


def row_of(columns: Sequence[Column] | None, width: int, gaps: bool, limits: Limits) -> Kind:
    """The type of one row: an object with a field for each column, or a list of numbers."""
    if columns is None:
        cell: Kind = FiniteNumber
        if gaps:
            cell = FiniteNumber | None
        return Annotated[list[cell], Field(min_length=width, max_length=width), FailFast()]
    fields = {f"column_{j}": _field(column, limits) for j, column in enumerate(columns)}
    made: Kind = create_model("Row", __config__=STRICT, **fields)  # type: ignore[call-overload]
    return made


def _field(column: Column, limits: Limits) -> tuple[Kind, Any]:
    described = column.role if not column.why else f"{column.role}: {column.why}"
    if not column.used:
        words = f"{described}. Not read; may be absent."
        unread: Any = Field(default=None, alias=column.name, title=column.name, description=words)
        return Any, unread
    kinds = [_kind(name, limits) for name in column.types]
    if column.gaps:
        kinds.append(None)
    examples = None if column.example is None else [column.example]
    info: Any = Field(..., alias=column.name, title=column.name, description=described, examples=examples)
    return reduce(or_, kinds), info


def _kind(name: str, limits: Limits) -> Kind:
    if name == NUMBER:
        return FiniteNumber
    if name == BOOLEAN:
        return StrictBool
    return Annotated[str, Field(strict=True, max_length=limits.characters)]


def predict_body(row: Kind, limits: Limits) -> type[BaseModel]:
    """The body of POST /predict."""
    rows = Annotated[list[row], Field(min_length=1, max_length=limits.rows), FailFast()]
    level = Field(
        default=LEVEL,
        description="Of the intervals, between 0 and 1; null for none, which is quicker.",
    )
    return create_model(
        "PredictBody",
        __config__=STRICT,
        rows=(rows, Field(..., description="The rows to predict.")),
        level=(Level | None, level),
    )


def explain_body(row: Kind) -> type[BaseModel]:
    """The body of POST /explain."""
    return create_model(
        "ExplainBody", __config__=STRICT, row=(row, Field(..., description="The row to explain."))
    )


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────

Label = str | bool | int | float


class PredictAnswer(BaseModel):
    """Predictions in the order of the rows, with what the model knows of their certainty."""

    predictions: list[Label | list[Label]]
    level: float | None = None
    intervals: list[tuple[float, float]] | None = None
    classes: list[Label] | None = None
    probabilities: list[list[float]] | None = None


class EffectAnswer(BaseModel):
    """What a column did to a prediction, beside its typical value."""

    column: str
    value: Label | None
    typical: Label | None
    effect: float


class AlikeAnswer(BaseModel):
    """A row of the fit, by its number from 1 (null of a landmark), and how alike it is."""

    row: int | None
    likeness: float
    target: Label | None


class ExplainAnswer(BaseModel):
    """What the prediction for one row rests on."""

    said: str
    effects: list[EffectAnswer]
    alike: list[AlikeAnswer]


class ColumnAnswer(BaseModel):
    """A column of the table."""

    name: str
    role: str
    why: str
    types: list[str]
    used: bool
    null: bool
    example: Label | None


class EstimateAnswer(BaseModel):
    """The error on rows that were not seen, and how it is known."""

    how: str
    measures: dict[str, float]
    nothing_learned: dict[str, float]


class ModelAnswer(BaseModel):
    """What the model is."""

    machine: str
    task: str
    target: str | None
    columns: list[ColumnAnswer] | None
    width: int
    kernel: str | None
    scale: dict[str, float] | None
    estimate: EstimateAnswer | None
    certificate: str | None
    steps: list[str]


class HealthAnswer(BaseModel):
    """That the server is there."""

    status: Literal["ok"]
    model: str
    version: str


class Problem(BaseModel):
    """Why there is no answer; `row` counts from 1."""

    detail: str
    row: int | None = None
    column: str | None = None
