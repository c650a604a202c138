"""The families of leaf kernels: what a leaf sees of the data.

    Radial      s = Σ ((x_d - z_d) / ℓ_d)²      and the leaf is a function of s
    DotProduct  t = x · z                       and the leaf is a function of t
    PerColumn   a term for each column, summed or multiplied, and a function of the result

A leaf gives `value`, its formula, and nothing else: `recorded` calls it once with a symbol, and the derivative, the program of the
core, the bounds and the LaTeX follow from what was recorded (`formula`). `@leaf` makes a class a frozen dataclass and teaches the
parser its name.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer.arrays import Rows, require_nonnegative
from mercer.errors import OpenParameterError, ParameterError, ShapeError
from mercer.kernels.base import Kernel, _flatten
from mercer.kernels.formulas.formula import VARIABLE, Formula, NotRecorded, record, require_faithful
from mercer.kernels.formulas.monotone import (
    has_power_series_powers,
    is_completely_monotone,
    is_divisible,
    is_power_series,
)
from mercer.kernels.formulas.typeset import latex
from mercer.kernels.leaves.closing import closing_lengths
from mercer.kernels.leaves.inheritance import changes, is_ours
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.params import OPEN, Open, Vector, positive
from mercer.sparse import Matrix, dense, stored_columns

LEAVES: dict[str, type[Leaf]] = {}

C = TypeVar("C", bound=type[Any])


@dataclass_transform(frozen_default=True, eq_default=False)
def expression(cls: C) -> C:
    """A frozen dataclass whose equality is that of `Kernel`."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)  # type: ignore[return-value]


@dataclass_transform(frozen_default=True, eq_default=False)
def leaf(cls: C) -> C:
    """A kernel with a name: frozen, checked at birth, readable by `mercer.parse`."""
    made = expression(cls)
    _require_declared(made)
    _accept_spellings(made)
    LEAVES[made.__name__] = made
    return made


def _accept_spellings(cls: Any) -> None:
    """Let the constructor also take other names of a parameter, such as gamma for RBF's lengthscale."""
    plain = cls.__init__
    may_be_open = {f.name for f in fields(cls) if "domain" in f.metadata and f.metadata["domain"].may_be_open}

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if "ard" in kwargs and "lengthscale" in may_be_open:
            if args or "lengthscale" in kwargs or not isinstance(kwargs["ard"], bool | np.bool_):
                raise ParameterError(
                    f"{cls.__name__}: ard=True leaves one lengthscale for each column open; it is True or False, and stands alone."
                )
            kwargs["lengthscale"] = Open.EACH if kwargs.pop("ard") else Open.ONE
        for other, (name, convert) in cls.spellings.items():
            if other in kwargs:
                if args or name in kwargs:
                    names = ", ".join([name, *(o for o, (n, _) in cls.spellings.items() if n == name)])
                    raise ParameterError(
                        f"{cls.__name__}: give one of {names}; they name the same parameter."
                    )
                domain = cls.__dataclass_fields__[name].metadata["domain"]
                kwargs[name] = convert(domain.check(kwargs.pop(other), cls.__name__, other))
        plain(self, *args, **kwargs)

    cls.__init__ = init


def _not_written(k: Kernel, method: str, argument: str, what: str) -> ParameterError:
    """The error of a leaf whose author has not given one of its formulas."""
    owner = type(k).__name__
    return ParameterError(
        f"{owner} has no {method}, so it cannot be evaluated. Add to class {owner}: "
        f"def {method}(self, {argument}), {what}, for arrays of any shape."
    )


def _require_declared(cls: Any) -> None:
    """Refuse a leaf with a field that says neither what numbers it takes nor that it takes anything."""
    for f in fields(cls):
        if not f.metadata.keys() & {"domain", "given", "children"}:
            raise ParameterError(
                f"{cls.__name__}: the field {f.name!r} is not declared, so its values could be neither checked nor "
                f"tuned. Write for example {f.name}: float = positive(1.0); positive, nonnegative, real, whole, "
                "shape_number, coefficients and given are in mercer.params. What is no field is a ClassVar."
            )
        if hasattr(Kernel, f.name):
            raise ParameterError(
                f"{cls.__name__}: every kernel has a {f.name!r} of its own, so no field can have that name. Choose another."
            )


def _word_of(owner: type, reason: str) -> tuple[str, ...]:
    """A fact that a class outside mercer states of itself is its author's word."""
    if is_ours(owner):
        return ()
    return (f"the class {owner.__name__} says of itself: {reason}",)


class Leaf(Kernel):
    """A named kernel. Class facts: `because` (why it is a kernel), `divisible` (why its powers are), `formula`."""

    is_family: ClassVar = True
    because: ClassVar[Fact | None] = None
    divisible: ClassVar[str | None] = None
    formula: ClassVar[str | None] = None
    spellings: ClassVar[dict[str, tuple[str, Callable[[Any], Any]]]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "__dataclass_fields__" not in cls.__dict__:
            declared = any(isinstance(value, Field) for value in cls.__dict__.values())
            if declared or not is_dataclass(cls):
                raise ParameterError(
                    f"{cls.__name__} does not know its fields yet. Write @leaf in the line above class {cls.__name__}."
                )
        return super().__new__(cls)

    def text(self) -> str:
        parts = []
        for position, f in enumerate(fields(self)):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, Open):
                parts += ["ard=True"] if value is Open.EACH else []
            elif position == 0:
                parts.append(write_value(value))
            elif value != f.default:
                parts.append(f"{f.name}={write_value(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def latex(self) -> str:
        values = {f.name: latex_value(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        if self.formula is None:
            inside = ", ".join(f"{name}={v}" for name, v in values.items())
            return rf"\mathrm{{{type(self).__name__}}}_{{{inside}}}(x, z)"
        out = self.formula
        for name, value in values.items():
            alone = value if out == f"<{name}>" else _as_one_thing(value)
            out = out.replace(f"<{name}>", alone)
        return out

    def _conditions(self) -> tuple[str, ...]:
        """The declared domains, with the values that satisfy them."""
        out = []
        for f in fields(self):  # type: ignore[arg-type]
            domain = f.metadata.get("domain")
            if domain is not None and np.isfinite(domain.low):
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
        return Proof(self, self.because, (), self._conditions(), _word_of(owner, self.because.reason))

    def root_proof(self) -> Proof | None:
        owner = self._owner("divisible")
        if owner is None or self.divisible is None:
            return None
        fact = Fact("infinitely divisible", self.divisible)
        return Proof(self, fact, (), self._conditions(), _word_of(owner, self.divisible))

    def _owner(self, name: str) -> type | None:
        """The class that states a fact; None if a subclass may compute something else, for then it states nothing of it."""
        for cls in type(self).__mro__:
            if name in cls.__dict__:
                return cls
            if any(not n.startswith("__") for n in changes(cls)):
                return None
        return None

    def columns_needed(self) -> tuple[int | None, int]:
        lengths = {
            len(getattr(self, f.name))
            for f in fields(self)  # type: ignore[arg-type]
            if "domain" in f.metadata
            and f.metadata["domain"].per_column
            and f.metadata["domain"].ndim == 0
            and isinstance(getattr(self, f.name), tuple)
        }
        return (max(lengths), max(lengths)) if lengths else (None, 1)

    def compare_columns(self, x: Rows, z: Rows) -> None:
        if not self.takes_things():
            z.require_columns_of(x)

    def closed_value(self, name: str) -> Any:
        """The value of a parameter; an open one is refused with how to close it."""
        value = getattr(self, name)
        if isinstance(value, Open):
            raise OpenParameterError(
                f"{self} leaves its {name} open, so it has no values yet. Give a number, {type(self).__name__}(1.0), close it by "
                "the spread of your rows, k.resolved(X), or hand it to a machine, which closes it when it is fitted."
            )
        return value

    def resolved_on(self, rows: Rows, weight: np.ndarray | None) -> Kernel:
        names = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Open)]  # type: ignore[arg-type]
        if not names:
            return self
        lengths = closing_lengths(rows.vectors, weight)
        return self.changed(**{name: _within(lengths, dict(self.stated_bounds).get(name)) for name in names})

    def column_values(self, name: str, d: int) -> np.ndarray:
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


# ── formulas of one variable ────────────────────────────────────────────────────────────────────────────────


class OfOneNumber(Leaf):
    """A leaf that is a function `value` of one number, which its family makes of two rows."""

    is_family: ClassVar = True
    letter: ClassVar[str] = "r"

    def value(self, r: Any) -> Any:
        raise _not_written(self, "value", self.letter, f"a function of {self.letter}")

    def slope(self, r: Any) -> Any:
        """d value / d r, of what was recorded; 0 at r = 0 where it is not finite, for no parameter moves a row away from itself."""
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
        return _recording(self)

    def variable_latex(self) -> str:
        raise NotRecorded("what it is a function of has no sign")

    def latex(self) -> str:
        if self.formula is not None:
            return super().latex()
        try:
            values = {path: latex_value(value) for path, value in self.numbers().items()}
            return latex(self.recorded(), self.variable_latex(), values)
        except NotRecorded:
            return super().latex()

    def _by_rules(self, rule: Callable[[Formula, dict[str, float]], bool], fact: Fact) -> Proof | None:
        """The proof that a rule of `monotone` finds in the formula."""
        try:
            f = self.recorded()
        except NotRecorded:
            return None
        if not rule(f, self.numbers()):
            return None
        return Proof(self, fact, (), (f"f({self.letter}) = {f.text(self.letter)}", *self._conditions()))

    def numbers(self) -> dict[str, float]:
        """The tuned parameters by the names that the recording has for them."""
        found = (pair for name, _ in self.own_domains() for pair in _flatten(name, getattr(self, name)))
        return {path: value for path, value in found if not isinstance(value, Open)}


def _within(lengths: Vector, bounds: tuple[float, float] | None) -> Vector:
    """Lengths, those outside their bounds moved to the nearest end."""
    if bounds is None:
        return lengths
    clipped = np.clip(lengths, *bounds)
    return float(clipped) if clipped.ndim == 0 else tuple(clipped.tolist())


def _symbols(field_name: str, value: Any) -> Any:
    """A parameter with a name in place of every number."""
    if isinstance(value, tuple):
        return tuple(_symbols(f"{field_name}[{i}]", v) for i, v in enumerate(value))
    return Formula("name", name=field_name)


def _shape(value: Any) -> Any:
    return tuple(map(_shape, value)) if isinstance(value, tuple) else None


# How a family makes numbers of rows; a class that does it differently is more than its formula.
_EVALUATION = ("block", "diagonal", "squares", "reduced", "checked_rows")

_RECORDINGS: dict[Any, Formula | NotRecorded] = {}
_MOST_RECORDINGS = 1000


def _recording(k: OfOneNumber) -> Formula:
    """The recording of a class with given shape parameters, made once; its tuned parameters are names."""
    tuned, others = _kinds_of_fields(type(k))
    shapes = (_shape(getattr(k, name)) for name in tuned)
    key = (type(k), type(k).value, *shapes, *(getattr(k, name) for name in others))
    try:
        found = _RECORDINGS.get(key)
    except TypeError:
        # a function that cannot be a key is recorded every time
        return _record_value(k, tuned)
    if found is None:
        if len(_RECORDINGS) >= _MOST_RECORDINGS:
            _RECORDINGS.clear()
        try:
            found = _record_value(k, tuned)
        except NotRecorded as why:
            found = why
        _RECORDINGS[key] = found
    if isinstance(found, NotRecorded):
        raise NotRecorded(str(found))
    return found


@functools.cache
def _kinds_of_fields(cls: type[Leaf]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of tuned parameters, and those of all others."""
    every = [(f.name, f.metadata.get("domain")) for f in fields(cls)]  # type: ignore[arg-type]
    tuned = tuple(name for name, domain in every if domain is not None and domain.tuned)
    return tuned, tuple(name for name, _ in every if name not in tuned)


def _record_value(k: OfOneNumber, tuned: tuple[str, ...]) -> Formula:
    own = [m for m in _EVALUATION if getattr(type(k), m, None) and getattr(type(k), m).__module__ != __name__]
    if own:
        raise NotRecorded(f"{type(k).__name__} evaluates rows in its own way ({', '.join(own)})")
    symbolic = copy.copy(k)
    for field_name in tuned:
        object.__setattr__(symbolic, field_name, _symbols(field_name, getattr(k, field_name)))
    found = record(symbolic.value)
    require_faithful(found, k.value, k.numbers())
    return found


def derivative_of(k: OfOneNumber, by: str) -> Formula:
    """The derivative of a leaf's formula, by its variable or a parameter, kept with the recording."""
    try:
        f = k.recorded()
    except NotRecorded as why:
        owner = type(k).__name__
        raise ParameterError(
            f"{owner} cannot be differentiated (tuned by its gradient), because its value is no formula: {why}. Write value with "
            f"operators and functions of NumPy alone, or add to class {owner}: def slope(self, {k.letter}), the derivative."
        ) from why
    kept: dict[str, Formula] = f.__dict__.setdefault("_derivatives", {})
    if by not in kept:
        kept[by] = f.derivative(by)
    return kept[by]


def unless_declared(proof: Proof | None) -> Proof | None:
    """A proof that needs nobody's word, or None."""
    return None if proof is None or proof.declared() else proof


_FALLS = Fact(
    "Schoenberg's theorem",
    "as a function of the squared distance it is completely monotone by the steps of its formula: e^(-b), b^(-p), 1/b and sums and "
    "products of such are, where b grows as s, its roots, powers up to 1, logarithms and sums of them do",
)
_POWERS_FALL = Fact(
    "infinitely divisible",
    "k^r has a formula of the same kind: r times the exponents of e^(-b) and b^(-p) in a product of such",
)
_SERIES = Fact(
    "non-negative Taylor series",
    "by the steps of its formula, which are sums, products, whole powers and exponentials of x·z and of numbers ≥ 0, it is a power series "
    "that converges everywhere and has no negative coefficient, and each (x·z)ⁿ is a kernel",
)
_EXPONENTIALS = Fact(
    "infinitely divisible", "k^r is e^(r g) times a number ≥ 0, and r g is a power series as g is"
)


@expression
class Radial(OfOneNumber):
    """A function of the scaled squared distance s = Σ ((x_d - z_d) / ℓ_d)².

    Such a function is a kernel in every dimension iff it is completely monotone in s (Schoenberg).
    """

    is_family: ClassVar = True
    lengthscale: Vector = positive(OPEN, per_column=True)

    letter: ClassVar = "s"

    def value(self, s: Any) -> Any:
        raise _not_written(self, "value", "s", "a function of the scaled squared distance s")

    def proof(self) -> Proof | None:
        stated = super().proof()
        return unless_declared(stated) or self._by_rules(is_completely_monotone, _FALLS) or stated

    def root_proof(self) -> Proof | None:
        stated = super().root_proof()
        return unless_declared(stated) or self._by_rules(is_divisible, _POWERS_FALL) or stated

    def variable_latex(self) -> str:
        return rf"\left\lVert\frac{{x-z}}{{{latex_value(self.lengthscale)}}}\right\rVert^2"

    def squares(self, X: Matrix, Z: Matrix | None) -> np.ndarray:
        """s for every pair of rows."""
        length = self._checked_lengthscale(X.shape[1])
        if np.all((length > 1e-90) & (length < 1e90)):
            return squared_distances(X, Z, length**-2.0)
        return _distances_in_units(X, Z, np.broadcast_to(length, X.shape[1]))

    def _checked_lengthscale(self, d: int) -> Any:
        """One number for all of the d columns, which may be many, or an array with one for each."""
        value = self.closed_value("lengthscale")
        return self.column_values("lengthscale", d) if isinstance(value, tuple) else np.float64(value)

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.value(self.squares(x.vectors, None if z is None else z.vectors))

    def diagonal(self, x: Rows) -> np.ndarray:
        self._checked_lengthscale(x.vectors.shape[1])
        return np.full(len(x), float(self.value(np.zeros(1))[0]))


class DotProduct(OfOneNumber):
    """A function of t = x · z. A kernel in every dimension iff its Taylor coefficients are non-negative."""

    is_family: ClassVar = True
    letter: ClassVar = "t"

    def value(self, t: Any) -> Any:
        raise _not_written(self, "value", "t", "a function of the dot product t = x · z")

    def proof(self) -> Proof | None:
        stated = super().proof()
        return unless_declared(stated) or self._by_rules(is_power_series, _SERIES) or stated

    def root_proof(self) -> Proof | None:
        stated = super().root_proof()
        return unless_declared(stated) or self._by_rules(has_power_series_powers, _EXPONENTIALS) or stated

    def variable_latex(self) -> str:
        return r"x^\top z"

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        return self.value(dot_products(x.vectors, None if z is None else z.vectors))

    def diagonal(self, x: Rows) -> np.ndarray:
        return self.value(squared_norms(x.vectors))


class PerColumn(OfOneNumber):
    """A term for each column, reduced by a sum or a product, and a function of the result.

    `term(x, z, **parameters)` gets one column of each sample, ready to broadcast, and the parameters of that
    column for every parameter declared `per_column`.
    """

    is_family: ClassVar = True
    reduction: ClassVar[Literal["sum", "product"]] = "sum"
    histogram: ClassVar[bool] = False

    def term(self, *args: Any, **kwargs: Any) -> Any:
        """What one column contributes."""
        raise _not_written(self, "term", "x, z", "of one column of each sample, ready to broadcast")

    def value(self, r: Any) -> Any:
        return r

    def needs_nonnegative(self) -> bool:
        return self.histogram

    def reduced(self, X: np.ndarray, Z: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        d = X.shape[-1]
        names = [f.name for f in fields(self) if f.metadata.get("domain") and f.metadata["domain"].per_column]  # type: ignore[arg-type]
        columns = {name: self.column_values(name, d) for name in names}
        out = np.zeros(shape) if self.reduction == "sum" else np.ones(shape)
        for j in range(d):
            term = self.term(X[..., j], Z[..., j], **{name: column[j] for name, column in columns.items()})
            if self.reduction == "sum":
                out += term
            else:
                out *= term
        return out

    def checked_rows(self, x: Rows) -> np.ndarray:
        if self.histogram:
            require_nonnegative(x.vectors, type(self).__name__, x.name)
        return dense(x.vectors).astype(np.float64, copy=False)

    def block(self, x: Rows, z: Rows | None) -> np.ndarray:
        X = self.checked_rows(x)
        Z = X if z is None else self.checked_rows(z)
        return self.value(self.reduced(X[:, None, :], Z[None, :, :], (len(X), len(Z))))

    def diagonal(self, x: Rows) -> np.ndarray:
        X = self.checked_rows(x)
        return self.value(self.reduced(X, X, (len(X),)))


# ── the primitives ──────────────────────────────────────────────────────────────────────────────────────────


_FARTHEST = (
    1e300  # a larger s is cut to this: every radial kernel is at its limit there, and inf would give 0·inf
)


def squared_distances(X: Matrix, Z: Matrix | None, weights: Any) -> np.ndarray:
    """Σ_d w_d (x_d - z_d)² by differences, never by expanding the square: large offsets do not cancel.

    `weights` is one number for all columns, or an array with one for each.
    """
    same = np.ndim(weights) == 0 or bool(np.all(weights == weights[0]))
    with np.errstate(over="ignore"):
        if sparse.issparse(X) or sparse.issparse(Z):
            s = _sparse_squared_distances(
                sparse.csr_array(X), None if Z is None else sparse.csr_array(Z), weights
            )
        else:
            A = X.astype(np.float64, copy=False)
            B = A if Z is None else Z.astype(np.float64, copy=False)
            if same:
                s = cdist(A, B, "sqeuclidean") * np.ravel(weights)[0]
            else:
                s = cdist(A, B, "sqeuclidean", w=weights)
    return np.minimum(s, _FARTHEST, out=s)


def _distances_in_units(X: Matrix, Z: Matrix | None, length: np.ndarray) -> np.ndarray:
    """Σ ((x_d - z_d) / ℓ_d)² for an ℓ whose square is no number: differences are divided one column at a time."""
    X, Z, columns = stored_columns(X, Z)
    A = dense(X).astype(np.float64, copy=False)
    B = A if Z is None else dense(Z).astype(np.float64, copy=False)
    s = np.zeros((len(A), len(B)))
    with np.errstate(over="ignore"):
        for j, unit in enumerate(length if columns is None else length[columns]):
            s += ((A[:, None, j] - B[None, :, j]) / unit) ** 2
    return np.minimum(s, _FARTHEST, out=s)


def _sparse_squared_distances(X: Any, Z: Any, weights: Any) -> np.ndarray:
    """The expansion ‖x‖² + ‖z‖² - 2 x·z on sparse rows, with every pair that cancels done again by differences."""
    X, Z, columns = stored_columns(X, Z)
    if columns is not None and np.ndim(weights):
        weights = weights[columns]
    weights = np.broadcast_to(weights, X.shape[1])
    A = X.astype(np.float64)
    B = A if Z is None else Z.astype(np.float64)
    a, b = (A.multiply(A) @ weights), (B.multiply(B) @ weights)
    total = a[:, None] + b[None, :]
    with np.errstate(invalid="ignore"):
        s = total - 2 * (A.multiply(weights[None, :]).tocsr() @ B.T).toarray()
    rows, columns = np.nonzero(~(s > 1e-4 * total))  # written so that NaN from inf - inf is done again too
    for start in range(0, len(rows), 4096):
        i, j = rows[start : start + 4096], columns[start : start + 4096]
        difference = A[i] - B[j]
        s[i, j] = difference.multiply(difference) @ weights
    if Z is None:
        s = np.triu(s, 1)
        s += s.T
    return s


def dot_products(X: Matrix, Z: Matrix | None) -> np.ndarray:
    X, Z, _ = stored_columns(X, Z)
    A = X.astype(np.float64, copy=False)
    B = A if Z is None else Z.astype(np.float64, copy=False)
    out = A @ B.T
    return out.toarray() if sparse.issparse(out) else out


def squared_norms(X: Matrix) -> np.ndarray:
    A = X.astype(np.float64, copy=False)
    return (
        np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse.issparse(A) else np.einsum("ij,ij->i", A, A)
    )


# ── writing values ──────────────────────────────────────────────────────────────────────────────────────────


def write_value(value: Any) -> str:
    """A parameter as text that the parser reads back; functions as <name>."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(write_value, value)) + "]"
    if callable(value):
        return f"<{getattr(value, '__name__', type(value).__name__).strip('<>')}>"
    return repr(value)


def _as_one_thing(value: str) -> str:
    """A value inside a formula: a sign or a power of ten in brackets."""
    return rf"\left({value}\right)" if value.startswith("-") or "^" in value else value


def latex_value(value: Any) -> str:
    if isinstance(value, Open):
        return r"\ell"
    if isinstance(value, tuple):
        return r"(" + ", ".join(map(latex_value, value)) + ")"
    if isinstance(value, float):
        mantissa, _, exponent = f"{value:.6g}".partition("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    if callable(value):
        return getattr(value, "__name__", "f").replace("<lambda>", "f").replace("_", r"\_")
    return str(value)
