"""Columns that seem to give the answer away: known only after the fact, or the target in other words.

    alone     what one column by itself says of the target, row by row from the other rows with the same value
              (or in the same tenth of its numbers): nearly everything is more than honest columns do
    known     whether a value is there at all: a column filled in for one class only was filled in later

A finding is no proof: it is a question to who knows the table, and `leave_out` is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.arrays import Rows
from mercer.frames import without_gaps
from mercer.recipe.given import Given
from mercer.tables.roles import Role
from mercer.typing import Array, Flags, Integers, Labels
from mercer.vectors import plain_numbers

# Of what could be explained, the share from which a single column is too good.
NEARLY_ALL = 0.9
NEARLY_ALL_OF_NUMBERS = 0.98
A_STRAIGHT_LINE = 0.9999
# Rows that must be known, or missing, for a pattern to mean something.
ENOUGH = 30
TENTHS = 10
ASK = "Is it known beforehand? If not, leave it out."


def suspicions(given: Given, roles: Sequence[Role], y: Labels, task: str) -> list[str]:
    """A sentence for every column that seems to give the answer away.

    >>> import polars
    >>> table = polars.DataFrame({"size": [1.0, 2.0] * 40, "paid": ["x", None] * 40})
    >>> target = np.array(["yes", "no"] * 40)
    >>> suspicions(Given.of(table), [Role("paid", "category", "")], target, "classes")[0].split(". ")[0]
    "'paid' alone tells 100 % of what there is to tell of the target"
    """
    found = []
    rows = Rows.of(given.table, "the table")
    for role in roles:
        column = rows.take((role.column,))
        numbers = plain_numbers(column.data) if role.kind == "number" else None
        if numbers is not None:
            groups = _tenths(numbers.ravel())
            known = ~np.isnan(numbers.ravel())
        else:
            groups = _same(without_gaps(column.things))
            known = groups > 0
        share = _told(groups, y, task)
        if numbers is not None and task == "numbers":
            # that a number follows another closely is no leak; that it is the other in new units may be one
            share = _straight(numbers.ravel(), np.asarray(y, dtype=np.float64))
        least = NEARLY_ALL if task == "classes" else NEARLY_ALL_OF_NUMBERS
        if share >= least:
            told = f"{100 * share:.0f} % of what there is to tell of the target"
            found.append(f"{role.column!r} alone tells {told}. {ASK}")
        elif task == "classes":
            found += _only_of_one_class(role.column, known, y)
    return found


def _tenths(numbers: Array) -> Integers:
    """The tenth of the numbers in which each of them lies, from 1 on; 0 for what is missing."""
    edges = np.nanquantile(numbers, np.linspace(0, 1, TENTHS + 1)[1:-1])
    return np.where(np.isnan(numbers), 0, 1 + np.searchsorted(edges, np.nan_to_num(numbers)))


def _same(cells: Sequence[object]) -> Integers:
    """A number from 1 on for each different value, 0 for what is missing."""
    values = dict.fromkeys(cell for cell in cells if cell is not None)
    names = {value: number + 1 for number, value in enumerate(values)}
    return np.array([0 if cell is None else names[cell] for cell in cells])


def _told(groups: Integers, y: Labels, task: str) -> float:
    """Of what could be explained of the target, the share that the other rows of each group explain."""
    if task == "numbers":
        return _told_of_numbers(groups, np.asarray(y, dtype=np.float64))
    _, codes = np.unique(y, return_inverse=True)
    counts = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(counts, (groups, codes), 1)
    others = counts[groups]
    others[np.arange(len(y)), codes] -= 1
    # a row that is alone in its group is told nothing
    right = (np.argmax(others, axis=1) == codes) & (others.sum(axis=1) > 0)
    base = np.bincount(codes).max() / len(y)
    return float((right.mean() - base) / (1 - base))


def _straight(x: Array, y: Array) -> float:
    """1 where the target is a straight line of the column, up to rounding; else 0."""
    known = np.isfinite(x)
    x, y = x[known], y[known]
    if len(x) < ENOUGH or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    # in units of the largest, since squares of very large numbers overflow
    found = np.corrcoef(x / np.abs(x).max(), y / np.abs(y).max())[0, 1]
    return float(found**2 >= A_STRAIGHT_LINE)


def _told_of_numbers(groups: Integers, y: Array) -> float:
    size = np.bincount(groups)[groups]
    total = np.bincount(groups, weights=y)[groups]
    mean = y.mean()
    said = np.where(size > 1, (total - y) / np.maximum(size - 1, 1), mean)
    spread = float(np.sum((y - mean) ** 2))
    return 1.0 - float(np.sum((y - said) ** 2)) / spread if spread > 0 else 0.0


def _only_of_one_class(column: str, known: Flags, y: Labels) -> list[str]:
    if known.sum() < ENOUGH or (~known).sum() < ENOUGH:
        return []
    classes = np.unique(y[known])
    if len(classes) > 1 or len(np.unique(y[~known])) == 1:
        return []
    count = int(known.sum())
    return [f"{column!r} is known in {count} rows, and the target is {classes[0]!s} in all of them. {ASK}"]
