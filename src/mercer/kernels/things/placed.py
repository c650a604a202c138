"""Where in a thing its features are: in which letters of a string, in which nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer.errors import ParameterError
from mercer.sparse import Matrix


@dataclass(frozen=True, eq=False)
class Placed:
    """φ of one thing, shared out among its places.

    thing   as the kernel reads it: a string, a tuple of symbols, a graph
    names   what each place is called
    matrix  what each place has of each feature, places × features
    rest    what no place has, such as the feature of a constant: one row

    The sum of all rows of `matrix` and of `rest` is φ(thing).
    """

    thing: object
    names: Sequence[str]
    matrix: Matrix
    rest: Matrix

    def scaled(self, factor: float) -> Placed:
        """The same for factor·φ."""
        return Placed(self.thing, self.names, factor * self.matrix, factor * self.rest)


def all_in_places(thing: object, names: Sequence[str], matrix: Matrix) -> Placed:
    """A thing whose features are all somewhere."""
    return Placed(thing, names, matrix, sparse.csr_array((1, matrix.shape[1])))


def placed_together(parts: Sequence[Placed | Matrix]) -> Placed:
    """The features of several maps of one thing side by side; a row is φ of a map that knows no places."""
    first, *others = [part for part in parts if isinstance(part, Placed)]
    for other in others:
        if list(other.names) != list(first.names):
            raise ParameterError(
                f"one term of the kernel finds {len(first.names)} places in a thing and another one "
                f"{len(other.names)}, or calls them otherwise. Ask for the contributions to each by itself."
            )
    places = len(first.names)
    inside = []
    outside = []
    for part in parts:
        if isinstance(part, Placed):
            inside.append(part.matrix)
            outside.append(part.rest)
        else:
            inside.append(sparse.csr_array((places, part.shape[1])))
            outside.append(part)
    return Placed(
        first.thing,
        first.names,
        sparse.csr_array(sparse.hstack(inside)),
        sparse.csr_array(sparse.hstack(outside)),
    )


def gathered(entries: Sequence[tuple[int, int, float]], places: int, width: int) -> Matrix:
    """A matrix of places × features from (place, feature, amount), of which one may come several times.

    >>> gathered([(0, 1, 0.5), (0, 1, 0.5), (1, 0, 2.0)], 2, 3).toarray()
    array([[0., 1., 0.],
           [2., 0., 0.]])
    """
    table = np.array(entries, dtype=np.float64).reshape(-1, 3)
    where = table[:, 0].astype(np.intp)
    feature = table[:, 1].astype(np.intp)
    return sparse.csr_array(sparse.coo_array((table[:, 2], (where, feature)), shape=(places, width)))
