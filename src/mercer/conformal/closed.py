"""Which machines have leave-one-out in closed form, and what of their fit breaks a strict promise."""

from __future__ import annotations

import inspect
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from mercer.conformal.guarantee import TUNED
from mercer.errors import ParameterError
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.ridge.machine import RidgeMachine
from mercer.machines.ridge.ridge_cv import KernelRidgeCV
from mercer.machines.shared.base import as_machine_kernel
from mercer.solve.left_out import Smoother
from mercer.typing import Array

Closed: TypeAlias = RidgeMachine | GaussianProcessRegressor
# Smoothers hold n × n factors: they live as long as their wrapper, and are in no file.
_SMOOTHERS: WeakKeyDictionary[object, Smoother] = WeakKeyDictionary()


def is_closed(model: object) -> bool:
    """Whether the predictions without each row follow from one factorisation."""
    return isinstance(model, RidgeMachine | GaussianProcessRegressor)


def is_centred(model: object) -> bool:
    """Whether targets are taken about their mean before the fit, which is then no Gaussian's of them all."""
    return isinstance(model, GaussianProcessRegressor) and model.posterior_.units.centred


def remember(owner: object, smoother: Smoother) -> None:
    """Keep the smoother of a fit for its predictions."""
    _SMOOTHERS[owner] = smoother


def smoother_of(owner: object, model: Closed, diagonal: Array) -> Smoother:
    """The smoother of a fitted machine; made again where it was not kept, as of a model from a file."""
    found = _SMOOTHERS.get(owner)
    if found is None:
        found = _SMOOTHERS[owner] = model.smoother(diagonal)
    return found


def forget(owner: object) -> None:
    """Drop the smoother of an earlier fit."""
    _SMOOTHERS.pop(owner, None)


def what_breaks(model: Closed) -> tuple[str, ...]:
    """What of a fit was learned from the rows that are left out, beside the coefficients."""
    notes = []
    given = as_machine_kernel(model.kernel)
    found = None if isinstance(model.kernel_, str) else model.kernel_
    if isinstance(model, KernelRidgeCV) or given != found:
        notes.append(TUNED)
    drawn = getattr(model, "solver_", "") == "nystrom" or isinstance(model.approximation, Nystroem)
    if drawn:
        notes.append(
            "Landmarks were chosen among the same rows and stay where a row is left out: strictly the "
            "promise is one for landmarks from elsewhere."
        )
    return tuple(notes)


def deviation(model: Any, rows: Any) -> Array:
    """The deviation that a fitted model expects of new observations at rows."""
    if isinstance(model, RidgeMachine):
        spread = model.smoother().at(model.check_rows(rows, reset=False), True).spread
        assert spread is not None
        return np.sqrt(spread)
    accepted = inspect.signature(model.predict).parameters
    if "return_std" not in accepted:
        raise ParameterError(
            "normalize=True needs a model that states its own deviation, and "
            f"{type(model).__name__} has none: use a Gaussian process or a ridge, or normalize=False."
        )
    options = {"noise": True} if "noise" in accepted else {}
    return np.asarray(model.predict(rows, return_std=True, **options)[1], dtype=np.float64)
