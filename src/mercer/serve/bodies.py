"""Bytes of a body become rows of cells, or a refusal that says what is wrong, in which row and column.

JSON is read strictly: UTF-8, no NaN and no infinity, no key twice. Rows are counted before they are checked,
and checks end at the first row that fails, so that a bad body costs no more than a good one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Never

from pydantic import BaseModel, ValidationError

from mercer.serve.columns import Cell, Cells, Column
from mercer.serve.limits import Limits, Refusal

UNREADABLE = 422
LONGEST_SHOWN = 40


def read_json(data: bytes) -> dict[str, Any]:
    """The object of a body."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(UNREADABLE, f"the body is not UTF-8: {error.reason} at byte {error.start}.") from None
    try:
        found = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise Refusal(UNREADABLE, "the body is nested too deeply.") from None
    except ValueError as error:
        raise Refusal(UNREADABLE, f"the body is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise Refusal(UNREADABLE, f"the body must be a JSON object; got {shown(found)}.")
    return found


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no number of JSON; null stands for what is missing")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {shown(name)} is there twice in one object")
        found[name] = value
    return found


def shown(value: object) -> str:
    """A value of JSON in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


class Bodies:
    """Checks bodies against the columns of one model."""

    def __init__(self, columns: Sequence[Column] | None, width: int, limits: Limits) -> None:
        self.columns = columns
        self.width = width
        self.limits = limits
        self.known = {} if columns is None else {column.name: column for column in columns}

    def rows(self, body: dict[str, Any], model: type[BaseModel]) -> tuple[Cells, float | None]:
        """The rows of a body of /predict, and the level of the intervals."""
        _refuse_others(body, ("rows", "level"))
        rows = body.get("rows")
        if not isinstance(rows, list) or not rows:
            given = "nothing" if "rows" not in body else shown(rows)
            raise Refusal(UNREADABLE, f"'rows' must be a list of one row or more; got {given}.")
        if len(rows) > self.limits.rows:
            raise Refusal(
                UNREADABLE,
                f"{len(rows)} rows are more than the {self.limits.rows} that one request may have. Send "
                "several requests, or start the server with --max-rows.",
            )
        for number, row in enumerate(rows, 1):
            self._check_row(row, number)
        checked: Any = self._validated(body, model)
        return [self._cells(row) for row in checked.rows], checked.level

    def row(self, body: dict[str, Any], model: type[BaseModel]) -> list[Cell]:
        """The row of a body of /explain."""
        _refuse_others(body, ("row",))
        if "row" not in body:
            raise Refusal(UNREADABLE, "the body has no 'row' to explain.")
        self._check_row(body["row"], 1)
        checked: Any = self._validated(body, model)
        return self._cells(checked.row)

    def _check_row(self, row: object, number: int) -> None:
        """What is quicker found here than by pydantic: the wrong kind of row, and columns unknown."""
        if self.columns is None:
            if not isinstance(row, list) or len(row) != self.width:
                raise Refusal(
                    UNREADABLE,
                    f"row {number} must be a list of {self.width} numbers; got {shown(row)}.",
                    number,
                )
            return
        if not isinstance(row, dict):
            raise Refusal(
                UNREADABLE,
                f"row {number} must be an object with the columns {self._names()}; got {shown(row)}.",
                number,
            )
        for name in row:
            if name not in self.known:
                raise Refusal(
                    UNREADABLE,
                    f"row {number} has the column {shown(name)}, which the model does not know. Its columns "
                    f"are {self._names()}.",
                    number,
                    name,
                )

    def _names(self) -> str:
        names = [repr(name) for name in self.known]
        if len(names) > 20:
            names = [*names[:20], "…"]
        return ", ".join(names)

    def _validated(self, body: dict[str, Any], model: type[BaseModel]) -> BaseModel:
        try:
            return model.model_validate(body)
        except ValidationError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: ValidationError) -> Refusal:
        """The first thing that is wrong, in a sentence."""
        first = error.errors(include_url=False, include_context=False)[0]
        place = list(first["loc"])
        if place[0] == "level":
            return Refusal(
                UNREADABLE, f"'level' must be a number between 0 and 1, or null; got {shown(first['input'])}."
            )
        number = 1
        if place[0] == "rows":
            number = int(place[1]) + 1
            place = place[1:]
        name = place[1]
        if self.columns is None:
            column = str(int(name) + 1)
            return Refusal(
                UNREADABLE,
                f"row {number}, column {column}: a finite number was needed; got {shown(first['input'])}.",
                number,
                column,
            )
        return self._wrong_cell(self.known[str(name)], number, first["type"], first["input"])

    def _wrong_cell(self, column: Column, number: int, kind: str, value: object) -> Refusal:
        where = f"row {number}, column {column.name!r}"
        if kind == "missing":
            hint = " Give null if it is not known." if column.gaps else ""
            sentence = f"row {number} has no column {column.name!r}, which the model uses.{hint}"
        elif kind == "string_too_long":
            sentence = f"{where}: the text has more than {self.limits.characters} characters."
        elif kind == "finite_number":
            sentence = f"{where}: the number is too large to be computed with."
        elif kind == "string_unicode":
            sentence = f"{where}: the text has half of a surrogate pair, which is no character."
        else:
            sentence = f"{where}: {column.needed} was needed; got {shown(value)}."
        return Refusal(UNREADABLE, sentence, number, column.name)

    def _cells(self, row: Any) -> list[Cell]:
        if self.columns is None:
            return list(row)
        return [getattr(row, f"column_{j}") if column.used else None for j, column in enumerate(self.columns)]


def _refuse_others(body: dict[str, Any], allowed: Sequence[str]) -> None:
    for name in body:
        if name not in allowed:
            words = " and ".join(repr(key) for key in allowed)
            raise Refusal(UNREADABLE, f"the body has {shown(name)}, which is not read here; it has {words}.")
