"""Multipliers, slacks, complementary slackness and essential support vectors of a machine (M5, T1, T5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from mercer.errors import ParameterError
from mercer.solve.box import BoxProblem
from mercer.solve.multipliers import Multipliers
from mercer.solve.operator import Operator
from mercer.theory.functions import function_of, inner
from mercer.typing import Array, Integers, Table, Targets, Weights

TIGHT = 1e-6  # of the largest |f| or |p|: a constraint this near to equality may carry a multiplier
MOST_TIGHT = 2000  # constraints with equality up to which the face of solutions is searched


@dataclass(frozen=True, eq=False)
class Duality:
    """What `duality` found: one `Multipliers` for each problem; the names below are those of the first one.

    α and β = C - α are the multipliers of the margin constraints and of ξ ≥ 0; ξ are the slacks.
    """

    problems: tuple[Multipliers, ...]

    @property
    def alpha(self) -> Array:
        return self.problems[0].alpha

    @property
    def xi(self) -> Array:
        return self.problems[0].xi

    @property
    def slack(self) -> Array:
        return self.problems[0].xi

    @property
    def beta(self) -> Array:
        return self.problems[0].beta

    @property
    def C(self) -> Array:
        return self.problems[0].C

    @property
    def worst(self) -> float:
        """The largest violation of complementary slackness, or of α = -ℓ' if the loss is smooth, of all."""
        return max(each.worst for each in self.problems)

    def __str__(self) -> str:
        lines = []
        for k, each in enumerate(self.problems):
            head = f"problem {k}: " if len(self.problems) > 1 else ""
            rows = len(np.unique(each.rows))
            said = f"‖f‖ = {each.norm:.6g}, {len(each.support)} of {rows} rows with α ≠ 0"
            if each.problem is None:
                lines.append(f"{head}{said}; |α + ℓ'| at most {each.off.max(initial=0.0):.2g}")
                continue
            lines.append(
                f"{head}{said}: {len(each.on_margin)} on the margin, {len(each.at_bound)} at the bound; "
                f"Σξ = {each.xi.sum():.6g}; α·room at most {each.alpha_product.max(initial=0.0):.2g}, "
                f"βξ at most {each.beta_product.max(initial=0.0):.2g}"
            )
        return "\n".join(lines)


def duality(model: object, X: Table, y: Targets | None = None, sample_weight: Weights = None) -> Duality:
    """Multipliers α and β = C - α, slacks ξ and their products, recomputed from a machine and its data.

    >>> from mercer import SVC
    >>> from mercer.theory import duality
    >>> X, y = [[0.0], [1.0], [0.8], [2.0]], [0, 0, 1, 1]
    >>> found = duality(SVC("Linear()", C=1.0).fit(X, y), X, y)
    >>> found.alpha.round(3).tolist(), found.beta.round(3).tolist()
    ([0.6, 1.0, 1.0, 0.6], [0.4, 0.0, 0.0, 0.4])
    >>> found.xi.round(3).tolist(), found.worst < 1e-8
    ([0.0, 1.0, 1.2, 0.0], True)
    """
    machine = inner(model)
    function_of(machine)
    return Duality(tuple(machine.named_multipliers(X, y, sample_weight)))


@dataclass(frozen=True, eq=False)
class Essential:
    """Support vectors of every optimal solution, of one problem.

    The plane is unique, its multipliers need not be: `lowest` and `highest` are the least and the largest α
    of each row of `rows` over all solutions; `essential` are the rows whose least α is above 0. `freedom` is
    the number of directions in which the multipliers could move but for their bounds, as far as double
    precision can tell.
    """

    essential: Integers
    rows: Integers
    lowest: Array
    highest: Array
    freedom: int

    @property
    def unique(self) -> bool:
        """Whether there is only one solution."""
        close = 1e-9 * self.highest.max(initial=0.0)
        return bool(np.allclose(self.lowest, self.highest, rtol=0, atol=close))

    def __str__(self) -> str:
        if self.unique:
            return f"the multipliers are unique: all {len(self.essential)} support vectors are essential"
        return (
            f"the multipliers are not unique: {len(self.essential)} of {int((self.highest > 0).sum())} "
            "rows that can be support vectors are in every solution"
        )


def essential(
    model: object, X: Table, y: Targets | None = None, sample_weight: Weights = None
) -> tuple[Essential, ...]:
    """Which support vectors are in every solution, for each problem of a margin machine.

    All solutions have the same w, so they differ by a null vector of the Gram matrix of the rows whose
    constraint holds with equality. Where there is none the multipliers are unique; else each α_i is minimised
    and maximised by a linear program.

    >>> from mercer import SVC
    >>> from mercer.theory import essential
    >>> X, y = [[-1.0], [-1.0], [1.0]], [0, 0, 1]         # the first row is there twice: either one will do
    >>> found = essential(SVC("Linear()", C=float("inf")).fit(X, y), X, y)[0]
    >>> found.essential.tolist(), found.freedom, found.highest.round(6).tolist()
    ([2], 1, [0.5, 0.5, 0.5])
    """
    found = duality(model, X, y, sample_weight)
    out = []
    for each in found.problems:
        if each.problem is None or each.K is None:
            raise ParameterError(
                "with a smooth loss every row has a multiplier, fixed by its residual: no support vector is "
                "more essential than another. Ask a machine with a margin: SVC, NuSVC, SVR, KernelMachine "
                "with loss='hinge'."
            )
        out.append(_essential(each, each.problem, each.K))
    return tuple(out)


def _essential(each: Multipliers, problem: BoxProblem, K: Operator) -> Essential:
    """The face of optimal α: those with a constraint in equality may move in the null space, in their box."""
    room = np.maximum(each.excess, each.xi)
    scale = 1.0 + float(np.abs(problem.p).max(initial=0.0))
    tight = np.flatnonzero(room <= TIGHT * scale)
    if len(tight) > MOST_TIGHT:
        raise ParameterError(
            f"{len(tight)} rows hold their constraint with equality; which multipliers can move is searched "
            f"for up to {MOST_TIGHT}. Use fewer rows."
        )
    lowest = each.alpha.copy()
    highest = each.alpha.copy()
    null = _null_space(problem, tight, K)
    if null.shape[1]:
        for place, i in enumerate(tight):
            lowest[i], highest[i] = _range(null, place, each.alpha[tight], problem.C[tight])
    largest = float(np.abs(each.alpha).max(initial=0.0))
    always = problem.rows[lowest > 1e-9 * largest]
    return Essential(np.unique(always), problem.rows, lowest, highest, null.shape[1])


def _null_space(problem: BoxProblem, tight: Integers, K: Operator) -> Array:
    """Directions of α that change neither w nor the sums that the problem keeps."""
    if len(tight) == 0:
        return np.zeros((0, 0))
    s = problem.signs[tight]
    rows = problem.rows[tight]
    G = s[:, None] * np.asarray(K.block(rows, rows), dtype=float) * s
    size = max(float(np.abs(np.diag(G)).max(initial=0.0)), 1e-300)
    equations = np.vstack([G / size, *_kept_sums(problem.equality, s)])
    _, values, directions = np.linalg.svd(equations, full_matrices=True)
    rank = int((values > len(equations) * np.finfo(float).eps * values.max(initial=0.0)).sum())
    return directions[rank:].T


def _kept_sums(equality: int, s: Array) -> list[Array]:
    """The sums of α that the problem keeps, one row of coefficients for each."""
    if equality == 0:
        return []
    if equality == 1:
        return [s]
    return [(s > 0).astype(np.float64), (s < 0).astype(np.float64)]


def _range(null: Array, place: int, alpha: Array, C: Array) -> tuple[float, float]:
    """The least and the largest value of one α over the face, by two linear programs in the null space."""
    direction = null[place]
    if np.abs(direction).max() <= 1e-9:
        return float(alpha[place]), float(alpha[place])
    bounded = np.isfinite(C)
    A = np.vstack([-null, null[bounded]])
    b = np.concatenate([alpha, (C - alpha)[bounded]])
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(sign * direction, A_ub=A, b_ub=np.maximum(b, 0.0), bounds=(None, None))
        if found.status == 3:
            ends.append(-sign * np.inf)
        elif found.status == 0:
            ends.append(float(alpha[place] + direction @ found.x))
        else:
            ends.append(float(alpha[place]))
    return max(ends[0], 0.0), ends[1]
