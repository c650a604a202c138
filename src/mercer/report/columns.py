"""Which columns matter, three ways that answer different questions.

    lengthscales   how far apart two values of a column must be before one term calls their rows unlike
    likeness       how alike the kernel finds two rows that differ in this column alone: 1 if it cannot tell
    left out       how the error on rows not seen changes if the column has the same value in every row

The last is what people usually ask for. The kernel's numbers are kept, so that a column that repeats another
costs little to leave out; nothing is tuned again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from mercer import clock
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.frames import is_missing
from mercer.kernels import Kernel
from mercer.kernels.rules.views import On
from mercer.kernels.terms import latent_diag, split_noise
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.recipe.explain import typical_value
from mercer.recipe.kept import Sample
from mercer.scales import IDENTITY, Scale
from mercer.typing import Array, Labels

# Rows of numbers on which columns are left out, and rows × rows × classes of classes.
MOST_ROWS = 1500
LARGEST = 2e6
FOLDS = 3
# Seconds that leaving columns out may take.
SECONDS = 30.0
# Rows that tell how many the seconds are enough for, and the share of the seconds left that columns may have.
TRIED_ROWS = 200
SHARE_FOR_COLUMNS = 0.5
# Pairs of rows that likeness is a mean over.
PAIRS = 100
TOLERANCE = 1e-6


# ── what the kernel says ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Lengthscale:
    """That of a column in one part of the kernel; `shared` if other columns of the part have it too."""

    column: str
    part: str
    value: float
    shared: bool


def lengthscales(kernel: Kernel) -> list[Lengthscale]:
    """The lengthscales of named columns, in the order of the kernel's text.

    >>> from mercer import RBF
    >>> for each in lengthscales(RBF([2.0, 3.0]).on("a", "b") + RBF(5.0).on("a", "b")): print(each)
    Lengthscale(column='a', part='RBF', value=2.0, shared=False)
    Lengthscale(column='b', part='RBF', value=3.0, shared=False)
    Lengthscale(column='a', part='RBF', value=5.0, shared=True)
    Lengthscale(column='b', part='RBF', value=5.0, shared=True)
    """
    found = []
    for view in kernel.walk_named(lambda part: not isinstance(part, On)):
        part = view[1]
        if not isinstance(part, On) or not all(isinstance(c, str) for c in part.columns):
            continue
        columns = [str(c) for c in part.columns]
        for leaf in part.walk():
            values = [p.value for p in leaf.parameters if p.name.split("[")[0] == "lengthscale"]
            if len(values) == len(columns):
                pairs = zip(columns, values, strict=True)
                found += [Lengthscale(c, type(leaf).__name__, float(v), False) for c, v in pairs]
            elif len(values) == 1:
                found += [Lengthscale(c, type(leaf).__name__, float(values[0]), True) for c in columns]
    return found


def likeness_alone(kernel: Kernel, sample: Sample, column: str, seed: int = 0) -> float:
    """How alike the kernel finds two rows that differ in one column alone, as a mean over drawn pairs.

    The second row has the column's value of another row, and everything else of the first; the likeness is
    k(x, z) / √(k(x, x) k(z, z)), without noise.
    """
    latent, _ = split_noise(kernel)
    assert latent is not None
    some = sample.some(PAIRS, seed)
    order = np.random.default_rng(seed).permutation(len(some))
    other = some.with_other(column, order)
    products = np.diagonal(latent(some.rows, other))
    sizes = latent_diag(latent, some.rows) * latent_diag(latent, other)
    return float(np.mean(products / np.sqrt(np.maximum(sizes, 1e-300))))


# ── what is lost without a column ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Without:
    """The error if a column has the same value in every row, and how much the loss of a row rises.

    `rise` is the mean over rows of the loss without the column less that with all columns, as a share of the
    latter, and `uncertainty` its standard error. The loss is the squared error of numbers, and the logarithm
    of the probability of the true class, with a minus, of classes.
    """

    column: str
    error: float
    rise: float
    uncertainty: float


@dataclass(frozen=True)
class LeftOut:
    """What leaving out each column did; `error` is that with all of them.

    For columns in `late` there was no time, and with those in `failed` the process could not be fitted.
    """

    measure: str
    how: str
    error: float
    columns: tuple[Without, ...]
    late: tuple[str, ...]
    failed: tuple[str, ...]


def leave_out_columns(
    kernel: Kernel,
    sample: Sample,
    columns: Sequence[str],
    *,
    task: str,
    seed: int = 0,
    seconds: float = SECONDS,
    scale: Scale = IDENTITY,
) -> LeftOut:
    """The error on rows not seen, with all columns, and with each of them the same in every row.

    Of numbers the kernel has the noise as a `White` term, and `scale` is that on which they are normal. After
    `seconds` no other column is begun. Where the clock has a limit, there are as many rows as let all columns
    be tried within a share of what is left.
    """
    assert sample.targets is not None
    most = MOST_ROWS
    if task == "classes":
        most = int((LARGEST / len(np.unique(sample.targets))) ** 0.5)
    if clock.limited():
        few = sample.some(TRIED_ROWS, seed)
        began = clock.now()
        _losses(_judge(few, task, scale, seed), kernel, few.rows)
        most = min(most, affordable_rows(len(few), clock.now() - began, len(columns) + 1))
    some = sample.some(most, seed)
    judge = _judge(some, task, scale, seed)
    began = clock.now()
    losses = _losses(judge, kernel, some.rows)
    took = clock.now() - began
    found = []
    late = []
    failed = []
    for column in columns:
        if clock.short_of(took) or clock.now() - began > seconds:
            late.append(column)
            continue
        try:
            rows = some.with_constant(column, typical_row(some.column(column)))
            without = _losses(judge, kernel, rows)
        except MercerError:
            failed.append(column)
            continue
        found.append(_compared(judge, column, losses, without))
    found.sort(key=lambda each: -each.rise)
    how = f"{judge.how}, on {some.words}"
    return LeftOut(judge.measure, how, judge.error(losses), tuple(found), tuple(late), tuple(failed))


def _losses(judge: _Numbers | _Classes, kernel: Kernel, rows: Rows) -> Array:
    """What each row loses; the seconds keep a process from being begun, and do not cut it short."""
    with clock.ending(math.inf):
        return judge.losses(kernel(rows))


def affordable_rows(tried: int, took: float, times: int) -> int:
    """On how many rows something can be done so often in a share of the seconds left; as many as were tried.

    What so many rows took grows with their cube, as a factor does.

    >>> with clock.within(1000.0):
    ...     affordable_rows(100, 0.5, 125), affordable_rows(100, 0.5, 1000000)
    (200, 100)
    """
    left = clock.left()
    assert left is not None
    each = SHARE_FOR_COLUMNS * left / times
    return int(tried * max(round(each / max(took, 1e-9), 6), 1.0) ** (1 / 3))


def typical_row(cells: np.ndarray) -> int:
    """A row with the most frequent value of a column, or of numbers that one nearest to the median."""
    typical = typical_value(cells)
    if typical is None:
        return 0
    if isinstance(typical, float):
        known = [i for i, value in enumerate(cells.tolist()) if not is_missing(value)]
        return min(known, key=lambda i: abs(float(cells[i]) - typical))
    return int(cells.tolist().index(typical))


def _compared(judge: _Numbers | _Classes, column: str, losses: Array, without: Array) -> Without:
    rises = (without - losses) / float(losses.mean())
    uncertainty = float(rises.std(ddof=1) / np.sqrt(len(rises)))
    return Without(column, judge.error(without), float(rises.mean()), uncertainty)


def _judge(some: Sample, task: str, scale: Scale, seed: int) -> _Numbers | _Classes:
    """Who says what the rows lose."""
    assert some.targets is not None
    if task == "numbers":
        return _Numbers(some.targets, scale)
    return _Classes(some.targets, seed)


class _Numbers:
    """Squared errors of a process given all other rows."""

    measure = "rmse"
    how = "Leave-one-out in closed form by a Gaussian process"

    def __init__(self, y: Labels, scale: Scale) -> None:
        self.y: Array = np.asarray(y, dtype=np.float64)
        self.scale = scale

    def losses(self, K: Array) -> Array:
        process = GaussianProcessRegressor("precomputed", normalize_y=True, optimizer=None, singular="add")
        process.fit(K, self.scale.forward(self.y))
        mean, std = process.loo(return_std=True)
        squares: Array = (self.y - self.scale.mean(mean, std)) ** 2
        return squares

    def error(self, losses: Array) -> float:
        return float(np.sqrt(losses.mean()))


class _Classes:
    """Logarithmic losses of a process of classes, each row from folds that it is not in."""

    measure = "log_loss"

    def __init__(self, y: Labels, seed: int) -> None:
        self.classes, self.codes = np.unique(y, return_inverse=True)
        self.y = y
        self.seed = seed
        folds = int(min(FOLDS, np.bincount(self.codes).min()))
        if folds < 2:
            raise MercerError("a class has a single row among those drawn")
        self.how = f"{folds} folds of a Gaussian process"
        split = StratifiedKFold(folds, shuffle=True, random_state=seed)
        self.folds = list(split.split(np.zeros(len(y)), y))

    def losses(self, K: Array) -> Array:
        out = np.zeros(len(self.y))
        for learn, judge in self.folds:
            process = GaussianProcessClassifier(
                "precomputed", optimizer=None, tol=TOLERANCE, random_state=self.seed
            )
            process.fit(K[np.ix_(learn, learn)], self.y[learn])
            said = process.predict_proba(K[np.ix_(judge, learn)], diag=K[judge, judge])
            out[judge] = -np.log(np.maximum(said[np.arange(len(judge)), self.codes[judge]], 1e-300))
        return out

    def error(self, losses: Array) -> float:
        return float(losses.mean())
