"""Recorded formulas in interval arithmetic: bounds that hold whatever is rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mercer.kernels.formulas.formula import VARIABLE, Formula
from mercer.kernels.proofs.intervals import Interval, NotEnclosed, pi

_ONE = Interval.exact(1)
_TWO = Interval.exact(2)


def bounds(f: Formula, variable: Interval, names: Mapping[str, float]) -> Interval:
    """What the formula may be; `NotEnclosed` where its steps have no bounds."""
    return bounds_of(f, {VARIABLE: variable}, names)


def bounds_of(f: Formula, variables: Mapping[str, Interval], names: Mapping[str, float]) -> Interval:
    """The same of a formula of several variables."""
    exact = {name: Interval.exact(value) for name, value in names.items()}
    try:
        return f.fold({**exact, **variables}, Interval.exact, _RULES)
    except KeyError as step:
        raise NotEnclosed(f"no bounds are known for {step.args[0]}") from step


def _power(base: Interval, exponent: Interval) -> Interval:
    if exponent.low != exponent.high:
        return (exponent * base.log()).exp()
    p = exponent.low
    if p == p.to_integral_value():
        whole = base.whole_power(abs(int(p)))
        if p >= 0:
            return whole
        return _ONE / whole
    if p > 0:
        return base.power(float(p))
    return _ONE / base.power(-float(p))


def _polynomial(u: Interval, *coefs: Interval) -> Interval:
    out = coefs[-1]
    for c in reversed(coefs[:-1]):
        out = out * u + c
    return out


def _expit(u: Interval) -> Interval:
    return _ONE / (_ONE + (-u).exp())


def _larger(a: Interval, b: Interval) -> Interval:
    return -((-a).smaller(-b))


_RULES: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a.square() if a is b else a * b,
    "divide": lambda a, b: a / b,
    "power": _power,
    "negative": lambda a: -a,
    "absolute": Interval.absolute,
    "exp": Interval.exp,
    "expm1": lambda a: a.exp() - _ONE,
    "log": Interval.log,
    "log1p": lambda a: (_ONE + a).log(),
    "sqrt": Interval.sqrt,
    "sin": lambda a: (a - pi() / _TWO).cos(),
    "cos": Interval.cos,
    "sinh": lambda a: (a.exp() - (-a).exp()) / _TWO,
    "cosh": lambda a: (a.exp() + (-a).exp()) / _TWO,
    "tanh": lambda a: _TWO * _expit(_TWO * a) - _ONE,
    "expit": _expit,
    "maximum": _larger,
    "minimum": Interval.smaller,
    "polynomial": _polynomial,
}

KNOWN = {"number", "name", *_RULES}  # operations that have bounds
