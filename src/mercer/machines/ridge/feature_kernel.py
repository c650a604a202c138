"""What a feature machine is asked for, taken apart: columns, how they are read, and radial kernels of them.

Exponential()                                  numbers, standardised (`evened`)
Exponential().of(Coded())                      a mixed table, as `Coded` reads it
Exponential().of(Coded()).on("age", "sex")     some columns of it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.arrays import Column, Rows
from mercer.errors import ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.families import Radial
from mercer.kernels.rules.readings import Read
from mercer.kernels.rules.views import On
from mercer.kernels.things.coded import Coded
from mercer.kernels.things.metric import Metric
from mercer.kernels.things.reading import Reading
from mercer.kernels.things.scaling import Standardized
from mercer.machines.shared.base import as_machine_kernel
from mercer.params import Open
from mercer.sparse import dense
from mercer.typing import Array

# What is tried where nothing is asked for: rough, once differentiable, and smooth functions.
LEAVES = ("Exponential()", "Matern(nu=1.5)", "RBF()")


class Asked(NamedTuple):
    """Columns (None for all), the map that reads them, and the radial kernels to choose from."""

    columns: tuple[Column, ...] | None
    reading: Reading
    leaves: tuple[Radial, ...]

    @classmethod
    def of(cls, kernel: object, owner: str) -> Asked:
        """Of one kernel, or of several that read the same columns in the same way."""
        listed = kernel if isinstance(kernel, list | tuple) else (kernel,)
        if not listed:
            raise ParameterError(f"{owner}: kernel has no kernel to choose from.")
        parts = [_taken_apart(each, owner) for each in listed]
        first = parts[0]
        for part in parts[1:]:
            if (part.columns, part.reading) != (first.columns, first.reading):
                raise ParameterError(
                    f"{owner}: the kernels to choose from must read the same columns in the same way; got "
                    f"{listed[0]} and {listed[parts.index(part)]}."
                )
        return cls(first.columns, first.reading, tuple(part.leaves[0] for part in parts))

    def closed_on(self, rows: Rows, weight: Array | None) -> Asked:
        """With the map closed by the rows of fit."""
        chosen = self._chosen(rows)
        reading = self.reading.resolved_on(chosen, weight)
        if isinstance(reading, Standardized) and self.reading.is_open:
            reading = evened(reading, chosen, weight)
        return self._replace(reading=reading)

    def read(self, rows: Rows) -> Array:
        """The numbers whose distances are learned."""
        found = self.reading.read(self._chosen(rows)).vectors
        return np.asarray(dense(found), dtype=np.float64)

    def kernel(self, leaf: Radial, metric: Metric) -> Kernel:
        """k(‖(x - z) R‖ / ℓ) of what is read, as one expression of the language."""
        learned = Read(Read(leaf, metric), self.reading)
        return learned if self.columns is None else On(learned, self.columns)

    def like(self, fitted: Radial) -> Radial | None:
        """Which of the kernels a fitted one is, but for its lengthscale."""
        bandwidth = {"lengthscale": fitted.lengthscale}
        return next((leaf for leaf in self.leaves if leaf.with_params(bandwidth) == fitted), None)

    def names(self, known: list[str]) -> list[str]:
        """What the numbers are called, of rows whose columns have these names."""
        own = [known[j] for j in self._places(known, len(known))]
        if not isinstance(self.reading, Coded):
            return own
        return [each.called(own) for each in self.reading.coded_columns()]

    def sources(self, known: Sequence[str] | None, inputs: int, width: int) -> list[int]:
        """The column of the rows that each of so many numbers was made of."""
        names = None if known is None else [str(name) for name in known]
        places = self._places(names, inputs)
        if isinstance(self.reading, Coded):
            return [places[each.source] for each in self.reading.coded_columns()]
        if len(places) != width:
            raise ParameterError(f"{self.reading} does not say which column each of its numbers is made of.")
        return places

    def _places(self, names: list[str] | None, inputs: int) -> list[int]:
        if self.columns is None:
            return list(range(inputs))
        return [int(j) for j in Rows(np.zeros((1, inputs)), names=names).positions(self.columns)]

    def _chosen(self, rows: Rows) -> Rows:
        return rows if self.columns is None else rows.take(self.columns)


def evened(reading: Standardized, rows: Rows, weight: Array | None) -> Standardized:
    """The two values of a column that has no more lie 2 apart, as they do where both are as frequent.

    By its deviation alone a mark that one row in a hundred has would be 10 away from those without it, and
    the distances of such rows would be those of their rare marks.

    >>> X = np.array([[0.0], [0.0], [0.0], [1.0]])
    >>> evened(Standardized().resolved_on(Rows(X), None), Rows(X), None).deviations
    (0.5,)
    """
    assert reading.means is not None and reading.deviations is not None
    X = np.asarray(dense(rows.vectors), dtype=np.float64)
    live = X if weight is None else X[weight > 0]
    low = live.min(axis=0)
    high = live.max(axis=0)
    two = (low < high) & ((live == low) | (live == high)).all(axis=0)
    found = np.where(two, (high - low) / 2, reading.deviations)
    return Standardized(reading.means, tuple(found.tolist()))


class Learned(NamedTuple):
    """A learned kernel, taken apart: what was asked for, closed, and the metric."""

    asked: Asked
    metric: Metric

    @classmethod
    def of(cls, kernel: object) -> Learned | None:
        """The parts of k.of(Metric(M)).of(reading), of some columns or of all; None of any other kernel."""
        columns = None
        if isinstance(kernel, On):
            columns = kernel.columns
            kernel = kernel.kernel
        if not isinstance(kernel, Read) or not isinstance(kernel.kernel, Read):
            return None
        leaf = kernel.kernel.kernel
        metric = kernel.kernel.reading
        if not isinstance(leaf, Radial) or not isinstance(metric, Metric):
            return None
        return cls(Asked(columns, kernel.reading, (leaf,)), metric)

    @property
    def leaf(self) -> Radial:
        return self.asked.leaves[0]


class Direction(NamedTuple):
    """A direction along which the function changes: its share of the metric, and its columns by weight."""

    share: float
    weights: dict[str, float]

    def __str__(self) -> str:
        shown = [(name, v) for name, v in self.weights.items() if abs(v) >= 0.1][:6]
        words = "".join(f" {'+' if v >= 0 else '-'} {abs(v):.2f} {name}" for name, v in shown)
        return f"{100 * self.share:.1f} %: {words.strip().removeprefix('+ ')}"

    @classmethod
    def all_of(cls, M: Array, names: Sequence[str], most: int) -> list[Direction]:
        """The eigenvectors of a metric, those of the largest share first; the largest entry is positive."""
        values, vectors = np.linalg.eigh(M)
        total = float(values.sum()) or 1.0
        out: list[Direction] = []
        for j in np.argsort(-values, kind="stable")[:most]:
            v = vectors[:, j] * np.sign(vectors[np.argmax(np.abs(vectors[:, j])), j])
            order = np.argsort(-np.abs(v), kind="stable")
            out.append(cls(float(values[j]) / total, {names[i]: float(v[i]) for i in order}))
        return out


def metric_of(root: Array, form: str) -> Metric:
    """The metric as the language writes it: diagonal, by a factor of low rank, or as a matrix."""
    if root.shape[0] == root.shape[1]:
        if form != "full":
            return Metric(tuple((np.diagonal(root) ** 2).tolist()))
        M = root @ root.T
        return Metric(((M + M.T) / 2).tolist())
    return Metric(factor=root.tolist())


def given_bandwidth(leaf: Radial) -> float | None:
    """The lengthscale that was given; None to find it."""
    value = leaf.lengthscale
    return None if isinstance(value, Open) else float(value)  # type: ignore[arg-type]


def _taken_apart(kernel: object, owner: str) -> Asked:
    found = as_machine_kernel(kernel)  # type: ignore[arg-type]
    columns = None
    reading: Reading = Standardized()
    leaf = found
    if isinstance(leaf, On):
        columns = leaf.columns
        leaf = leaf.kernel
    if isinstance(leaf, Read):
        reading = leaf.reading
        leaf = leaf.kernel
    if not isinstance(leaf, Radial) or isinstance(leaf.lengthscale, tuple):
        raise ParameterError(
            f"{owner}: kernel must be one radial kernel with one lengthscale, such as 'Exponential()', "
            f"'RBF()' or 'Matern(nu=1.5)', of all columns or of what one map makes of them, as in "
            f"'RBF().of(Coded())', since the metric of its distances is learned; got {kernel!r}."
        )
    return Asked(columns, reading, (leaf,))
