"""Kernels that count substrings of strings, or of other sequences of symbols.

Spectrum(k)        substrings of k symbols
Mismatch(k, m)     words of k symbols, each found wherever at most m symbols differ
WeightedDegree(d)  substrings of up to d symbols at the same place, in `positions`
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import ClassVar, TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputTypeError, OpenParameterError, ParameterError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.counted import Counted
from mercer.kernels.things.placed import Placed, all_in_places, gathered
from mercer.kernels.things.sequences import require_one_form, symbols_of, written_symbols
from mercer.kernels.things.vocabulary import ABSENT, Vocabulary
from mercer.params import given, whole
from mercer.sparse import Matrix
from mercer.typing import Array

Word: TypeAlias = str | tuple[Hashable, ...]

Occurrence: TypeAlias = tuple[Hashable, float, range]
"""A feature, how much of it there is, and the letters that it covers."""


class Substrings(Counted):
    """A kernel that counts substrings: all strings are text, or all are lists of symbols."""

    is_family: ClassVar = True
    things_are: ClassVar = "strings or sequences of symbols"

    @abstractmethod
    def occurrences(self, symbols: Word) -> Iterator[Occurrence]:
        """Every feature of a string at every place where it is."""

    def counts(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> Matrix:
        found = super().counts(things, vocabulary, name)
        require_one_form(things, name)
        return found

    def placed(self, things: Sequence[Thing], vocabulary: Vocabulary, name: str = "X") -> list[Placed]:
        """Each occurrence of a feature, shared equally among the letters that it covers."""
        found = list(self.each(partial(self._in_letters, vocabulary), things, name))
        require_one_form(things, name)
        return found

    def _in_letters(self, vocabulary: Vocabulary, thing: Thing) -> Placed:
        symbols = symbols_of(thing)
        entries = []
        for feature, amount, letters in self.occurrences(symbols):
            column = vocabulary.column(feature)
            if column != ABSENT:
                entries += [(letter, column, amount / len(letters)) for letter in letters]
        names = [str(symbol) for symbol in symbols]
        return all_in_places(symbols, names, gathered(entries, len(symbols), max(len(vocabulary), 1)))

    def compare_columns(self, x: Rows, z: Rows) -> None:
        forms = [require_one_form(rows.things, rows.name) for rows in (x, z) if _are_sequences(rows)]
        if len({form for form in forms if form is not None}) > 1:
            raise InputTypeError(
                f"{x.name} has {forms[0]} and {z.name} {forms[1]}: their substrings are never equal. Give "
                "both as text, or both as lists."
            )

    def feature_name(self, feature: Hashable) -> str:
        return written_symbols(feature)


@leaf
class Spectrum(Substrings):
    """Substrings of a given length, counted (Leslie, Eskin and Noble).

        k(x, z) = Σ_u (times u is in x) (times u is in z),   over all u with `length` symbols

    A string that is shorter than `length` has no features.

    >>> Spectrum(2)(["abab", "bc"])                    # ab twice and ba once; bc once
    array([[5., 0.],
           [0., 1.]])
    """

    length: int = whole(3, at_least=1)

    formula: ClassVar = r"\sum_{|u|=<length>} \#_u(x)\,\#_u(z)"

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        return _substrings(thing, self.length)

    def occurrences(self, symbols: Word) -> Iterator[Occurrence]:
        for start in range(len(symbols) - self.length + 1):
            yield symbols[start : start + self.length], 1.0, range(start, start + self.length)


@leaf
class Mismatch(Substrings):
    """Words of a given length, found with up to so many symbols wrong (Leslie, Eskin, Weston and Noble).

        k(x, z) = Σ_u φ_u(x) φ_u(z),   φ_u(x) = how many substrings of x differ from u in at most m places

    over all words u with `length` symbols of the `alphabet`; m is `mismatches`. The alphabet is part of the
    kernel, because the number of words between two substrings depends on it. Where it is not given it is left
    to the data, and `fit` or `resolved(X)` take the symbols of the sample. A symbol outside it differs from
    all of its symbols, so that it counts as one place that is wrong. The cost of one substring is the number
    of words that are near it, Σ_h C(length, h) (a - 1)^h over h ≤ m, for an alphabet of a symbols.

    >>> Mismatch(2, 1, alphabet="ab")(["ab", "ba"])    # ab is near aa, ab, bb; ba is near aa, ba, bb
    array([[3., 2.],
           [2., 3.]])
    """

    length: int = whole(3, at_least=1)
    mismatches: int = whole(1, at_least=0)
    alphabet: Word | None = given(None)

    formula: ClassVar = (
        r"\sum_{|u|=<length>} \#\{a\subset x: a\approx_{<mismatches>} u\}"
        r"\,\#\{b\subset z: b\approx_{<mismatches>} u\}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mismatches >= self.length:
            raise ParameterError(
                f"Mismatch: mismatches must be less than length; got {self.mismatches} and {self.length}. "
                "Otherwise every word is near every other."
            )
        if self.alphabet is not None:
            object.__setattr__(self, "alphabet", _alphabet(self.alphabet))

    def leaves_open(self) -> bool:
        return self.alphabet is None

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        if self.alphabet is not None:
            return self
        letters: set[Hashable] = set()
        for i, symbols in enumerate(self.each(symbols_of, rows.things, rows.name)):
            if weight is None or weight[i] > 0:
                letters.update(symbols)
        if not letters:
            raise ParameterError(
                f"{self} takes its alphabet from {rows.name}, whose strings are all empty. Give "
                'alphabet=, for example "ACGT".'
            )
        return self.changed(alphabet=tuple(letters))

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        alphabet = self._closed_alphabet()
        found: Counter[Hashable] = Counter()
        for word, times in _substrings(thing, self.length).items():
            assert isinstance(word, str | tuple)
            for near in _near(word, self.mismatches, alphabet):
                found[near] += times
        return found

    def occurrences(self, symbols: Word) -> Iterator[Occurrence]:
        alphabet = self._closed_alphabet()
        for start in range(len(symbols) - self.length + 1):
            letters = range(start, start + self.length)
            for near in _near(symbols[start : start + self.length], self.mismatches, alphabet):
                yield near, 1.0, letters

    def _closed_alphabet(self) -> Word:
        if self.alphabet is None:
            raise OpenParameterError(
                f"{self} leaves its alphabet open, so it has no values yet. Give it, as in "
                'Mismatch(3, 1, alphabet="ACGT"), close it by your rows, k.resolved(X), or hand it to a '
                "machine, which closes it when it is fitted."
            )
        return self.alphabet


def _are_sequences(rows: Rows) -> bool:
    """Whether every row can be read; what cannot is refused with its row when it is counted."""
    return all(isinstance(thing, Sequence | np.ndarray) for thing in rows.things)


def _substrings(thing: Thing, length: int) -> Mapping[Hashable, int]:
    symbols = symbols_of(thing)
    return Counter(symbols[i : i + length] for i in range(len(symbols) - length + 1))


def _alphabet(letters: object) -> Word:
    """Each symbol once, in order: as one string where all are single characters."""
    if not isinstance(letters, str | list | tuple | set | frozenset) or not letters:
        raise ParameterError(
            f'Mismatch: alphabet must be the symbols, as in "ACGT" or a list of them; got {letters!r}.'
        )
    distinct = sorted(set(letters), key=lambda letter: (str(letter), type(letter).__name__))
    if all(isinstance(letter, str) and len(letter) == 1 for letter in distinct):
        return "".join(distinct)
    return tuple(distinct)


@lru_cache(maxsize=2**16)
def _near(word: Word, mismatches: int, alphabet: Word) -> tuple[Word, ...]:
    """All words of the alphabet that differ from this one in at most so many places."""
    found: list[tuple[tuple[Hashable, ...], int]] = [((), 0)]
    for symbol in word:
        longer = []
        for start, wrong in found:
            for letter in alphabet:
                here = wrong + (letter != symbol)
                if here <= mismatches:
                    longer.append(((*start, letter), here))
        found = longer
    words = [start for start, _ in found]
    if isinstance(word, str) and isinstance(alphabet, str):
        return tuple("".join(map(str, start)) for start in words)
    return tuple(words)
