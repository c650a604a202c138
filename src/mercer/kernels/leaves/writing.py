"""Values of parameters as text and as LaTeX."""

from __future__ import annotations

from mercer.params import Open
from mercer.typing import Setting


def write_value(value: Setting) -> str:
    """A parameter as text that the parser reads back; functions as <name>."""
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
