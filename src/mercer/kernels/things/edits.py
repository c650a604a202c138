"""A similarity from the edit distance of two strings. It is no kernel, and says so."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.sweep import Sweep
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.sequences import all_pairs, codes_of
from mercer.params import positive
from mercer.typing import Array, Integers


@leaf
class EditDistance(OnThings):
    """Strings that few edits turn into one another (Levenshtein). It is **not** positive semi-definite.

        k(x, z) = e^(-d(x, z) / ℓ),   d = how many symbols to insert, delete or replace

    Machines announce what they lose by that; `validity()` shows rows at which it fails, `validity(samples=…)`
    strings of yours. Where ℓ is short, k is nearly [x = z] on a few strings, and none may be found that show
    it: the answer is then "undecided". `Subsequence` and `Spectrum` are kernels for the same use.

    >>> EditDistance(1.0)(["kitten", "sitting"]).round(4)                # three edits
    array([[1.    , 0.0498],
           [0.0498, 1.    ]])
    >>> near = ["aab", "aba", "bb", "a", "abb", "baa", "b", "bab", "aa", "bba", "ab", "ba"]
    >>> EditDistance(2.0).validity(samples=near).status
    'refuted'
    """

    lengthscale: float = positive(2.0)

    formula: ClassVar = r"e^{-d_{\mathrm{edit}}(x, z)/<lengthscale>}"
    things_are: ClassVar = "strings or sequences of symbols"

    def distances(self, x: Rows, z: Rows | None) -> Array:
        """How many edits there are between every pair."""
        a, b = codes_of(self, x, z)
        return all_pairs(a, b, edit_distances, -1)

    def block(self, x: Rows, z: Rows | None) -> Array:
        return np.exp(-self.distances(x, z) / self.lengthscale)

    def diagonal(self, x: Rows) -> Array:
        codes_of(self, x, None)
        return np.ones(len(x))

    def contract(self, W: Array, at: Sweep) -> None:
        d = self.distances(at.x, at.z)
        at.add("lengthscale", float((W * d * np.exp(-d / self.lengthscale)).sum() / self.lengthscale**2))

    def wanting(self) -> str:
        return (
            "Nothing makes a kernel of the edit distance: pass samples= to look for strings at which it "
            "fails, or use Subsequence or Spectrum."
        )


def edit_distances(x: Array, others: Array, lengths: Integers) -> Array:
    """Levenshtein's distance of one sequence to several, a symbol of x at a time."""
    m, width = others.shape
    steps = np.arange(width + 1)
    row = np.tile(steps, (m, 1))
    for s, symbol in enumerate(x, 1):
        # replaced, or deleted from x
        best = np.empty_like(row)
        best[:, 0] = s
        best[:, 1:] = np.minimum(row[:, 1:] + 1, row[:, :-1] + (others != symbol))
        # inserted: one more for each place to the right
        row = np.minimum.accumulate(best - steps, axis=1) + steps
    return row[np.arange(m), lengths].astype(np.float64)
