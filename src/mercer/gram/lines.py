"""How the rows of a Gram matrix are shared out, so that every pair of rows meets exactly once.

The rows are cut into g = q² + q + 1 blocks, and g *lines* of q + 1 blocks each are drawn through them, as in
a projective plane of order q: any two blocks lie on one line, and on one only. So a symmetric product is the
sum of the products on the lines, each of them symmetric itself, and of what the lines have too often: every
block is on q + 1 lines, so that its own product, K of the block with itself, is taken away q times.

    K v  =  Σ_t K[L_t, L_t] v[L_t]  -  q Σ_t K[B_t, B_t] v[B_t]

Symmetric products cost half: a scheme of rows times all columns, which looks simpler, computes each entry
twice. The price here is 1/(q + 1) of the entries for blocks that are met again. A line reads (q + 1)/g of
the rows, and no other. Where the core computes K no block meets itself again: blocks are whole numbers of its
tiles, and a line leaves out the tiles of a block with itself, but for its own, B_t.

Line t holds the blocks t + d modulo g for the d of a perfect difference set: every number but 0 is the
difference of exactly one pair of them. The first d is 0, so that block t begins line t.

The partition depends on the number of rows alone, never on who does the work: so do the bits of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.gram.core import PART_ROWS, Parts
from mercer.typing import Array, Integers

# Perfect difference sets by their order q, after J. Singer, Trans. AMS 43 (1938) 377.
DIFFERENCES: dict[int, tuple[int, ...]] = {
    0: (0,),
    2: (0, 1, 3),
    5: (0, 1, 3, 8, 12, 18),
    13: (0, 1, 3, 16, 23, 28, 42, 76, 82, 86, 119, 137, 154, 175),
}
# The least number of rows from which an order is used: blocks of some hundred rows.
ORDERS = ((20_000, 13), (6_000, 5), (500, 2), (0, 0))
# Lines that one task computes, so that a task takes long beside the message that asks for it.
ENTRIES = 2**26


@dataclass(frozen=True)
class Lines:
    """The blocks and lines of n rows.

    >>> lines = Lines.of(700)
    >>> lines.blocks, lines.order, lines.on(6)
    (7, 2, [6, 0, 2])
    >>> lines.rows(6)
    slice(576, 700, None)
    """

    n: int
    order: int

    @classmethod
    def of(cls, n: int) -> Lines:
        return cls(n, next(order for least, order in ORDERS if n >= least))

    @property
    def blocks(self) -> int:
        """How many blocks there are, and lines."""
        return self.order * (self.order + 1) + 1

    def on(self, line: int) -> list[int]:
        """The blocks of a line; the first has its number."""
        return [(line + d) % self.blocks for d in DIFFERENCES[self.order]]

    @cached_property
    def ends(self) -> Integers:
        """Where blocks begin and end: block b is rows ends[b] to ends[b + 1].

        They end at whole parts where there are enough rows, but for the last.
        """
        even = np.arange(self.blocks + 1) * self.n // self.blocks
        if not self.of_parts:
            return even
        whole = (even + PART_ROWS // 2) // PART_ROWS * PART_ROWS
        whole[-1] = self.n
        return whole

    @property
    def of_parts(self) -> bool:
        """Whether blocks are whole numbers of parts, of which a product can leave out pairs."""
        return self.n >= PART_ROWS * self.blocks

    def parts(self, line: int) -> Parts:
        """The blocks of a line, in increasing order, as parts: all but its own meet on other lines."""
        on = sorted(self.on(line))
        return Parts(np.cumsum(np.diff(self.ends)[on]).tolist(), on.index(line))

    def rows(self, block: int) -> slice:
        """The rows of a block."""
        return slice(int(self.ends[block]), int(self.ends[block + 1]))

    def read(self, task: list[int]) -> list[int]:
        """The blocks that are on any of the lines of a task, in order."""
        return sorted({b for line in task for b in self.on(line)})

    def rows_read(self, task: list[int]) -> int:
        """How many rows these blocks have."""
        return int(np.diff(self.ends)[self.read(task)].sum())

    def add(self, part: Array, task: list[int], total: Array) -> None:
        """Add what a task has for the rows of its blocks, in order, to those of all rows."""
        at = 0
        for b in self.read(task):
            rows = self.rows(b)
            size = rows.stop - rows.start
            total[rows] += part[at : at + size]
            at += size

    @cached_property
    def tasks(self) -> list[list[int]]:
        """The lines that are computed together: as many as have some ten million entries."""
        each = (len(DIFFERENCES[self.order]) * self.n / self.blocks) ** 2 / 2
        many = max(1, min(round(ENTRIES / max(each, 1.0)), -(-self.blocks // 48)))
        return [list(range(t, min(t + many, self.blocks))) for t in range(0, self.blocks, many)]
