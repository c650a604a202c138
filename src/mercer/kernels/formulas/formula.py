"""A formula as a thing: what `value` of a leaf does to a symbol, recorded step by step.

`value` is called once with a `Formula` in place of an array. Every operation on it, by an operator or by a
function of NumPy, becomes a step, and from that one recording follow the derivative (here), the program for
the core (`gram.lower`), bounds (`enclosure`), LaTeX (`typeset`) and, where rules are enough, the proof
(`monotone`).

    >>> f = record(lambda u: np.exp(-np.sqrt(u)) / 2)
    >>> f.text("u"), f.derivative().text("u")
    ('exp(-sqrt(u))/2', '0.5*exp(-sqrt(u))*(-0.5/sqrt(u))')
    >>> float(f.at(4.0))                                    # e^-2 / 2
    0.0676676416183...

A function that looks at values (`if u > 0`, `np.where`), or calls what NumPy does not know as a function of
numbers, cannot be recorded: `NotRecorded` says what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from scipy import special

# The name of the variable in a recording; parameters have the names of their fields, which never look like
# this.
VARIABLE = "·"
# The two numbers that the term of a column is a function of.
LEFT = f"{VARIABLE}x"
RIGHT = f"{VARIABLE}z"
# The most steps of one recording.
MOST_STEPS = 2000
# What a formula is called with: an array of numbers, real or complex, or the symbol that records what is done
# to it.
Values: TypeAlias = Any

T = TypeVar("T")


class NotRecorded(Exception):
    """The function did something to its argument that is no step of a formula."""


@dataclass(frozen=True, eq=False, repr=False)
class Formula:
    """One step: an operation on other formulas, a number, or a name that stands for one."""

    op: str
    parts: tuple[Formula, ...] = ()
    number: float = 0.0
    name: str = ""

    # ── recording ───────────────────────────────────────────────────────────────────────────────────────────

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Values, **options: Values) -> Formula:
        name = _NAMES.get(ufunc)
        if name is None or method != "__call__" or options:
            raise NotRecorded(f"it calls {ufunc.__name__} in a way that has no rule")
        return apply(name, *inputs)

    def __array_function__(self, function: Callable[..., Values], *args: Values) -> NoReturn:
        raise NotRecorded(f"it calls np.{function.__name__}, which looks at values")

    def __array__(self, *args: Values, **options: Values) -> NoReturn:
        raise NotRecorded("it makes an array of its argument")

    def __add__(self, other: Values) -> Formula:
        return apply("add", self, other)

    def __radd__(self, other: Values) -> Formula:
        return apply("add", other, self)

    def __sub__(self, other: Values) -> Formula:
        return apply("subtract", self, other)

    def __rsub__(self, other: Values) -> Formula:
        return apply("subtract", other, self)

    def __mul__(self, other: Values) -> Formula:
        return apply("multiply", self, other)

    def __rmul__(self, other: Values) -> Formula:
        return apply("multiply", other, self)

    def __truediv__(self, other: Values) -> Formula:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Values) -> Formula:
        return apply("divide", other, self)

    def __pow__(self, other: Values) -> Formula:
        return apply("power", self, other)

    def __rpow__(self, other: Values) -> Formula:
        return apply("power", other, self)

    def __neg__(self) -> Formula:
        return apply("negative", self)

    def __pos__(self) -> Formula:
        return self

    def __abs__(self) -> Formula:
        return apply("absolute", self)

    def _looks(self, *args: Values) -> NoReturn:
        raise NotRecorded("it looks at the value of its argument")

    __bool__ = __float__ = __int__ = __len__ = __iter__ = __getitem__ = _looks
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _looks
    __hash__ = object.__hash__

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────

    def steps(self) -> Iterator[Formula]:
        """Every step once, operands before what is made of them."""
        seen: set[int] = set()
        waiting: list[tuple[Formula, bool]] = [(self, False)]
        while waiting:
            step, ready = waiting.pop()
            if id(step) in seen:
                continue
            if ready:
                seen.add(id(step))
                yield step
                continue
            waiting.append((step, True))
            waiting.extend((part, False) for part in step.parts)

    def names(self) -> frozenset[str]:
        """What it depends on; looked up once."""
        kept: frozenset[str] | None = self.__dict__.get("_names")
        if kept is None:
            kept = frozenset(step.name for step in self.steps() if step.op == "name")
            self.__dict__["_names"] = kept
        return kept

    def operations(self) -> set[str]:
        """What is done in it."""
        return {step.op for step in self.steps()}

    def size(self) -> int:
        """How many steps it has when none is shared."""
        sizes: dict[int, int] = {}
        for step in self.steps():
            sizes[id(step)] = 1 + sum(sizes[id(part)] for part in step.parts)
        return sizes[id(self)]

    def fold(
        self,
        names: Mapping[str, T],
        number: Callable[[float], T],
        rules: Mapping[str, Callable[..., T]],
    ) -> T:
        """The formula in another arithmetic: what names and numbers are, and a function per operation."""
        found: dict[int, T] = {}
        for step in self.steps():
            if step.op == "number":
                found[id(step)] = number(step.number)
            elif step.op == "name":
                found[id(step)] = names[step.name]
            else:
                found[id(step)] = rules[step.op](*(found[id(part)] for part in step.parts))
        return found[id(self)]

    def at(self, variable: Values, names: Mapping[str, Values] | None = None) -> Values:
        """Its values."""
        return self.fold({**(names or {}), VARIABLE: variable}, lambda number: number, _FUNCTIONS)

    def derivative(self, name: str = VARIABLE) -> Formula:
        """Its derivative by the variable or by a name, as a formula."""
        found: dict[int, Formula] = {}
        for step in self.steps():
            total = ZERO
            if step.op == "name":
                total = ONE if step.name == name else ZERO
            elif step.op != "number":
                slopes = SLOPES[step.op](step, *step.parts)
                for part, slope in zip(step.parts, slopes, strict=True):
                    inner = found[id(part)]
                    if not _is(inner, 0.0):
                        total = total + slope() * inner
            found[id(step)] = total
        return found[id(self)]

    def key(self) -> Hashable:
        """Equal for formulas that are the same steps on the same names."""
        rules = {op: (lambda *parts, op=op: (op, *parts)) for op in _FUNCTIONS}
        names: dict[str, Hashable] = {name: ("name", name) for name in self.names()}
        return self.fold(names, _itself, rules)

    def text(self, variable: str) -> str:
        """The formula as Python would write it, with a letter for the variable."""
        return _write(self, variable, 0)


def name(text: str) -> Formula:
    return Formula("name", name=text)


def number(value: float) -> Formula:
    return Formula("number", number=float(value))


ZERO = number(0.0)
ONE = number(1.0)


def _is(f: Formula, value: float) -> bool:
    return f.op == "number" and f.number == value


def _itself(number: float) -> Hashable:
    return number


def as_formula(value: Values) -> Formula:
    if isinstance(value, Formula):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise NotRecorded(f"it combines its argument with {type(value).__name__}")
    return number(float(value))


def apply(op: str, *operands: Values) -> Formula:
    """The step `op`; numbers alone are computed at once, and 0 and 1 vanish where they say nothing."""
    parts = tuple(as_formula(operand) for operand in operands)
    if all(part.op == "number" for part in parts):
        with np.errstate(all="ignore"):
            return number(float(_FUNCTIONS[op](*(part.number for part in parts))))
    simple = _SIMPLER.get(op)
    found = None if simple is None else simple(*parts)
    if found is None:
        return Formula(op, parts)
    return found


def polynomial(u: Values, coefs: tuple[Values, ...]) -> Values:
    """c₀ + c₁u + c₂u² + … by Horner's rule, of numbers or of a formula."""
    if isinstance(u, Formula):
        return Formula("polynomial", (u, *(as_formula(c) for c in coefs)))
    return np.polynomial.polynomial.polyval(u, np.asarray(coefs))


def record(function: Callable[..., Values], *names: str) -> Formula:
    """What `function` does to the variable, or to several names, as a formula."""
    try:
        found = as_formula(function(*(name(v) for v in names or (VARIABLE,))))
    except NotRecorded:
        raise
    except Exception as error:
        raise NotRecorded(f"it stops at a symbol with {type(error).__name__}: {error}") from error
    if sum(1 for _ in found.steps()) > MOST_STEPS:
        raise NotRecorded(f"it takes more than {MOST_STEPS} steps")
    return found


# ── the operations ──────────────────────────────────────────────────────────────────────────────────────────


def _polynomial_value(u: Values, *coefs: Values) -> Values:
    return np.polynomial.polynomial.polyval(u, np.asarray(coefs))


_FUNCTIONS: dict[str, Callable[..., Values]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "negative": np.negative,
    "absolute": np.absolute,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "expit": special.expit,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "polynomial": _polynomial_value,
}
_NAMES: dict[Callable[..., Values], str] = {
    **{function: op for op, function in _FUNCTIONS.items() if isinstance(function, np.ufunc)},
    np.float_power: "power",
    np.fabs: "absolute",
}
# Functions that are written with others: square is a power.
_FUNCTIONS["square"] = np.square
_FUNCTIONS["reciprocal"] = np.reciprocal
_FUNCTIONS["exp2"] = np.exp2
_FUNCTIONS["positive"] = np.positive
_NAMES |= {np.positive: "positive", np.square: "square", np.reciprocal: "reciprocal", np.exp2: "exp2"}


def _add(a: Formula, b: Formula) -> Formula | None:
    if _is(a, 0.0):
        return b
    if _is(b, 0.0):
        return a
    return None


def _subtract(a: Formula, b: Formula) -> Formula | None:
    if _is(b, 0.0):
        return a
    return None


def _multiply(a: Formula, b: Formula) -> Formula | None:
    for one, other in ((a, b), (b, a)):
        if _is(one, 0.0):
            return ZERO
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return apply("negative", other)
    return None


def _divide(a: Formula, b: Formula) -> Formula | None:
    if _is(b, 1.0):
        return a
    if _is(a, 1.0) and b.op == "add" and _is(b.parts[0], 1.0) and b.parts[1].op == "exp":
        # 1 / (1 + e^u), which overflows on its way where u is large
        return apply("expit", -b.parts[1].parts[0])
    return None


def _power(a: Formula, b: Formula) -> Formula | None:
    if _is(b, 0.0):
        return ONE
    if _is(b, 1.0):
        return a
    return None


def _negative(a: Formula) -> Formula | None:
    if a.op == "negative":
        return a.parts[0]
    return None


_SIMPLER: dict[str, Callable[..., Formula | None]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "negative": _negative,
    "positive": lambda a: a,
    "square": lambda a: apply("power", a, 2.0),
    "reciprocal": lambda a: apply("divide", 1.0, a),
    "exp2": lambda a: apply("power", 2.0, a),
}

# d(op)/d(part) for each part, as functions, so that only those that are needed are written. `y` is the step
# itself.
SLOPES: dict[str, Callable[..., tuple[Callable[[], Formula], ...]]] = {
    "add": lambda y, a, b: (lambda: ONE, lambda: ONE),
    "subtract": lambda y, a, b: (lambda: ONE, lambda: number(-1.0)),
    "multiply": lambda y, a, b: (lambda: b, lambda: a),
    "divide": lambda y, a, b: (lambda: 1 / b, lambda: -y / b),
    "power": lambda y, a, b: (lambda: b * a ** (b - 1), lambda: y * apply("log", a)),
    "negative": lambda y, a: (lambda: number(-1.0),),
    "absolute": lambda y, a: (lambda: a / y,),
    "exp": lambda y, a: (lambda: y,),
    "expm1": lambda y, a: (lambda: apply("exp", a),),
    "log": lambda y, a: (lambda: 1 / a,),
    "log1p": lambda y, a: (lambda: 1 / (1 + a),),
    "sqrt": lambda y, a: (lambda: 0.5 / y,),
    "sin": lambda y, a: (lambda: apply("cos", a),),
    "cos": lambda y, a: (lambda: -apply("sin", a),),
    "sinh": lambda y, a: (lambda: apply("cosh", a),),
    "cosh": lambda y, a: (lambda: apply("sinh", a),),
    "tanh": lambda y, a: (lambda: 4 * apply("expit", 2 * a) * apply("expit", -2 * a),),
    "arctan": lambda y, a: (lambda: 1 / (1 + a * a),),
    "expit": lambda y, a: (lambda: y * apply("expit", -a),),
    "maximum": lambda y, a, b: (lambda: _share(a, b), lambda: _share(b, a)),
    "minimum": lambda y, a, b: (lambda: _share(b, a), lambda: _share(a, b)),
    "polynomial": lambda y, u, *coefs: (
        lambda: polynomial(u, tuple(i * c for i, c in enumerate(coefs))[1:] or (0.0,)),
        *((lambda i=i: u**i) for i in range(len(coefs))),
    ),
}


def _share(a: Formula, b: Formula) -> Formula:
    """1 where a > b, 0 where a < b, and ½ where they are equal."""
    return Formula("above", (a, b))


def _above(a: Values, b: Values) -> Values:
    return np.where(a > b, 1.0, np.where(a < b, 0.0, 0.5))


_FUNCTIONS["above"] = _above
SLOPES["above"] = lambda y, a, b: (lambda: ZERO, lambda: ZERO)


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────

_SIGNS = {
    "add": (" + ", 1, 1),
    "subtract": (" - ", 1, 2),
    "multiply": ("*", 2, 2),
    "divide": ("/", 2, 3),
    "power": ("**", 4, 3),
}
_LEVELS = {"add": 1, "subtract": 1, "multiply": 2, "divide": 2, "negative": 1, "power": 3}


def _write(f: Formula, variable: str, level: int) -> str:
    if f.op == "number":
        text = f"{f.number:.12g}"
        if f.number < 0 and level > 1:
            return f"({text})"
        return text
    if f.op == "name":
        if f.name == VARIABLE:
            return variable
        return f.name
    if f.op == "negative":
        text = "-" + _write(f.parts[0], variable, 2)
    elif f.op in _SIGNS:
        sign, left, right = _SIGNS[f.op]
        first, second = f.parts
        if first.op == "negative" and f.op in ("multiply", "divide"):
            # -a*b is read as (-a)*b
            begins = "-" + _write(first.parts[0], variable, 2)
        else:
            begins = _write(first, variable, left)
        text = begins + sign + _write(second, variable, right)
    else:
        text = f"{f.op}({', '.join(_write(part, variable, 0) for part in f.parts)})"
    if _LEVELS.get(f.op, 5) < level:
        return f"({text})"
    return text


# ── trust ───────────────────────────────────────────────────────────────────────────────────────────────────

_CHECKED_AT = np.array([-1.3, -0.02, 0.03, 0.4, 1.7, 5.3])


def require_faithful(f: Formula, function: Callable[[Values], Values], names: Mapping[str, float]) -> None:
    """Refuse a recording that is not what the function does to numbers."""
    with np.errstate(all="ignore"):
        recorded = f.at(_CHECKED_AT, names) + np.zeros_like(_CHECKED_AT)
        direct = np.asarray(function(_CHECKED_AT), dtype=float)
    same = direct.shape == recorded.shape and np.allclose(
        recorded, direct, rtol=1e-12, atol=0, equal_nan=True
    )
    if not same:
        raise NotRecorded("it does something else to numbers than to a symbol")
