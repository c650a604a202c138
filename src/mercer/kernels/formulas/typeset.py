r"""Recorded formulas as LaTeX.

>>> import numpy as np
>>> from mercer.kernels.formulas.formula import record
>>> print(latex(record(lambda s: np.exp(-0.5 * s)), "s", {}))
\exp\left(-\tfrac{1}{2}\,s\right)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from mercer.kernels.formulas.formula import VARIABLE, Formula
from mercer.kernels.latex import bracketed, join_signs, times

_SIMPLE = 12  # the largest denominator that is written as a fraction
_SQUARE = "^2"


def latex(f: Formula, variable: str, names: Mapping[str, str]) -> str:
    """The formula with LaTeX for its variable and its names; the root of a variable ‖u‖² is written ‖u‖."""
    return f.fold({**names, VARIABLE: variable}, _number, _RULES)


def _number(value: float) -> str:
    simple = Fraction(value).limit_denominator(_SIMPLE)
    if float(simple) == value and simple.denominator > 1:
        sign = "-" if simple < 0 else ""
        return rf"{sign}\tfrac{{{abs(simple.numerator)}}}{{{simple.denominator}}}"
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    if exponent:
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return mantissa


def _sqrt(a: str) -> str:
    if a.endswith(_SQUARE) and a.startswith(r"\left\lVert") and a.count(r"\left\lVert") == 1:
        return a.removesuffix(_SQUARE)
    return rf"\sqrt{{{a}}}"


def _add(a: str, b: str) -> str:
    return join_signs([a, b])


def _subtract(a: str, b: str) -> str:
    return f"{a} - {bracketed(b, 2)}"


def _multiply(a: str, b: str) -> str:
    if b.startswith("-"):
        b = rf"\left({b}\right)"
    # a leading minus needs no brackets of its own
    if not a.startswith("-") or bracketed(a[1:], 2) != a[1:]:
        a = bracketed(a, 2)
    return times(a, bracketed(b, 2))


def _power(a: str, b: str) -> str:
    return f"{bracketed(a, 4)}^{{{b}}}"


def _negative(a: str) -> str:
    return f"-{bracketed(a, 2)}"


def _function(name: str) -> Callable[[str], str]:
    return lambda a: rf"{name}\left({a}\right)"


def _polynomial(u: str, *coefs: str) -> str:
    terms = []
    for power, c in enumerate(coefs):
        if c == "0":
            continue
        if power == 0:
            terms.append(c)
            continue
        term = u if power == 1 else _power(u, str(power))
        terms.append(term if c == "1" else times(c, term))
    if terms:
        return join_signs(terms)
    return "0"


_RULES: dict[str, Callable[..., str]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": lambda a, b: rf"\frac{{{a}}}{{{b}}}",
    "power": _power,
    "negative": _negative,
    "absolute": lambda a: rf"\left\lvert{a}\right\rvert",
    "exp": _function(r"\exp"),
    "expm1": lambda a: rf"\exp\left({a}\right) - 1",
    "log": _function(r"\log"),
    "log1p": lambda a: rf"\log\left({_add('1', a)}\right)",
    "sqrt": _sqrt,
    "sin": _function(r"\sin"),
    "cos": _function(r"\cos"),
    "sinh": _function(r"\sinh"),
    "cosh": _function(r"\cosh"),
    "tanh": _function(r"\tanh"),
    "arctan": _function(r"\arctan"),
    "expit": lambda a: rf"\frac{{1}}{{1 + \exp\left({_negative(a)}\right)}}",
    "maximum": lambda a, b: rf"\max\left({a}, {b}\right)",
    "minimum": lambda a, b: rf"\min\left({a}, {b}\right)",
    "polynomial": _polynomial,
}
