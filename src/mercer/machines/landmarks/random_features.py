"""Random features: a kernel as a dot product of finitely many random functions, with the error measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mercer.arrays import Rows
from mercer.errors import ParameterError
from mercer.gram import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.landmarks.approximation import Approximation, named
from mercer.machines.landmarks.selection import row_slices
from mercer.machines.landmarks.sketches import KINDS, Plan, Sketch, build
from mercer.machines.shared.base import generator, resolve
from mercer.machines.shared.parameters import TABLE, Choice, Declarations, Whole
from mercer.memory import room
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Memory, Seed, Table

# Pairs on which the error is measured, and rows from which they are drawn.
PAIRS = 2000
SAMPLE = 1000


@dataclass(frozen=True)
class MeasuredError:
    """φ(x)·φ(z) - k(x, z) on `pairs` random pairs of different rows.

    The largest size, the root mean square and its standard error, and the root mean square of k itself on
    these pairs.
    """

    max: float
    rms: float
    standard_error: float
    kernel_rms: float
    pairs: int

    @property
    def relative(self) -> float | None:
        """The root mean square as a share of that of k; None where k is 0 on all pairs."""
        return self.rms / self.kernel_rms if self.kernel_rms else None

    def __str__(self) -> str:
        return (
            f"error {self.rms:.2g} ± {self.standard_error:.1g} rms, {self.max:.2g} at most, on {self.pairs} "
            f"pairs of rows (k itself is {self.kernel_rms:.2g} rms)"
        )


class RandomFeatures(Approximation):
    """Features with E φ(x)·φ(z) = k(x, z): unbiased, with an error that falls like 1/√n_components.

    | kernel | features |
    |---|---|
    | a finite map with at most `n_components` features | that map: exact |
    | RBF, Exponential, Matern, RationalQuadratic, Laplacian, SpectralMixture | cos ω·x, sin ω·x |
    | products of these, and other stationary ones | cos ω·x, sin ω·x |
    | Periodic, ZeroMeanPeriodic, Cosine | their Fourier series: exact where it is short enough, else drawn |
    | Linear, Polynomial | tensor sketch |
    | ExpDot | e^(c‖x‖²/2) times those of a Gaussian kernel |
    | Dot(taylor=[...]) | random Maclaurin series |
    | ArcCosine | random units |
    | sums; products | side by side; sketched |
    | c·k, f(x) k f(z), k(ψ(x), ψ(z)), columns, normalized | carried through |

    Anything else is refused with the reason. `White` terms are kept apart in `noise_`.

    Parameters
    ----------
    {shared parameters}

    Attributes
    ----------
    error_ : `MeasuredError` on random pairs of the rows of fit.
    n_components_, sketch_, kernel_, noise_, certificate_

    >>> from mercer import RBF, RandomFeatures
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> phi = RandomFeatures(RBF(2.0), 2000, random_state=0).fit(X)
    >>> P = phi.transform(X)
    >>> bool(np.abs(P @ P.T - RBF(2.0)(X)).max() < 0.1), bool(phi.error_.rms < 0.02)
    (True, True)
    """

    parameters: ClassVar[Declarations] = {
        "kernel": TABLE["kernel"].but(
            about="A kernel or its text. An open lengthscale is closed column by column from the spread of "
            "the rows; `kernel_` says what was used."
        ),
        "n_components": Whole(
            1, about="About so many features, never more; what came of it is `n_components_`."
        ),
        "kind": Choice(
            KINDS,
            about="Frequencies: independent, orthogonal in blocks (for mixtures of Gaussians), or "
            "quasi-random (scrambled Sobol, in very many columns Halton). Dot products: tensor sketch or "
            'Maclaurin. Parts that a kind does not concern are made as under "auto": quasi-random in up to '
            "10 columns and where nothing else is possible, else orthogonal; tensor sketch.",
        ),
    }

    sketch_: Sketch
    error_: MeasuredError
    n_components_: int

    def __init__(
        self,
        kernel: Kernel | str = "RBF()",
        n_components: int = 100,
        *,
        kind: str = "auto",
        strict: bool = False,
        memory: Memory = "2GiB",
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.kind = kind
        self.strict = strict
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Table, y: object = None) -> Self:
        """Draw the features for the columns of X, and measure their error on its rows; y is ignored."""
        self._check_parameters()
        A = self.check_rows(X, reset=True)
        rows = self.as_rows(A)
        kernel = resolve(self.kernel, rows)
        self._learn(kernel, rows, np.ones(A.shape[0]), keep=False, strict=bool(self.strict))
        return self

    def _learn(
        self, kernel: Kernel | None, rows: Rows, weight: Array, *, keep: bool, strict: bool
    ) -> Array | None:
        self._check_parameters()
        if kernel is None:
            raise ParameterError(
                "random features are functions of points, and a precomputed Gram matrix has none. Use "
                "Nystroem."
            )
        if rows.columns is None or rows.data.dtype.kind == "O":
            raise ParameterError(
                f"random features are functions of columns of numbers, and {kernel!r} reads things. Use "
                "Nystroem, or the kernel itself."
            )
        start = time.perf_counter()
        smooth = self._keep_kernel(kernel)
        assert smooth is not None
        rng = generator(self.random_state)
        live = np.flatnonzero(weight > 0)
        some = rows.rows(np.sort(rng.permutation(live)[:SAMPLE]))
        self.sketch_ = build(smooth, int(self.n_components), Plan(some, self.kind, rng))
        self.n_components_ = self.sketch_.dimension
        self.error_ = self._measure(smooth, some, rng)
        self._judge(smooth, Tiles(smooth, rows), weight, strict=strict)
        self.certificate_ = Certificate(
            Status.CONVERGED,
            "an exact map" if self.sketch_.exact else "random features",
            seconds=time.perf_counter() - start,
            residual=self.error_.relative,
            added_diagonal=0.0,
            notes=(self.describe(), *self.judged_),
        )
        return self.features(rows) if keep else None

    def _measure(self, kernel: Kernel, rows: Rows, rng: np.random.Generator) -> MeasuredError:
        n = len(rows)
        if n == 1:
            i = j = np.zeros(1, dtype=np.intp)
        else:
            i = rng.integers(n, size=PAIRS)
            j = (i + rng.integers(1, n, size=PAIRS)) % n
        phi = self.features(rows)
        exact = kernel(rows)[i, j]
        e = np.einsum("ij,ij->i", phi[i], phi[j]) - exact
        rms = float(np.sqrt(np.mean(e**2)))
        spread = 0.0
        if rms > 0:
            spread = float(np.std(e**2)) / (2 * rms * np.sqrt(len(e)))
        return MeasuredError(float(np.abs(e).max()), rms, spread, float(np.sqrt(np.mean(exact**2))), len(e))

    def features(self, rows: Rows) -> Array:
        n = len(rows)
        parts = list(row_slices(n, 2 * self.n_components_))
        if len(parts) == 1:
            return self.sketch_(rows)
        out = room((n, self.n_components_))
        for part in parts:
            self.sketch_.write(rows.rows(np.arange(part.start, part.stop)), out[part])
        return out

    def describe(self) -> str:
        how = f"{self.n_components_} features ({self.sketch_.how})"
        if self.sketch_.exact:
            return f"{named(self.kernel_)} replaced by {how}, exact to rounding: {self.error_}"
        return f"{named(self.kernel_)} replaced by {how}: {self.error_}"

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
