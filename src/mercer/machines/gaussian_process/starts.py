"""Where the search for hyperparameters begins: at the scales of the data.

A kernel that leaves a lengthscale open is one for standardised data: its columns weigh alike, and the
targets are taken about their mean, in units of their deviation. It starts from several lengthscales, on few
rows first where there are many. A kernel given with its numbers starts from these; where they are far from
the scales of the data it has a second start, with the same ratios, at these scales.
"""

from __future__ import annotations

import numpy as np

from mercer import clock
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.kernels.algebra import Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.closing import column_deviations
from mercer.kernels.leaves.families import Radial
from mercer.machines.gaussian_process.tune import Objective, Start
from mercer.typing import Array, Integers

CHEAP = 500  # rows on which a search costs little: several starts
MIDDLE = 2000  # rows up to which a search is cheap; on more it goes on from what fewer rows have told
FAR = 3.0  # a factor between the kernel's numbers and the scales of the data that is worth a second start
FAR_LENGTH = 10.0  # the same of lengthscales, which are on purpose longer or shorter than the data are wide
NOISY = 0.01  # of the variance of y: noise that a start should have at least once
PER_COLUMN = 10  # rows for each column, at least, before every column gets a lengthscale of its own
LENGTHS = (1.0, 1 / 4, 4.0)  # first lengthscales, in units of that of the data's spread


def open_starts(kernel: Kernel) -> list[Start]:
    """Several lengthscales around those of the data, all in the same ratios."""
    free = [p for p in kernel.parameters if p.free]
    length = np.array([p.name.split("[")[0].endswith("lengthscale") and p.bounds is None for p in free])
    names = ("the scales of the data", "short lengthscales", "long lengthscales")
    return [Start(kernel.theta + length * np.log(f), name) for f, name in zip(LENGTHS, names, strict=True)]


def row_ladder(n: int) -> list[int]:
    """How many rows are searched on, one after the other: few, then all; of many also a half, a quarter, …

    >>> row_ladder(300), row_ladder(900), row_ladder(3000), row_ladder(20_000)
    ([300], [500, 900], [500, 750, 1500, 3000], [500, 625, 1250, 2500, 5000, 10000, 20000])
    """
    if n <= CHEAP:
        return [n]
    rungs = [n]
    if n > MIDDLE:
        while rungs[0] // 2 > CHEAP:
            rungs.insert(0, rungs[0] // 2)
    return [CHEAP, *rungs]


def some_rows(n: int, count: int) -> Integers:
    """`count` of n rows, the same for the same n, in their order."""
    return np.sort(np.random.default_rng(n).permutation(n)[:count])


# ── a kernel given with its numbers ─────────────────────────────────────────────────────────────────────────


def scaled_starts(kernel: Kernel, rows: Rows, Y: Array, noise: Array | float) -> list[Start]:
    """The kernel as given; at the scales of the data, if those are far from it.

    And there with more noise, if it has little.

    Little noise makes a rugged evidence, whose next hill may be "all is noise"; from much noise the terms
    settle one after the other.

    >>> from mercer import RBF, White
    >>> rows, Y = Rows.of([[0.0], [200.0]]), np.array([[20.0], [20.0]])
    >>> kernel = 1.0 * RBF(1.0) + White(1.0)                    # noise is half of it already
    >>> given, moved = scaled_starts(kernel, rows, Y, 0.0)
    >>> np.exp(moved.theta).round(1).tolist()
    [200.0, 70.7, 200.0]
    """
    given = Start(kernel.theta, "the kernel as given")
    try:
        shift = _to_targets(kernel, rows, Y, noise)
        stretch = _to_columns(kernel, rows)
    except (MercerError, TypeError):
        return [given]  # rows that are no vectors: nothing to compare lengthscales with
    if np.abs(stretch).max(initial=0.0) > np.log(FAR_LENGTH):
        shift = shift + stretch
    starts = [given]
    if np.abs(shift).max(initial=0.0) > np.log(FAR):
        starts.append(Start(kernel.theta + shift, "the scales of the data"))
    own_noise = np.array([p.name.endswith("noise") for p in kernel.parameters if p.free]) & (
        _movable(kernel, heights(kernel)) > 0
    )
    about = float(np.mean((Y - Y.mean(axis=0)) ** 2))
    if own_noise.any() and about > 0:
        noisy = kernel.theta + shift
        noisy[own_noise] = np.maximum(noisy[own_noise], np.log(NOISY * about / own_noise.sum()))
        if np.abs(noisy - kernel.theta - shift).max() > np.log(FAR):
            starts.append(Start(noisy, "the scales of the data with more noise"))
    return starts


def _to_targets(kernel: Kernel, rows: Rows, Y: Array, noise: Array | float) -> Array:
    """What makes the prior variance the mean square of the targets.

    It is one number, added to the logarithms of all heights.
    """
    prior = float(np.mean(kernel.diagonal(rows)))
    wanted = float(np.mean(Y**2)) - float(np.mean(noise))
    movable = _movable(kernel, heights(kernel))
    if not (prior > 0 and wanted > 0 and np.isfinite(prior) and np.isfinite(wanted)):
        return 0.0 * movable
    return np.asarray(movable * np.log(wanted / prior))


def _to_columns(kernel: Kernel, rows: Rows) -> Array:
    """What makes the geometric mean of the lengthscales √(d/2) times the deviation of the columns.

    Ratios stay.

    Lists of lengthscales are moved column by column.
    """
    leaves = radial_leaves(kernel)
    out = np.zeros(len(kernel.theta))
    if not leaves or not isinstance(rows.vectors, np.ndarray):
        return out
    X = np.asarray(rows.vectors, dtype=np.float64)
    spread = column_deviations(X)
    if not spread.any():
        return out
    whole = np.sqrt(np.mean(spread**2))
    wanted = np.log(np.where(spread > 0, spread, whole) * np.sqrt(0.5 * X.shape[1]))
    present = [np.log(np.broadcast_to(np.asarray(k.lengthscale, float), len(wanted))) for _, k in leaves]
    by_column = wanted - np.mean(present, axis=0)
    for prefix, leaf in leaves:
        for j, shift in enumerate(by_column):
            out += shift * _movable(kernel, {f"{prefix}lengthscale[{j}]"})
        if not isinstance(leaf.lengthscale, tuple):
            middle = np.log(whole * np.sqrt(0.5 * X.shape[1])) - np.mean(present)
            out += middle * _movable(kernel, {f"{prefix}lengthscale"})
    return out


def _movable(kernel: Kernel, names: set[str]) -> Array:
    """1 for the free parameters of these names that have no bounds, else 0."""
    return np.array([float(p.name in names and p.bounds is None) for p in kernel.parameters if p.free])


def heights(kernel: Kernel, prefix: str = "") -> set[str]:
    """The names of the parameters that carry the unit of y², one for each term of a sum.

    >>> from mercer import parse
    >>> sorted(heights(parse("2.0*RBF(1.0)*Periodic(1.0, 1.0) + White(0.1) + Linear()")))
    ['k1__scale', 'k2__noise']
    """
    own = kernel.factor_name
    if own is not None and any(p.name == own and p.free for p in kernel.parameters):
        return {prefix + own}
    inner = [heights(child, f"{prefix}{name}__") for name, child in kernel.children()]
    if isinstance(kernel, Sum):
        return set().union(*inner)
    if isinstance(kernel, Scaled | Product):
        return next((found for found in inner if found), set())
    return set()


def radial_leaves(kernel: Kernel) -> list[tuple[str, Radial]]:
    """The radial leaves that see the columns as they are, each with where it stands."""
    seen = kernel.walk_named(into=lambda part: isinstance(part, Sum | Product | Scaled))
    return [(prefix, part) for prefix, part in seen if isinstance(part, Radial)]


def worth_running(starts: list[Start], objective: Objective, cheap: bool) -> list[Start]:
    """All starts where searches cost little; else those that are no worse than the first before any step."""
    if cheap or len(starts) < 2:
        return starts
    values: list[float] = []
    seconds = 0.0
    for start in starts:
        begun = clock.now()
        try:
            values.append(-np.inf if clock.short_of(seconds) else objective(start.theta)[0])
        except (MercerError, clock.OutOfTime):
            values.append(-np.inf)
        seconds = max(seconds, clock.now() - begun)
    return [s for i, (s, v) in enumerate(zip(starts, values, strict=True)) if i == 0 or v > values[0]]
