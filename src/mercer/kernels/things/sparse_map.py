"""The features of some rows as a sparse matrix with names, where a kernel is their inner product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np
from scipy import sparse

from mercer.arrays import Rows
from mercer.kernels.things.placed import Placed, placed_together
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Table


class Names(Sequence[str]):
    """The names of many features, each written when it is asked for.

    A map is kept in models and pickled with them, so `name` is no local function.

    >>> Names(3, "abc".__getitem__)[:2]
    ['a', 'b']
    """

    def __init__(self, count: int, name: Callable[[int], str]) -> None:
        self._count = count
        self._name = name

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self._name(j) for j in range(*i.indices(self._count))]
        if not -self._count <= i < self._count:
            raise IndexError(f"feature {i} of {self._count}")
        return self._name(i % self._count)


def nowhere(rows: Rows) -> None:
    """What a map says of the places of features, if it knows none."""


@dataclass(frozen=True, eq=False, repr=False)
class SparseMap:
    """φ with φ(x)·φ(z) = k(x, z), on the features that the rows it was made from have.

    `matrix` holds φ of those rows; calling it gives φ of other rows, in which features that those rows did
    not have are left out. A product with a row of `matrix` is then still exact. `names` says what each
    feature is, and `placed` where other things have them, a `Placed` for each, or None where a feature is in
    no place.

    >>> from mercer import Spectrum
    >>> phi = Spectrum(2).features_of(["abab", "bc"])
    >>> print(phi)
    φ with 3 features (ab, ba, bc)
    >>> phi(["cabc"]).toarray()                        # ca is not among them
    array([[1., 0., 1.]])
    """

    names: Sequence[str]
    matrix: Matrix
    of_rows: Callable[[Rows], Matrix]
    placed: Callable[[Rows], list[Placed] | None] = nowhere

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.matrix.shape[1])

    def __call__(self, X: Table | Rows) -> Matrix:
        return self.of_rows(Rows.of(X, "X"))

    def without_rows(self) -> SparseMap:
        """The same map without φ of the rows that it was made from: what a model keeps."""
        return SparseMap(self.names, self.matrix[:0], self.of_rows, self.placed)

    # ── maps of kernels made from others ────────────────────────────────────────────────────────────────────

    def scaled(self, factor: float) -> SparseMap:
        """The map of factor² k."""
        return SparseMap(
            self.names,
            factor * self.matrix,
            partial(_times, self.of_rows, factor),
            partial(_placed_times, self.placed, factor),
        )

    def divided(self, norms: Callable[[Rows], Array], here: Array) -> SparseMap:
        """The map of k(x, z) / (norm(x) norm(z)); `here` are the norms of the rows it was made from."""
        return SparseMap(
            self.names,
            _quotient(self.matrix, here),
            partial(_over, self.of_rows, norms),
            partial(_placed_over, self.placed, norms),
        )

    def seen_through(self, view: Callable[[Rows], Rows], prefix: str) -> SparseMap:
        """The same map of what a view makes of the rows; places in a view are no places in the thing."""
        names = Names(len(self.names), partial(_with_prefix, self.names, prefix))
        return SparseMap(names, self.matrix, partial(_after, self.of_rows, view))

    def __str__(self) -> str:
        shown = ", ".join(self.names[:6])
        if self.dimension > 6:
            shown += ", …"
        return f"φ with {self.dimension:,} features ({shown})"

    __repr__ = __str__


def side_by_side(maps: Sequence[SparseMap]) -> SparseMap:
    """The map of a sum: the features of all its terms."""
    sizes = [part.dimension for part in maps]
    names = Names(sum(sizes), partial(_name_among, [part.names for part in maps], np.cumsum(sizes)))
    return SparseMap(
        names,
        sparse.csr_array(sparse.hstack([part.matrix for part in maps])),
        partial(_hstacked, [part.of_rows for part in maps]),
        partial(_placed_beside, [(part.of_rows, part.placed) for part in maps]),
    )


# ── the steps of maps: functions with names, so that a model with a map can be pickled ──────────────────────

OfRows = Callable[[Rows], Matrix]
OfPlaces = Callable[[Rows], list[Placed] | None]


def _times(of_rows: OfRows, factor: float, rows: Rows) -> Matrix:
    return factor * of_rows(rows)


def _over(of_rows: OfRows, norms: Callable[[Rows], Array], rows: Rows) -> Matrix:
    return _quotient(of_rows(rows), norms(rows))


def _quotient(A: Matrix, norm: Array) -> Matrix:
    return sparse.csr_array(A.multiply(_inverse(norm)[:, None]))


def _inverse(norm: Array) -> Array:
    """1 / norm, and 0 for a thing without features."""
    return np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)


def _placed_times(placed: OfPlaces, factor: float, rows: Rows) -> list[Placed] | None:
    found = placed(rows)
    return None if found is None else [thing.scaled(factor) for thing in found]


def _placed_over(placed: OfPlaces, norms: Callable[[Rows], Array], rows: Rows) -> list[Placed] | None:
    found = placed(rows)
    if found is None:
        return None
    factors = _inverse(norms(rows))
    return [thing.scaled(factor) for thing, factor in zip(found, factors.tolist(), strict=True)]


def _placed_beside(parts: Sequence[tuple[OfRows, OfPlaces]], rows: Rows) -> list[Placed] | None:
    """The places of a sum; a term that knows none has all of its features outside of them."""
    each: list[Sequence[Placed] | Sequence[Matrix]] = []
    for of_rows, placed in parts:
        found = placed(rows)
        if found is not None:
            each.append(found)
            continue
        matrix = of_rows(rows)
        each.append([matrix[[i]] for i in range(len(rows))])
    if not any(isinstance(part, Placed) for column in each for part in column):
        return None
    return [placed_together(thing) for thing in zip(*each, strict=True)]


def _after(of_rows: OfRows, view: Callable[[Rows], Rows], rows: Rows) -> Matrix:
    return of_rows(view(rows))


def _hstacked(parts: Sequence[OfRows], rows: Rows) -> Matrix:
    return sparse.csr_array(sparse.hstack([of_rows(rows) for of_rows in parts]))


def _with_prefix(names: Sequence[str], prefix: str, i: int) -> str:
    return f"{prefix}{names[i]}"


def _name_among(names: Sequence[Sequence[str]], ends: Integers, i: int) -> str:
    """The name of feature i of several lists, one after the other."""
    which = int(np.searchsorted(ends, i, side="right"))
    start = int(ends[which - 1]) if which else 0
    return names[which][i - start]
