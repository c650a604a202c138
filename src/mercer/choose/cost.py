"""On how many rows to tune, by what the search is predicted to cost."""

from __future__ import annotations

# operations that a search may take: about a minute of one core
OPERATIONS = 1.2e12
# operations of a second, where the seconds are limited; half of them are for the search
A_SECOND = 2e10
# one entry of K takes as many as there are columns, and these
ENTRY = 20
# one entry of K between things that are no vectors
ENTRY_OF_THINGS = 300
# what a search is expected to make: cross-validated trials, or evaluations of a gradient on the most rows
TRIALS = 20
EVALUATIONS = 8
# passes over K in one fit of a margin machine
PASSES = 10
# rows that are always used
LEAST = 400


def operations(n: int, by: str, columns: int | None, folds: int, *, margin: bool) -> float:
    """What a search on n rows costs; `columns` is None for things that are no vectors.

    >>> bool(operations(2000, "loo", 10, 5, margin=False) > 7 * operations(1000, "loo", 10, 5, margin=False))
    True
    """
    entry = ENTRY_OF_THINGS if columns is None else ENTRY + columns
    if by != "cv":
        return EVALUATIONS * (4.0 * n**3 + 2.0 * n**2 * entry)
    if margin:
        return TRIALS * folds * PASSES * float(n) ** 2 * entry
    return TRIALS * folds * (n**3 / 3 + float(n) ** 2 * entry)


def affordable_rows(
    by: str, columns: int | None, folds: int, max_seconds: float | None, *, margin: bool
) -> int:
    """The most rows, in steps of a tenth, for which a search is predicted to end in time.

    >>> affordable_rows("cv", 10, 5, None, margin=True), affordable_rows("loo", 10, 5, None, margin=False)
    (6284, 3227)
    """
    most = OPERATIONS
    if max_seconds is not None:
        most = min(most, 0.5 * max_seconds * A_SECOND)
    n = LEAST
    while operations(int(1.1 * n), by, columns, folds, margin=margin) <= most:
        n = int(1.1 * n)
    return n
