"""Where commands print: results to stdout, talk to stderr, colour only on terminals that want it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mercer.errors import ParseError

if TYPE_CHECKING:
    from rich.console import Console

UNLIMITED = 100_000  # columns of a pipe: nothing is wrapped there, so that other programs can read it


def results() -> Console:
    """Standard output. Rich leaves colours out when it is no terminal, or NO_COLOR is set."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNLIMITED
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def complain(message: str) -> None:
    """One paragraph on standard error."""
    print(f"mercer: {message}", file=sys.stderr)


def complain_of_parse(error: ParseError) -> None:
    """The problem, the expression, and a caret under the place."""
    complain(f"{error.problem.rstrip('.')} (column {error.column})")
    print(error.pointer, file=sys.stderr)


def json_text(value: Any) -> str:
    import json

    return json.dumps(value, indent=2, allow_nan=False)
