"""Which metric, bandwidth and penalty: rounds of fitting and measuring gradients, judged on rows held out.

    round 0     the rows as they are (standardised), bandwidth and penalty by leave-one-out; where these leave
                nearly all of the variance, narrow bandwidths too
    round r     the metric of the function of round r - 1, bandwidth and penalty from there on

Each form of the metric (full, diagonal) and each exponent is a chain of rounds of its own. A metric has seen
the targets of all rows, so that leaving one out under it flatters, the more so the more numbers it has. So
every chain is gone once more on each three quarters of the rows, with the bandwidths and penalties of the
whole one. There the error of the quarter that neither metric nor function has seen, over that of leaving one
out, says by how much it flatters:

    expected = (leaving one out, all rows) · (rows held out) / (leaving one out, three quarters of the rows)

After the first round the better exponent of each form goes on, as long as that falls. The round where it is
least is taken, of all chains.
"""

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
from mercer.machines.ridge.feature_metric import average_outer_product, shaped
from mercer.machines.ridge.parts import inverse_diagonal
from mercer.progress import say
from mercer.solve.anytime import Anytime
from mercer.solve.direct import Cholesky
from mercer.solve.path import divide_rows
from mercer.solve.solution import Status
from mercer.typing import Array, Integers

# Where each round looks first: bandwidths in units of the distance between rows, and penalties.
BANDWIDTHS = (0.2, 1.0, 5.0, 30.0, 200.0)
PENALTIES = (1e-7, 1e-5, 1e-3, 1e-1)
# Where more of the variance than this is left, errors tell no bandwidth from another: rounds start from these
# too, in the same units, because a function that fits nothing yet has slopes.
UNTOLD = 0.9
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


class Round(NamedTuple):
    """One fit of the search: how often the metric was learned, from which fit, and mean squared errors.

    `error` is that of leaving one out, `expected` the same without what flatters in it; infinite where there
    are too few rows, or no time.
    """

    iteration: int
    after: int
    form: str
    exponent: float
    bandwidth: float
    alpha: float
    error: float
    expected: float


@dataclass(frozen=True, eq=False)
class FeaturePath:
    """Every fit of a search, in the order in which it was made, and which of them was taken.

    The metric of a fit is that of the function of an earlier one, `after`; those without one are after
    themselves.

    `errors` are mean squared leave-one-out errors in units of the spread of the targets, so that 1 is what
    the mean alone would have; the metric had seen the row. `expected` are these times what that flatters by,
    which rows say that the metric had not seen: by them one is taken. They are infinite where there are too
    few rows, or no time.
    """

    iterations: Integers
    after: Integers
    forms: tuple[str, ...]
    exponents: Array
    bandwidths: Array
    alphas: Array
    errors: Array
    expected: Array
    best: int

    @classmethod
    def of(cls, rounds: list[Round], best: int) -> FeaturePath:
        def column(name: str) -> Array:
            return np.array([getattr(each, name) for each in rounds], dtype=float)

        return cls(
            np.array([each.iteration for each in rounds]),
            np.array([each.after for each in rounds]),
            tuple(each.form for each in rounds),
            column("exponent"),
            column("bandwidth"),
            column("alpha"),
            column("error"),
            column("expected"),
            best,
        )

    @property
    def judged(self) -> Array:
        """The errors by which a round is taken."""
        return judged(self.expected, self.errors)


def judged(expected: Array, errors: Array) -> Array:
    """Errors to be expected, or where no round has any, of leaving one out."""
    return expected if np.isfinite(expected).any() else errors


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
        points = [*others, *grid]
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
            found.append(min(points, key=self.error))
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


class HeldOut(NamedTuple):
    """A chain of rounds on each fold: metrics and coefficients now, and by how much leaving one out flatters.

    `flattery` is the error of rows held out over that of leaving one out; 1 where that is less by chance.
    """

    roots: list[Array]
    coefs: list[Array]
    flattery: float


def held_out(sample: Sample, roots: list[Array], at: Point) -> HeldOut | None:
    """The ridge on the rows of each fold under their own metric; None where one has none, or no time."""
    bandwidth, alpha = at.values
    coefs = []
    unseen = seen = 0.0
    for fold, root in zip(sample.folds, roots, strict=True):
        if sample.late():
            return None
        K = sample.gram(matmul(sample.X, root), bandwidth)
        among = K[np.ix_(fold.learned, fold.learned)]
        weight = sample.weight[fold.learned]
        found = left_out(among, sample.Y[fold.learned], weight, alpha, sample.intercept)
        if found is None:
            return None
        said = matmul(K[np.ix_(fold.judged, fold.learned)], found.coef) + found.intercept
        errors = (sample.Y[fold.judged] - said) ** 2
        unseen += float((sample.weight[fold.judged] @ errors).mean())
        seen += found.error * float(weight.sum())
        coefs.append(found.coef)
    # a row is held out once, and learned from in all the other folds
    flattery = unseen * (FOLDS - 1) / seen if seen > 0 else np.inf
    return HeldOut(roots, coefs, max(flattery, 1.0)) if coefs and np.isfinite(flattery) else None


@dataclass(eq=False)
class Chain:
    """Rounds with one form and exponent: where it is now, its place in the path, and its folds."""

    form: str
    exponent: float
    judge: Judge
    at: Point
    place: int = 0
    error: float = np.inf
    held: HeldOut | None = None

    @property
    def score(self) -> float:
        """The error by which it is compared: what can be expected, or without folds that of leaving out."""
        return self.expected if self.judge.sample.folds else self.error

    @property
    def expected(self) -> float:
        return np.inf if self.held is None else self.held.flattery * self.error


@dataclass(eq=False)
class Search:
    """The rounds so far, with the metric of each."""

    sample: Sample
    rank: int | None = None
    verbose: int = 0
    rounds: list[Round] = field(default_factory=list)
    roots: list[Array] = field(default_factory=list)
    fits: list[LeftOut | None] = field(default_factory=list)

    def begin(self) -> list[Chain]:
        """Round 0: the rows as they are."""
        plain = np.eye(self.sample.X.shape[1])
        judge = Judge(self.sample, plain)
        first = judge.start()
        chains = [self._first(judge, judge.descend(first))]
        if chains[0].score > UNTOLD and self.sample.bandwidth is None:
            for at in judge.narrow():
                if not self.sample.late():
                    chains.append(self._first(judge, at))
        return chains

    def _first(self, judge: Judge, at: Point) -> Chain:
        return self.keep(0, Chain("none", 1.0, judge, at), [judge.root] * len(self.sample.folds))

    def keep(
        self, iteration: int, chain: Chain, roots: list[Array] | None, last: Chain | None = None
    ) -> Chain:
        """Note a round; `roots` are its metrics on the folds, None where one of these has none."""
        chain.error = chain.judge.error(chain.at)
        if roots:
            chain.held = held_out(self.sample, roots, chain.at)
        errors = (chain.error, chain.expected)
        chain.place = len(self.rounds)
        after = chain.place if last is None else last.place
        done = Round(iteration, after, chain.form, chain.exponent, *chain.at.values, *errors)
        self.rounds.append(done)
        self.roots.append(chain.judge.root)
        self.fits.append(chain.judge.fit(chain.at))
        if self.verbose:
            say(
                f"round {iteration}, {chain.form}, exponent {chain.exponent:g}: lengthscale "
                f"{done.bandwidth:.4g}, alpha {done.alpha:.3g}, leave-one-out {np.sqrt(chain.error):.5g}, "
                f"to be expected {np.sqrt(chain.expected):.5g}"
            )
        return chain

    def next(self, last: Chain, form: str, exponent: float, iteration: int) -> Chain | None:
        """The round after `last`, with the metric of its function; None where it has none."""
        fit = last.judge.fit(last.at)
        if fit is None:
            return None
        sample = self.sample
        leaf = sample.closed(last.at.values[0])
        M = average_outer_product(leaf, last.judge.U, last.judge.root, fit.coef, sample.weight)
        root = shaped(M, form, exponent, self.rank, sample.spread)
        if root is None:
            return None
        judge = Judge(sample, root)
        chain = Chain(form, exponent, judge, judge.descend(judge.start(last.at)))
        return self.keep(iteration, chain, self._of_folds(last, leaf, form, exponent), last)

    def _of_folds(self, last: Chain, leaf: Radial, form: str, exponent: float) -> list[Array] | None:
        """The metric of each fold, from the function that its rows had in the last round."""
        if last.held is None:
            return None
        sample = self.sample
        found = []
        for fold, root, coef in zip(sample.folds, last.held.roots, last.held.coefs, strict=True):
            if sample.late():
                return None
            U = matmul(sample.X[fold.learned], root)
            M = average_outer_product(leaf, U, root, coef, sample.weight[fold.learned])
            shape = shaped(M, form, exponent, self.rank, sample.spread)
            if shape is None:
                return None
            found.append(shape)
        return found

    def best(self) -> int:
        expected = np.array([done.expected for done in self.rounds])
        return int(np.argmin(judged(expected, np.array([done.error for done in self.rounds]))))

    @property
    def judged_error(self) -> float:
        """What is to be expected of the round that is taken."""
        return float(self.path().judged[self.best()])

    def path(self) -> FeaturePath:
        return FeaturePath.of(self.rounds, self.best())


def search(
    sample: Sample,
    forms: tuple[str, ...],
    exponents: tuple[float, ...],
    *,
    updates: int,
    rank: int | None = None,
    verbose: int = 0,
) -> tuple[Search, Status]:
    """All rounds of all chains, or those for which there was time; and how it ended."""
    found = Search(sample, rank, verbose)
    with Anytime[Search]() as run:
        starts = [chain for chain in found.begin() if np.isfinite(chain.error)]
        run.best = found
        chains = [(form, exponent, first) for form in forms for exponent in exponents for first in starts]
        for iteration in range(1, updates + 1):
            after: list[Chain] = []
            for form, exponent, last in chains:
                if sample.late():
                    break
                done = found.next(last, form, exponent, iteration)
                if done is not None and (iteration == 1 or done.score < last.score * (1.0 - WORTH_A_STEP)):
                    after.append(done)
            if iteration == 1:
                after = [min(_of_form(after, form), key=_score) for form in forms if _of_form(after, form)]
            chains = [(chain.form, chain.exponent, chain) for chain in after]
        if not sample.late():
            run.status = Status.CONVERGED
    return found, run.status


def _of_form(chains: list[Chain], form: str) -> list[Chain]:
    return [chain for chain in chains if chain.form == form]


def _score(chain: Chain) -> float:
    return chain.score
