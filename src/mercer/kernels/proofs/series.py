"""Taylor series that a user declares: what can be said against them.

A declared series is believed only after it was looked at: its coefficients must be numbers without a negative
one, it must converge as far as is claimed, and where it converges it must agree with the function. One clear
disagreement is a contradiction; none is no proof, and the answer says that it rests on the user's word.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mercer.typing import Array

DECLARED_TERMS = 160  # how many declared coefficients are looked at
_AGREE = 1e-7  # of the sum of the sizes of all terms


def doubt(f: Callable[[Array], Array], taylor: Callable[[int], float], radius: float | None) -> str:
    """Why the declared series is not believed, in a sentence; empty if nothing speaks against it."""
    try:
        coefs = np.array([float(taylor(n)) for n in range(DECLARED_TERMS)])
    except (ArithmeticError, TypeError, ValueError, LookupError) as error:
        return (
            f"The declared Taylor series cannot be read: taylor(n) raises {type(error).__name__} ({error})."
        )
    if not np.all(np.isfinite(coefs)):
        n = int(np.argmin(np.isfinite(coefs)))
        return f"The declared Taylor series cannot be read: taylor({n}) is {coefs[n]}."
    if coefs.min() < 0:
        n = int(np.argmax(coefs < 0))
        return f"The declared Taylor series has a negative coefficient: taylor({n}) is {coefs[n]:.6g}."
    return _diverges(coefs, radius) or _disagrees(f, coefs, radius)


def _roots(coefs: Array) -> Array:
    """|aₙ|^(1/n) for the n ≥ 1 with aₙ ≠ 0; by Cauchy and Hadamard their upper limit is 1/R."""
    n = np.flatnonzero(coefs)
    n = n[n > 0]
    return np.exp(np.log(np.abs(coefs[n])) / n)


def _diverges(coefs: Array, radius: float | None) -> str:
    """Whether the roots speak against convergence on the whole of the claimed disc."""
    roots = _roots(coefs)
    if len(roots) < 16:
        return ""
    # The roots fall to 0 for a series that converges everywhere (like e/n for 1/n!), and level off for every
    # other one.
    early = float(roots[len(roots) // 4 : len(roots) // 2].max())
    late = float(roots[-len(roots) // 8 :].max())
    if radius is None or radius == math.inf:
        if late < 0.75 * early:
            return ""
        return (
            f"The declared Taylor series does not seem to converge for all t, but for |t| < {1 / late:.3g} "
            "or so; "
            "declare how far with radius=."
        )
    if late * radius > 1.1:
        reach = f"for |t| < {1 / late:.3g} or so"
        return f"The declared Taylor series does not converge for all |t| < {radius:g}, but {reach}."
    return ""


def _disagrees(f: Callable[[Array], Array], coefs: Array, radius: float | None) -> str:
    """A point at which the series has converged and is not the function."""
    roots = _roots(coefs)
    reach = 4.0 if len(roots) == 0 else 1 / float(roots[-len(roots) // 8 :].max())
    if radius is not None:
        reach = min(reach, radius)
    t = reach * np.array([-0.7, -0.5, -0.2, -0.03, 0.0, 0.03, 0.2, 0.5, 0.7])
    t = np.clip(t, -30.0, 30.0)
    with np.errstate(all="ignore"):
        terms = coefs * t[:, None] ** np.arange(len(coefs))
        size = np.abs(terms).sum(axis=1)
        settled = np.abs(terms[:, -16:]).sum(axis=1) <= 1e-12 * size
        declared = terms.sum(axis=1)
        try:
            found = np.asarray(f(t), dtype=float)
        except Exception as error:  # whatever a user's function raises where its own series converges
            return f"f raises {type(error).__name__} where the declared Taylor series converges ({error})."
        apart = ~(np.abs(found - declared) <= _AGREE * size)
    for i in np.flatnonzero(apart & settled):
        return (
            f"f is not the function of the declared Taylor series: at t = {t[i]:.6g}, f gives {found[i]:.9g} "
            "and the "
            f"series {declared[i]:.9g}."
        )
    return ""
