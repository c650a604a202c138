"""One problem of a `KernelMachine`, Σ w_i ℓ(y_i, z_i) + (α/2)‖f‖², and its certificate from the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from mercer.gram import GramOperator
from mercer.machines.loss.losses import EpsilonInsensitive, Hinge, Loss, Quantile, Softmax, Squared
from mercer.solve.box import BoxProblem
from mercer.solve.multipliers import Multipliers, of_box, of_smooth
from mercer.solve.newton import balanced, from_coefficients, from_slopes
from mercer.solve.solution import Certificate, Status
from mercer.typing import Array, Integers


@dataclass(frozen=True, eq=False)
class Objective:
    """A loss of one number with its targets and weights; what `newton` takes, all with one column."""

    loss: Loss
    y: Array
    w: Array
    outputs: int = 1

    def value(self, z: Array) -> Array:
        return self._weighted(self.loss.value(self.y, z[:, 0]))

    def slope(self, z: Array) -> Array:
        return self._weighted(self.loss.slope(self.y, z[:, 0]))[:, None]

    def root(self, z: Array) -> Array:
        return np.sqrt(self._weighted(self.loss.curvature(self.y, z[:, 0])))[:, None, None]

    def conjugate(self, s: Array) -> Array | None:
        """w ℓ*(y, s/w) for slopes s that hold the weight; None where the loss has none."""
        if not self.loss.has_conjugate:
            return None
        used = self.w > 0
        out = np.zeros(len(self.w))
        out[used] = self.w[used] * self.loss.conjugate(self.y[used], s[used, 0] / self.w[used])
        return out

    def _weighted(self, each: Array) -> Array:
        return np.where(self.w > 0, self.w * each, 0.0)

    def box(self, alpha: float, intercept: bool) -> BoxProblem:
        """The dual of a piecewise linear loss as the margin machines have it, in units of 1/α."""
        rows = np.flatnonzero(self.w > 0)
        y = self.y[rows]
        C = self.w[rows] / alpha
        loss = self.loss
        if isinstance(loss, Hinge):
            return BoxProblem(rows, y, np.full(len(rows), -1.0), C, equality=int(intercept))
        signs = np.repeat([1.0, -1.0], len(rows))
        rows = np.tile(rows, 2)
        y = np.tile(y, 2)
        C = np.tile(C, 2)
        if isinstance(loss, Quantile):
            share = np.where(signs > 0, loss.level, 1.0 - loss.level)
            return BoxProblem(rows, signs, -signs * y, share * C, equality=int(intercept))
        assert isinstance(loss, EpsilonInsensitive)
        return BoxProblem(rows, signs, loss.epsilon - signs * y, C, equality=int(intercept))


@dataclass(frozen=True, eq=False)
class SoftmaxObjective:
    """The softmax loss of several classes, weighted."""

    loss: Softmax
    y: Integers
    w: Array
    outputs: int

    def value(self, z: Array) -> Array:
        return self.w * self.loss.value(self.y, z)

    def slope(self, z: Array) -> Array:
        return self.w[:, None] * self.loss.slope(self.y, z)

    def root(self, z: Array) -> Array:
        return np.sqrt(self.w)[:, None, None] * self.loss.root(self.y, z)

    def shares(self, z: Array) -> Array:
        """w p: the curvature of a row is diag(d) - d dᵀ / Σd."""
        p: Array = softmax(z, axis=1)
        return self.w[:, None] * p

    def conjugate(self, s: Array) -> Array:
        used = self.w > 0
        out = np.zeros(len(self.w))
        out[used] = self.w[used] * self.loss.conjugate(self.y[used], s[used] / self.w[used, None])
        return out


Problem = Objective | SoftmaxObjective


class ProblemSolution(NamedTuple):
    """β (n×k), b (k) and the certificate of one problem."""

    beta: Array
    b: Array
    certificate: Certificate


def certify(
    problem: Problem,
    K: GramOperator,
    alpha: float,
    beta: Array,
    b: Array,
    *,
    intercept: bool,
    status: Status = Status.CONVERGED,
    method: str = "recomputed",
    notes: tuple[str, ...] = (),
    products: Array | None = None,
) -> Certificate:
    """Primal, dual and gap of the model (β, b), from kernel products alone: valid whatever found the model.

    `products` are Kβ, where they are known. The point of the dual is s = ℓ'(z) (Σ s = 0 where b is optimal)
    or s = -αβ, whichever is better; s = -αβ for losses with kinks:

        gap = Σ (ℓ(z) + ℓ*(s) - s z) + (α/2)(β - β')ᵀK(β - β'),      β' = -s/α

    `kkt` is the largest entry of αβ + s (smooth), or the worst violation of the box problem.
    """
    f = products
    if f is None:
        f = np.asarray(K @ np.ascontiguousarray(beta), dtype=np.float64)
    if isinstance(problem, Objective) and not problem.loss.smooth:
        q = problem.box(alpha, intercept)
        a = np.minimum(q.alpha(beta[:, 0]), q.C)
        m = (float(b[0]), -float(b[0]))
        c = q.certify(a, f[q.rows, 0], m, status=status, method=method, notes=notes)
        assert c.primal is not None and c.dual is not None and c.gap is not None
        return replace(c, primal=alpha * c.primal, dual=alpha * c.dual, gap=alpha * c.gap)
    z = f + b
    s = problem.slope(z)
    primal = float(problem.value(z).sum()) + 0.5 * alpha * float((beta * f).sum())
    off = np.abs(alpha * beta + s).max(axis=1)
    size = max(float(np.abs(s).max(initial=0.0)), np.finfo(float).tiny)
    out = Certificate(
        status,
        method,
        primal=primal,
        kkt=float(off.max()),
        residual=float(np.linalg.norm(alpha * beta + s)) / max(float(np.linalg.norm(s)), size),
        worst_row=int(np.argmax(off)),
        notes=notes,
    )
    at_slopes = problem.conjugate(s)
    if at_slopes is None:
        word = "the loss has no conjugate: no duality gap; the residual is the relative gradient norm"
        return replace(out, notes=(*notes, word))
    points = [from_coefficients(problem, alpha, beta, f, z, intercept)]
    if not intercept or balanced(problem, s, z):
        points.append(from_slopes(K, problem, alpha, beta, f, z))
    best = min(points, key=lambda point: point.gap)
    if not np.isfinite(best.gap):
        most = np.abs(s.sum(axis=0)).max()
        word = f"the intercept is not optimal (slopes sum to {most:.3g}): no dual point, no gap"
        return replace(out, notes=(*notes, word))
    conjugate = problem.conjugate(-alpha * best.beta)
    assert conjugate is not None
    young = float((problem.value(z) + conjugate + alpha * (best.beta * z).sum(axis=1)).sum())
    dual = -float(conjugate.sum()) - 0.5 * alpha * float((best.beta * best.f).sum())
    gap = best.gap
    if best.beta is not beta:
        gap += max(young, 0.0)
    return replace(out, dual=dual, gap=gap)


def name_multipliers(
    problem: Problem,
    alpha: float,
    beta: Array,
    f: Array,
    b: Array,
    intercept: bool,
    K: GramOperator,
) -> list[Multipliers]:
    """Multipliers and slacks of one problem; ξ is the loss of a row, of the squared loss its residual."""
    if isinstance(problem, Objective) and not problem.loss.smooth:
        q = problem.box(alpha, intercept)
        a = np.minimum(q.alpha(beta[:, 0]), q.C)
        return [of_box(q, a, f[q.rows, 0], (float(b[0]), -float(b[0])), K)]
    z = f + b
    slopes = problem.slope(z)
    loss = problem.value(z)
    if isinstance(problem, Objective) and isinstance(problem.loss, Squared):
        loss = problem.y - z[:, 0]
    norms = np.sqrt(np.maximum((beta * f).sum(axis=0), 0.0))
    rows = np.arange(len(z))
    return [of_smooth(rows, alpha * beta[:, k], loss, slopes[:, k], float(norms[k])) for k in range(len(b))]


def why_outside(penalty: object) -> str:
    """Why a penalty is refused."""
    if penalty in ("l1", "elasticnet", "lasso"):
        return (
            f"penalty={penalty!r} is outside the representer theorem: that needs Ω to be a non-decreasing "
            "function of ‖f‖, the length of f in feature space. A sum of |w_j| depends on the axes of that "
            "space and not on the length only: the part of w outside the span of the training rows can lower "
            "it, so the minimum need not be Σ β_i k(x_i, ·) and kernel products do not suffice. Use "
            "penalty='l2'. For few support vectors: loss='hinge', 'squared_hinge' or 'epsilon_insensitive'. "
            "For few features: build them (kernel.features(d), MercerMap) and give those to a linear model "
            "with that penalty."
        )
    return (
        "penalty must be 'l2', that is (alpha/2)‖f‖², or a non-decreasing function of the number ‖f‖ such as "
        f"lambda r: r; got {penalty!r}."
    )
