"""The page as a widget of notebooks, by anywidget: the same bundle and session, another way of travel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
from sklearn.base import BaseEstimator

from mercer.errors import InputError
from mercer.studio import export
from mercer.studio.fitted import Fitted
from mercer.studio.points import Points
from mercer.studio.session import Session
from mercer.studio.state import State

STATIC = Path(__file__).parent / "static"


class StudioWidget(anywidget.AnyWidget):
    """The studio in a cell. `points`, `model` and `python` are what is on the page now."""

    _esm = STATIC / "studio.js"
    _css = STATIC / "studio.css"

    def __init__(self, points: Points | None = None) -> None:
        super().__init__()
        self.session = Session(points)
        self.on_msg(self._heard)

    def _heard(self, widget: Any, content: object, buffers: object) -> None:
        self.send(self.session.reply(content))

    @property
    def points(self) -> Points:
        """The points as they are drawn now."""
        return self._state().points

    @property
    def model(self) -> BaseEstimator:
        """The machine of the page, fitted."""
        return self._fitted().model

    @property
    def python(self) -> str:
        """A program that fits the same machine to the same numbers."""
        return export.python(self._fitted())

    def _fitted(self) -> Fitted:
        state = self._state()
        return self.session.answers.fitted(state.points, state.first)

    def _state(self) -> State:
        if self.session.state is None:
            raise InputError("the page has not been shown yet. End a cell with the widget first.")
        return self.session.state
