"""Recorded formulas as steps of a program.

What depends on the variable becomes steps; what depends on parameters alone becomes a number of the program,
linked to those parameters by its derivatives. A formula that is a whole step of the core (e^(-s/2), a Matérn,
…) is that step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer.kernels.formulas.formula import ONE, VARIABLE, ZERO, Formula, NotRecorded, Values, apply, record
from mercer.kernels.programs.program import MOST_STEPS, NotLowered, Place

if TYPE_CHECKING:
    from mercer.kernels.leaves.recording import OfOneNumber

_UNARY = {
    "exp": "EXP",
    "log": "LOG",
    "log1p": "LOG1P",
    "sqrt": "SQRT",
    "absolute": "ABS",
    "sin": "SIN",
    "cos": "COS",
    "tanh": "TANH",
    "expit": "LOGISTIC",
}
_BINARY = {"add": "ADD", "multiply": "MUL", "maximum": "MAX", "minimum": "MIN"}


def _matern32(s: Values) -> Values:
    a = np.sqrt(3.0 * s)
    return (1 + a) * np.exp(-a)


def _matern52(s: Values) -> Values:
    a = np.sqrt(5.0 * s)
    return (1 + a + a * a / 3) * np.exp(-a)


# Whole formulas that are one step, faster than what they are made of; p0 stands for any parameter.
_FUSED = {
    record(lambda s: np.exp(-0.5 * s)).key(): "RBF",
    record(lambda s: np.exp(-np.sqrt(s))).key(): "EXPNEG",
    record(_matern32).key(): "MATERN32",
    record(_matern52).key(): "MATERN52",
    record(lambda s, a: np.exp(-a * np.log1p(s / (2 * a))), VARIABLE, "p0").key(): "RQ",
}


def write_value(k: OfOneNumber, at: Place, variable: Callable[[], None]) -> None:
    """The steps of a leaf's formula, after those of `variable`, which push what the formula is one of."""
    try:
        f = k.recorded()
    except NotRecorded as why:
        raise NotLowered(f"the value of {type(k).__name__} is no formula: {why}") from why
    fused = _fused(f)
    if fused is not None:
        variable()
        at.step(fused.op, *(at.param(getattr(k, name), name) for name in fused.parameters))
        return
    if f.size() > MOST_STEPS:
        raise NotLowered(
            f"the formula of {type(k).__name__} has {f.size()} steps, and {MOST_STEPS} are the most"
        )
    Writer(at, k.numbers(), lambda _: variable()).write(f)


class Fused(NamedTuple):
    """A step of the core that is a whole formula, and the parameters it takes."""

    op: str
    parameters: tuple[str, ...]


def _fused(f: Formula) -> Fused | None:
    """The step that is the whole formula, if there is one; looked up once for a recording."""
    kept = f.__dict__
    if "_fused" not in kept:
        parameters = tuple(sorted(f.names() - {VARIABLE}))
        op = _FUSED.get(_with_names(f, {old: f"p{i}" for i, old in enumerate(parameters)}).key())
        kept["_fused"] = None if op is None else Fused(op, parameters)
    found: Fused | None = kept["_fused"]
    return found


class Writer:
    """Writes one formula: parameters have these values, and `variable` writes the steps of variables by name.

    `entry` says what a parameter of the formula is called in the kernel.
    """

    def __init__(
        self,
        at: Place,
        values: Mapping[str, float],
        variable: Callable[[str], None],
        entry: Callable[[str], str] = str,
    ) -> None:
        self.at = at
        self.values = values
        self.variable = variable
        self.entry = entry

    def number(self, f: Formula) -> int:
        """A number of the program; its derivatives link it to the parameters it is made of."""
        with np.errstate(all="ignore"):
            value = float(f.at(None, self.values))
        if not np.isfinite(value):
            raise NotLowered(f"{f.text('s')} is {value} here")
        index = self.at.param(value)
        for name in sorted(f.names()):
            self.at.link(index, self.entry(name), float(f.derivative(name).at(None, self.values)))
        return index

    def write(self, f: Formula) -> None:
        if not _depends(f):
            self.at.step("CONST", self.number(f))
            return
        if f.op == "name":
            self.variable(f.name)
            return
        scale, inner, offset = _affine(f)
        if inner is not f:
            self.write(inner)
            self.affine(scale, offset)
        elif f.op in _UNARY:
            self.write(f.parts[0])
            self.at.step(_UNARY[f.op])
        elif f.op in _BINARY:
            self.write(f.parts[0])
            self.write(f.parts[1])
            self.at.step(_BINARY[f.op])
        elif f.op in _RULES:
            _RULES[f.op](self, *f.parts)
        else:
            raise NotLowered(f"the core has no step for {f.op}")

    def affine(self, scale: Formula, offset: Formula) -> None:
        """scale · top + offset; a plain factor goes into an AFFINE step before it."""
        at = self.at
        op, a, zero = at.out.code[-1]
        plain = scale.op == "number" and offset.op == "number"
        if plain and op == "AFFINE" and at.out.params[zero] == 0.0 and not at.linked(zero):
            at.rescale(a, scale.number)
            at.out.params[zero] = offset.number
            return
        at.step("AFFINE", self.number(scale), self.number(offset))

    def divide(self, a: Formula, c: Formula) -> None:
        """a / c where c depends on the variable."""
        self.write(c)
        self.at.step("RECIPROCAL")
        if _depends(a):
            self.write(a)
            self.at.step("MUL")
        elif not (a.op == "number" and a.number == 1.0):
            self.affine(a, ZERO)

    def subtract(self, a: Formula, c: Formula) -> None:
        self.write(a)
        self.write(-c)
        self.at.step("ADD")

    def power(self, base: Formula, exponent: Formula) -> None:
        if _depends(exponent):
            self._exponential(base, exponent)
            return
        self.write(base)
        if exponent.op != "number":
            self.at.step("POW", self.number(exponent))
            return
        p = exponent.number
        if p == 0.5:
            self.at.step("SQRT")
        elif p == int(p) and abs(p) < 2**31:
            self.at.step("POWI", 0, int(abs(p)))
            if p < 0:
                self.at.step("RECIPROCAL")
        else:
            self.at.step("POW", self.number(exponent))

    def _exponential(self, base: Formula, exponent: Formula) -> None:
        if _depends(base):
            raise NotLowered("a power whose base and exponent both depend on the rows")
        if not float(base.at(None, self.values)) > 0:
            raise NotLowered("a power of a number that is not positive")
        self.write(exponent)
        self.affine(apply("log", base), ZERO)
        self.at.step("EXP")

    def polynomial(self, u: Formula, *coefs: Formula) -> None:
        if any(_depends(c) for c in coefs):
            raise NotLowered("a polynomial whose coefficients depend on the rows")
        self.write(u)
        first = len(self.at.out.params)
        for c in coefs:
            self.number(c)
        self.at.step("HORNER", first, len(coefs))


_RULES: dict[str, Callable[..., None]] = {
    "divide": Writer.divide,
    "subtract": Writer.subtract,
    "power": Writer.power,
    "polynomial": Writer.polynomial,
}


def _depends(f: Formula) -> bool:
    """Whether a formula depends on the rows: variables are the names that begin like `VARIABLE`."""
    return any(name.startswith(VARIABLE) for name in f.names())


def _affine(f: Formula) -> tuple[Formula, Formula, Formula]:
    """f as scale · inner + offset, with as much as possible in the two that depend on parameters alone."""
    if f.op == "negative":
        scale, inner, offset = _affine(f.parts[0])
        return -scale, inner, -offset
    if f.op not in ("add", "subtract", "multiply", "divide"):
        return ONE, f, ZERO
    left, right = f.parts
    if (_depends(left) and _depends(right)) or (f.op == "divide" and _depends(right)):
        return ONE, f, ZERO
    scale, inner, offset = _affine(left if _depends(left) else right)
    constant = right if _depends(left) else left
    if f.op == "add":
        return scale, inner, offset + constant
    if f.op == "subtract":
        sign = 1.0 if _depends(left) else -1.0
        return sign * scale, inner, sign * (offset - constant)
    if f.op == "multiply":
        return constant * scale, inner, constant * offset
    return scale / constant, inner, offset / constant


def _with_names(f: Formula, names: dict[str, str]) -> Formula:
    """The formula with other names for its parameters."""
    found: dict[int, Formula] = {}
    for step in f.steps():
        parts = tuple(found[id(part)] for part in step.parts)
        found[id(step)] = Formula(step.op, parts, step.number, names.get(step.name, step.name))
    return found[id(f)]
