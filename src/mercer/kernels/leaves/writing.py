"""Values of parameters as text and as LaTeX."""

from __future__ import annotations

import re

from mercer.params import Open
from mercer.typing import Setting


def write_value(value: Setting) -> str:
    """A parameter as text that the parser reads back; functions as <name>."""
    if type(value) is float:
        # What most parameters are, before the longer questions.
        return repr(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(write_value, value)) + "]"
    if isinstance(value, str):
        return write_text(value)
    if callable(value):
        return f"<{getattr(value, '__name__', type(value).__name__).strip('<>')}>"
    return repr(value)


def write_text(text: str) -> str:
    """Text in quotes, as the parser reads it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# In the text of a kernel: what is quoted, a bracket, a comma, and all else.
_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\],]|[^"\[\],]+')
# Entries of a list that are shown where it is longer than `LONGEST_SHOWN`.
SHOWN = 3
LONGEST_SHOWN = 40


def abbreviated(text: str) -> str:
    """The text of a kernel for people: of a list with very many entries, such as a vocabulary, a few.

    >>> abbreviated(f"Bilinear([{', '.join(map(str, range(100)))}])")
    'Bilinear([0, 1, 2, … 100 in all])'
    """
    # of every list that is open: its pieces, and how many entries they are
    lists: list[tuple[list[str], int]] = [([], 0)]
    for piece in _PIECES.findall(text):
        pieces, entries = lists[-1]
        if piece == "[":
            lists.append(([], 1))
        elif piece == "]" and len(lists) > 1:
            lists.pop()
            inside = "".join(pieces)
            if entries > LONGEST_SHOWN:
                inside = f"{_first_entries(pieces)}, … {entries} in all"
            lists[-1][0].append(f"[{inside}]")
        else:
            pieces.append(piece)
            lists[-1] = (pieces, entries + (piece == ","))
    return "".join("".join(pieces) for pieces, _ in lists)


def _first_entries(pieces: list[str]) -> str:
    commas = [i for i, piece in enumerate(pieces) if piece == ","]
    return "".join(pieces[: commas[SHOWN - 1]])


def as_one_thing(value: str) -> str:
    """A value inside a formula: a sign or a power of ten in brackets."""
    if value.startswith("-") or "^" in value:
        return rf"\left({value}\right)"
    return value


def latex_value(value: Setting) -> str:
    if isinstance(value, Open):
        return r"\ell"
    if isinstance(value, tuple):
        return r"(" + ", ".join(map(latex_value, value)) + ")"
    if isinstance(value, float):
        mantissa, _, exponent = f"{value:.6g}".partition("e")
        if exponent:
            return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
        return mantissa
    if callable(value):
        return getattr(value, "__name__", "f").replace("<lambda>", "f").replace("_", r"\_")
    return str(value)
