"""What each letter of a string, or each node of a graph, contributes to what a machine says of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputTypeError, ParameterError
from mercer.kernels.base import Kernel
from mercer.theory.feature_weights import FeatureWeights, feature_weights
from mercer.typing import Array, Table

# Places that are printed.
PRINTED = 10


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """f(x) of one thing as a sum over its places: letters, or nodes.

    names   what each place is called: a letter, or the label of a node
    values  what each place contributes, places × functions
    rest    what no place contributes, such as the feature of a constant; one number for each function
    offset  the intercept of each function
    thing   as the kernel read it: a string, a tuple of symbols, or a `Graph`

    The sum of `values`, `rest` and `offset` is f(x).
    """

    thing: object
    names: tuple[str, ...]
    values: Array
    rest: Array
    offset: Array
    titles: tuple[str, ...]
    kernel: Kernel

    @property
    def total(self) -> Array:
        """What the machine says of the thing: f(x) of each function."""
        return np.asarray(self.values.sum(axis=0) + self.rest + self.offset)

    def top(self, count: int = PRINTED, function: int = 0) -> list[tuple[int, str, float]]:
        """The places that contribute most, whatever their sign: number from 0, name, contribution."""
        values = self.values[:, function]
        order = np.argsort(-np.abs(values), kind="stable")[:count]
        return [(int(i), self.names[i], float(values[i])) for i in order]

    def __str__(self) -> str:
        blocks = []
        for k, title in enumerate(self.titles):
            found = self.top(PRINTED, k)
            lines = [f"  {place:>4} {name}  {value:+.4g}" for place, name, value in found]
            more = len(self.names) - len(found)
            if more > 0:
                lines.append(f"  and {more:,} more")
            head = f"{title} = {self.total[k]:.4g}, of which {self.offset[k] + self.rest[k]:+.4g} at no place"
            blocks.append("\n".join([head, *lines]))
        return "\n".join(blocks)

    __repr__ = __str__


def contributions(model: object, X: Table) -> list[Contributions]:
    """Which letters or nodes of new things made a fitted machine say what it says, one result for each thing.

    f(x) = w·φ(x) + b is a sum over features, and a feature is somewhere in the thing. A substring
    (`Spectrum`, `Mismatch`, `WeightedDegree`) shares its weight equally among the letters of each occurrence.
    A colour (`WeisfeilerLehman`) gives it to the node that has it; an edge or a path to its two ends, half
    each; `OptimalAssignment` to all nodes of a colour alike. Sums, scaled and normalised kernels follow.

    `model` is a fitted machine, or its `FeatureWeights`; X is a list of things, as in `predict`.

    >>> from mercer import SVC, Spectrum
    >>> from mercer.theory import contributions
    >>> genes = ["TATAAT", "GGCGCC", "TATATT", "GCGCGG"]
    >>> model = SVC(Spectrum(2), C=10.0).fit(genes, [1, 0, 1, 0])
    >>> found = contributions(model, ["GGTATA"])[0]
    >>> [(name, bool(value > 0)) for name, value in zip(found.names, found.values[:, 0])][3:]
    [('A', True), ('T', True), ('A', True)]
    >>> bool(np.isclose(found.total[0], model.decision_function(["GGTATA"])[0]))
    True
    """
    if isinstance(X, str):
        raise InputTypeError(f"X must be a list of things, as in predict; got text. Give [{X[:20]!r}].")
    weights = model if isinstance(model, FeatureWeights) else feature_weights(model)
    rows = Rows.of(X, "X")
    placed = weights.map.placed(rows)
    if placed is None:
        raise ParameterError(
            f"{weights.kernel!r} does not say where in a thing its features are. Spectrum, Mismatch, "
            "WeightedDegree, WeisfeilerLehman, OptimalAssignment and ShortestPath do, applied to the things "
            "themselves; theory.feature_weights(model) has the weights of all features."
        )
    out = []
    for thing in placed:
        out.append(
            Contributions(
                thing=thing.thing,
                names=tuple(thing.names),
                values=np.asarray(thing.matrix @ weights.weights),
                rest=np.asarray(thing.rest @ weights.weights).ravel(),
                offset=weights.offset,
                titles=weights.titles,
                kernel=weights.kernel,
            )
        )
    return out
