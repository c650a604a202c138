"""Choosing a kernel: `mercer.choose(machine, X, y)`, its structure, and the lengthscales to begin with.

The module itself can be called: `mercer.choose(…)` calls `choose`, and `mercer.choose.scales(X)` finds the
rest.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from mercer.choose.advice import Advice, Guide, guide
from mercer.choose.chooser import Choice, choose
from mercer.choose.ledger import Trial
from mercer.choose.lengthscales import Scales, median_lengthscale, scales
from mercer.structure.answer import Structure
from mercer.structure.door import structure

__all__ = [
    "Advice",
    "Choice",
    "Guide",
    "Scales",
    "Structure",
    "Trial",
    "choose",
    "guide",
    "median_lengthscale",
    "scales",
    "structure",
]


class _CallableModule(ModuleType):
    """A module that can be called, with the signature of what it calls."""

    __signature__ = inspect.signature(choose)

    def __call__(self, *args: Any, **kwargs: Any) -> Choice:
        """`mercer.choose(…)` is `mercer.choose.choose(…)`."""
        return choose(*args, **kwargs)


_CallableModule.__call__.__doc__ = choose.__doc__
__doc__ = f"{__doc__}\n\n{inspect.cleandoc(choose.__doc__ or '')}"
sys.modules[__name__].__class__ = _CallableModule
