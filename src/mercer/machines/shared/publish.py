"""A fit that shows itself only when it is whole: `fit` works on a draft, which appears in one step.

Whoever reads a model while it is fitted again, in another thread or after an error or Ctrl-C, sees the old
fit or the new one and never a mixture. A fit that Ctrl-C ended with something to keep is published as any
other, and then `mercer.Interrupted` leaves `fit` with the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeAlias

from mercer import clock
from mercer.errors import Interrupted
from mercer.gram.elsewhere import gathered, is_collection, where_it_is
from mercer.machines.shared.kept import READ, ReadRows
from mercer.solve.solution import Status
from mercer.threads import blas_for

# A method of an estimator, with any arguments.
Method: TypeAlias = Callable[..., Any]

DRAFT = "_is_draft"
WRITERS = ("fit", "set_", "get_", "partial_fit")
"""Beginnings of the names of methods that change the estimator, or ask for its parameters only."""


class Published:
    """A base for estimators: a `fit` is published at its end, any other public method reads one fit only."""

    def __init_subclass__(cls, **options: object) -> None:
        for name, method in list(vars(cls).items()):
            if name in ("fit", "partial_fit") and isfunction(method):
                setattr(cls, name, publishing(method))
            elif not name.startswith(("_", *WRITERS)):
                _read_one_fit(cls, name, method)
        super().__init_subclass__(**options)


def publishing(fit: Method) -> Method:
    """`fit` on a draft of the estimator, which takes the estimator's place when it is done.

    The draft begins as the estimator is, so that a warm start finds the last fit. A `fit` that calls that of
    its base class is already on a draft, and goes on with it. The seconds of `max_seconds` begin here, and
    only one copy of BLAS has threads from here to the end, or none.
    """

    @wraps(fit)
    def published(self: object, *args: object, **options: object) -> object:
        if DRAFT in self.__dict__:
            return fit(self, *args, **options)
        # A list of its own for the draft: what grows in `partial_fit` must not grow in the last fit.
        state = {k: v.copy() if type(v) is list else v for k, v in self.__dict__.items()}
        draft = _with_state(self, state | {DRAFT: True, READ: ReadRows()})
        X = args[0] if args else options.get("X")
        # Targets and weights are few beside the rows: they come here, wherever the rows are.
        args = (*args[:1], *map(gathered, args[1:]))
        options = {name: value if name == "X" else gathered(value) for name, value in options.items()}
        seconds = getattr(draft, "max_seconds", None)
        try:
            with clock.within(seconds), blas_for(_rows(*args, **options)), where_it_is(X):
                fit(draft, *args, **options)
        except Interrupted as stop:
            # A machine inside this one was interrupted: this one has nothing of its own to keep.
            raise KeyboardInterrupt(str(stop)) from stop
        state = draft.__dict__
        del state[DRAFT]
        self.__dict__ = state
        if was_interrupted(self):
            raise Interrupted(self)
        return self

    return published


def _rows(X: object = None, *others: object, **more: object) -> int | None:
    """How many rows a fit was given; None where that is not plain to see."""
    shape = getattr(X, "shape", None)
    if shape and not is_collection(X):
        return int(shape[0])
    return len(X) if isinstance(X, list) else None


def fit_inside(machine: Any, *args: object, **options: object) -> None:
    """Fit a machine that is part of another; what Ctrl-C left of it is used, and its certificate says so."""
    try:
        machine.fit(*args, **options)
    except Interrupted as stop:
        if stop.model is not machine:
            raise


def was_interrupted(model: object) -> bool:
    """Whether the certificate says that Ctrl-C ended the fit."""
    certificate = getattr(model, "certificate_", None)
    return getattr(certificate, "status", None) == Status.INTERRUPTED


def _read_one_fit(cls: type, name: str, method: Any) -> None:
    """Let a public method see the attributes of one fit, even if another is published while it runs."""
    if isfunction(method):
        setattr(cls, name, _reading(method))
    elif isfunction(getattr(method, "fn", None)):
        # What scikit-learn's `available_if` leaves: the method, behind a question.
        method.fn = _reading(method.fn)


def _reading(method: Method) -> Method:
    @wraps(method)
    def reads(self: object, *args: object, **options: object) -> object:
        view = _with_state(self, self.__dict__)
        found = method(view, *args, **options)
        return self if found is view else found

    return reads


def _with_state(estimator: object, state: dict[str, object]) -> object:
    """Another object of the same class whose attributes are `state` itself, not a copy of it."""
    other = object.__new__(type(estimator))
    other.__dict__ = state
    return other
