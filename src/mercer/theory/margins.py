"""Margins: how far examples lie from the boundary in feature space (T4), and w itself where φ is finite (T3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import dense
from mercer.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Margins:
    """Signed distances y(w·φ(x) + b)/‖w‖, one column for each decision function (NaN for rows of other classes).

    `delta` is 1/‖w‖, the distance of the margin from the boundary; `smallest` the smallest signed distance;
    `on_margin` and `at_bound` the support vectors with 0 < α < C and with α = C, as rows of the training data.
    """

    distances: np.ndarray
    delta: np.ndarray
    smallest: np.ndarray
    on_margin: tuple[np.ndarray, ...]
    at_bound: tuple[np.ndarray, ...]

    def __str__(self) -> str:
        lines = []
        for k in range(len(self.delta)):
            lines.append(
                f"δ = 1/‖w‖ = {self.delta[k]:.6g}; smallest signed distance {self.smallest[k]:.6g}; "
                f"{len(self.on_margin[k])} support vectors on the margin, {len(self.at_bound[k])} at the bound"
            )
        return "\n".join(lines)


def margins(model: Any, X: Any, y: Any) -> Margins:
    """The signed distance of each labelled row from each boundary of a fitted classifier.

    >>> from mercer import SVC
    >>> found = SVC("Linear()", C=float("inf")).fit([[-1.0], [3.0]], [0, 1]).margins([[-1.0], [3.0], [5.0]], [0, 1, 1])
    >>> found.distances.ravel().round(6).tolist(), found.delta.round(6).tolist()
    ([2.0, 2.0, 4.0], [2.0])
    """
    values = model._values(X)
    codes, _ = model._targets_again(y, np.ones(len(values)))
    norms = np.where(model.norms_ > 0, model.norms_, np.nan)
    signs = np.full(values.shape, np.nan)
    for k, (plus, minus) in enumerate(model._duels):
        signs[codes == plus, k] = 1.0
        signs[codes == minus if minus is not None else codes != plus, k] = -1.0
    distances = signs * values / norms
    free, bound = [], []
    for coef, full in zip(model.dual_coef_, model.at_bound_, strict=True):
        free.append(model.support_[(coef != 0) & ~full])
        bound.append(model.support_[(coef != 0) & full])
    return Margins(distances, 1.0 / norms, np.nanmin(distances, axis=0), tuple(free), tuple(bound))


@dataclass(frozen=True, eq=False)
class Representer:
    """The representer theorem on a fitted model: w from the dual, and what of the decision it leaves unexplained."""

    w: np.ndarray
    difference: float
    norm_difference: float

    @property
    def ok(self) -> bool:
        return self.difference < 1e-7 and self.norm_difference < 1e-7


def representer(model: Any, X: Any) -> Representer:
    """w = Σ y_i α_i φ(x_i) built in the explicit feature space, against the kernel expansion on X.

    `difference` compares w·φ(x) + b with the decision values, `norm_difference` ‖w‖ with √(βᵀKβ); both relative.

    >>> from mercer import SVC
    >>> from mercer.theory import representer
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> representer(SVC("Polynomial(2)").fit(X, [0, 0, 1, 1]), X).ok
    True
    """
    if isinstance(model.kernel_, str):
        raise ParameterError("a precomputed Gram matrix has no feature map; give the kernel itself.")
    d = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    phi = model.kernel_.features(d if names is None else [str(n) for n in names])
    w = model.dual_coef_ @ dense(phi(dense(model.support_vectors_)))
    direct = dense(phi(dense(model._check_rows(X, reset=False)))) @ w.T + model.intercept_
    values = model._values(X)
    scale = max(float(np.abs(values).max()), 1e-300)
    norms = np.linalg.norm(w, axis=1)
    top = max(float(model.norms_.max()), 1e-300)
    return Representer(
        w, float(np.abs(direct - values).max()) / scale, float(np.abs(norms - model.norms_).max()) / top
    )
