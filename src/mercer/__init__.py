"""mercer: kernel methods that prove what they claim.

>>> import mercer
>>> k = mercer.parse("RBF(2.0) * Periodic(1.0) + 0.1*White(1.0)")
>>> k.validity().status
'proved'
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from mercer.kernels import *  # noqa: F403
from mercer.kernels import __all__ as _kernel_names

__version__ = metadata.version("mercer")

# Names that need more than numpy come on first use, so that `import mercer` stays quick.
_LAZY = {
    "MercerMap": "mercer.machines.mercer_map",
    "GramReport": "mercer.theory.gram_report",
    "gram_report": "mercer.theory.gram_report",
    "plot": "mercer.plot",
    "theory": "mercer.theory",
}

__all__ = ["__version__", *_kernel_names, *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    return module if module.__name__ == f"mercer.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
