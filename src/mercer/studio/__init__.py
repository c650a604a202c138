"""The studio: kernels you can touch. `mercer studio` opens a page; `mercer.studio(X, y)` is it in a notebook.

state         everything that a page shows follows from it; `readers`, `points` and `machines` check it
presets       data to begin with; `dropped` makes points of a table
fitted        a state, fitted; `components`, its kernel principal components
planes, curves, kernels, gram_view, space, steps, surface, why, comparing    the views, each a function
answers       the views by name, and what is said where there is nothing to show
export        Python, command, model, report and data to take away
session       one open page: messages in, messages out; `lanes` drop what is stale; `packing` of arrays
app           the server of the page; `limits`, how much it takes
widget, door  the same in a notebook

The module itself can be called: `mercer.studio(…)` is `mercer.studio.studio(…)`.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from mercer.studio.door import studio

__all__ = ["studio"]


class _CallableModule(ModuleType):
    """A module that can be called, with the signature of what it calls."""

    __signature__ = inspect.signature(studio)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`mercer.studio(…)` is `mercer.studio.studio(…)`."""
        return studio(*args, **kwargs)


_CallableModule.__call__.__doc__ = studio.__doc__
__doc__ = f"{__doc__}\n\n{inspect.cleandoc(studio.__doc__ or '')}"
sys.modules[__name__].__class__ = _CallableModule
