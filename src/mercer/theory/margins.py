"""Margins: how far examples lie from the boundary in feature space, for any machine that has one (T4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.theory.functions import codes_of, function_of, inner, signs_of
from mercer.typing import Array, Flags, Integers, Table, Targets


@dataclass(frozen=True, eq=False)
class Margins:
    """Signed distances y(w·φ(x) + b)/‖w‖, one column for each function (NaN for rows of other classes).

    `smallest` is the smallest signed distance: above 0 the plane separates these rows. `delta` is 1/‖w‖, the
    distance at which a support vector machine puts its margin, and for any other plane the smallest distance
    itself. `on_margin` and `at_bound` are the support vectors with 0 < α < C and with α = C, as rows of the
    training data; empty for machines without such multipliers.
    """

    distances: Array
    delta: Array
    smallest: Array
    norms: Array
    on_margin: tuple[Integers, ...] = ()
    at_bound: tuple[Integers, ...] = ()

    @property
    def separates(self) -> Flags:
        """Whether each plane has all its rows on their sides."""
        return self.smallest > 0

    def __str__(self) -> str:
        lines = []
        for k in range(len(self.delta)):
            head = f"‖w‖ = {self.norms[k]:.6g}; smallest signed distance {self.smallest[k]:.6g}"
            if self.on_margin:
                head = (
                    f"δ = 1/‖w‖ = {self.delta[k]:.6g}; smallest signed distance {self.smallest[k]:.6g}; "
                    f"{len(self.on_margin[k])} support vectors on the margin, "
                    f"{len(self.at_bound[k])} at the bound"
                )
            lines.append(head)
        return "\n".join(lines)


def margins(model: object, X: Table, y: Targets) -> Margins:
    """The signed distance of each labelled row from each boundary of a fitted classifier.

    >>> from mercer import SVC, KernelPerceptron
    >>> from mercer.theory import margins
    >>> X, y = [[-1.0], [3.0], [5.0]], [0, 1, 1]
    >>> found = margins(SVC("Linear()", C=float("inf")).fit(X[:2], y[:2]), X, y)
    >>> found.distances.ravel().round(6).tolist(), found.delta.round(6).tolist()
    ([2.0, 2.0, 4.0], [2.0])
    >>> bool(margins(KernelPerceptron("Linear()").fit(X, y), X, y).separates[0])
    True
    """
    machine = inner(model)
    functions = function_of(machine)
    A = machine.check_rows(X, reset=False)
    signs = signs_of(functions, codes_of(functions, y, A.shape[0]))
    norms = functions.norms()
    length = np.where(norms > 0, norms, np.nan)
    distances = signs * functions.values(A) / length
    smallest = np.nanmin(np.where(np.isnan(distances), np.inf, distances), axis=0)
    smallest = np.where(norms > 0, smallest, np.nan)
    delta = 1.0 / length if functions.canonical else smallest
    on_margin, at_bound = machine.bounded_support()
    return Margins(distances, delta, smallest, norms, on_margin, at_bound)
