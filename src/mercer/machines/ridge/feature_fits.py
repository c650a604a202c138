"""Ridge on the rows of a search under one metric: bandwidth and penalty by leaving one out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mercer import clock, lapack
from mercer.arrays import Rows
from mercer.blas import matmul
from mercer.gram.of_kernel import Tiles
from mercer.kernels.leaves.families import Radial
from mercer.machines.ridge.parts import inverse_diagonal
from mercer.solve.direct import Cholesky
from mercer.solve.path import divide_rows
from mercer.typing import Array, Integers

# Where each round looks first: bandwidths in units of the distance between rows, and penalties.
BANDWIDTHS = (0.2, 1.0, 5.0, 30.0, 200.0)
PENALTIES = (1e-7, 1e-5, 1e-3, 1e-1)
# Where a search begins too if the best of these tells nothing, in the same units.
NARROW = (0.2, 1.0)
# So many rows, evenly spread, tell which of them is worth a look on all.
SCREENED = 400
# How far it may go.
LEAST_BANDWIDTH = 0.01
MOST_BANDWIDTH = 1000.0
LEAST_PENALTY = 1e-10
MOST_PENALTY = 100.0
# Steps of ln(bandwidth) and ln(penalty · bandwidth), halved once.
STEPS = (0.8, 1.4)
# A step that lowers the error by a smaller share is not taken.
WORTH_A_STEP = 1e-3
# Parts of the rows that are held out in turn, and so many rows at least in each.
FOLDS = 4
LEAST_OF_A_FOLD = 5


class Fold(NamedTuple):
    """Rows that are learned from, and those by which that is judged."""

    learned: Integers
    judged: Integers


def folds_of(n: int) -> tuple[Fold, ...]:
    """A quarter of the rows held out in turn, drawn with a fixed seed; none of too few rows.

    >>> [len(fold.judged) for fold in folds_of(22)], len(folds_of(19))
    ([6, 6, 5, 5], 0)
    """
    if n < FOLDS * LEAST_OF_A_FOLD:
        return ()
    order = np.random.default_rng(0).permutation(n)
    quarters = [np.sort(order[k::FOLDS]) for k in range(FOLDS)]
    return tuple(Fold(np.setdiff1d(order, quarter), quarter) for quarter in quarters)


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a search, standardised; targets with mean 0 and deviation 1; weights > 0.

    `bandwidth` and `alpha` are what the user has fixed, None for what is searched.
    """

    X: Array
    Y: Array
    weight: Array
    leaf: Radial
    intercept: bool = True
    bandwidth: float | None = None
    alpha: float | None = None
    n_jobs: int | None = None
    # What comes after the search, in kernel matrices of as many rows as it has; and what these have cost.
    at_end: float = 0.0
    costs: dict[int, float] = field(default_factory=dict)

    def of_rows(self, index: Integers) -> Sample:
        """Some of the rows."""
        return replace(self, X=self.X[index], Y=self.Y[index], weight=self.weight[index], costs={})

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        return folds_of(len(self.X))

    @cached_property
    def spread(self) -> Array:
        """The covariance of the columns."""
        share = self.weight / self.weight.sum()
        centred = self.X - share @ self.X
        return np.asarray((centred.T * share) @ centred)

    @cached_property
    def distance(self) -> float:
        """Between two rows, as root mean square; 1 where all rows are equal."""
        size = float(np.sqrt(2.0 * np.trace(self.spread)))
        return size if size > 0 else 1.0

    def closed(self, bandwidth: float) -> Radial:
        """The kernel with a bandwidth."""
        found = self.leaf.with_params({"lengthscale": bandwidth})
        assert isinstance(found, Radial)
        return found

    def gram(self, U: Array, bandwidth: float) -> Array:
        began = clock.now()
        K = Tiles(self.closed(bandwidth), Rows(U), n_jobs=self.n_jobs).dense()
        self.costs[len(U)] = max(self.costs.get(len(U), 0.0), clock.now() - began)
        return np.array(K, dtype=np.float64)

    def late(self) -> bool:
        """Whether one more fit would leave too little time for the end: a fit on all rows, and its checks."""
        return clock.late() or clock.short_of((1.0 + self.at_end) * self.costs.get(len(self.X), 0.0))

    def grid(self) -> list[Point]:
        """Where a round looks first."""
        unit = self.distance
        lengths = [unit * b for b in BANDWIDTHS] if self.bandwidth is None else [self.bandwidth]
        penalties = PENALTIES if self.alpha is None else (self.alpha,)
        return [Point.at(length, alpha) for length in lengths for alpha in penalties]

    def moves(self) -> list[Point]:
        """The directions of the search: those of what is free."""
        along, across = STEPS
        if self.bandwidth is not None and self.alpha is not None:
            return []
        if self.bandwidth is not None:
            return [Point(0.0, across)]
        if self.alpha is not None:
            return [Point(along, along)]
        return [Point(along, 0.0), Point(0.0, across)]

    def allows(self, bandwidth: float, alpha: float) -> bool:
        """Whether what is free is within its bounds."""
        wide = LEAST_BANDWIDTH <= bandwidth / self.distance <= MOST_BANDWIDTH
        priced = LEAST_PENALTY <= alpha <= MOST_PENALTY
        return (wide or self.bandwidth is not None) and (priced or self.alpha is not None)


class LeftOut(NamedTuple):
    """Ridge on one K: coefficients, intercept, the errors of leaving each row out, and their mean square."""

    coef: Array
    intercept: Array
    errors: Array
    error: float


def left_out(K: Array, Y: Array, weight: Array, alpha: float, intercept: bool) -> LeftOut | None:
    """(K + αW⁻¹)c = y - b and its leave-one-out error c_i / (A⁻¹)_ii in closed form; K is given up.

    None where K + αW⁻¹ cannot be factored or no model is left without a row.

    >>> K = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> found = left_out(K, np.array([[1.0], [-1.0]]), np.ones(2), 1.0, intercept=True)
    >>> found.coef.ravel().round(6).tolist(), found.errors.ravel().tolist()       # each predicts the other
    ([0.5, -0.5], [2.0, -2.0])
    """
    diagonal = np.einsum("ii->i", K)
    diagonal += alpha / weight
    lower, failed = lapack.potrf(K.T, overwrite_a=True)
    if failed or not np.isfinite(lower.diagonal()).all():
        return None
    factor = Cholesky(lower, 0.0)
    targets = Y.shape[1]
    ones = np.ones(len(Y))
    solved = factor.solve(np.column_stack([Y, ones]))
    coef = solved[:, :targets]
    b = np.zeros(targets)
    border = None
    if intercept:
        border = ones
        b = coef.sum(axis=0) / solved[:, targets].sum()
        coef = coef - solved[:, targets:] * b
    errors = divide_rows(coef, inverse_diagonal(factor, border))
    error = float((weight @ errors**2).mean() / weight.sum())
    return LeftOut(coef, b, errors, error) if np.isfinite(error) else None


class Point(NamedTuple):
    """ln(bandwidth), and ln(penalty · bandwidth), along which a wide kernel does not change."""

    bandwidth: float
    product: float

    @classmethod
    def at(cls, bandwidth: float, alpha: float) -> Point:
        return cls(float(np.log(bandwidth)), float(np.log(alpha) + np.log(bandwidth)))

    def moved(self, by: Point, times: float) -> Point:
        return Point(self.bandwidth + times * by.bandwidth, self.product + times * by.product)

    @property
    def values(self) -> tuple[float, float]:
        """Bandwidth and penalty, to twelve digits: those of the fit are those of the path."""
        bandwidth = float(np.exp(self.bandwidth))
        alpha = float(np.exp(self.product - self.bandwidth))
        return float(f"{bandwidth:.12g}"), float(f"{alpha:.12g}")


@dataclass(eq=False)
class Judge:
    """The leave-one-out error of bandwidths and penalties under one metric, each computed once."""

    sample: Sample
    root: Array
    known: dict[tuple[float, float], LeftOut | None] = field(default_factory=dict)

    @cached_property
    def U(self) -> Array:
        """The rows in the coordinates of the metric."""
        return matmul(self.sample.X, self.root)

    def start(self, *others: Point) -> Point:
        """Where to begin: the best of other points and of the coarse grid, of which some rows choose one."""
        grid = self.sample.grid()
        if len(self.U) > SCREENED:
            grid = self._screened(grid)
        return self._least([*others, *grid])

    def _least(self, points: list[Point]) -> Point:
        """The point of the least error, of those for which there is time."""
        best = points[0]
        for at in points:
            if at is not best and self.sample.late():
                break
            if self.error(at) < self.error(best):
                best = at
        return best

    def narrow(self) -> list[Point]:
        """Narrow bandwidths, each with the penalty of the least error."""
        sample = self.sample
        penalties = PENALTIES if sample.alpha is None else (sample.alpha,)
        found = []
        for bandwidth in NARROW:
            points = [Point.at(sample.distance * bandwidth, alpha) for alpha in penalties]
            if sample.late():
                break
            found.append(self._least(points))
        return found

    def _screened(self, grid: list[Point]) -> list[Point]:
        """The best of these points on a few rows, evenly spread."""
        sample = self.sample
        few = np.linspace(0, len(self.U) - 1, SCREENED).astype(np.intp)
        best = grid[:1]
        least = np.inf
        for at in grid:
            if sample.late():
                break
            bandwidth, alpha = at.values
            K = sample.gram(self.U[few], bandwidth)
            found = left_out(K, sample.Y[few], sample.weight[few], alpha, sample.intercept)
            if found is not None and found.error < least:
                best = [at]
                least = found.error
        return best

    def fit(self, at: Point) -> LeftOut | None:
        """The ridge at a point; None where there is none, or none is allowed."""
        sample = self.sample
        values = at.values
        if values not in self.known:
            found = None
            if sample.allows(*values):
                K = sample.gram(self.U, values[0])
                found = left_out(K, sample.Y, sample.weight, values[1], sample.intercept)
            self.known[values] = found
        return self.known[values]

    def error(self, at: Point) -> float:
        found = self.fit(at)
        return np.inf if found is None else found.error

    def descend(self, start: Point) -> Point:
        """The best point by steps of what is free, halved once, as long as there is time."""
        best = start
        for scale in (1.0, 0.5):
            moved = True
            while moved:
                nearer = self._step(best, self.sample.moves(), scale)
                moved = nearer is not best
                best = nearer
        return best

    def _step(self, best: Point, moves: list[Point], scale: float) -> Point:
        """One step along each of the moves, forwards or else backwards, where it helps."""
        for move in moves:
            for times in (scale, -scale):
                if self.sample.late():
                    return best
                near = best.moved(move, times)
                if self.error(near) < self.error(best) * (1.0 - WORTH_A_STEP):
                    best = near
                    break
        return best
