"""Mercer's condition as an integral, for a function of one's own: the continuous form beside the finite one.

        ∫∫ f(x) k(x, z) f(z) dμ(x) dμ(z) ≥ 0     for every f

A quadrature with nodes x_i and weights w_i makes it qᵀKq with q_i = w_i f(x_i): the finite form of the
definition. So a negative integral shows a finite witness, and kernels that pass the finite test on all points
pass the integral one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.params import is_real, is_whole
from mercer.typing import Array

# A function of rows, n × d, with one number for each.
OfRows: TypeAlias = Callable[[Array], npt.ArrayLike]

EPS = float(np.finfo(np.float64).eps)
BLOCK = 512  # rows of the Gram matrix at one time
PANEL = 16  # nodes of one panel; finer grids have more panels


@dataclass(frozen=True, eq=False, repr=False)
class MercerIntegral:
    """What `mercer_integral` found: the value, an estimate of its error, and the finite form that it is.

    `X` are the nodes and `q` the weights times f, so that `value` is qᵀKq; `levels` are the values of the
    coarser grids.
    """

    kernel: Kernel
    value: float
    error: float
    rounding: float
    X: Array
    q: Array
    levels: tuple[float, ...]

    @property
    def sign(self) -> int:
        """-1 or 1 where the value is beyond its error, else 0."""
        return int(np.sign(self.value)) if abs(self.value) > self.error else 0

    @property
    def refutes(self) -> bool:
        """Whether qᵀKq is below 0 by more than its rounding: `X` and `q` then show that this is no kernel.

        That does not rest on the error of the quadrature: the finite form is a witness by itself.
        """
        return self.value < -self.rounding

    def __str__(self) -> str:
        n, d = self.X.shape
        if self.sign < 0:
            said = "negative: this is not a kernel"
        elif self.sign > 0:
            said = "positive, as it must be"
        elif self.refutes:
            said = "smaller than the error, but qᵀKq at the nodes is negative: this is not a kernel"
        else:
            said = "zero to within the error"
        return (
            f"∫∫ f(x) k(x, z) f(z) = {self.value:.10g} ± {self.error:.2g} for {self.kernel} "
            f"({n} nodes in {d} column{'s' * (d > 1)}), {said}."
        )

    def __repr__(self) -> str:
        return f"<MercerIntegral: {self.value:.6g} ± {self.error:.2g}>"


def mercer_integral(
    kernel: Kernel,
    f: OfRows,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    density: OfRows | None = None,
    tol: float = 1e-10,
    points: int = 4096,
) -> MercerIntegral:
    """∫∫ f(x) k(x, z) f(z) dμ dμ over the box from `low` to `high`, by Gauss and Legendre's rule.

    `f` takes rows (n × d) and gives a number for each; `low` and `high` are numbers, or one for each column;
    μ is volume, or has the `density` of that function. The grid is refined, twice as many nodes along each
    column, until the value settles to `tol` (relative to ∫∫ |f k f|) or the next grid would have more than
    `points` nodes. The error is estimated from the last three grids: it is no bound, and a kernel much
    narrower than the grid can pass unseen.

    >>> import mercer
    >>> found = mercer_integral(mercer.Brownian(), lambda X: np.ones(len(X)), 0.0, 1.0)   # ∫∫ min(x, z) = 1/3
    >>> abs(found.value - 1 / 3) <= found.error, found.error < 1e-4
    (True, True)
    >>> K = mercer.Brownian()(found.X)
    >>> bool(np.isclose(found.q @ K @ found.q, found.value))                                # the finite form
    True
    """
    a, b = _box(low, high)
    _check_numbers(tol, points)
    d = len(a)
    if 8**d > points:
        raise ParameterError(
            f"three grids in {d} columns need {8**d} nodes and points={points}. Raise points, or integrate "
            "over fewer columns."
        )
    levels: list[float] = []
    m = 2
    while True:
        X, w = _grid(a, b, m)
        q = w * _values(f, X, "f")
        if density is not None:
            q = q * _values(density, X, "density", least=0.0)
        value, gross = _form(kernel, X, q)
        levels.append(value)
        rounding = (2 * len(q) + 4) * EPS * gross
        error = _error(levels) + rounding
        if len(levels) >= 4 and error <= tol * gross:
            break
        if (2 * m) ** d > points:
            break
        m *= 2
    return MercerIntegral(kernel, value, error, rounding, X, q, tuple(levels))


def _error(levels: list[float]) -> float:
    """Twice the last step, or half the one before it: a kink along x = z has steps that shrink by four."""
    if len(levels) < 3:
        return float("inf")
    last = abs(levels[-1] - levels[-2])
    before = abs(levels[-2] - levels[-3])
    return 2 * max(last, before / 4)


def _box(low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[Array, Array]:
    try:
        lower = np.atleast_1d(np.array(low, float))
        upper = np.atleast_1d(np.array(high, float))
        a, b = np.broadcast_arrays(lower, upper)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"low and high must be numbers, one for each column: {error}.") from error
    if a.ndim != 1 or not (np.isfinite(a).all() and np.isfinite(b).all() and (a < b).all()):
        raise ParameterError(
            f"low and high must be finite with low < high in every column; got {low!r} and {high!r}. "
            "For an infinite range, end it where f no longer counts."
        )
    return a, b


def _check_numbers(tol: object, points: object) -> None:
    if not is_real(tol) or not 0 < float(tol) < 1:
        raise ParameterError(f"tol must be a number between 0 and 1; got {tol!r}.")
    if not is_whole(points) or int(points) < 8:
        raise ParameterError(f"points must be a whole number >= 8; got {points!r}.")


def _grid(a: Array, b: Array, m: int) -> tuple[Array, Array]:
    """m^d nodes of Gauss and Legendre in a box, in panels, and their weights; m is a power of two."""
    inside, share = np.polynomial.legendre.leggauss(min(m, PANEL))
    panels = m // len(inside)
    t = ((1 + inside)[None, :] / 2 + np.arange(panels)[:, None]).ravel() / panels
    v = np.tile(share / (2 * panels), panels)
    axes = [lo + width * t for lo, width in zip(a, b - a, strict=True)]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(a))
    weights = [width * v for width in b - a]
    parts = np.stack(np.meshgrid(*weights, indexing="ij"), axis=-1).reshape(-1, len(a))
    return X, parts.prod(axis=1)


def _values(f: OfRows, X: Array, name: str, least: float = -np.inf) -> Array:
    if not callable(f):
        raise ParameterError(f"{name} must be a function of rows, n by d; got {f!r}.")
    out = np.asarray(f(X.copy()))
    if out.dtype.kind not in "biuf":
        raise InputError(f"{name} must give real numbers; it gave {out.dtype}.")
    if out.shape != (len(X),):
        raise ShapeError(
            f"{name} must give one number for each of the {len(X)} rows; it gave shape {out.shape}."
        )
    out = out.astype(np.float64)
    if not np.isfinite(out).all() or out.min() < least:
        at = int(np.argmax(~np.isfinite(out) | (out < least)))
        raise NotFiniteError(
            f"{name} gives {out[at]} at {X[at].tolist()}; finite numbers are needed, of a density >= 0."
        )
    return out


def _form(kernel: Kernel, X: Array, q: Array) -> tuple[float, float]:
    """qᵀKq and |q|ᵀ|K||q|. X is met as two samples: noise of observations has no share in an integral."""
    value = 0.0
    gross = 0.0
    for start in range(0, len(X), BLOCK):
        part = slice(start, start + BLOCK)
        K = np.asarray(kernel(X[part], X), dtype=np.float64)
        value += float(q[part] @ (K @ q))
        gross += float(np.abs(q[part]) @ (np.abs(K) @ np.abs(q)))
    return value, gross
