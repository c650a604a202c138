"""Substrings at the same place: the weighted degree kernel of splice sites and other aligned strings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mercer.kernels.leaves.functions import Thing
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.things.sequences import symbols_of, written_symbols
from mercer.kernels.things.strings import Occurrence, Substrings, Word
from mercer.params import whole

# Angles at which a trigonometric polynomial is looked at, for each of its coefficients.
ANGLES = 64


@leaf
class WeightedDegree(Substrings):
    """Substrings of up to `degree` symbols that strings have at the same place, or nearly (Rätsch et al.).

        k(x, z) = Σ_d β_d Σ_l Σ_m a_|l - m| [x from l and z from m agree in d symbols]

        β_d = 2 (D - d + 1) / (D (D + 1)),   a_0 = 1,   a_s = 1 / (2 (s + 1)) for 1 ≤ s ≤ shift, else 0

    Places are counted from the start. Strings may differ in length: what only the longer one has agrees with
    nothing. The features are √β_d p_(r - l) for the substring u of d symbols that begins at l, at the places
    r = l … l + shift, where p are the coefficients of the polynomial with |p(e^iω)|² = Σ_s a_|s| cos sω. That
    sum is at least ½ for every ω and every shift (Rogosinski and Szegő), so that there is one.

    >>> WeightedDegree(2)(["ab", "ac"])       # ⅔ for each letter that agrees and ⅓ for both
    array([[1.66666667, 0.66666667],
           [0.66666667, 1.66666667]])
    """

    degree: int = whole(3, at_least=1)
    shift: int = whole(0, at_least=0, at_most=100)

    formula: ClassVar = (
        r"\sum_{d\leq <degree>} \beta_d \sum_{|l-m|\leq <shift>} a_{|l-m|}\,[x_{l:l+d} = z_{m:m+d}]"
    )

    def count(self, thing: Thing) -> Mapping[Hashable, float]:
        spread = shift_factor(self.shift)
        found: dict[Hashable, float] = defaultdict(float)
        for start, word, weight in self._words(symbols_of(thing)):
            for s, factor in enumerate(spread):
                found[start + s, word] += weight * factor
        return found

    def occurrences(self, symbols: Word) -> Iterator[Occurrence]:
        spread = shift_factor(self.shift)
        for start, word, weight in self._words(symbols):
            letters = range(start, start + len(word))
            for s, factor in enumerate(spread):
                yield (start + s, word), weight * factor, letters

    def _words(self, symbols: Word) -> Iterator[tuple[int, Word, float]]:
        """Every substring: where it begins, its symbols, and √β of its length."""
        for d in range(1, self.degree + 1):
            weight = float(np.sqrt(2 * (self.degree - d + 1) / (self.degree * (self.degree + 1))))
            for start in range(len(symbols) - d + 1):
                yield start, symbols[start : start + d], weight

    def feature_name(self, feature: Hashable) -> str:
        assert isinstance(feature, tuple)
        place, word = feature
        return f"{written_symbols(word)} at {place}"


@lru_cache(maxsize=128)
def shift_factor(shift: int) -> tuple[float, ...]:
    """Numbers p with Σ_j p_j p_(j + s) = a_s, for the a of `WeightedDegree`.

    By Kolmogorov: log p is the half of log Σ a_|s| cos sω with non-negative frequencies.
    """
    if shift == 0:
        return (1.0,)
    n = ANGLES * (shift + 1)
    a = np.zeros(n)
    a[0] = 1.0
    s = np.arange(1, shift + 1)
    a[s] = a[-s] = 0.5 / (s + 1)
    half = np.fft.ifft(np.log(np.fft.fft(a).real))
    half[0] /= 2
    half[n // 2 + 1 :] = 0
    p = np.fft.ifft(np.exp(np.fft.fft(half))).real[: shift + 1]
    return tuple(p.tolist())
