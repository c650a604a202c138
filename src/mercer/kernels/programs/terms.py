"""Terms of single columns as steps of a program: what a user's `PerColumn` leaf adds up or multiplies.

The core has no step that reads x and z by themselves, but some that read two numbers of a column together:

    |x - z|    L1           x z    DOT           min(x, z)    MINSUM

A term that is a formula of these is written for one column after the other. A function of x - z may be
written as one of |x - z| where it is even, and every symmetric function of the difference is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mercer.arrays import Rows
from mercer.kernels.formulas.formula import LEFT, RIGHT, VARIABLE, Formula, NotRecorded
from mercer.kernels.programs.program import NotLowered, Place, scattered
from mercer.kernels.programs.steps import Writer

if TYPE_CHECKING:
    from mercer.kernels.leaves.families import PerColumn

_DIFFERENCE = f"{VARIABLE}x - z"
_PRODUCT = f"{VARIABLE}xz"
_SMALLER = f"{VARIABLE}min(x, z)"
_STEPS = {_DIFFERENCE: "L1", _PRODUCT: "DOT", _SMALLER: "MINSUM"}


def write_columns(k: PerColumn, at: Place) -> None:
    """The terms of all columns, reduced."""
    for name in k.column_names():
        # refuses an open parameter, and another number of columns
        k.column_values(name, at.width)
    try:
        f = read_together(k.recorded_term())
    except NotRecorded as why:
        raise NotLowered(f"the term of {type(k).__name__} is no formula: {why}") from why
    if parity(f) != "even":
        raise NotLowered(f"the term of {type(k).__name__} changes with the sign of x - z")
    for j in range(at.width):
        column = at.mapped(partial(Rows.take, columns=(j,)), scattered([j], at.width))

        def variable(name: str, column: Place = column) -> None:
            at.step(_STEPS[name], column.view(centred=name == _DIFFERENCE, dense_only=True))

        def entry(name: str, j: int = j) -> str:
            return k.entry_name(name, j)

        Writer(at, k.at_column(j), variable, entry).write(f)
        if j:
            at.step("ADD" if k.reduction == "sum" else "MUL")


def read_together(f: Formula) -> Formula:
    """The formula with x - z, x z and min(x, z) as variables; `NotLowered` where x or z is read alone."""
    made: dict[int, Formula] = {}
    for step in f.steps():
        sides = {part.name for part in step.parts if part.op == "name"}
        both = len(step.parts) == 2 and sides == {LEFT, RIGHT}
        name = {"subtract": _DIFFERENCE, "multiply": _PRODUCT, "minimum": _SMALLER}.get(step.op)
        if both and name is not None:
            found = Formula("name", name=name)
            backwards = step.op == "subtract" and step.parts[0].name == RIGHT
            made[id(step)] = -found if backwards else found
        elif step.op == "name" and step.name in (LEFT, RIGHT):
            made[id(step)] = step
        else:
            parts = tuple(made[id(part)] for part in step.parts)
            made[id(step)] = Formula(step.op, parts, step.number, step.name)
    out = made[id(f)]
    if out.names() & {LEFT, RIGHT}:
        raise NotLowered("its term looks at x or z alone, and not at x - z, x z or min(x, z)")
    return out


_ODD = frozenset({"negative", "sin", "sinh", "tanh"})
_EVEN = frozenset({"cos", "cosh", "absolute"})


def parity(f: Formula) -> str:
    """Whether a formula is "even", "odd" or "neither" in x - z, by its steps."""
    found: dict[int, str] = {}
    for step in f.steps():
        found[id(step)] = _parity(step, [found[id(part)] for part in step.parts])
    return found[id(f)]


def _parity(step: Formula, parts: list[str]) -> str:
    if step.op == "name":
        if step.name == _DIFFERENCE:
            return "odd"
        return "even"
    if all(part == "even" for part in parts):
        return "even"
    if "neither" in parts:
        return "neither"
    if step.op in _EVEN:
        return "even"
    if step.op in _ODD:
        return "odd"
    if step.op in ("add", "subtract") and parts[0] == parts[1]:
        return "odd"
    if step.op in ("multiply", "divide"):
        if parts[0] == parts[1]:
            return "even"
        return "odd"
    if step.op == "power" and parts[1] == "even" and step.parts[1].op == "number":
        exponent = step.parts[1].number
        if exponent == int(exponent):
            if int(exponent) % 2 == 0:
                return "even"
            return "odd"
    return "neither"
