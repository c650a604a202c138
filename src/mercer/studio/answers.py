"""State in, pictures out: one function for each view, and the head that every answer has.

What cannot be shown is a `problem`: a sentence, and whether it is about the data, the kernel or the machine.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.errors import InputError, MercerError
from mercer.kernels.base import Kernel
from mercer.studio.comparing import comparison
from mercer.studio.curves import curve
from mercer.studio.fitted import Fitted
from mercer.studio.gram_view import gram_view
from mercer.studio.kernels import head, kernel_view
from mercer.studio.machines import NUMBERS, Choice
from mercer.studio.planes import box_around, is_slice, plane
from mercer.studio.points import Points
from mercer.studio.readers import Json
from mercer.studio.space import space
from mercer.studio.state import State, View
from mercer.studio.steps import certificate_view
from mercer.studio.surface import surface
from mercer.studio.why import why

VIEWS = ("main", "kernel", "gram", "space", "certificate", "choice", "why", "compare")


@dataclass(frozen=True)
class Detail:
    """How fine the pictures are: columns and rows of a field, points of a curve; width over height."""

    columns: int = 96
    rows: int = 72
    curve: int = 200
    aspect: float | None = None


class Answers:
    """Answers for one page; the last fit of each machine is kept, so that another view costs no other fit."""

    def __init__(self) -> None:
        self._fits: dict[str, tuple[Points, Choice, Fitted]] = {}

    def fitted(self, points: Points, choice: Choice, slot: str = "first") -> Fitted:
        """The machine on the points."""
        kept = self._fits.get(slot)
        if kept is not None and kept[0] is points and kept[1] == choice:
            return kept[2]
        found = Fitted.of(points, choice)
        self._fits[slot] = (points, choice, found)
        return found

    def answer(self, state: State, wanted: Sequence[str], detail: Detail) -> Json:
        """The head, and the views that were asked for."""
        start = time.perf_counter()
        out: Json = {"kernel": None, "fit": None, "problem": None, "views": {}, "box": _box(state, detail)}
        out["kernel"], out["problem"] = _tried("kernel", lambda: head(state.first.kernel, state.points))
        if out["problem"] is None:
            out["fit"], out["problem"] = _tried(
                "fit", lambda: self.fitted(state.points, state.first).summary()
            )
        for name in wanted:
            view, problem = _tried(name, self._view(name, state, detail))
            out["views"][name] = view if problem is None else {"problem": problem["sentence"]}
        out["ms"] = 1e3 * (time.perf_counter() - start)
        return out

    def _view(self, name: str, state: State, detail: Detail) -> Callable[[], Json]:
        points, choice, view = state.points, state.first, state.view

        def fitted() -> Fitted:
            return self.fitted(points, choice)

        table: dict[str, Callable[[], Json]] = {
            "main": lambda: self._main(state, detail),
            "kernel": lambda: kernel_view(choice.kernel, points, view),
            "gram": lambda: _gram(choice.kernel, points, view),
            "space": lambda: space(fitted(), view),
            "certificate": lambda: certificate_view(fitted(), view),
            "choice": lambda: surface(points, choice, view),
            "why": lambda: why(fitted(), view),
            "compare": lambda: self._compare(state),
        }
        if name not in table:
            raise InputError(f"there is no view {name!r:.40}. There are {', '.join(VIEWS)}.")
        return table[name]

    def _main(self, state: State, detail: Detail) -> Json:
        fitted = self.fitted(state.points, state.first)
        if state.points.width == 1:
            return {"type": "curve", **curve(fitted, state.view, detail.curve)}
        return {"type": "plane", **plane(fitted, state.view, detail.columns, detail.rows, detail.aspect)}

    def _compare(self, state: State) -> Json:
        other = state.second
        if other is None:
            # exact against Nyström is what one asks first
            kind = "none" if state.first.approximation != "none" else "Nystroem"
            other = replace(state.first, approximation=kind)
        first = self.fitted(state.points, state.first)
        return comparison(first, self.fitted(state.points, other, "second"), state.view)


def _gram(kernel: Kernel, points: Points, view: View) -> Json:
    if not len(points):
        raise InputError("There are no points yet, so that there is no Gram matrix.")
    return gram_view(kernel, points, view.order)


def _box(state: State, detail: Detail) -> list[float] | None:
    """The sides of the picture, also where nothing can be fitted."""
    points = state.points
    if state.view.box is not None:
        return list(state.view.box)
    if is_slice(points, state.view):
        return list(box_around(points.X[:, list(state.view.axes)], detail.aspect))
    if points.width == 1:
        up = points.y if points.task == NUMBERS else 2.0 * points.y - 1.0
        return list(box_around(np.column_stack([points.X[:, 0], up])))
    return None


def _tried(where: str, ask: Callable[[], Json]) -> tuple[Json | None, Json | None]:
    """An answer, or the sentence that says why there is none."""
    try:
        return ask(), None
    except (MercerError, ValueError, ArithmeticError, MemoryError) as error:
        return None, {"where": where, "sentence": str(error).split("\n")[0]}
    except Exception:
        traceback.print_exc(file=sys.stderr)
        sentence = "The studio failed at this; the terminal in which it runs says where."
        return None, {"where": where, "sentence": sentence}
