"""The representer theorem by projection: the part of w outside the span of the data only adds length (T3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.errors import ShapeError
from mercer.theory.functions import function_of, inner
from mercer.typing import Array, Table

NEGLIGIBLE = 1e-7  # relative: what rounding may leave


@dataclass(frozen=True, eq=False)
class Representer:
    """w = w_∥ + w_⊥, with w_∥ in the span of φ(x_1), …, φ(x_n), w_⊥ orthogonal; one row for each function.

    `norms`, `inside_norms` and `outside_norms` are ‖w‖, ‖w_∥‖ and ‖w_⊥‖; ‖w‖² = ‖w_∥‖² + ‖w_⊥‖².
    `training_change` is the largest |w·φ(x) - w_∥·φ(x)| on the data, relative to the largest value: w_⊥ is
    worth nothing there. `difference` compares w·φ(x) + b with the values of the machine, `norm_difference`
    ‖w‖ with √(cᵀKc), both relative; they are NaN for a w that was given. `rank` is the dimension of the span.
    """

    w: Array
    inside: Array
    outside: Array
    training_change: float
    difference: float
    norm_difference: float
    rank: int
    given: bool

    @property
    def norms(self) -> Array:
        lengths: Array = np.linalg.norm(self.w, axis=1)
        return lengths

    @property
    def inside_norms(self) -> Array:
        lengths: Array = np.linalg.norm(self.inside, axis=1)
        return lengths

    @property
    def outside_norms(self) -> Array:
        lengths: Array = np.linalg.norm(self.outside, axis=1)
        return lengths

    @property
    def in_span(self) -> bool:
        """Whether nothing of w lies outside the span, to rounding."""
        largest = max(float(self.norms.max(initial=0.0)), 1e-300)
        return bool(self.outside_norms.max(initial=0.0) <= NEGLIGIBLE * largest)

    @property
    def ok(self) -> bool:
        """Whether the theorem is kept: a given w has the values of w_∥.

        A fitted one also is w_∥, and gives the values of the machine.
        """
        if self.given:
            return self.training_change <= NEGLIGIBLE
        fits = self.difference <= NEGLIGIBLE and self.norm_difference <= NEGLIGIBLE
        return fits and self.in_span and self.training_change <= NEGLIGIBLE

    def __str__(self) -> str:
        whose = "given w" if self.given else "fitted w"
        lines = [f"{whose} in {self.w.shape[1]} features; the data span {self.rank} dimensions"]
        for k in range(len(self.w)):
            lines.append(
                f"  ‖w‖ = {self.norms[k]:.6g}, in the span {self.inside_norms[k]:.6g}, "
                f"outside {self.outside_norms[k]:.3g}"
            )
        lines.append(f"  without the part outside, values on the data change by {self.training_change:.2g}")
        return "\n".join(lines)


def representer(model: object, X: Table, w: npt.ArrayLike | None = None) -> Representer:
    """w of a fitted machine, or a given w, split into its part in the span of the training rows and the rest.

    The explicit map φ must be finite. The rest is orthogonal to every φ(x_i), so w and w_∥ have the same
    values, hence the same training error, and w_∥ is shorter: no w that minimises error plus a growing
    function of ‖w‖ has such a rest.

    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.theory import representer
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> model = SVC("Polynomial(2)").fit(X, [0, 0, 1, 1])
    >>> representer(model, X).ok
    True
    >>> found = representer(model, X, w=np.ones(6))     # six features, four rows: some of it must lie outside
    >>> found.rank, bool(found.outside_norms[0] > 0.3), found.training_change < 1e-12
    (4, True, True)
    """
    machine = inner(model)
    functions = function_of(machine)
    A = machine.check_rows(X, reset=False)
    phi, fitted = functions.explicit()
    P = np.asarray(phi(A), dtype=float)
    chosen = fitted if w is None else _checked(w, P.shape[1])
    inside, rank = _project(P, chosen)
    values = P @ chosen.T
    scale = max(float(np.abs(values).max(initial=0.0)), 1e-300)
    change = float(np.abs(P @ (chosen - inside).T).max(initial=0.0)) / scale
    difference = norm_difference = np.nan
    if w is None:
        told = functions.values(A)
        top = max(float(np.abs(told).max(initial=0.0)), 1e-300)
        difference = float(np.abs(values + functions.offset - told).max(initial=0.0)) / top
        norms = functions.norms()
        longest = max(float(norms.max(initial=0.0)), 1e-300)
        norm_difference = float(np.abs(np.linalg.norm(chosen, axis=1) - norms).max(initial=0.0)) / longest
    return Representer(
        chosen, inside, chosen - inside, change, difference, norm_difference, rank, given=w is not None
    )


def _checked(w: npt.ArrayLike, features: int) -> Array:
    given = np.atleast_2d(np.asarray(w, dtype=float))
    if given.ndim != 2 or given.shape[1] != features:
        raise ShapeError(
            f"w has shape {np.shape(w)}; the map has {features} features, so w needs that many numbers "
            "(a row for each w)."
        )
    return given


def _project(P: Array, w: Array) -> tuple[Array, int]:
    """The orthogonal projection of the rows of w on the span of the rows of P, and its dimension."""
    _, values, directions = np.linalg.svd(P, full_matrices=False)
    threshold = max(P.shape) * np.finfo(float).eps * float(values.max(initial=0.0))
    span = directions[values > threshold]
    return (w @ span.T) @ span, len(span)
