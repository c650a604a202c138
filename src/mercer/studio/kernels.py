"""The kernel: its formula, a slider for each of its numbers, its profile, and its proof or its witness."""

from __future__ import annotations

import math

import numpy as np

from mercer import Proof, Proved, ProvedAsDeclared, Refuted, Undecided
from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.studio.curves import SEED
from mercer.studio.fitted import plain
from mercer.studio.limits import WITNESS_SECONDS
from mercer.studio.packing import packed
from mercer.studio.planes import box_around, grid_on, is_slice
from mercer.studio.points import VECTORS, Points
from mercer.studio.readers import Json
from mercer.studio.state import View, held_rows

# How many decades a slider goes from where it stands.
DECADES = 2.0
PROFILE = 161
PRIORS = 4


def head(kernel: Kernel, points: Points) -> Json:
    """What the page always shows of a kernel: text, formula, sliders, and whether it is one."""
    verdict = kernel.validity(
        list(points.X) if points.kind != VECTORS and len(points) else None,
        columns=points.width or None,
        seconds=WITNESS_SECONDS,
    )
    return {
        "text": str(kernel),
        "latex": kernel.latex(),
        "status": verdict.status,
        "sliders": sliders(kernel),
    }


def sliders(kernel: Kernel) -> list[Json]:
    """One for each free number, logarithmic where the number is positive."""
    found: list[Json] = []
    for place, p in enumerate(q for q in kernel.parameters if q.free):
        size = abs(p.value)
        if p.bounds is not None:
            low, high = p.bounds
        elif p.domain.logarithmic:
            low, high = (
                10 ** (math.floor(math.log10(size)) - DECADES),
                10 ** (math.ceil(math.log10(size)) + DECADES),
            )
        else:
            low, high = p.value - 5.0, p.value + 5.0
        found.append(
            {
                "place": place,
                "name": p.name,
                "value": p.value,
                "low": low,
                "high": high,
                "log": bool(p.domain.logarithmic and low > 0),
            }
        )
    return found


def kernel_view(kernel: Kernel, points: Points, view: View) -> Json:
    """Profile, heat of k(x0, ·), prior draws, proof or witness."""
    verdict = kernel.validity(
        list(points.X) if points.kind != VECTORS and len(points) else None,
        columns=points.width or None,
        seconds=WITNESS_SECONDS,
    )
    answer: Json = {"status": verdict.status, "sentence": str(verdict).split("\n")[0]}
    if isinstance(verdict, Proved | ProvedAsDeclared):
        answer["proof"] = tree(verdict.proof)
        answer["assumptions"] = list(verdict.assumptions)
    elif isinstance(verdict, Refuted):
        answer["witness"] = witness(verdict)
    elif isinstance(verdict, Undecided):
        answer["tried"] = list(verdict.tried)
    if points.kind == VECTORS:
        answer["profile"] = profile(kernel, points, view)
    return answer


def tree(proof: Proof) -> Json:
    """A proof as nested steps."""
    return {
        "kernel": str(proof.kernel),
        "latex": proof.kernel.latex(),
        "rule": proof.rule,
        "reason": proof.fact.reason,
        "conditions": list(proof.conditions),
        "taken": list(proof.taken()),
        "premises": [tree(premise) for premise in proof.premises],
    }


def witness(verdict: Refuted) -> Json:
    """Points and a vector that refute a kernel, with the Gram matrix computed anew."""
    vectors = isinstance(verdict.X, np.ndarray)
    shown = plain(np.asarray(verdict.X)) if vectors else [repr(x)[:120] for x in verdict.X]
    return {
        "points": shown,
        "vectors": vectors,
        "q": plain(verdict.q),
        "value": verdict.value,
        "gram": plain(verdict.gram()),
        "asymmetric": verdict.asymmetric,
        "checked": verdict.check(),
    }


def profile(kernel: Kernel, points: Points, view: View) -> Json:
    """k(x0, x0 + r e) along the first axis of the picture, and k(x0, ·) in the plane."""
    base = np.asarray(view.held, dtype=float)
    if view.chosen is not None:
        base = points.X[view.chosen]
    axis = view.axes[0]
    x = points.X[:, axis] if len(points) else np.array([-2.0, 2.0])
    reach = float(np.ptp(x)) or 1.0
    steps = np.linspace(-reach, reach, PROFILE)
    rows = np.tile(base, (PROFILE, 1))
    rows[:, axis] += steps
    answer: Json = {
        "r": packed(steps),
        "k": packed(kernel(base[None, :], rows)[0]),
        "from": plain(base[list(view.axes)] if points.width > 1 else base),
        "axis": points.columns[axis],
        "priors": _priors(kernel, rows),
    }
    if is_slice(points, view):
        box = view.box or box_around(points.X[:, list(view.axes)])
        across, up = grid_on(box, 64, 48)
        heat = kernel(base[None, :], held_rows(view, across, up))[0]
        answer["heat"] = packed(heat.reshape(48, 64))
        answer["box"] = list(box)
    return answer


def _priors(kernel: Kernel, rows: np.ndarray) -> Json | None:
    """Functions drawn from the prior along the same line; none for what is no kernel."""
    K = np.asarray(kernel(rows, rows), dtype=float)
    try:
        values, vectors = np.linalg.eigh((K + K.T) / 2)
    except (np.linalg.LinAlgError, MercerError):
        return None
    if values[0] < -1e-8 * max(values[-1], 0.0):
        return None
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    draws = np.random.default_rng(SEED).normal(size=(len(rows), PRIORS))
    return packed((root @ draws).T)
