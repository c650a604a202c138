"""The one quadratic problem of all margin machines, what its solution must satisfy, and how to measure it.

    min  ½ αᵀQα + pᵀα     0 ≤ α_i ≤ C_i,     Q_ij = s_i s_j K[r_i, r_j],     s_i = ±1

    equality 0     nothing more
    equality 1     Σ s_i α_i keeps its value                one multiplier b:  m₊ = b, m₋ = -b
    equality 2     Σ α_i keeps its value for each sign      two multipliers:   m₊, m₋

With β = Σ s_i α_i e_{r_i}, f_i = (Kβ)[r_i] for each variable, and the slack g_i = s_i f_i + p_i + m_{s_i},
the optimum has g_i ≥ 0 where α_i < C_i and g_i ≤ 0 where α_i > 0. Weak duality holds for any α in the box and
any m:

    primal   ½ Σ s_i α_i f_i + Σ C_i max(0, -g_i) + m₊ Σ₊ α + m₋ Σ₋ α
    dual     -½ Σ s_i α_i f_i - pᵀα
    gap      Σ α_i max(0, g_i) + (C_i - α_i) max(0, -g_i)     ≥ 0, and 0 only at the optimum

Everything here is computed from α, f and m alone, so that it can judge any solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Flags, Integers

Number = TypeVar("Number", np.float64, np.intp)


# Of a multiplier: what the last digits of f may be off.
ROUNDING = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """The data of one problem; `start` is a feasible α (zero where none is given)."""

    rows: Integers
    signs: Array
    p: Array
    C: Array
    equality: int = 1
    start: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.start) != len(self.rows):
            object.__setattr__(self, "start", np.zeros(len(self.rows)))

    @cached_property
    def sides(self) -> npt.NDArray[np.int8]:
        """The signs as the core takes them."""
        return self.signs.astype(np.int8)

    def beta(self, alpha: Array, n: int) -> Array:
        """Σ s_i α_i e_{r_i}: one coefficient for each row of K."""
        return self.summed(self.signs * alpha, n)

    def summed(self, values: Array | Flags, n: int) -> Array:
        """Values of variables, summed for each row of K."""
        return cast("Array", np.bincount(self.rows, values, minlength=n))

    def alpha(self, beta: Array) -> Array:
        """The α of least sum that gives these coefficients: the way back from a fitted model."""
        out: Array = np.maximum(self.signs * beta[self.rows], 0.0)
        return out

    def gradient(self, f: Array) -> Array:
        """∂/∂α = s_i f_i + p_i."""
        return self.signs * f + self.p

    def objective(self, alpha: Array, f: Array) -> float:
        return float(0.5 * (self.signs * alpha) @ f + self.p @ alpha)

    def sums(self, alpha: Array) -> tuple[float, float]:
        """Σ α over the positive and over the negative signs."""
        up = self.signs > 0
        return float(alpha @ up), float(alpha @ ~up)

    def unkept(self, alpha: Array) -> float:
        """How far α is from keeping the sums that the equality says it must keep."""
        if self.equality == 0:
            return 0.0
        plus, minus = self.sums(alpha)
        plus_before, minus_before = self.sums(self.start)
        if self.equality == 1:
            return abs((plus - minus) - (plus_before - minus_before))
        return max(abs(plus - plus_before), abs(minus - minus_before))

    def multipliers(self, alpha: Array, f: Array) -> tuple[float, float]:
        """m₊ and m₋: the mean over the free variables, else the middle of what the bounded ones allow."""
        if self.equality == 0:
            return 0.0, 0.0
        below = alpha < self.C
        above = alpha > 0
        free = (below & above).nonzero()[0]
        if self.equality == 1 and len(free):
            b = -float((f + self.signs * self.p)[free].sum()) / len(free)
            return b, -b
        G = self.gradient(f)
        up = self.signs > 0
        if self.equality == 1:
            # What may grow lifts β where s = 1, and lowers it where s = -1.
            b = _middle(-self.signs * G, np.where(up, below, above), np.where(up, above, below))
            return b, -b
        plus = _middle(-G[up], below[up], above[up])
        minus = _middle(-G[~up], below[~up], above[~up])
        if abs(plus - minus) <= ROUNDING * max(abs(plus), abs(minus)):
            # Their difference is the bias: one that is rounding of f is 0, so that equal classes stay equal.
            minus = plus
        return plus, minus

    def slack(self, f: Array, m: tuple[float, float]) -> Array:
        """g_i, at least 0 where α_i may grow and at most 0 where it may shrink."""
        return self.gradient(f) + np.where(self.signs > 0, m[0], m[1])

    def violation(self, alpha: Array, g: Array) -> Array:
        """How far each variable is from its optimality condition."""
        return np.where(g > 0, np.where(alpha > 0, g, 0.0), np.where(alpha < self.C, -g, 0.0))

    def gap(self, alpha: Array, g: Array) -> float:
        """Primal - dual where every C is finite, summed without cancellation."""
        over = np.maximum(g, 0.0)
        return float(alpha @ over + (self.C - alpha) @ (over - g))

    def certify(
        self,
        alpha: Array,
        f: Array,
        m: tuple[float, float],
        *,
        status: Status = Status.CONVERGED,
        method: str = "working sets",
        iterations: int | None = None,
        seconds: float | None = None,
        notes: tuple[str, ...] = (),
    ) -> Certificate:
        """Primal, dual, gap and the worst violation, from α, f and m alone."""
        facts = {
            "status": status,
            "method": method,
            "iterations": iterations,
            "seconds": seconds,
            "notes": notes,
        }
        return certify_all([self], [alpha], [f], [m], [facts])[0]


@dataclass(frozen=True, eq=False)
class BoxPoint:
    """α, f = Kβ at each variable, the objective there, and how many rows of K it took, where counted."""

    alpha: Array
    f: Array
    objective: float
    kernel_rows: int = 0


def certify_all(
    problems: Sequence[BoxProblem],
    alphas: Sequence[Array],
    fs: Sequence[Array],
    ms: Sequence[tuple[float, float]],
    facts: Sequence[dict[str, Any]],
) -> list[Certificate]:
    """`certify` for several problems laid end to end, which costs little more than for one."""
    sizes = [len(q.rows) for q in problems]
    ends = list(accumulate(sizes))
    first = [0, *ends[:-1]]
    segments = np.array(first)

    def total(x: Array) -> list[float]:
        return cast("list[float]", np.add.reduceat(x, segments).tolist())

    whole = _end_to_end(problems)
    alpha = _joined(alphas)
    f = _joined(fs)
    m = _by_sign(whole.signs, ms, sizes)
    g = whole.gradient(f) + m
    worst = whole.violation(alpha, g)
    C = whole.C
    some_hard = np.maximum.reduce(C) == np.inf
    if some_hard:
        C = np.where(np.isinf(C), 0.0, C)
    over = np.maximum(g, 0.0)
    under = over - g
    norm2 = total(whole.signs * alpha * f)
    dual = [-0.5 * square - linear for square, linear in zip(norm2, total(whole.p * alpha), strict=True)]
    paid = total(C * under + m * alpha)
    primal = [0.5 * square + price for square, price in zip(norm2, paid, strict=True)]
    # Primal - dual, summed without cancellation.
    gap = total(alpha * over + (C - alpha) * under)
    hard = np.flatnonzero(np.maximum.reduceat(whole.C, segments) == np.inf) if some_hard else ()
    for k in hard:
        # y(f + b) ≥ 1 after dividing w and b by the smallest.
        margin = float((g - whole.p)[first[k] : ends[k]].min())
        primal[k] = 0.5 * norm2[k] / margin**2 if margin > 0 else np.inf
        gap[k] = primal[k] - dual[k]
    at = [i + int(worst[i:j].argmax()) for i, j in zip(first, ends, strict=True)]
    return [
        Certificate(
            **fact,
            primal=primal[k],
            dual=dual[k],
            gap=gap[k],
            kkt=float(worst[at[k]]),
            worst_row=int(whole.rows[at[k]]),
        )
        for k, fact in enumerate(facts)
    ]


def _end_to_end(problems: Sequence[BoxProblem]) -> BoxProblem:
    """The variables of all problems, one problem after the other; what each of them keeps is left out."""
    if len(problems) == 1:
        return problems[0]
    return BoxProblem(
        _joined([q.rows for q in problems]),
        _joined([q.signs for q in problems]),
        _joined([q.p for q in problems]),
        _joined([q.C for q in problems]),
    )


def _by_sign(signs: Array, ms: Sequence[tuple[float, float]], sizes: list[int]) -> Array:
    """The multiplier m₊ or m₋ of each variable, by its sign and its problem."""
    if len(ms) == 1:
        plus, minus = ms[0]
        return np.where(signs > 0, plus, minus)
    each = np.array(ms)
    return np.where(signs > 0, np.repeat(each[:, 0], sizes), np.repeat(each[:, 1], sizes))


def _joined(parts: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _middle(values: Array, may_rise: Flags, may_fall: Flags) -> float:
    """The multiplier that most variables agree on; those at a bound only limit it from one side."""
    free = values[may_rise & may_fall]
    if len(free):
        return float(free.mean())
    low = float(values[may_rise].max()) if may_rise.any() else None
    high = float(values[may_fall].min()) if may_fall.any() else None
    known = [v for v in (low, high) if v is not None]
    return sum(known) / len(known) if known else 0.0
