"""Which rows are left out: some of them once, or each of them once in folds."""

from __future__ import annotations

import numpy as np

from mercer.errors import InputError
from mercer.machines.shared.base import generator
from mercer.typing import Integers, Labels, Seed


def shuffled(n: int, seed: Seed, labels: Labels | None) -> Integers:
    """All rows in random order; with labels, those of each class together."""
    order = generator(seed).permutation(n)
    if labels is None:
        return order
    return order[np.argsort(labels[order], kind="stable")]


def kept_out(n: int, share: float, seed: Seed, labels: Labels | None) -> Integers:
    """Which rows are kept out of the fit: this share of them, at least one, and of each class its share.

    A class with a single row keeps it in the fit.
    """
    if n < 2:
        raise InputError(
            f"split needs 2 rows at least, to fit by one and to calibrate by another; got {n} sample."
        )
    if labels is None:
        count = min(max(1, round(share * n)), n - 1)
        return np.sort(shuffled(n, seed, None)[:count])
    order = shuffled(n, seed, labels)
    out = []
    for label in np.unique(labels):
        members = order[labels[order] == label]
        out.append(members[: min(max(1, round(share * len(members))), len(members) - 1)])
    found = np.sort(np.concatenate(out))
    if not len(found):
        raise InputError(
            "every class has a single row (n_samples too small): there is nothing to calibrate by."
        )
    return found


def fold_of_each(n: int, folds: int, seed: Seed, labels: Labels | None) -> Integers:
    """The fold of each row, of sizes as even as can be; with labels each class is dealt out in turn.

    >>> np.bincount(fold_of_each(7, 3, 0, None)).tolist()
    [3, 2, 2]
    """
    if n < 2:
        raise InputError(f"leaving rows out in turn needs 2 rows at least; got {n} sample.")
    out = np.empty(n, dtype=np.intp)
    out[shuffled(n, seed, labels)] = np.arange(n) % min(folds, n)
    return out
