"""What a parameter is called here: a hint for names that come from other libraries or from memory.

>>> from mercer import SVC
>>> SVC(gamma=0.5)  # doctest: +NORMALIZE_WHITESPACE
Traceback (most recent call last):
...
mercer.errors.UnknownParameterError: SVC has no parameter 'gamma'.
    It belongs to the kernel: kernel=RBF(gamma=0.5).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import wraps

from mercer.errors import UnknownParameterError
from mercer.typing import Setting

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "bias": ("fit_intercept",),
    "intercept": ("fit_intercept",),
    "features": ("kernel",),
    "kernel": ("kernels",),
    "kernels": ("kernel",),
    "lam": ("alpha", "C"),
    "lambda_": ("alpha", "C"),
    "reg": ("alpha", "C", "regularization"),
    "regularization": ("alpha", "C"),
    "eps": ("epsilon", "tol"),
    "tolerance": ("tol",),
    "n_iter": ("max_iter",),
    "max_iter_predict": ("max_iter_newton",),
    "n_restarts_optimizer": ("n_restarts",),
    "timeout": ("max_seconds",),
    "max_time": ("max_seconds",),
    "seed": ("random_state",),
    "rng": ("random_state",),
    "cache_size": ("memory",),
    "decision_function_shape": ("multiclass",),
    "eigen_solver": ("solver",),
    "fit_inverse_transform": ("inverse",),
    "n_clusters": ("n_components",),
    "n_components": ("n_landmarks", "n_clusters"),
    "n_landmarks": ("n_components",),
    "M": ("n_landmarks", "n_components"),
    "basis": ("landmarks",),
}
"""Names elsewhere, and the names here: the first of them that the machine has."""

OF_THE_KERNEL = {
    "gamma": "RBF(gamma=0.5)",
    "length_scale": "RBF(2.0)",
    "lengthscale": "RBF(2.0)",
    "sigma": "RBF(2.0)",
    "degree": "Polynomial(3)",
    "coef0": "Polynomial(3, offset=1.0)",
    "kernel_params": "RBF(2.0)",
}
"""Names of what a kernel holds, and a kernel that does."""


def hint(name: str, known: Collection[str]) -> str:
    """One sentence on what may have been meant by a name that is none of those known."""
    if name in OF_THE_KERNEL:
        place = "kernel" if "kernel" in known else "one of kernels"
        return f"It belongs to the kernel: {place}={OF_THE_KERNEL[name]}."
    if name == "C" and "alpha" in known:
        return "The penalty is called alpha here; a large C is a small alpha."
    if name == "alpha" and "C" in known:
        return "The price of errors is called C here; a large alpha is a small C."
    if name == "alpha" and "noise" in known:
        return "The variance of the noise is called noise here, or is a White term of the kernel."
    if name == "sample_weight":
        return "Weights of rows go to fit."
    for other in OTHER_NAMES.get(name, ()):
        if other in known:
            return f"It is called {other} here."
    near = get_close_matches(name, known, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Its parameters are {', '.join(known)}."


def refuse_unknown(owner: str, names: Collection[str], known: Collection[str]) -> None:
    """Refuse the first name that is none of those known, with a hint; what follows "__" is a nested name."""
    for name in (name.partition("__")[0] for name in names):
        if name not in known:
            raise UnknownParameterError(f"{owner} has no parameter {name!r}. {hint(name, known)}")


def hinting(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that answers a keyword it does not have with a hint; its signature stays what it was."""
    found = inspect.signature(init).parameters
    if any(p.kind is p.VAR_KEYWORD for p in found.values()):
        return init
    known = list(found)[1:]
    names = frozenset(known)

    @wraps(init)
    def hinted(self: object, *args: Setting, **given: Setting) -> None:
        if not names.issuperset(given):
            refuse_unknown(type(self).__name__, given, known)
        init(self, *args, **given)

    return hinted
