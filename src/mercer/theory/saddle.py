"""The Lagrangian: weak duality, strong duality under Slater's condition, and the saddle point (T8).

min f(x)   g_i(x) ≤ 0,  Ax = b         L(x; λ, ν) = f(x) + Σ λ_i g_i(x) + νᵀ(Ax - b),   λ ≥ 0

weak       q(λ, ν) = inf_x L(x; λ, ν) ≤ f(x) for every feasible x: no multipliers promise more than there is
Slater     some x has every g_i(x) < 0: then, f and g convex, the best q equals the best f, and multipliers
reach it saddle     L(x*; λ, ν) ≤ L(x*; λ*, ν*) ≤ L(x; λ*, ν*) for all x and all λ ≥ 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear, minimize

from mercer.errors import ParameterError
from mercer.solve.multipliers import Multipliers
from mercer.theory.complementarity import Duality, duality
from mercer.typing import Array, Table, Targets, Weights

Function: TypeAlias = Callable[[Array], float]
TRIED = 200  # points and multipliers on which the saddle is tried
CLOSE = 1e-6  # relative: gap and saddle to rounding and to the accuracy of the solver


@dataclass(frozen=True, eq=False)
class Saddle:
    """What was found at x* and λ*: `primal` = f(x*), `dual` = q(λ*), and what they prove.

    `slater` is by how much all inequalities can be kept at once: above 0 there is a strictly feasible point,
    `slater_point`. `left` is the largest L(x*; λ) - L(x*; λ*) over the multipliers tried, `right` the
    smallest L(x; λ*) - L(x*; λ*) over the points tried; at a saddle point neither has the wrong sign.
    """

    primal: float
    dual: float
    x: Array
    multipliers: Array
    slater: float
    slater_point: Array
    left: float
    right: float

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def _scale(self) -> float:
        return 1.0 + abs(self.primal)

    @property
    def weak(self) -> bool:
        """q(λ*) ≤ f(x*): true of every problem."""
        return self.gap >= -CLOSE * self._scale

    @property
    def strong(self) -> bool:
        """q(λ*) = f(x*)."""
        return bool(abs(self.gap) <= CLOSE * self._scale)

    @property
    def strictly_feasible(self) -> bool:
        return self.slater > CLOSE

    @property
    def saddle(self) -> bool:
        size = CLOSE * self._scale
        return bool(self.strong and self.left <= size and self.right >= -size)

    def __str__(self) -> str:
        slater = "holds" if self.strictly_feasible else "does not hold: no strictly feasible point was found"
        strong = "strong duality" if self.strong else "no strong duality by these multipliers"
        return (
            f"primal {self.primal:.9g}, dual {self.dual:.9g}, gap {self.gap:.2g}: {strong}\n"
            f"Slater's condition {slater} (all inequalities kept by {self.slater:.3g})\n"
            f"L(x*; λ) - L(x*; λ*) at most {self.left:.2g}, L(x; λ*) - L(x*; λ*) at least {self.right:.2g}"
        )


def convex_duality(
    objective: Function,
    inequalities: Sequence[Function],
    start: npt.ArrayLike,
    *,
    A: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> Saddle:
    """Primal, dual, Slater's condition and saddle point of a small convex program, from its functions alone.

    x* by sequential quadratic programming from `start`, λ* ≥ 0 and ν* from ∇L = 0, q(λ*) by minimising L
    without constraints. The functions must be convex and smooth, and `A x = b` the only equalities; that is
    taken on your word.

    >>> from mercer.theory import convex_duality
    >>> found = convex_duality(lambda x: x[0] ** 2 + x[1] ** 2, [lambda x: 1 - x[0] - x[1]], [2.0, 0.0])
    >>> round(found.primal, 6), round(found.dual, 6), found.multipliers.round(5).tolist(), found.saddle
    (0.5, 0.5, [1.0], True)
    >>> thin = convex_duality(lambda x: x[0], [lambda x: x[0] ** 2], [0.5])       # only x = 0 is feasible
    >>> thin.strictly_feasible, thin.weak
    (False, True)
    """
    x0 = np.atleast_1d(np.asarray(start, dtype=float))
    rows = np.zeros((0, len(x0)))
    if A is not None:
        rows = np.atleast_2d(np.asarray(A, dtype=float))
    right_side = np.zeros(len(rows))
    if b is not None:
        right_side = np.atleast_1d(np.asarray(b, dtype=float))
    x = _minimised(objective, inequalities, rows, right_side, x0)
    multipliers = _stationary(objective, inequalities, rows, x)

    def lagrange(point: Array, m: Array) -> float:
        g = np.array([float(each(point)) for each in inequalities])
        kept = float(m[: len(g)] @ g)
        equal = float(m[len(g) :] @ (rows @ point - right_side))
        return float(objective(point)) + kept + equal

    lowest = minimize(lambda p: lagrange(p, multipliers), x, method="BFGS", options={"gtol": 1e-10})
    dual = float(min(lowest.fun, lagrange(x, multipliers)))
    if dual < -1e12 * (1 + abs(float(objective(x)))):
        dual = -np.inf
    slater, point = _slater(inequalities, rows, right_side, x)
    rng = np.random.default_rng(random_state)
    here = lagrange(x, multipliers)
    size = 1.0 + np.abs(x).max()
    points = [x + size * 10.0 ** rng.uniform(-3, 1) * rng.normal(size=len(x)) for _ in range(TRIED)]
    others = [_other(multipliers, len(inequalities), rng) for _ in range(TRIED)]
    left = max(lagrange(x, m) - here for m in others)
    right = min(lagrange(p, multipliers) - here for p in points)
    return Saddle(float(objective(x)), dual, x, multipliers, slater, point, left, right)


def _minimised(f: Function, g: Sequence[Function], A: Array, b: Array, x0: Array) -> Array:
    constraints = [{"type": "ineq", "fun": lambda x, each=each: -float(each(x))} for each in g]
    if len(A):
        constraints.append({"type": "eq", "fun": lambda x: A @ x - b})
    found = minimize(f, x0, method="SLSQP", constraints=constraints, options={"ftol": 1e-14, "maxiter": 1000})
    worst = max([float(each(found.x)) for each in g], default=0.0)
    off = float(np.abs(A @ found.x - b).max(initial=0.0))
    if not np.all(np.isfinite(found.x)) or max(worst, off) > 1e-6:
        raise ParameterError(
            f"no feasible point was found: the constraints are broken by {max(worst, off):.3g}. "
            "Start from another point, or the program has none."
        )
    return np.asarray(found.x)


def _stationary(f: Function, g: Sequence[Function], A: Array, x: Array) -> Array:
    """λ ≥ 0, zero where a constraint has room, and ν, with ∇f + Σ λ ∇g + Aᵀν as small as can be."""
    gradients = [_gradient(each, x) for each in g]
    active = np.array([float(each(x)) > -1e-6 for each in g], dtype=bool)
    columns = np.zeros((len(x), 0))
    if len(gradients) + len(A):
        columns = np.column_stack([*gradients, *A])
    low = np.concatenate([np.zeros(len(g)), np.full(len(A), -np.inf)])
    used = np.concatenate([active, np.ones(len(A), dtype=bool)])
    out = np.zeros(columns.shape[1])
    if used.any():
        found = lsq_linear(columns[:, used], -_gradient(f, x), bounds=(low[used], np.inf), tol=1e-14)
        out[used] = found.x
    return out


def _gradient(f: Function, x: Array) -> Array:
    h = 1e-6 * (1.0 + np.abs(x))
    steps = np.diag(h)
    return np.array([(float(f(x + s)) - float(f(x - s))) / (2 * d) for s, d in zip(steps, h, strict=True)])


def _slater(g: Sequence[Function], A: Array, b: Array, x: Array) -> tuple[float, Array]:
    """The largest t ≤ 1 for which some x has g_i(x) ≤ -t and Ax = b, and that x."""
    if not g:
        return 1.0, x
    wanted = [{"type": "ineq", "fun": lambda v, each=each: -float(each(v[:-1])) - v[-1]} for each in g]
    wanted.append({"type": "ineq", "fun": lambda v: 1.0 - v[-1]})
    if len(A):
        wanted.append({"type": "eq", "fun": lambda v: A @ v[:-1] - b})
    start = np.append(x, -max(float(each(x)) for each in g))
    found = minimize(lambda v: -v[-1], start, method="SLSQP", constraints=wanted, options={"ftol": 1e-12})
    point = found.x[:-1]
    kept = -max(float(each(point)) for each in g)
    return kept, point


def _other(m: Array, inequalities: int, rng: np.random.Generator) -> Array:
    """Other multipliers: scaled, moved or set to zero, with λ ≥ 0."""
    size = (1.0 + np.abs(m)) * 10.0 ** rng.uniform(-3, 1)
    moved = np.asarray(m + size * rng.normal(size=len(m)))
    moved[:inequalities] = np.maximum(moved[:inequalities], 0.0)
    return moved


# ── a machine of ours ───────────────────────────────────────────────────────────────────────────────────────


def lagrangian(
    model: object, X: Table, y: Targets, sample_weight: Weights = None, *, random_state: int = 0
) -> Saddle:
    """The same for a fitted support vector classifier: x = (w, b, ξ), and the multipliers are (α, β).

        L = ½‖w‖² + Σ C_i ξ_i - Σ α_i (y_i f(x_i) - 1 + ξ_i) - Σ β_i ξ_i

    The hard margin has neither ξ nor β. q(α, β) has a closed form. Slater's condition holds for every soft
    margin, by w = 0 and ξ = 2, and for a hard margin where the classes can be separated: twice the plane has
    room to spare. For a machine of two classes.

    >>> from mercer import SVC
    >>> from mercer.theory import lagrangian
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> found = lagrangian(SVC("Linear()", C=float("inf")).fit(X, y), X, y)
    >>> round(found.primal, 6), found.strictly_feasible, found.saddle                 # w = 2
    (2.0, True, True)
    """
    each = _hinge(duality(model, X, y, sample_weight))
    problem = each.problem
    assert problem is not None
    assert each.K is not None
    s = problem.signs
    C = problem.C
    hard = bool(np.isinf(C).any())
    K = np.asarray(each.K.block(problem.rows, problem.rows), dtype=float)
    alpha = each.alpha
    c = s * alpha
    b = _bias(each, s * (K @ c))
    price = np.where(hard, 0.0, C)
    beta = np.zeros(len(alpha)) if hard else each.beta

    def lagrange(c: Array, b: float, xi: Array, alpha: Array, beta: Array) -> float:
        room = s * (K @ c + b) - 1.0 + xi
        return float(0.5 * c @ K @ c + price @ xi - alpha @ room - beta @ xi)

    xi = np.zeros(len(alpha)) if hard else np.maximum(0.0, 1.0 - s * (K @ c + b))
    here = lagrange(c, b, xi, alpha, beta)
    # A plane that misses its margin by a rounding is scaled until it keeps it: only feasible points have a
    # primal value.
    reach = float((s * (K @ c + b)).min()) if hard else 1.0
    norm2 = float(c @ K @ c)
    primal = 0.5 * norm2 + float(price @ xi)
    if hard and reach > 0:
        primal = 0.5 * norm2 / reach**2
    dual = float(alpha.sum() - 0.5 * norm2)
    rng = np.random.default_rng(random_state)
    left = -np.inf
    right = np.inf
    free = 0.0 if problem.equality == 0 else 1.0
    for _ in range(TRIED):
        size = 10.0 ** rng.uniform(-4, 1)
        d = c + size * (1 + np.abs(c).max()) * rng.normal(size=len(c))
        e = b + free * size * rng.normal()
        z = xi if hard else xi + size * rng.normal(size=len(xi))
        right = min(right, lagrange(d, e, z, alpha, beta) - here)
        a = np.maximum(alpha + size * rng.normal(size=len(alpha)), 0.0)
        o = beta if hard else np.maximum(beta + size * rng.normal(size=len(beta)), 0.0)
        left = max(left, lagrange(c, b, xi, a, o) - here)
    slater = 2.0 * reach - 1.0 if hard else 1.0
    x = np.concatenate([c, [b], xi])
    point = np.concatenate([0 * c, [0.0], 2.0 + 0 * xi])
    if hard:
        point = np.concatenate([2.0 * c, [2.0 * b], xi])
    return Saddle(primal, dual, x, np.concatenate([alpha, beta]), slater, point, left, right)


def _hinge(found: Duality) -> Multipliers:
    each = found.problems[0]
    problem = each.problem
    if len(found.problems) != 1 or problem is None or problem.equality == 2 or np.any(problem.p != -1.0):
        raise ParameterError(
            "lagrangian writes out the problem of a support vector classifier of two classes: SVC, Adatron, "
            "or KernelMachine with loss='hinge'. For another convex program use "
            "convex_duality(objective, inequalities, start)."
        )
    return each


def _bias(each: Multipliers, sides: Array) -> float:
    """b from the room that each constraint was found to have: room - slack = y(f + b) - 1."""
    problem = each.problem
    assert problem is not None
    if problem.equality == 0:
        return 0.0
    return float(np.median(problem.signs * (each.excess - each.xi + 1.0 - sides)))
