"""The posterior of a Gaussian process as a value: f given the targets at the rows of fit.

        mean(x) = k(x, X) α,      α = (K + N)⁻¹ y,      var(x) = k(x, x) - k(x, X) (K + N)⁻¹ k(X, x)

Views, features, leave-one-out and the certificate read this value, and nothing of the machine that made it.
Inside it all is in units of the model; `units` leads back to those of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.gram import GramOperator, Tiles
from mercer.gram.on_rows import Approximated, Evaluated, KernelOnRows
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.inverses import Inverse
from mercer.typing import Array


@dataclass(frozen=True, eq=False)
class Units:
    """The mean and the scale of the targets, one number for each; `single` says whether y came as a vector.

    Targets that were `centred` or `scaled` took part in that mean or that scale themselves.
    """

    mean: Array
    scale: Array
    single: bool
    centred: bool
    scaled: bool

    @property
    def offset(self) -> Array | float:
        """The mean of the targets: a number if there is one target."""
        return float(self.mean[0]) if self.single else self.mean

    def values(self, values: Array) -> Array:
        """Model units to units of y, less the mean; one column is a vector if y was one."""
        values = values * self.scale
        return values[..., 0] if self.single else values

    def squares(self, values: Array) -> Array:
        """(Co)variances in units of y²; a last axis for the targets if y had several."""
        if self.single:
            return values * float(self.scale[0]) ** 2
        return values[..., None] * self.scale**2


@dataclass(frozen=True, eq=False)
class Observed:
    """What was observed: the kernel on the rows of fit, the noise N there, and the targets Y, n × targets."""

    on: KernelOnRows
    noise: Array | float
    Y: Array
    n_jobs: int | None

    @property
    def rows(self) -> Rows:
        """The rows of fit."""
        assert isinstance(self.on, Evaluated | Approximated)
        return self.on.rows

    def gram(self) -> GramOperator:
        """K of the rows of fit; of a kernel that is computed, nothing is stored."""
        if isinstance(self.on, Evaluated):
            return self.on.tiles
        return self.on.gram()

    def residual(self, alpha: Array) -> Array:
        """Y - (K + N)α."""
        return np.asarray(self.Y - self.gram() @ alpha - np.reshape(self.noise, (-1, 1)) * alpha)


@dataclass(frozen=True, eq=False)
class Posterior(Observed):
    """f given y: besides what was observed (K + N)⁻¹ and α, n × targets.

    `noise_in_y` is that part of the noise which was given in units of y², in units of the model; None if
    none was.
    """

    inverse: Inverse
    alpha: Array
    units: Units
    noise_in_y: Array | float | None

    @property
    def n(self) -> int:
        """The number of rows of fit."""
        return len(self.alpha)

    @property
    def approximated(self) -> bool:
        return isinstance(self.on, Approximated)

    @property
    def kernel(self) -> Kernel:
        """The kernel, which new rows need; a Gram matrix that was given has none."""
        if self.on.kernel is None:
            raise InputError(
                "this needs the kernel at new rows, which a precomputed Gram matrix does not have."
            )
        return self.on.kernel

    def cross(self, kernel: Kernel, rows: Rows) -> Array:
        """k(X_fit, X) for a kernel, or one term of it: one column for each new row."""
        if isinstance(self.on, Evaluated) and kernel is self.on.kernel:
            return np.asarray(self.on.between(rows).dense()).T
        return np.asarray(Tiles(kernel, rows, self.rows, n_jobs=self.n_jobs).dense()).T

    def times_alpha(self, kernel: Kernel, rows: Rows) -> Array:
        """k(X, X_fit) α for a kernel, or one term of it: new rows × targets."""
        return np.asarray(Tiles(kernel, rows, self.rows, n_jobs=self.n_jobs) @ self.alpha)
