"""Choosing a kernel: `mercer.choose(machine, X, y)`, and the lengthscales to begin with.

The module itself can be called: `mercer.choose(…)` calls `choose`, and `mercer.choose.scales(X)` finds the
rest.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from mercer.choose.chooser import Choice, choose
from mercer.choose.lengthscales import Scales, median_lengthscale, scales
from mercer.choose.search import Trial

__all__ = ["Choice", "Scales", "Trial", "choose", "median_lengthscale", "scales"]


class _CallableModule(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Choice:
        """`mercer.choose(…)` is `mercer.choose.choose(…)`."""
        return choose(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
