"""Kernels of strings and sequences of symbols.

`Spectrum(k)` counts substrings of k symbols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.counted import Counted
from mercer.params import whole


@leaf
class Spectrum(Counted):
    """Substrings of a given length, counted (Leslie, Eskin and Noble).

        k(x, z) = Σ_u (times u is in x) (times u is in z),   over all u with `length` symbols

    A string that is shorter than `length` has no features.

    >>> Spectrum(2)(["abab", "bc"])                    # ab twice and ba once; bc once
    array([[5., 0.],
           [0., 1.]])
    """

    length: int = whole(3, at_least=1)

    formula: ClassVar = r"\sum_{|u|=<length>} \#_u(x)\,\#_u(z)"
    things_are: ClassVar = "strings or sequences of symbols"

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        symbols = _symbols(thing)
        return Counter(symbols[i : i + self.length] for i in range(len(symbols) - self.length + 1))

    def feature_name(self, feature: Hashable) -> str:
        return _written(feature)


def _symbols(thing: Thing) -> str | tuple[Hashable, ...]:
    """A string as it is, another sequence as a tuple of its symbols."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Sequence):
        return tuple(thing)
    raise TypeError("it is neither text nor a list of symbols")


def _written(feature: Hashable) -> str:
    if isinstance(feature, tuple):
        return " ".join(map(str, feature))
    return str(feature)
