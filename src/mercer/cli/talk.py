"""Where commands print: results to stdout, talk to stderr, colour only on terminals that want it."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from mercer.cli.codes import UNWRITTEN
from mercer.errors import ParseError

if TYPE_CHECKING:
    from rich.console import Console

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# columns of a pipe: nothing is wrapped there, so that other programs can read it
UNLIMITED = 100_000


def results() -> Console:
    """Standard output. Rich leaves colours out when it is no terminal, or NO_COLOR is set."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNLIMITED
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


@contextmanager
def outliving_sockets() -> Iterator[None]:
    """Commands end when the reader of their pipe leaves; in here whoever hangs up a socket is an error."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


def complain(message: str) -> None:
    """One paragraph on standard error."""
    print(f"mercer: {message}", file=sys.stderr)


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk is full, or does not take what is written."""
    return isinstance(error, OSError) and error.errno in _FULL


def reason_of(error: BaseException) -> str:
    """What went wrong in a sentence; a full disk with what to do."""
    if is_full(error) and isinstance(error, OSError):
        return f"the file cannot be written: {error.strerror}. Free some space, or write it elsewhere."
    return str(error)


def failure_code(error: BaseException, otherwise: int) -> int:
    """The exit code of a command that could not write."""
    return UNWRITTEN if is_full(error) else otherwise


def leave_unwritten(error: BaseException) -> NoReturn:
    """Say that standard output does not take the answer, and leave without trying again."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    try:
        complain(f"what was found cannot be written: {reason}. Free some space, or send it elsewhere.")
        sys.stderr.flush()
    finally:
        # without buffers: Python would try to write them once more, and leave with another code
        os._exit(UNWRITTEN)


def complain_of_parse(error: ParseError) -> None:
    """The problem, the expression, and a caret under the place."""
    complain(f"{error.problem.rstrip('.')} (column {error.column})")
    print(error.pointer, file=sys.stderr)


def json_text(value: object) -> str:
    import json

    return json.dumps(value, indent=2, allow_nan=False)
