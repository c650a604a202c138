"""Parts of kernel ridge regression that need no state: options, the solution, the objective, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.errors import NotPositiveDefiniteError
from mercer.gram import GramOperator, Weighted
from mercer.gram.far_features import FarFeatures
from mercer.solve.diagnosis import look_alike
from mercer.solve.direct import Cholesky
from mercer.solve.primal import REFINEMENTS, FeatureRidge
from mercer.solve.solution import Certificate
from mercer.typing import Array, Integers, Memory, Seed


@dataclass(frozen=True)
class Options:
    """How to solve: the parameters of the machine that are not the problem."""

    solver: str = "auto"
    tol: float = 1e-10
    max_iter: int | None = None
    memory: Memory = "2GiB"
    n_landmarks: int | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    callback: Callable[[int, float], object] | None = None
    keep_factor: Callable[[Cholesky], object] | None = None
    """Gets the factor in float64, if the system is solved by one."""


class RidgeFit(NamedTuple):
    """c (n×t), b (t), and where the function is kept in other coordinates, those: features or landmarks."""

    c: Array
    b: Array
    certificate: Certificate
    coef: Array | None = None


class Penalty(NamedTuple):
    """α and the weights, with the noise of the kernel in them."""

    alpha: float
    weight: Array


FeatureBlocks = Callable[[], Iterator[tuple[slice, Array]]]


class Features(NamedTuple):
    """Explicit features of all rows, block by block; `far`, where the workers of a cluster sum over them."""

    blocks: FeatureBlocks
    dimension: int
    far: FarFeatures | None = None


def objective(
    Y: Array, products: Array, c: Array, energy: float, penalty: Penalty
) -> tuple[float | None, float | None]:
    """Primal and dual value at c, for targets less their intercepts; None where α = 0 leaves no dual.

    Σ w (y - Kc)² + α cᵀKc  and  α (2 cᵀy - cᵀ(K + αW⁻¹)c), which is never above the primal of any function.
    """
    if penalty.alpha <= 0:
        return None, None
    w = penalty.weight[:, None]
    primal = float((w * (Y - products) ** 2).sum()) + penalty.alpha * energy
    dual = penalty.alpha * float((c * (2 * Y - products - penalty.alpha / w * c)).sum())
    return primal, dual


def inverse_diagonal(F: Cholesky, border: Array | None) -> Array:
    """The diagonal of the inverse of A, or of the leading block of the inverse of [[A, s], [sᵀ, 0]]."""
    out = F.inverse_diag()
    if border is not None:
        column = F.solve(border)
        out = out - column**2 / float(border @ column)
    return out


def singular_gram(op: GramOperator, found: Certificate) -> NotPositiveDefiniteError:
    """The refusal of α = 0 where rounding let a singular matrix be factored."""
    pairs = look_alike(op)
    rows = ""
    if pairs:
        rows = f" Rows {', '.join(f'{i} and {j}' for i, j in pairs[:5])} look like duplicates."
    return NotPositiveDefiniteError(
        f"with alpha = 0 the Gram matrix is singular to rounding: its solution leaves {found.residual:.1e} "
        f"of the targets.{rows} Give alpha a positive value, or remove rows that the kernel cannot tell "
        "apart.",
        duplicates=pairs,
    )


def weighted(K: GramOperator, scale: Array) -> GramOperator:
    return K if np.all(scale == 1.0) else Weighted(K, scale)


def least_norm(problem: FeatureRidge, beta: Array) -> Array:
    """c = Φ(ΦᵀΦ)⁻¹β, the shortest with Φᵀc = β; refined, because ΦᵀΦ has lost half of the digits of Φ."""
    n = len(problem.weight)
    plain = problem.plain()
    c = np.zeros((n, beta.shape[1]))
    rest = beta
    for _ in range(1 + REFINEMENTS):
        c += plain.image(plain.factor.solve(rest))
        rest = beta - plain.pull(c)
    return c


def renumbered(error: NotPositiveDefiniteError, kept: Integers, n: int) -> NotPositiveDefiniteError:
    """The same refusal with rows counted as in X, where rows of weight 0 were left out."""
    if len(kept) == n:
        return error
    pairs = tuple((int(kept[i]), int(kept[j])) for i, j in error.duplicates)
    shown = ", ".join(f"{i} and {j}" for i, j in pairs[:5])
    those = f"; in X they are {shown}" if pairs else ""
    text = f"{error} (Rows are counted without those of weight 0{those}.)"
    return NotPositiveDefiniteError(
        text,
        None if error.pivot is None else int(kept[error.pivot]),
        pairs,
        error.smallest_eigenvalue,
        error.sufficient_diagonal,
    )
