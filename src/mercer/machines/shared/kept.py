"""What was read of the rows that a fitted machine keeps: they are read once, and not in each prediction.

Kernels make something of rows before they compare them: they scale columns, look up categories, count words.
`Rows` remembers what was made of it; here a machine remembers its `Rows`, from the first prediction to the
next fit.
"""

from __future__ import annotations

from mercer.arrays import Rows
from mercer.sparse import Matrix

READ = "_read_rows"
"""The attribute of a machine that holds its `ReadRows`; it is no part of what the machine has learned."""


class ReadRows:
    """The rows that a machine keeps, with what was made of them; a copy of the machine begins without them.

    Several threads may ask at once: then each reads the rows, to the same end, and one reading is kept.
    """

    def __init__(self) -> None:
        self._last: Rows | None = None

    def known(self, A: Matrix) -> Rows | None:
        """These very rows, as they were read before."""
        last = self._last
        return last if last is not None and last.data is A else None

    def keep(self, rows: Rows) -> None:
        """Remember rows, in place of those before."""
        self._last = rows

    def __reduce__(self) -> tuple[type[ReadRows], tuple[()]]:
        return ReadRows, ()
