"""Which column of a sparse matrix a feature has: the words, substrings or subtrees that were met."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from threading import RLock

import numpy as np

from mercer.typing import Integers

ABSENT = -1
"""The column of a feature that a closed vocabulary does not have."""

# Several threads may ask a model at once, and its vocabulary is one for all of them.
_ENTERING = RLock()


class Vocabulary:
    """Features in the order in which they were met.

    A second sample is counted with an `extended` copy: the features of the first keep their columns, new ones
    come after them, and the first vocabulary does not change. A `closed` copy takes no new ones.

    >>> words = Vocabulary()
    >>> words.columns(["to", "be", "to"]).tolist()
    [0, 1, 0]
    >>> more = words.extended()
    >>> more.columns(["not", "be"]).tolist(), len(more), len(words)
    ([2, 1], 3, 2)
    >>> words.closed().columns(["not", "be"]).tolist()
    [-1, 1]
    """

    def __init__(self, base: Vocabulary | None = None, *, takes_new: bool = True) -> None:
        self._base = base
        self._start = 0 if base is None else len(base)
        self._columns: dict[Hashable, int] = {}
        self._takes_new = takes_new
        # how many features came after those of the base, and which of them are not in the dictionary yet
        self._size = 0
        self._waiting: list[np.ndarray] = []
        self._beside: dict[str, Vocabulary] = {}

    def __len__(self) -> int:
        return self._start + self._size

    def extended(self) -> Vocabulary:
        """A vocabulary that has these features and takes more, without changing this one."""
        return Vocabulary(self)

    def closed(self) -> Vocabulary:
        """A vocabulary of these features alone."""
        return Vocabulary(self, takes_new=False)

    def beside(self, name: str) -> Vocabulary:
        """Another vocabulary that is extended and closed together with this one.

        It numbers what a kernel needs on its way and does not count, such as the colours of nodes.

        >>> words = Vocabulary()
        >>> words.beside("letters").column("a"), len(words)
        (0, 0)
        >>> words.closed().beside("letters").columns("ab").tolist()
        [0, -1]
        """
        if name not in self._beside:
            base = None if self._base is None else self._base.beside(name)
            # two threads that ask at once must get the same one
            self._beside.setdefault(name, Vocabulary(base, takes_new=self._takes_new))
        return self._beside[name]

    def column(self, feature: Hashable) -> int:
        """The column of one feature; a new feature gets the next one, or `ABSENT` if this one is closed."""
        known = self._find(feature)
        if known is not None:
            return known
        if not self._takes_new:
            return ABSENT
        new = len(self)
        self._columns[feature] = new
        self._size += 1
        return new

    def columns(self, features: Iterable[Hashable]) -> Integers:
        """The columns of several features; each that comes again is looked up once."""
        features = list(features)
        known = {feature: self.column(feature) for feature in dict.fromkeys(features)}
        return np.fromiter(map(known.__getitem__, features), dtype=np.intp, count=len(features))

    @property
    def is_fresh(self) -> bool:
        """Whether it has no features, and takes new ones."""
        return self._takes_new and len(self) == 0

    def columns_of_new(self, features: np.ndarray) -> Integers:
        """The columns of features that differ from one another and from all that are here.

        They are entered when a feature is next looked up, which for a single sample may be never.

        >>> words = Vocabulary()
        >>> words.columns_of_new(np.array(["to", "be"])).tolist(), words.column("be"), len(words)
        ([0, 1], 1, 2)
        """
        columns = np.arange(len(self), len(self) + len(features))
        self._waiting.append(features)
        self._size += len(features)
        return columns

    def features(self) -> list[Hashable]:
        """All features, in the order of their columns."""
        self._enter()
        before = [] if self._base is None else self._base.features()
        return [*before, *self._columns]

    def _find(self, feature: Hashable) -> int | None:
        self._enter()
        own = self._columns.get(feature)
        if own is None and self._base is not None:
            return self._base._find(feature)
        return own

    def _enter(self) -> None:
        """Put what waits into the dictionary, in the order of the columns; one thread does it."""
        if not self._waiting:
            return
        with _ENTERING:
            for features in self._waiting:
                start = self._start + len(self._columns)
                self._columns.update(zip(features.tolist(), range(start, start + len(features)), strict=True))
            self._waiting = []
