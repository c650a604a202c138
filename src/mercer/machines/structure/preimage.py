"""Pre-images: a point z whose φ(z) is near a given point Σ_i γ_i φ(x_i) of feature space.

- *linear*: φ(x) = x, so z = Σ γ_i x_i exactly.
- *fixed-point*: for k = κ(s), s = ‖(x - z)/ℓ‖², the gradient of ‖φ(z) - Σγφ‖² vanishes where

      z = Σ γ_i κ'(s_i) x_i / Σ γ_i κ'(s_i)

  (Mika et al.). Each step is taken only as far as the distance falls, so the last point is the best one.
  The start is the nearest training point, and the answer a local optimum.
- *ridge*: X is regressed on its components once (Bakır et al.), and the regression is applied.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from mercer.errors import ParameterError
from mercer.gram import Tiles
from mercer.kernels.algebra import Scaled
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.families import DotProduct, Radial
from mercer.machines.shared.base import resolve
from mercer.panels import panels
from mercer.solve.system import solve
from mercer.typing import Array, Integers, Memory

METHODS = ("auto", "linear", "fixed-point", "ridge")
STEPS = 200
HALVINGS = 8


def way_back(kernel: Kernel, method: str) -> str:
    """The method that `inverse=` stands for with this kernel; an impossible one is refused."""
    core = kernel.kernel if isinstance(kernel, Scaled) and kernel.scale > 0 else kernel
    possible = "ridge"
    if isinstance(core, DotProduct) and core.is_linear():
        possible = "linear"
    elif isinstance(core, Radial):
        possible = "fixed-point"
    if method in ("ridge", possible):
        return method
    if method == "auto":
        return possible
    needs = "Linear()" if method == "linear" else "a function of a distance, such as RBF or Matern"
    raise ParameterError(
        f"inverse={method!r} needs {needs}; the kernel is {kernel}. Use inverse='auto' or 'ridge'."
    )


def pre_images(kernel: Kernel, X: Array, Y: Array, coef: Array, base: Array, *, method: str) -> Array:
    """Pre-images of Σ_i γ_i φ(x_i) with γ = coef·y + base, for every row y."""
    if method == "linear":
        return Y @ (coef.T @ X) + base @ X
    radial = kernel.kernel if isinstance(kernel, Scaled) else kernel
    assert isinstance(radial, Radial)
    lengths = radial.column_values("lengthscale", X.shape[1])
    scaled = X / lengths
    out = np.empty((len(Y), X.shape[1]))
    step = max(1, panels(len(X))[0].stop // 4)  # a few blocks of rows × sample at a time
    for i in range(0, len(Y), step):
        part = slice(i, i + step)
        out[part] = _fixed_point(radial, scaled, Y[part] @ coef.T + base) * lengths
    return out


def _fixed_point(kernel: Radial, X: Array, gamma: Array) -> Array:
    """Rows of unit lengthscale; k(z, z) is constant, so what has to grow is Σ γ_i k(z, x_i)."""

    def height(Z: Array, g: Array) -> tuple[Array, Array]:
        S = cdist(Z, X, "sqeuclidean")
        return np.einsum("ij,ij->i", g, kernel.value(S)), S

    Z = X[_nearest_rows(kernel, X, gamma)].copy()
    value, S = height(Z, gamma)
    alive = np.arange(len(Z))
    for _ in range(STEPS):
        weights = -gamma[alive] * kernel.slope(S)
        total = weights.sum(axis=1)
        sound = total > 1e-12 * np.abs(weights).sum(axis=1)
        target = np.where(
            sound[:, None],
            (weights @ X) / np.where(sound, total, 1.0)[:, None],
            Z[alive] + _uphill(weights, X, Z[alive]),
        )
        share = np.ones(len(alive))
        new, new_value, new_S = target, *height(target, gamma[alive])
        for _ in range(HALVINGS):
            worse = new_value <= value[alive]
            if not worse.any():
                break
            share[worse] /= 2
            new[worse] = Z[alive[worse]] + share[worse][:, None] * (target[worse] - Z[alive[worse]])
            new_value[worse], new_S[worse] = height(new[worse], gamma[alive[worse]])
        better = new_value > value[alive]
        moved = np.abs(new - Z[alive]).max(axis=1, initial=0.0)
        Z[alive[better]], value[alive[better]] = new[better], new_value[better]
        going = better & (moved > 1e-9 * (1 + np.abs(new).max(axis=1, initial=0.0)))
        alive = alive[going]
        S = new_S[going]
        if len(alive) == 0:
            break
    return Z


def _uphill(weights: Array, X: Array, Z: Array) -> Array:
    """The direction Σ w_i (x_i - z) itself, where its quotient by Σ w_i points down or is undefined."""
    return np.asarray(weights @ X - weights.sum(axis=1)[:, None] * Z)


def _nearest_rows(kernel: Radial, X: Array, gamma: Array) -> Integers:
    """For each row of γ the training point with the largest Σ_i γ_i k(x_j, x_i)."""
    unit = kernel.changed(lengthscale=1.0)
    return np.asarray(np.argmax(Tiles(unit, X) @ np.ascontiguousarray(gamma.T), axis=0))


class RidgeMap:
    """X ≈ x̄ + k(Y, Y_fit)(k(Y_fit, Y_fit) + λI)⁻¹(X - x̄), with a Gaussian kernel on the components."""

    def __init__(self, Y: Array, X: Array, ridge: float, memory: Memory) -> None:
        kernel = resolve("RBF()", Y)
        assert kernel is not None
        self.kernel = kernel
        self.Y = Y
        self.mean = X.mean(axis=0)
        self.solution = solve(kernel.gram(Y, memory=memory), X - self.mean, ridge, memory=memory, keep=False)

    def __call__(self, Y: Array) -> Array:
        coef = np.ascontiguousarray(self.solution.value)
        return np.asarray(np.asarray(Tiles(self.kernel, Y, self.Y) @ coef) + self.mean)
