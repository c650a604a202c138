"""Conformal prediction: intervals and sets of labels that hold as often as they say.

    mercer.conformal(model, X, y)    a `ConformalRegressor` or `ConformalClassifier`, fitted

guarantee     what is promised, of which kind, and under which condition
sample        rows of anything, taken by place; the groups of Mondrian prediction
folds         which rows are left out together
bands         intervals of numbers: split, jackknife+ and CV+ by refits, jackknife+ in closed form
union         full conformal prediction: the targets that are not too strange, as a union of intervals
labels        scores of labels, and the sets they make
wrapper       what both estimators share: rows, weights, groups and the estimator inside
regressor, classifier   the estimators; `door` chooses between them; `examine` is for `mercer.verify`

The module itself can be called: `mercer.conformal(…)` is `mercer.conformal.conformal(…)`.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from mercer.conformal.classifier import ConformalClassifier
from mercer.conformal.door import conformal
from mercer.conformal.guarantee import Guarantee
from mercer.conformal.regressor import ConformalRegressor

__all__ = ["ConformalClassifier", "ConformalRegressor", "Guarantee", "conformal"]


class _CallableModule(ModuleType):
    """A module that can be called, with the signature of what it calls."""

    __signature__ = inspect.signature(conformal)

    def __call__(self, *args: Any, **kwargs: Any) -> ConformalRegressor | ConformalClassifier:
        """`mercer.conformal(…)` is `mercer.conformal.conformal(…)`."""
        return conformal(*args, **kwargs)


_CallableModule.__call__.__doc__ = conformal.__doc__
__doc__ = f"{__doc__}\n\n{inspect.cleandoc(conformal.__doc__ or '')}"
sys.modules[__name__].__class__ = _CallableModule
