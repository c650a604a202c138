"""Series of vectors: truncated signatures of paths.

A series is an array, time × channels; one of a single channel may be a plain list of numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from mercer.errors import ParameterError, ShapeError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.counted import Counted
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.params import positive, whole
from mercer.sparse import Matrix
from mercer.typing import Array

SERIES = "series: arrays of finite numbers, time x channels"
# The most features of a signature: beyond it, one row alone is tens of megabytes.
MOST_FEATURES = 2**20
# Numbers of the signatures that are made at the same time.
TOGETHER = 2**20


@leaf
class Signature(Counted):
    """Iterated integrals of paths up to a given depth (Chen; Király and Oberhauser).

        k(x, z) = Σ_w s_w(x) s_w(z),   s_w(x) = scale^|w| ∫ … ∫_(t₁ < … < t_|w|) dx_w₁ … dx_w|w|

    over all words w of at most `depth` channels, the empty one included (s = 1). The points of a series are
    joined by straight lines, and the integrals are then exact, by Chen's identity. They do not depend on how
    fast a path is run through, nor on where it starts: give time as a channel, or a point 0 in front, where
    that matters. Level m has channels^m features.

    >>> Signature(2)([[[0.0], [2.0]], [[1.0], [2.0], [0.0]]])     # (1, 2, 2) and (1, -1, ½)
    array([[9.  , 0.  ],
           [0.  , 2.25]])
    """

    depth: int = whole(3, at_least=1)
    scale: float = positive(1.0)

    formula: ClassVar = r"\sum_{|w|\leq <depth>} <scale>^{2|w|} S_w(x)\,S_w(z)"
    things_are: ClassVar = SERIES

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        path = path_of(thing)
        values = signatures([path], self.depth, self.scale)[0]
        return dict(zip(words(path.shape[1], self.depth), values.tolist(), strict=True))

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        paths = list(self.each(path_of, things, name))
        channels = same_channels(paths, name)
        size = sum(channels**m for m in range(self.depth + 1))
        if size > MOST_FEATURES:
            raise ParameterError(
                f"{self} of {channels} channels has {size:,} features; at most {MOST_FEATURES:,} are made. "
                "Take a smaller depth, or fewer channels."
            )
        columns = vocabulary.columns(words(channels, self.depth))
        kept = columns != ABSENT
        step = max(1, TOGETHER // size)
        parts = []
        for start in range(0, len(paths), step):
            values = signatures(paths[start : start + step], self.depth, self.scale)[:, kept]
            i, j = np.nonzero(values)
            shape = (len(values), max(len(vocabulary), 1))
            parts.append(sparse.csr_array((values[i, j], (i, columns[kept][j])), shape=shape))
        out = sparse.csr_array(sparse.vstack(parts))
        out.sum_duplicates()
        return out

    def feature_name(self, feature: Hashable) -> str:
        assert isinstance(feature, tuple)
        return f"∫{' '.join(map(str, feature))}" if feature else "1"


def path_of(thing: Thing) -> Array:
    """A series as an array, time × channels."""
    try:
        path = np.asarray(thing, dtype=np.float64)
    except ValueError as error:
        raise TypeError(str(error)) from error
    if thing is None or path.ndim not in (1, 2) or path.size == 0:
        raise TypeError(f"its shape is {path.shape}")
    if not np.all(np.isfinite(path)):
        raise TypeError("it has a number that is not finite")
    return path.reshape(len(path), -1)


def same_channels(paths: list[Array], name: str) -> int:
    """The number of channels, the same for all."""
    channels = int(paths[0].shape[1])
    for i, path in enumerate(paths):
        if path.shape[1] != channels:
            raise ShapeError(
                f"row {i} of {name} is a series of {path.shape[1]} channels, and row 0 has {channels}. Give "
                "all series the same channels."
            )
    return channels


def words(channels: int, depth: int) -> list[tuple[int, ...]]:
    """All words of at most so many channels, shorter ones first."""
    return [w for m in range(depth + 1) for w in itertools.product(range(channels), repeat=m)]


def signatures(paths: list[Array], depth: int, scale: float) -> Array:
    """The signatures of some paths, a row each, line by line: S ← S ⊗ e^Δ.

    A shorter path stays where it ends, which adds nothing. Level m of S ⊗ e^Δ is Σ_i S_i ⊗ Δ^(m-i)/(m-i)!,
    summed as Horner does.
    """
    longest = max(len(path) for path in paths)
    n = len(paths)
    channels = paths[0].shape[1]
    steps = np.zeros((longest - 1, n, channels))
    for i, path in enumerate(paths):
        steps[: len(path) - 1, i] = scale * np.diff(path, axis=0)
    levels = [np.ones((n, 1)), *(np.zeros((n, channels**m)) for m in range(1, depth + 1))]
    for delta in steps:
        for m in range(depth, 0, -1):
            inner = delta / m
            for i in range(1, m):
                product = (levels[i] + inner)[:, :, None] * (delta / (m - i))[:, None, :]
                inner = product.reshape(n, -1)
            levels[m] += inner
    return np.hstack(levels)
