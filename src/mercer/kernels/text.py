"""Reading a kernel from its text. The grammar is the part of Python that kernels print as:

    sum      :=  ["-"] product (("+" | "-") product)*
    product  :=  unary (("*" | "/") unary)*
    unary    :=  "-" unary | power
    power    :=  call ["**" unary]
    call     :=  atom ("." method "(" arguments ")")*
    atom     :=  number | Name "(" arguments ")" | "(" sum ")"
    arguments:=  [name "="] value, …
    value    :=  sum | string | list | pair | slice(…) | Reading "(" arguments ")" | True | False | None

Nothing is ever evaluated as Python; names are looked up in the list of leaves, methods in the table below.
Every error knows its column.
"""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from mercer.errors import MercerError, ParameterError, ParseError
from mercer.kernels import doors
from mercer.kernels.base import Kernel
from mercer.kernels.combining import is_number
from mercer.kernels.leaves.leaf import LEAVES, Leaf
from mercer.kernels.leaves.special import Constant
from mercer.kernels.things.reading import find_reading
from mercer.names import KERNELS, called_here
from mercer.typing import Setting

Made = TypeVar("Made")

METHODS = ("exp", "polynomial", "of", "on", "normalized", "bags", "fix", "bounded")
_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
# Nested brackets; beyond it an expression is refused rather than overflowing the stack.
_DEEPEST = 60

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<op>\*\*|[-+*/().,=\[\]])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse(text: str) -> Kernel:
    """The kernel that `text` describes; `parse(str(k)) == k` for every kernel made of named parts.

    >>> parse("RBF(2.0) * Periodic(1.0) + 0.1*White(1.0)")
    RBF(2.0)*Periodic(1.0) + 0.1*White(1.0)
    >>> parse("RBF(2.0) + ")
    Traceback (most recent call last):
    ...
    mercer.errors.ParseError: expected a kernel at column 12
      RBF(2.0) +
                 ^
    """
    if not isinstance(text, str):
        raise ParseError(f"a kernel expression is text, not {type(text).__name__}", str(text), 1)
    known = _read.get(text)
    if known is not None and all(LEAVES.get(name) is cls for name, cls in known.leaves.items()):
        return known.kernel
    parser = _Parser(text)
    kernel = parser.whole()
    if len(_read) >= _MOST_READ:
        _read.clear()
    _read[text] = _Read(kernel, parser.leaves)
    return kernel


class _Read(NamedTuple):
    """A text that was read before: its kernel, and the leaves that its names meant then."""

    kernel: Kernel
    leaves: dict[str, type[Leaf]]


# Kernels never change, so that a text is read once as long as its names mean the same leaves.
_read: dict[str, _Read] = {}
_MOST_READ = 256


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.leaves: dict[str, type[Leaf]] = {}
        self.tokens = self._tokens()

    def _tokens(self) -> list[Token]:
        out = []
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                if self.text[place] == "<":
                    self.fail("a function cannot be read from text: build this kernel in Python", place + 1)
                raise ParseError(f"unexpected {self.text[place]!r}", self.text, place + 1)
            if match.lastgroup != "space":
                out.append(Token(str(match.lastgroup), match.group(), place + 1))
            place = match.end()
        out.append(Token("end", "", len(self.text) + 1))
        return out

    # ── tokens ──

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(self, problem: str, column: int | None = None) -> NoReturn:
        if column is None:
            column = self.token.column
        raise ParseError(problem, self.text, column)

    def accept(self, text: str) -> bool:
        if self.token.kind != "string" and self.token.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, where: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r} {where}")

    # ── expressions ──

    def whole(self) -> Kernel:
        start = self.token.column
        value = self.sum()
        if self.token.kind != "end":
            self.fail(f"expected an operator or the end, found {self.token.text!r}")
        if not isinstance(value, Kernel):
            self.fail(f"a number alone is no kernel; write Constant({value!r})", start)
        return value

    def sum(self) -> Kernel | float:
        value = self.product()
        while self.token.text in ("+", "-"):
            op = self.token
            self.at += 1
            value = self.combine(op, value, self.product())
        return value

    def product(self) -> Kernel | float:
        value = self.unary()
        while self.token.text in ("*", "/"):
            op = self.token
            self.at += 1
            value = self.combine(op, value, self.unary())
        return value

    def unary(self) -> Kernel | float:
        if self.accept("-"):
            self.enter()
            value = -self.unary()
            self.depth -= 1
            return value
        return self.power()

    def power(self) -> Kernel | float:
        base = self.call()
        op = self.token
        if self.accept("**"):
            self.enter()
            exponent = self.unary()
            self.depth -= 1
            if isinstance(exponent, Kernel):
                self.fail("an exponent is a number", op.column + 2)
            return self.combine(op, base, exponent)
        return base

    def combine(self, op: Token, a: Kernel | float, b: Kernel | float) -> Kernel | float:
        if op.text == "/" and isinstance(b, Kernel):
            self.fail("only a number can divide", op.column)
        try:
            out: Kernel | complex = _OPERATORS[op.text](a, b)
        except ZeroDivisionError:
            self.fail("division by zero", op.column)
        except OverflowError:
            self.fail("the number is too large", op.column)
        except MercerError as error:
            self.fail(str(error), op.column)
        if isinstance(out, complex):
            self.fail("the power is no real number", op.column)
        if not isinstance(out, Kernel) and not math.isfinite(out):
            self.fail("the number is too large", op.column)
        return out

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"nested more than {_DEEPEST} deep")

    def call(self) -> Kernel | float:
        value = self.atom()
        while self.token.text == "." and self.token.kind == "op":
            self.at += 1
            name = self.token
            if name.kind != "name" or name.text not in METHODS:
                self.fail(f"expected a method after '.': one of {', '.join(METHODS)}")
            self.at += 1
            if not isinstance(value, Kernel):
                self.fail("a number has no methods", name.column)
            args, named = self.arguments()
            value = self.build(getattr(value, name.text), args, named, name)
            if value.nesting > _DEEPEST:
                self.fail(f"nested more than {_DEEPEST} deep", name.column)
        return value

    def atom(self) -> Kernel | float:
        token = self.token
        if token.kind == "number":
            self.at += 1
            number = float(token.text)
            if not math.isfinite(number):
                self.fail("the number is too large", token.column)
            return number
        if token.kind == "name":
            if token.text not in LEAVES:
                self.fail(_unknown(token.text))
            self.at += 1
            args, named = self.arguments()
            cls = LEAVES[token.text]
            self.leaves[token.text] = cls
            return self.build(cls, args, named, token)
        if self.accept("("):
            self.enter()
            value = self.sum()
            self.expect(")", f"to close the bracket of column {token.column}")
            self.depth -= 1
            return value
        self.fail("expected a kernel")

    def build(
        self, make: Callable[..., Made], args: list[Setting], named: dict[str, Setting], token: Token
    ) -> Made:
        if token.text != "of" and any(_holds_kernel(v) for v in (*args, *named.values())):
            self.fail(f"{token.text} takes numbers and names, not kernels", token.column)
        try:
            return make(*args, **named)
        except MercerError as error:
            self.fail(str(error), token.column)
        except TypeError as error:
            self.fail(_wrong_call(make, token.text, args, named) or str(error), token.column)

    # ── arguments ──

    def arguments(self) -> tuple[list[Setting], dict[str, Setting]]:
        opening = self.token.column
        self.expect("(", "after a name")
        self.enter()
        args: list[Setting] = []
        named: dict[str, Setting] = {}
        while not self.accept(")"):
            name = self.token
            if name.kind == "name" and self.tokens[self.at + 1].text == "=":
                if name.text in named:
                    self.fail(f"{name.text} is given twice")
                self.at += 2
                named[name.text] = self.value()
            else:
                if named:
                    self.fail("a value without a name cannot follow one with a name")
                args.append(self.value())
            if self.token.text not in (",", ")") or self.token.kind == "string":
                self.fail(f"expected ',' or ')' to close the bracket of column {opening}")
            self.accept(",")
        self.depth -= 1
        return args, named

    def value(self) -> Setting:
        token = self.token
        if token.kind == "string":
            self.at += 1
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.kind == "name" and token.text in ("True", "False", "None"):
            self.at += 1
            return {"True": True, "False": False, "None": None}[token.text]
        if token.kind == "name" and token.text not in LEAVES:
            reading = find_reading(token.text)
            if reading is not None:
                self.at += 1
                args, named = self.arguments()
                return self.build(reading, args, named, token)
        if token.kind == "name" and token.text == "slice":
            self.at += 1
            args, named = self.arguments()
            whole = [int(a) if isinstance(a, float) and a == int(a) else a for a in args]
            plain = all(a is None or isinstance(a, int) for a in whole)
            if named or not plain or not 1 <= len(whole) <= 3:
                self.fail("slice takes one to three whole numbers", token.column)
            return slice(*whole)
        if token.text in ("[", "(") and token.kind == "op":
            saved = self.at
            found = self.listed("]" if token.text == "[" else ")")
            if found is not None:
                return found
            self.at = saved
        value = self.sum()
        if isinstance(value, float) and value == int(value) and "." not in token.text:
            return int(value)
        return value

    def listed(self, closing: str) -> list[Setting] | None:
        """A list in brackets, or a pair in parentheses; None if the parentheses hold a single expression."""
        opening = self.token
        self.at += 1
        self.enter()
        items: list[Setting] = []
        commas = 0
        while not self.accept(closing):
            items.append(self.value())
            if self.accept(","):
                commas += 1
            elif self.token.text != closing:
                self.fail(f"expected ',' or {closing!r} to close the bracket of column {opening.column}")
        self.depth -= 1
        if closing == ")" and commas == 0:
            return None
        return items


def _holds_kernel(value: Setting) -> bool:
    return isinstance(value, Kernel) or (isinstance(value, list) and any(map(_holds_kernel, value)))


def _wrong_call(
    make: Callable[..., object], name: str, args: list[Setting], named: dict[str, Setting]
) -> str | None:
    """What is wrong with the arguments, counted as the reader of the expression counts them."""
    parameters = inspect.signature(make).parameters
    known = [*parameters, *getattr(make, "spellings", ())]
    takes = f"it takes {', '.join(known)}" if known else "it takes nothing in its brackets"
    for given in named:
        if given not in known:
            return f"{name} has no {given!r}; {takes}"
    if len(args) > len(parameters):
        return f"{name} got {len(args)} values; {takes}"
    twice = [n for n in list(parameters)[: len(args)] if n in named]
    if twice:
        return f"{name} got {twice[0]} twice"
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in named][len(args) :]
    if missing:
        return f"{name} needs {' and '.join(missing)}"
    return None


def _unknown(name: str) -> str:
    meant = called_here(name, LEAVES, KERNELS)
    hint = f"did you mean {meant}?" if meant else f"known kernels: {', '.join(sorted(LEAVES))}"
    return f"expected a kernel, found {name!r} ({hint})"


def read(value: object) -> Kernel:
    """A kernel, its text, or a number (as a constant) — as a kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return parse(value)
    if is_number(value):
        return Constant(value)
    raise ParameterError(f"a kernel was expected, or its text such as 'RBF(2.0)'; got {value!r}.")


doors.reading.open(read)
