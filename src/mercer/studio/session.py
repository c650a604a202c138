"""One open page: messages in, messages out, whichever way they travel (WebSocket, or the comm of a notebook).

    {"seq", "state", "want", "detail"}         a whole state, and the views wanted
    {"seq", "move": [row, [x, …]], "want", …}  one point of the last state elsewhere: what a drag sends
    {"seq", "look": state, "want", "detail"}   the same for views that take long; the last state stays
    {"seq", "table": {"name", "base64"}}       a file that was dropped
    {"seq", "roles": {"target", "inputs"}}     other columns of that table
    {"seq", "take": "python" | …}              something to take away
    {"seq", "hello": true}                     what there is to choose from, and what to begin with

Every answer has the `seq` of its question.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.errors import InputError, MercerError, OutputError
from mercer.studio import export, limits
from mercer.studio.answers import VIEWS, Answers, Detail
from mercer.studio.dropped import Dropped
from mercer.studio.machines import APPROXIMATIONS, OFFERS
from mercer.studio.points import Points
from mercer.studio.presets import PRESETS
from mercer.studio.readers import Json, items, number, one_of, record, text, whole
from mercer.studio.state import KernelTextError, State

_MESSAGE = ("seq", "state", "look", "move", "want", "detail", "table", "roles", "take", "hello")
_TAKEN = ("python", "command", "model", "report", "data")


class Session:
    """What one page is about: the last state, the last table, and its answers."""

    def __init__(self, points: Points | None = None, table: Dropped | None = None) -> None:
        self.given = points if table is None else table.points()
        self.table = table
        self.state: State | None = None
        self.answers = Answers()

    def reply(self, message: object) -> Json:
        """The answer to one message; never an exception."""
        seq = message.get("seq") if isinstance(message, dict) else None
        seq = seq if isinstance(seq, int) and not isinstance(seq, bool) else None
        try:
            given = record(message, "the message", _MESSAGE)
            return {"seq": seq, **self._answer(given)}
        except KernelTextError as error:
            problem = {"where": "kernel", "sentence": str(error), "column": error.column}
        except (MercerError, ValueError, OSError, MemoryError) as error:
            problem = {"where": "message", "sentence": str(error).split("\n")[0]}
        return {"seq": seq, "problem": problem}

    def _answer(self, given: Json) -> Json:
        if given.get("hello"):
            return self._hello()
        if "table" in given:
            return self._dropped(given["table"])
        if "roles" in given:
            return self._roles(given["roles"])
        if "take" in given:
            return self._take(one_of(given["take"], "what is taken", _TAKEN), given.get("state"))
        state = self._state(given)
        wanted = [one_of(view, "a view", VIEWS) for view in items(given.get("want", ["main"]), "want", 9)]
        answer = self.answers.answer(state, wanted, _detail(given.get("detail", {})))
        if _is_preset(given.get("state")):
            answer["data"] = state.points.as_json()
        return answer

    def _state(self, given: Json) -> State:
        if "look" in given:
            return State.read(given["look"])
        if "state" in given:
            self.state = State.read(given["state"])
        elif "move" in given:
            self.state = self._moved(given["move"])
        if self.state is None:
            raise InputError("the first message must hold the state.")
        return self.state

    def _hello(self) -> Json:
        return {
            "presets": {name: preset.as_json() for name, preset in PRESETS.items()},
            "machines": [offer.as_json() for offer in OFFERS.values()],
            "approximations": list(APPROXIMATIONS),
            "limits": {"rows": limits.MOST_ROWS, "bytes": limits.MOST_TABLE_BYTES},
            "points": None if self.given is None else self.given.as_json(),
            "table": None if self.table is None else self.table.as_json(),
        }

    def _moved(self, value: object) -> State:
        if self.state is None:
            raise InputError("there are no points to move yet.")
        row, to = items(value, "a move", 2)
        place = [number(v, "a coordinate") for v in items(to, "a place", limits.MOST_COLUMNS)]
        points = self.state.points
        at = whole(row, "the row", 0, max(len(points) - 1, 0))
        if points.width == 1 and points.task == "numbers" and len(place) == 2:
            moved = points.moved(at, np.array(place[:1]))
            y = moved.y.copy()
            y[at] = place[1]
            return replace(self.state, points=replace(moved, y=y))
        return replace(self.state, points=points.moved(at, np.array(place)))

    def _dropped(self, value: object) -> Json:
        given = record(value, "the table", ("name", "base64"))
        name = text(given.get("name", "table.csv"), "the name of the file", 300)
        try:
            content = base64.b64decode(
                text(given.get("base64"), "the table", limits.MOST_BYTES), validate=True
            )
        except binascii.Error as error:
            raise InputError(f"the file did not arrive whole: {error}.") from error
        self.table = Dropped.of_bytes(name, content)
        return {"points": self.table.points().as_json(), "table": self.table.as_json()}

    def _roles(self, value: object) -> Json:
        if self.table is None:
            raise InputError("there is no table yet. Drop a CSV on the page.")
        given = record(value, "the roles", ("target", "inputs"))
        target = text(given.get("target"), "the target", 1000)
        inputs = [text(name, "a column", 1000) for name in items(given.get("inputs", []), "inputs", 4096)]
        return {"points": self.table.points(target, inputs).as_json(), "table": self.table.as_json()}

    def _take(self, what: str, value: object) -> Json:
        state = self.state if value is None else State.read(value)
        if state is None:
            raise InputError("there is nothing to take away yet.")
        if what == "data":
            return {"text": export.table(state.points), "name": "points.csv"}
        fitted = self.answers.fitted(state.points, state.first)
        if what == "model":
            packed = base64.b64encode(export.model_file(fitted)).decode("ascii")
            return {"base64": packed, "name": "model.mercer"}
        if what == "report":
            return {"text": export.report(fitted), "name": "report.html"}
        made: dict[str, Any] = {"python": export.python, "command": export.command}
        return {"text": made[what](fitted), "name": f"{what}.txt"}


def _is_preset(state: object) -> bool:
    """Whether a state names its points only, so that the page has not seen them yet."""
    data = state.get("data") if isinstance(state, dict) else None
    return isinstance(state, dict) and (data is None or (isinstance(data, dict) and "X" not in data))


def _detail(value: object) -> Detail:
    given = record(value, "the detail", ("columns", "rows", "curve", "aspect"))
    return Detail(
        whole(given.get("columns", 96), "the columns of the field", 2, limits.MOST_GRID),
        whole(given.get("rows", 72), "the rows of the field", 2, limits.MOST_GRID),
        whole(given.get("curve", 200), "the points of the curve", 20, limits.MOST_CURVE),
        None if given.get("aspect") is None else number(given["aspect"], "the aspect", 0.1, 10.0),
    )


def written(answer: Json) -> str:
    """An answer as JSON; numbers that are not finite were taken out before."""
    try:
        return json.dumps(answer, allow_nan=False)
    except ValueError as error:
        raise OutputError(f"an answer holds a number that is not finite: {error}.") from error
