"""Kernels with a name: what all leaves share, and the decorator `@leaf`.

`@leaf` makes a class a frozen dataclass and teaches the parser its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import Field, dataclass, is_dataclass
from math import isfinite
from typing import ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from mercer.arrays import Rows
from mercer.errors import OpenParameterError, ParameterError, ShapeError
from mercer.kernels.base import Kernel
from mercer.kernels.leaves.closing import closing_lengths
from mercer.kernels.leaves.inheritance import changes, is_ours
from mercer.kernels.leaves.writing import as_one_thing, latex_value, write_value
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.tuning import fields_of
from mercer.params import Open, Vector
from mercer.typing import Array, Setting

LEAVES: dict[str, type[Leaf]] = {}

C = TypeVar("C", bound=type[Kernel])
L = TypeVar("L", bound="type[Leaf]")


@dataclass_transform(frozen_default=True, eq_default=False)
def expression(cls: C) -> C:
    """A frozen dataclass whose equality is that of `Kernel`."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)  # type: ignore[return-value]


@dataclass_transform(frozen_default=True, eq_default=False)
def leaf(cls: L) -> L:
    """A kernel with a name: frozen, checked at birth, readable by `mercer.parse`."""
    made = expression(cls)
    _require_declared(made)
    _accept_spellings(made)
    LEAVES[made.__name__] = made
    return made


def _accept_spellings(cls: type[Leaf]) -> None:
    """Let the constructor also take other names of a parameter, such as gamma for RBF's lengthscale."""
    plain: Callable[..., None] = cls.__init__
    declared = {f.name: f for f in fields_of(cls)}
    domains = {name: f.metadata["domain"] for name, f in declared.items() if "domain" in f.metadata}
    may_be_open = {name for name, domain in domains.items() if domain.may_be_open}

    @functools.wraps(plain)
    def init(self: Leaf, *args: Setting, **kwargs: Setting) -> None:
        if "ard" in kwargs and "lengthscale" in may_be_open:
            if args or "lengthscale" in kwargs or not isinstance(kwargs["ard"], bool | np.bool_):
                raise ParameterError(
                    f"{cls.__name__}: ard=True leaves one lengthscale for each column open; it is True or "
                    "False, and stands alone."
                )
            kwargs["lengthscale"] = Open.EACH if kwargs.pop("ard") else Open.ONE
        for other, (name, convert) in cls.spellings.items():
            if other in kwargs:
                if args or name in kwargs:
                    names = ", ".join([name, *(o for o, (n, _) in cls.spellings.items() if n == name)])
                    raise ParameterError(
                        f"{cls.__name__}: give one of {names}; they name the same parameter."
                    )
                domain = declared[name].metadata["domain"]
                kwargs[name] = convert(domain.check(kwargs.pop(other), cls.__name__, other))
        plain(self, *args, **kwargs)

    cls.__init__ = init  # type: ignore[assignment, method-assign]


def not_written(k: Kernel, method: str, argument: str, what: str) -> ParameterError:
    """The error of a leaf whose author has not given one of its formulas."""
    owner = type(k).__name__
    return ParameterError(
        f"{owner} has no {method}, so it cannot be evaluated. Add to class {owner}: "
        f"def {method}(self, {argument}), {what}, for arrays of any shape."
    )


def _require_declared(cls: type[Leaf]) -> None:
    """Refuse a leaf with a field that says neither what numbers it takes nor that it takes anything."""
    for f in fields_of(cls):
        if not f.metadata.keys() & {"domain", "given", "children"}:
            raise ParameterError(
                f"{cls.__name__}: the field {f.name!r} is not declared, so its values could be neither "
                "checked nor "
                f"tuned. Write for example {f.name}: float = positive(1.0); positive, nonnegative, real, "
                "whole, "
                "shape_number, coefficients and given are in mercer.params. What is no field is a ClassVar."
            )
        if hasattr(Kernel, f.name):
            raise ParameterError(
                f"{cls.__name__}: every kernel has a {f.name!r} of its own, so no field can have that name. "
                "Choose another."
            )


def _word_of(owner: type, reason: str) -> tuple[str, ...]:
    """A fact that a class outside mercer states of itself is its author's word."""
    if is_ours(owner):
        return ()
    return (f"the class {owner.__name__} says of itself: {reason}",)


class Leaf(Kernel):
    """A named kernel.

    Class facts: `because` (why it is a kernel), `divisible` (why its powers are), `formula`.
    """

    is_family: ClassVar = True
    because: ClassVar[Fact | None] = None
    divisible: ClassVar[str | None] = None
    formula: ClassVar[str | None] = None
    spellings: ClassVar[dict[str, tuple[str, Callable[[Setting], Setting]]]] = {}

    def __new__(cls, *args: Setting, **kwargs: Setting) -> Self:
        if "__dataclass_fields__" not in cls.__dict__:
            declared = any(isinstance(value, Field) for value in cls.__dict__.values())
            if declared or not is_dataclass(cls):
                raise ParameterError(
                    f"{cls.__name__} does not know its fields yet. Write @leaf in the line above class "
                    f"{cls.__name__}."
                )
        return super().__new__(cls)

    def text(self) -> str:
        parts = []
        for position, f in enumerate(fields_of(self)):
            value = getattr(self, f.name)
            if isinstance(value, Open):
                parts += ["ard=True"] if value is Open.EACH else []
            elif position == 0:
                parts.append(write_value(value))
            elif value != f.default:
                parts.append(f"{f.name}={write_value(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def latex(self) -> str:
        values = {f.name: latex_value(getattr(self, f.name)) for f in fields_of(self)}
        if self.formula is None:
            inside = ", ".join(f"{name}={v}" for name, v in values.items())
            return rf"\mathrm{{{type(self).__name__}}}_{{{inside}}}(x, z)"
        out = self.formula
        for name, value in values.items():
            alone = value if out == f"<{name}>" else as_one_thing(value)
            out = out.replace(f"<{name}>", alone)
        return out

    def kept_domains(self) -> tuple[str, ...]:
        out = []
        for f in fields_of(self):
            domain = f.metadata.get("domain")
            if domain is not None and isfinite(domain.low):
                value = getattr(self, f.name)
                if isinstance(value, Open):
                    out.append(f"{f.name} is any number > 0")
                    continue
                shown = write_value(value)
                sign = ">" if domain.open_low else "≥"
                whole = " is a whole number" if domain.whole else ""
                out.append(f"{f.name} = {shown if len(shown) < 60 else '…'}{whole} {sign} {domain.low:g}")
        return tuple(out)

    def proof(self) -> Proof | None:
        owner = self._owner("because")
        if owner is None or self.because is None:
            return None
        return Proof(self, self.because, (), (), _word_of(owner, self.because.reason), in_domains=True)

    def root_proof(self) -> Proof | None:
        owner = self._owner("divisible")
        if owner is None or self.divisible is None:
            return None
        fact = Fact("infinitely divisible", self.divisible)
        return Proof(self, fact, (), (), _word_of(owner, self.divisible), in_domains=True)

    def _owner(self, name: str) -> type | None:
        """The class that states a fact; None if a subclass may compute something else but states nothing."""
        for cls in type(self).__mro__:
            if name in cls.__dict__:
                return cls
            if any(not n.startswith("__") for n in changes(cls)):
                return None
        return None

    def columns_needed(self) -> tuple[int | None, int]:
        lengths = {
            len(getattr(self, f.name))
            for f in fields_of(self)
            if "domain" in f.metadata
            and f.metadata["domain"].per_column
            and f.metadata["domain"].ndim == 0
            and isinstance(getattr(self, f.name), tuple)
        }
        if lengths:
            return (max(lengths), max(lengths))
        return (None, 1)

    def activation(self) -> Callable[[Array], Array] | None:
        """h with k(x, z) = 2 E h(w·x) h(w·z) over Gaussian w, where the kernel is a layer of such units."""
        return None

    def compare_columns(self, x: Rows, z: Rows) -> None:
        if not self.takes_things():
            z.require_columns_of(x)

    def closed_value(self, name: str) -> Setting:
        """The value of a parameter; an open one is refused with how to close it."""
        value = getattr(self, name)
        if isinstance(value, Open):
            raise OpenParameterError(
                f"{self} leaves its {name} open, so it has no values yet. Give a number, "
                f"{type(self).__name__}(1.0), close it by "
                "the spread of your rows, k.resolved(X), or hand it to a machine, which closes it when it is "
                "fitted."
            )
        return value

    def resolved_on(self, rows: Rows, weight: Array | None) -> Kernel:
        names = self._open_names()
        if not names:
            return self
        lengths = closing_lengths(rows.vectors, weight, rows.ordered())
        return self.changed(**{name: _within(lengths, dict(self.stated_bounds).get(name)) for name in names})

    def entry_name(self, name: str, j: int) -> str:
        """What a parameter is called at column j: one number of several, or the one for all."""
        if isinstance(getattr(self, name, None), tuple):
            return f"{name}[{j}]"
        return name

    def column_values(self, name: str, d: int) -> Array:
        """A parameter as one number per column, or an error that says how many columns there are."""
        value = self.closed_value(name)
        if not isinstance(value, tuple):
            return np.full(d, value)
        if len(value) != d:
            raise ShapeError(
                f"{type(self).__name__}: {name} has {len(value)} numbers, but the data have {d} columns. "
                "Give one number per column, or a single one for all."
            )
        return np.array(value)


def entries_of(value: Vector) -> tuple[float, ...]:
    """The numbers of a parameter: those of its columns, or the one for all."""
    if isinstance(value, tuple):
        return value
    return (value,)


def _within(lengths: Vector, bounds: tuple[float, float] | None) -> Vector:
    """Lengths, those outside their bounds moved to the nearest end."""
    if bounds is None:
        return lengths
    clipped = np.clip(lengths, *bounds)
    if clipped.ndim == 0:
        return float(clipped)
    return tuple(clipped.tolist())
