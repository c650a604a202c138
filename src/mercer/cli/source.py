"""What the commands on tables share: the table and its kernel, what is said, and how they end.

Results go to standard output; what is said here goes to standard error, and `--quiet` silences it but for
warnings and errors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars

from mercer.cli.codes import FAILED, INTERRUPTED, USAGE
from mercer.cli.talk import complain, complain_of_parse, failure_code, reason_of
from mercer.errors import InputError, MercerError, ParameterError, ParseError
from mercer.frames import frame_rows
from mercer.kernels import Kernel, parse
from mercer.progress import Talk
from mercer.recipe.explain import brief
from mercer.tables.intake import TableFile, read_table
from mercer.tables.names import require_columns
from mercer.tables.propose import describe_table
from mercer.typing import Array, Integers, Labels, Table

if TYPE_CHECKING:
    from mercer.machines.landmarks.approximation import Approximation
    from mercer.tables.delimited import Layout

# Letters of a kernel that are shown; --json has all of them.
SHOWN = 300
# Rows up to which a Gram matrix is stored and worked on as it is: 128 MB.
MOST_EXACT = 4000
LANDMARKS = 1000


@dataclass(frozen=True)
class Source:
    """A table and how it is to be seen, as it was asked for on the command line."""

    table: str
    layout: Layout
    leave_out: tuple[str, ...] = ()
    kernel: str | None = None
    ranks: bool = True


@dataclass(frozen=True)
class Seen:
    """A table that was read: the rows that the kernel sees, and all columns, to write with the answer."""

    found: TableFile
    rows: Table
    kernel: Kernel
    frame: polars.DataFrame

    def __len__(self) -> int:
        return self.frame.height


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


def seen(source: Source, voice: Voice, also_without: Sequence[str] = ()) -> Seen:
    """The table, without the columns to leave out, and its kernel: the one given, or the one proposed."""
    asked = None if source.kernel is None else parse(source.kernel)
    found = read_table(source.table, source.layout)
    voice.say(str(found))
    without = (*source.leave_out, *also_without)
    if found.frame is None:
        return _sparse(found, asked, without)
    require_columns(found.frame.columns, without, found.path)
    rows = found.frame.drop(without)
    if not rows.width:
        raise InputError(f"{found.path}: no column is left. Leave fewer of them out.")
    kernel = asked or proposed(rows, found.path, ranks=source.ranks)
    voice.say(f"kernel: {shortened(kernel)}{_closing(kernel)}")
    return Seen(found, rows, kernel, found.frame)


def proposed(rows: polars.DataFrame, path: str, *, ranks: bool = True) -> Kernel:
    """The kernel that is proposed for a table; what stands in the way is said with the file."""
    try:
        return describe_table(rows, ranks=ranks).kernel
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _sparse(found: TableFile, asked: Kernel | None, without: Sequence[str]) -> Seen:
    """LIBSVM's rows: numbers without names."""
    assert found.matrix is not None and found.target is not None
    if without:
        raise InputError(f"{found.path} is LIBSVM's text, whose columns have no names to leave out.")
    number = np.arange(1, found.shape[0] + 1)
    frame = polars.DataFrame({"row": number, "target": found.target})
    return Seen(found, found.matrix, asked or parse("RBF()"), frame)


def some_rows(rows: Table, index: Integers) -> Table:
    """Some rows of a table or of a sparse matrix."""
    if isinstance(rows, polars.DataFrame):
        chosen: Table = frame_rows(rows, index.tolist())
        return chosen
    return rows[index]  # type: ignore[index, call-overload]


def drawn(n: int, most: int, seed: int) -> Integers:
    """All rows, or `most` of them drawn at random, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def landmarks_for(n: int, seed: int) -> Approximation | None:
    """Nyström's approximation where the Gram matrix of all rows would be too large to work on."""
    from mercer.machines.landmarks.nystroem import Nystroem

    if n <= MOST_EXACT:
        return None
    return Nystroem(n_components=LANDMARKS, random_state=seed)


def shortened(kernel: Kernel) -> str:
    """The text of a kernel, cut where it is long."""
    text = str(kernel)
    if len(text) <= SHOWN:
        return text
    return f"{text[:SHOWN]} … (--json has all of it)"


def _closing(kernel: Kernel) -> str:
    if not kernel.is_open:
        return ""
    return "\n  what is open in it is closed by the rows: lengthscales by the spread, s√(d/2) for d columns"


# ── answering ───────────────────────────────────────────────────────────────────────────────────────────────


def with_columns(
    frame: polars.DataFrame, new: dict[str, Labels | Array], voice: Voice
) -> tuple[polars.DataFrame, list[str]]:
    """The table with more columns, and what they are called: a name that is taken gets a number."""
    names = []
    for name, values in new.items():
        free = name
        number = 2
        while free in frame.columns:
            free = f"{name}_{number}"
            number += 1
        if free != name:
            voice.say(f"the table has a column {name!r}: the new one is called {free!r}")
        frame = frame.with_columns(polars.Series(free, values))
        names.append(free)
    return frame, names


class Voice:
    """What a command says besides its answer, on standard error."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        # a line of progress, none in the first second
        self.progress = Talk(int(not quiet))

    def say(self, text: str) -> None:
        """A line, unless the command shall be quiet."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def notes(self, notes: Sequence[str]) -> None:
        """What a certificate has to say; of kernels without the long lists that their readings learned."""
        for note in notes:
            self.say(f"  {brief(note)}")

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Warnings of the library as sentences, each of them once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for text in dict.fromkeys(str(warning.message) for warning in caught):
                    complain(f"warning: {text}")


def finished(work: Callable[[Voice], int | None], *, quiet: bool) -> int:
    """Do the work of a command; the exit code, with the reason on standard error where it failed.

    The work gets the voice in which it speaks, and may return an exit code of its own.
    """
    voice = Voice(quiet)
    try:
        with voice.warnings():
            code = work(voice)
    except ParseError as error:
        complain_of_parse(error)
        return USAGE
    except ParameterError as error:
        complain(str(error))
        return USAGE
    except (MercerError, OSError) as error:
        complain(reason_of(error))
        return failure_code(error, FAILED)
    except KeyboardInterrupt:
        complain("interrupted; nothing was written.")
        return INTERRUPTED
    return code or 0
