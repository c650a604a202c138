"""Subsequences with gaps: what two strings have in common although symbols were put in between."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.leaves.leaf import leaf
from mercer.kernels.proofs.proof import Fact
from mercer.kernels.sweep import STEP, Sweep
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.sequences import TABLE, OneAgainstMany, all_pairs, codes_of, with_themselves
from mercer.params import positive, whole
from mercer.typing import Array, Integers

# Of no symbol.
PAD = -1


@leaf
class Subsequence(OnThings):
    """Subsequences of a given length, which may have gaps (Lodhi, Saunders, Shawe-Taylor et al.).

        k(x, z) = Σ_u φ_u(x) φ_u(z),   φ_u(x) = Σ λ^(last place - first place + 1)

    over all u with `length` symbols, and over all the ways to find u in x from left to right. λ is `decay`: a
    small one forgives no gap. The cost of a pair is length · |x| · |z|.

    >>> Subsequence(2, 0.5)(["cat", "car"])            # ca: λ⁴; the cat has ca, at and c-t: 2 λ⁴ + λ⁶
    array([[0.140625, 0.0625  ],
           [0.0625  , 0.140625]])
    """

    length: int = whole(3, at_least=1)
    decay: float = positive(0.5)

    because: ClassVar = Fact("inner product of features", "qᵀKq = ‖Σ q_i φ(x_i)‖² ≥ 0, with φ_u as above")
    formula: ClassVar = (
        r"\sum_{|u|=<length>} \sum_{x[i]=u} \sum_{z[j]=u} <decay>^{\,i_{last}-i_{first}+j_{last}-j_{first}+2}"
    )
    things_are: ClassVar = "strings or sequences of symbols"

    def block(self, x: Rows, z: Rows | None) -> Array:
        a, b = codes_of(self, x, z)
        return all_pairs(a, b, self._one_against_many(self.decay), PAD)

    def diagonal(self, x: Rows) -> Array:
        a, _ = codes_of(self, x, None)
        return with_themselves(a, self._one_against_many(self.decay))

    def contract(self, W: Array, at: Sweep) -> None:
        """By a complex step, which is exact to rounding."""
        a, b = codes_of(self, at.x, at.z)
        K = all_pairs(a, b, self._one_against_many(self.decay + 1j * STEP), PAD)
        at.add("decay", float((W * K.imag).sum() / STEP))

    def _one_against_many(self, decay: complex) -> OneAgainstMany:
        def many(one: Array, others: Array, lengths: Integers) -> Array:
            return gap_weighted(one, others, self.length, decay)

        return many


def gap_weighted(x: Array, others: Array, length: int, decay: complex) -> Array:
    """k of one sequence and several, by a table of the places s of x and t of the others.

        ends[s, t]    = λ² [x_s = z_t] reach[s - 1, t - 1]     matches of p symbols that end at s and t
        reach[s, t]   = Σ ends[s', t'] λ^(s - s' + t - t')     over s' ≤ s and t' ≤ t

    A few rows s of the table are held at a time; the last ones of `down` and `reach` are kept for the next.
    """
    m, width = others.shape
    columns = np.ascontiguousarray(others.T)
    total = np.zeros(m, dtype=type(decay))
    down = np.zeros((length, width, m), dtype=type(decay))
    reach = np.zeros((length, width, m), dtype=type(decay))
    height = max(1, TABLE // max(width * m, 1))
    for start in range(0, len(x), height):
        same = (x[start : start + height, None, None] == columns) * decay**2
        ends = same
        for p in range(length - 1):
            table = ends.copy()
            table[0] += decay * down[p]
            for s in range(1, len(table)):
                table[s] += decay * table[s - 1]
            down[p] = table[-1]
            for t in range(1, width):
                table[:, t] += decay * table[:, t - 1]
            before = np.zeros_like(table)
            before[0, 1:] = reach[p, :-1]
            before[1:, 1:] = table[:-1, :-1]
            reach[p] = table[-1]
            ends = same * before
        total += ends.sum(axis=(0, 1))
    return total
