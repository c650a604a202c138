"""A leaf that is a function of one number, recorded once with a symbol in its place.

`recorded` calls `value` with a symbol, and the derivative, the program of the core, the bounds and the LaTeX
follow from what was recorded (`formulas`).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Container, Hashable
from typing import ClassVar, TypeVar

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels.formulas.certain import KNOWN, bounds
from mercer.kernels.formulas.formula import VARIABLE, Formula, NotRecorded, Values, record, require_faithful
from mercer.kernels.formulas.typeset import latex
from mercer.kernels.leaves.inheritance import is_ours
from mercer.kernels.leaves.leaf import Leaf, not_written
from mercer.kernels.leaves.writing import latex_value
from mercer.kernels.logarithms import Logarithm, Pairs, of_formula
from mercer.kernels.proofs.enclosure import Enclosed, Point, Sample, entries
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.sweep import STEP, Sweep, perturbed
from mercer.kernels.tuning import fields_of, flatten
from mercer.params import Open
from mercer.typing import Array, Setting

K = TypeVar("K", bound="OfOneNumber")


class OfOneNumber(Leaf):
    """A leaf that is a function `value` of one number, which its family makes of two rows."""

    is_family: ClassVar = True
    letter: ClassVar[str] = "r"

    def value(self, r: Values) -> Values:
        raise not_written(self, "value", self.letter, f"a function of {self.letter}")

    def slope(self, r: Values) -> Values:
        """d value / d r, of what was recorded; 0 at r = 0 where it is not finite.

        It is 0 there because no parameter moves a row away from itself.
        """
        slope = derivative_of(self, VARIABLE)
        with np.errstate(all="ignore"):
            found = slope.at(np.asarray(r), self.numbers()) + np.zeros_like(r, dtype=float)
        return np.where((np.asarray(r) == 0) & ~np.isfinite(found), 0.0, found)

    def recorded(self) -> Formula:
        """`value` as a formula of its variable and of the parameters; `NotRecorded` says why there is none.

        >>> from mercer import RationalQuadratic
        >>> RationalQuadratic(alpha=2.0).recorded().text("s")
        'exp(-alpha*log1p(s/(2*alpha)))'
        """
        return recorded_once(self, type(self).value, _record_value)

    def variable(self, at: Pairs) -> Array:
        """What the formula is one of, for every pair of rows or for every row with itself."""
        raise not_written(self, "variable", "at", "what the formula is a function of")

    def variable_latex(self) -> str:
        """The sign of what the formula is one of."""
        raise NotRecorded("what it is a function of has no sign")

    def latex(self) -> str:
        if self.formula is not None:
            return super().latex()
        try:
            values = {path: latex_value(value) for path, value in self.numbers().items()}
            return latex(self.recorded(), self.variable_latex(), values)
        except NotRecorded:
            return super().latex()

    def logarithm(self, at: Pairs) -> Logarithm:
        try:
            f = self.recorded()
        except NotRecorded:
            return super().logarithm(at)
        if not f.operations() & {"exp", "power"}:
            return super().logarithm(at)
        with np.errstate(over="ignore", divide="ignore"):
            return of_formula(f, self.variable(at), self.numbers(), self, at)

    def contract_value(self, W: Array, at: Sweep, r: Array, but: Container[str] = ()) -> None:
        """Parameters inside `value` (alpha, offset, …): by its formula, or else by the complex step."""
        names = [name for name, _ in self.own_domains() if name not in but]
        for name in names:
            for tail, value, moved in perturbed(self, name):
                try:
                    self.recorded()
                except NotRecorded:
                    shifted = moved(value + 1j * STEP)
                    assert isinstance(shifted, OfOneNumber)
                    derivative = shifted.value(r).imag / STEP
                else:
                    with np.errstate(all="ignore"):
                        derivative = derivative_of(self, name + tail).at(r, self.numbers())
                at.add(name + tail, float((W * derivative).sum()))

    def enclosed_variable(self, x: Point, z: Point) -> Interval:
        """The formula's variable for two points, with certain bounds; `NotRecorded` where it is not known."""
        raise NotRecorded("what it is a function of has no bounds")

    def enclosed(self, sample: Sample) -> Enclosed:
        """The recorded formula in interval arithmetic; what has no bounds is measured."""
        try:
            f = self.recorded()
            if not f.operations() <= KNOWN:
                return super().enclosed(sample)
            variable = sample.pairs(self.enclosed_variable)
        except NotRecorded:
            return super().enclosed(sample)
        numbers = self.numbers()
        return entries(variable, lambda u: bounds(f, u, numbers))

    def _by_rules(self, rule: Callable[[Formula, dict[str, float]], bool], fact: Fact) -> Proof | None:
        """The proof that a rule of `monotone` finds in the formula."""
        try:
            f = self.recorded()
        except NotRecorded:
            return None
        if not rule(f, self.numbers()):
            return None
        return Proof(self, fact, (), (f"f({self.letter}) = {f.text(self.letter)}",), in_domains=True)

    def numbers(self) -> dict[str, float]:
        """The tuned parameters by the names that the recording has for them."""
        found = (pair for name, _ in self.own_domains() for pair in flatten(name, getattr(self, name)))
        return {path: value for path, value in found if not isinstance(value, Open)}


def _symbols(field_name: str, value: Setting) -> Setting:
    """A parameter with a name in place of every number."""
    if isinstance(value, tuple):
        return tuple(_symbols(f"{field_name}[{i}]", v) for i, v in enumerate(value))
    return Formula("name", name=field_name)


def _shape(value: Setting) -> Hashable:
    """How numbers are nested in a parameter."""
    if isinstance(value, tuple):
        return tuple(map(_shape, value))
    return None


# How a family makes numbers of rows; a class that does it differently is more than its formula.
_EVALUATION = ("block", "diagonal", "squares", "reduced", "checked_rows")

_RECORDINGS: dict[Hashable, Formula | NotRecorded] = {}
_MOST_RECORDINGS = 1000


def recorded_once(
    k: OfOneNumber, function: Callable[..., Values], record: Callable[[OfOneNumber], Formula]
) -> Formula:
    """The recording of a function of a class with given shape parameters, made once."""
    tuned, others = _kinds_of_fields(type(k))
    shapes = (_shape(getattr(k, name)) for name in tuned)
    key = (type(k), function, *shapes, *(getattr(k, name) for name in others))
    try:
        found = _RECORDINGS.get(key)
    except TypeError:
        # a function that cannot be a key is recorded every time
        return record(k)
    if found is None:
        if len(_RECORDINGS) >= _MOST_RECORDINGS:
            _RECORDINGS.clear()
        try:
            found = record(k)
        except NotRecorded as why:
            found = why
        _RECORDINGS[key] = found
    if isinstance(found, NotRecorded):
        raise NotRecorded(str(found))
    return found


@functools.cache
def _kinds_of_fields(cls: type[Leaf]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of tuned parameters, and those of all others."""
    every = [(f.name, f.metadata.get("domain")) for f in fields_of(cls)]
    tuned = tuple(name for name, domain in every if domain is not None and domain.tuned)
    return tuned, tuple(name for name, _ in every if name not in tuned)


def symbolic(k: K) -> K:
    """The leaf with names in place of the numbers of its tuned parameters."""
    written = [name for name in _EVALUATION if not is_ours(_owner_of(type(k), name))]
    if written:
        raise NotRecorded(f"{type(k).__name__} evaluates rows in its own way ({', '.join(written)})")
    out = copy.copy(k)
    tuned, _ = _kinds_of_fields(type(k))
    for field_name in tuned:
        object.__setattr__(out, field_name, _symbols(field_name, getattr(k, field_name)))
    return out


def _record_value(k: OfOneNumber) -> Formula:
    found = record(symbolic(k).value)
    require_faithful(found, k.value, k.numbers())
    return found


def _owner_of(cls: type, method: str) -> type:
    """The class that writes a method; the class of all kernels where none does."""
    return next((base for base in cls.__mro__ if method in base.__dict__), Leaf)


def derivative_of(k: OfOneNumber, by: str) -> Formula:
    """The derivative of a leaf's formula, by its variable or a parameter, kept with the recording."""
    try:
        f = k.recorded()
    except NotRecorded as why:
        owner = type(k).__name__
        raise ParameterError(
            f"{owner} cannot be differentiated (tuned by its gradient), because its value is no formula: "
            f"{why}. Write value with "
            f"operators and functions of NumPy alone, or add to class {owner}: def slope(self, {k.letter}), "
            "the derivative."
        ) from why
    kept: dict[str, Formula] = f.__dict__.setdefault("_derivatives", {})
    if by not in kept:
        kept[by] = f.derivative(by)
    return kept[by]
