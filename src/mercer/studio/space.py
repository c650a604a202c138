"""Feature space in three dimensions: the coordinates of a finite map, or kernel principal components.

A map of more than three coordinates shows the three on which the machine's weights say most; the plane of the
machine is then cut where the other coordinates have their mean.
"""

from __future__ import annotations

import numpy as np

from mercer.errors import MercerError, NoFiniteMapError
from mercer.kernels.maps.explicit import FeatureMap
from mercer.studio.components import components
from mercer.studio.fitted import Fitted, plain
from mercer.studio.packing import packed
from mercer.studio.points import VECTORS
from mercer.studio.readers import Json
from mercer.studio.state import View
from mercer.typing import Array

# Maps of more coordinates are shown by their components.
MOST_COORDINATES = 200


def space(fitted: Fitted, view: View) -> Json:
    """Points in three dimensions, and the plane w·φ + b = 0 where there is one."""
    phi = _finite_map(fitted)
    if phi is None:
        return _by_components(fitted)
    Z = np.asarray(phi(fitted.points.X), dtype=float)
    weights, offset = _weights(fitted, Z)
    chosen = _coordinates(view, Z, weights)
    answer: Json = {
        "mode": "map",
        "names": [phi.names[c] for c in chosen],
        "all": list(phi.names),
        "chosen": chosen,
        "dimension": phi.dimension,
        "places": packed(_three(Z, chosen)),
        "plane": None,
    }
    if weights is not None and fitted.is_binary:
        rest = np.setdiff1d(np.arange(Z.shape[1]), chosen)
        level = offset + float(weights[rest] @ Z[:, rest].mean(axis=0)) if len(rest) else offset
        slopes = np.zeros(3)
        slopes[: len(chosen)] = weights[chosen]
        answer["plane"] = [*slopes.tolist(), float(level)]
        answer["exact"] = not len(rest)
    return answer


def _finite_map(fitted: Fitted) -> FeatureMap | None:
    if fitted.points.kind != VECTORS:
        return None
    kernel = fitted.choice.kernel
    width = fitted.points.width
    try:
        if not kernel.feature_dimension(width) <= MOST_COORDINATES:
            return None
        return kernel.features(list(fitted.points.columns))
    except (NoFiniteMapError, MercerError):
        return None


def _weights(fitted: Fitted, Z: Array) -> tuple[Array | None, float]:
    """w = Σ c_j φ(x_j) and b, where the machine is one such function."""
    functions = fitted.functions
    beta = fitted.coefficients
    if functions is None or functions.count != 1:
        return None, 0.0
    if beta.shape[1] == 1:
        return np.asarray(beta[:, 0] @ Z), float(functions.offset[0])
    _, weights = functions.explicit()
    if weights.shape[1] != Z.shape[1]:
        return None, 0.0
    return np.asarray(weights[0]), float(functions.offset[0])


def _coordinates(view: View, Z: Array, weights: Array | None) -> list[int]:
    """Three of the coordinates: those asked for, or those that move f most."""
    width = Z.shape[1]
    if view.coordinates is not None and max(view.coordinates) < width:
        return list(view.coordinates)
    spread = Z.std(axis=0)
    if weights is not None:
        spread = spread * np.abs(weights)
    order = np.argsort(-spread, kind="stable")[:3]
    return sorted(int(c) for c in order)


def _three(Z: Array, chosen: list[int]) -> Array:
    out = np.zeros((len(Z), 3))
    out[:, : len(chosen)] = Z[:, chosen]
    return out


def _by_components(fitted: Fitted) -> Json:
    found = components(fitted, 3)
    answer: Json = {
        "mode": "components",
        "names": ["PC 1", "PC 2", "PC 3"],
        "dimension": None,
        "places": packed(found.places),
        "shares": plain(found.shares),
        "plane": None,
    }
    if found.slopes is not None and found.level is not None and fitted.is_binary:
        answer["plane"] = [*found.slopes[0].tolist(), float(found.level[0])]
        answer["exact"] = True
    return answer
