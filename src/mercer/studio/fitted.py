"""A state, fitted: the machine, its multipliers, and its function on any rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.errors import InputError, MercerError
from mercer.gram.functions import ByRows, Functions
from mercer.studio.machines import CLASSES, Choice
from mercer.studio.points import Points
from mercer.studio.readers import Json
from mercer.theory import function_of
from mercer.typing import Array, Integers

OUTSIDE, FREE, BOUND = 0, 1, 2


@dataclass(eq=False)
class Fitted:
    """A machine on the points of a page; `said` are its warnings."""

    points: Points
    choice: Choice
    model: BaseEstimator
    said: tuple[str, ...]
    seconds: float

    @classmethod
    def of(cls, points: Points, choice: Choice, **more: object) -> Fitted:
        """Fit, or say why there is nothing to fit."""
        check_enough(points, choice)
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model = choice.build(**more)
            if choice.offer.unlabelled:
                model.fit(points.X)
            else:
                model.fit(points.X, points.targets())
        said = tuple(dict.fromkeys(str(w.message).split("\n")[0] for w in heard))
        return cls(points, choice, model, said, time.perf_counter() - start)

    @property
    def is_binary(self) -> bool:
        """Whether one function f with a boundary at f = 0 says it all."""
        return self.points.task == CLASSES and (self.choice.offer.unlabelled or len(self.model.classes_) == 2)

    def values(self, X: Any) -> Array:
        """f of rows: n numbers for two classes, one class or numbers; n × classes for more classes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.points.task != CLASSES:
                return np.asarray(self.model.predict(X), dtype=float)
            if self.choice.machine == "GaussianProcessClassifier":
                mean, _ = self.model.latent(X)
                return np.asarray(mean, dtype=float)
            return np.asarray(self.model.decision_function(X), dtype=float)

    def winners(self, values: Array) -> Integers:
        """The place in the page's labels of the class that wins."""
        if self.choice.offer.unlabelled:
            return np.where(values >= 0, 1, 0)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        names = list(self.points.labels)
        places = np.array([names.index(str(label)) for label in self.model.classes_])
        return np.asarray(places[codes])

    @property
    def sides(self) -> list[int]:
        """The classes on the negative and on the positive side of f = 0."""
        if self.choice.offer.unlabelled:
            return [-1, -1]
        names = list(self.points.labels)
        return [names.index(str(label)) for label in self.model.classes_[:2]]

    @cached_property
    def functions(self) -> Functions | None:
        """f = Σ c_j k(x_j, ·) + b, where the machine is such a sum."""
        try:
            return function_of(self.model)
        except MercerError:
            return None

    @cached_property
    def coefficients(self) -> Array:
        """c_j of all rows, n × functions; zero for rows that f does not use."""
        functions = self.functions
        n = len(self.points)
        if not isinstance(functions, ByRows) or (functions.index < 0).any():
            return np.zeros((n, 0))
        out = np.zeros((n, functions.count))
        out[functions.index] = functions.coefficients
        return out

    @cached_property
    def weights(self) -> Array:
        """The size of each row's part: the largest |c_j| over the functions."""
        found = np.abs(self.coefficients)
        return found.max(axis=1) if found.shape[1] else np.zeros(len(self.points))

    @cached_property
    def standing(self) -> Integers:
        """Of each row: not a support vector, one with 0 < α < C, or one at the bound."""
        out = np.where(self.weights > 0, FREE, OUTSIDE)
        margin, bound = self.model.bounded_support()
        if not margin and not bound:
            return np.zeros(len(self.points), dtype=int)
        for rows in bound:
            out[rows] = BOUND
        return np.asarray(out)

    @cached_property
    def misfits(self) -> list[int]:
        """Rows on the wrong side."""
        if self.points.task != CLASSES:
            return []
        won = self.winners(self.values(self.points.X))
        if self.choice.offer.unlabelled:
            return np.flatnonzero(won == 0).tolist()
        return np.flatnonzero(won != self.points.y.astype(int)).tolist()

    def summary(self) -> Json:
        """What the head of the page says of the fit."""
        certificate = self.model.certificate_
        standing = self.standing
        return {
            "machine": self.choice.machine,
            "python": self.choice.python(),
            "seconds": self.seconds,
            "certificate": plain(certificate.to_dict()),
            "support": int((standing > OUTSIDE).sum()),
            "bound": int((standing == BOUND).sum()),
            "misfits": len(self.misfits),
            "score": self.score(),
            "said": list(self.said),
        }

    def score(self) -> float | None:
        """The share of rows that are right, or the root mean square of what is left."""
        if self.choice.offer.unlabelled:
            return None
        if self.points.task == CLASSES:
            return 1 - len(self.misfits) / len(self.points)
        return float(np.sqrt(np.mean((self.values(self.points.X) - self.points.y) ** 2)))


def check_enough(points: Points, choice: Choice) -> None:
    """Whether there is something to learn from; if not, what to do."""
    n = len(points)
    if n == 0:
        raise InputError("There are no points yet. Click in the picture to add some, or choose a preset.")
    offer = choice.offer
    if offer.unlabelled or points.task != CLASSES:
        if n < 2:
            raise InputError("One point alone teaches little. Click in the picture to add more.")
        return
    present = np.unique(points.y)
    if len(present) < 2:
        name = points.labels[int(present[0])]
        raise InputError(
            f"All points are of class {name}. Choose another class with the keys 1 to 9, and click to add "
            "points of it; or choose the machine for one class."
        )
    if len(present) > offer.most:
        raise InputError(
            f"{offer.name} tells at most {offer.most} classes apart, and there are {len(present)}. Choose "
            "SVC, or remove points."
        )


def plain(value: object) -> object:
    """Numbers, text and lists for JSON; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
