r"""How tightly a LaTeX formula binds, read from the formula itself, so that brackets stand where needed.

1  sums, a leading minus, and ∑ and ∏, which reach to the right        a + b    -a    \prod_d a_d
2  products, by \cdot, \, or side by side                              2\,a     x^\top z
3  powers and fractions                                                a^{2}    \frac{a}{b}
4  everything that is one thing                                        a    \exp(a)    (a + b)    \overline{a}
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\\(?:left|right)?\s*\\[{}|]|\\(?:left|right)(?:\\[lr]Vert|\\[lr]vert|.)|\\[a-zA-Z]+|\\.|[\d.]+|\s+|."
)
_OPEN = {"{", "(", "[", r"\left(", r"\left[", r"\left\lVert", r"\left\lvert", r"\lVert", r"\lvert"}
_CLOSE = {"}", ")", "]", r"\right)", r"\right]", r"\right\rVert", r"\right\rvert", r"\rVert", r"\rvert"}
_FUNCTIONS = {r"\exp", r"\tanh", r"\sin", r"\cos", r"\min", r"\max", r"\mathrm", r"\overline"}
_FRACTIONS = {r"\frac", r"\tfrac"}


def binding(formula: str) -> int:
    r"""The level of a formula.

    >>> formulas = ("-2", r"x^\top z", "a^{2}", r"\exp\left(a + b\right)", r"\prod_d (1 + x_d z_d)")
    >>> [binding(f) for f in formulas]
    [1, 2, 3, 4, 1]
    """
    tokens = _outermost(formula)
    if any(t in ("+", "-", r"\sum", r"\prod") for t in tokens):
        return 1
    if any(t in (r"\cdot", r"\,") for t in tokens) or _atoms(tokens) > 1:
        return 2
    if "^" in tokens or any(t in _FRACTIONS for t in tokens):
        return 3
    return 4


def bracketed(formula: str, level: int) -> str:
    """The formula as an operand at `level`."""
    if binding(formula) >= level:
        return formula
    return rf"\left({formula}\right)"


def join_signs(terms: list[str]) -> str:
    """Terms as a sum; one that begins with a minus is subtracted."""
    out = terms[0]
    for term in terms[1:]:
        out += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return out


def times(factor: str, formula: str) -> str:
    """A number in front of a product or a power; two numbers are kept apart."""
    between = r"\cdot " if formula[:1].isdigit() else r"\,"
    return f"{factor}{between}{formula}"


def _outermost(formula: str) -> list[str]:
    """The tokens outside all brackets; a whole bracket is the token "()"."""
    out: list[str] = []
    depth = 0
    for token in _TOKEN.findall(formula):
        if token in _CLOSE:
            depth -= 1
            if depth == 0:
                out.append("()")
        elif token in _OPEN:
            depth += 1
        elif depth == 0 and not token.isspace():
            out.append(token)
    return out


def _atoms(tokens: list[str]) -> int:
    """How many things stand side by side; scripts and arguments of functions belong to what precedes them."""
    count = 0
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token in ("^", "_"):
            # the script itself, one token
            at += 1
            continue
        count += 1
        if token in _FRACTIONS:
            at += 2
        elif token in _FUNCTIONS or token.isalpha():
            while at < len(tokens) and tokens[at] in ("()", "_", "^"):
                at += 1 if tokens[at] == "()" else 2
    return count
