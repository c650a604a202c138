"""The families of leaf kernels: what a leaf sees of the data.

    Radial      s = Σ ((x_d - z_d) / ℓ_d)²      and the leaf is a function of s
    DotProduct  t = x · z                       and the leaf is a function of t
    PerColumn   a term for each column, summed or multiplied, and a function of the result

A leaf gives `value`, its formula, and nothing else: all that is asked of it follows from the recording
(`recording`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from mercer.arrays import Rows
from mercer.kernels.formulas.certain import KNOWN, bounds_of
from mercer.kernels.formulas.formula import LEFT, RIGHT, Formula, NotRecorded, Values, record
from mercer.kernels.formulas.monotone import (
    has_power_series_powers,
    is_completely_monotone,
    is_divisible,
    is_power_series,
)
from mercer.kernels.leaves.distances import (
    distances_in_units,
    dot_products,
    squared_distances,
    squared_norms,
)
from mercer.kernels.leaves.leaf import entries_of, expression, not_written
from mercer.kernels.leaves.recording import OfOneNumber, recorded_once, symbolic
from mercer.kernels.leaves.writing import latex_value
from mercer.kernels.logarithms import Pairs
from mercer.kernels.maps.spectral import NoSpectrum, Spectrum
from mercer.kernels.programs.program import NotLowered, Place
from mercer.kernels.programs.steps import write_value
from mercer.kernels.programs.terms import write_columns
from mercer.kernels.proofs.enclosure import ONE, ZERO, Point, dot, exact_numbers
from mercer.kernels.proofs.intervals import Interval
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.kernels.sweep import STEP, Sweep, perturbed
from mercer.kernels.tuning import fields_of
from mercer.params import OPEN, Open, Vector, positive
from mercer.samples import second
from mercer.sparse import Matrix, dense
from mercer.typing import Array
from mercer.vectors import require_nonnegative


def unless_declared(proof: Proof | None) -> Proof | None:
    """A proof that needs nobody's word, or None."""
    if proof is None or proof.declared():
        return None
    return proof


_FALLS = Fact(
    "Schoenberg's theorem",
    "as a function of the squared distance it is completely monotone by the steps of its formula: e^(-b), "
    "b^(-p), 1/b and sums and "
    "products of such are, where b grows as s, its roots, powers up to 1, logarithms and sums of them do",
)
_POWERS_FALL = Fact(
    "infinitely divisible",
    "k^r has a formula of the same kind: r times the exponents of e^(-b) and b^(-p) in a product of such",
)
_SERIES = Fact(
    "non-negative Taylor series",
    "by the steps of its formula, which are sums, products, whole powers and exponentials of x·z and of "
    "numbers ≥ 0, it is a power series "
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

    def value(self, s: Values) -> Values:
        raise not_written(self, "value", "s", "a function of the scaled squared distance s")

    def proof(self) -> Proof | None:
        stated = super().proof()
        return unless_declared(stated) or self._by_rules(is_completely_monotone, _FALLS) or stated

    def root_proof(self) -> Proof | None:
        stated = super().root_proof()
        return unless_declared(stated) or self._by_rules(is_divisible, _POWERS_FALL) or stated

    def variable(self, at: Pairs) -> Array:
        if at.diagonal:
            return np.zeros(len(at.x))
        z = second(at.x, at.z)
        return self.squares(at.x.vectors, z.vectors)

    def spectrum(self, d: int, names: Sequence[str] | None = None) -> Spectrum:
        raise NoSpectrum(f"{self} is radial, but its mixture of Gaussians is not known")

    def variable_latex(self) -> str:
        return rf"\left\lVert\frac{{x-z}}{{{latex_value(self.lengthscale)}}}\right\rVert^2"

    def enclosed_variable(self, x: Point, z: Point) -> Interval:
        s = ZERO
        for a, b, length in zip(x, z, exact_numbers(self.lengthscale, len(x)), strict=True):
            s = s + ((a - b) / length).square()
        return s

    def squares(self, X: Matrix, Z: Matrix | None) -> Array:
        """s for every pair of rows."""
        length = self._checked_lengthscale(X.shape[1])
        if np.all((length > 1e-90) & (length < 1e90)):
            return squared_distances(X, Z, length**-2.0)
        return distances_in_units(X, Z, np.broadcast_to(length, X.shape[1]))

    def _checked_lengthscale(self, d: int) -> Array | np.float64:
        """One number for all of the d columns, which may be many, or an array with one for each."""
        value = self.closed_value("lengthscale")
        if isinstance(value, tuple):
            return self.column_values("lengthscale", d)
        return np.float64(value)

    def block(self, x: Rows, z: Rows | None) -> Array:
        out: Array = self.value(self.squares(x.vectors, None if z is None else z.vectors))
        return out

    def diagonal(self, x: Rows) -> Array:
        self._checked_lengthscale(x.vectors.shape[1])
        return np.full(len(x), float(self.value(np.zeros(1))[0]))

    def program(self, at: Place) -> None:
        write_value(self, at, lambda: self._write_squares(at))

    def _write_squares(self, at: Place) -> None:
        """s: one ℓ multiplies the sum, so differences stay exact; several scale the columns."""
        value = self.closed_value("lengthscale")
        require_usual(value, self)
        if not isinstance(value, tuple):
            at.step("SQDIST", at.view(centred=True))
            at.affine(at.param(value**-2.0, "lengthscale", -2 * value**-3.0))
            return
        lengths = self.column_values("lengthscale", at.width)
        view = at.view(centred=True, scale=1 / lengths)
        at.step("SQDIST", view)
        at.link_columns(view, "lengthscale", -2 / lengths)

    def contract(self, W: Array, at: Sweep) -> None:
        X = at.x.vectors
        Z = at.z.vectors
        s = self.squares(X, Z)
        G = W * self.slope(s)
        G[s == 0] = 0.0
        if isinstance(self.lengthscale, tuple):
            for j, length in enumerate(self.lengthscale):
                share = (G * (_difference(X, Z, j) / length) ** 2).sum()
                at.add(f"lengthscale[{j}]", float(-2 / length * share))
        else:
            at.add("lengthscale", float(-2 / self.lengthscale * (G * s).sum()))
        self.contract_value(W, at, s, but=("lengthscale",))


def _difference(X: Matrix, Z: Matrix, j: int) -> Array:
    return np.asarray(dense(X[:, [j]]).astype(float) - dense(Z[:, [j]]).astype(float).T)


def require_usual(value: Vector, k: OfOneNumber) -> None:
    """Refuse a program for lengthscales whose powers leave the range of numbers."""
    for length in entries_of(value):
        if not 1e-90 < length < 1e90:
            raise NotLowered(
                f"{type(k).__name__} with a lengthscale of {length:g} needs the care of the NumPy spelling"
            )


class DotProduct(OfOneNumber):
    """A function of t = x · z. A kernel in every dimension iff its Taylor coefficients are non-negative."""

    is_family: ClassVar = True
    letter: ClassVar = "t"

    def value(self, t: Values) -> Values:
        raise not_written(self, "value", "t", "a function of the dot product t = x · z")

    def proof(self) -> Proof | None:
        stated = super().proof()
        return unless_declared(stated) or self._by_rules(is_power_series, _SERIES) or stated

    def root_proof(self) -> Proof | None:
        stated = super().root_proof()
        return unless_declared(stated) or self._by_rules(has_power_series_powers, _EXPONENTIALS) or stated

    def taylor_coefficients(self) -> tuple[float, ...] | None:
        """a₀, a₁, … with k = Σ aₙ (x·z)ⁿ, where they are finitely many and known."""
        return None

    def is_series(self) -> bool:
        """Whether it is given as a series in x·z, so that random features can be drawn from its terms."""
        return self.taylor_coefficients() is not None

    def power_form(self) -> tuple[float, float, int] | None:
        """(scale, offset, degree) with k = (offset + scale x·z)^degree, where the kernel is that."""
        return None

    def is_linear(self) -> bool:
        """Whether the kernel is a multiple of x·z, so that rows are features."""
        power = self.power_form()
        return power is not None and power[1:] == (0.0, 1)

    def rate(self) -> float | None:
        """c with k = e^(c x·z), where the kernel is that."""
        return None

    def variable(self, at: Pairs) -> Array:
        if at.diagonal:
            return squared_norms(at.x.vectors)
        z = second(at.x, at.z)
        return dot_products(at.x.vectors, z.vectors)

    def enclosed_variable(self, x: Point, z: Point) -> Interval:
        return dot(x, z)

    def variable_latex(self) -> str:
        return r"x^\top z"

    def block(self, x: Rows, z: Rows | None) -> Array:
        out: Array = self.value(dot_products(x.vectors, None if z is None else z.vectors))
        return out

    def diagonal(self, x: Rows) -> Array:
        out: Array = self.value(squared_norms(x.vectors))
        return out

    def program(self, at: Place) -> None:
        write_value(self, at, lambda: at.step("DOT", at.view()))

    def contract(self, W: Array, at: Sweep) -> None:
        self.contract_value(W, at, dot_products(at.x.vectors, at.z.vectors))


class PerColumn(OfOneNumber):
    """A term for each column, reduced by a sum or a product, and a function of the result.

    `term(x, z, **parameters)` gets one column of each sample, ready to broadcast, and the parameters of that
    column for every parameter declared `per_column`.
    """

    is_family: ClassVar = True
    reduction: ClassVar[Literal["sum", "product"]] = "sum"
    histogram: ClassVar[bool] = False

    def term(self, *args: Values, **kwargs: Values) -> Values:
        """What one column contributes."""
        raise not_written(self, "term", "x, z", "of one column of each sample, ready to broadcast")

    def value(self, r: Values) -> Values:
        return r

    def recorded_term(self) -> Formula:
        """`term` as a formula of `LEFT`, `RIGHT` and the parameters; `NotRecorded` says why there is none."""
        return recorded_once(self, type(self).term, _record_term)

    def at_column(self, j: int) -> dict[str, float]:
        """The parameters at column j, by the names that the recording of `term` has for them."""
        out = self.numbers()
        for name in self.column_names():
            value = getattr(self, name)
            if not isinstance(value, Open):
                out[name] = value[j] if isinstance(value, tuple) else value
        return out

    def column_names(self) -> list[str]:
        """The parameters that have a number for each column."""
        declared = ((f.name, f.metadata.get("domain")) for f in fields_of(self))
        return [name for name, domain in declared if domain is not None and domain.per_column]

    def variable(self, at: Pairs) -> Array:
        X = self.checked_rows(at.x)
        if at.diagonal:
            return self.reduced(X, X, (len(X),))
        Z = self.checked_rows(second(at.x, at.z))
        return self.reduced(X[:, None, :], Z[None, :, :], (len(X), len(Z)))

    def enclosed_variable(self, x: Point, z: Point) -> Interval:
        out = ONE if self.reduction == "product" else ZERO
        for j, (a, b) in enumerate(zip(x, z, strict=True)):
            term = self.enclosed_term(a, b, j)
            out = out * term if self.reduction == "product" else out + term
        return out

    def enclosed_term(self, x: Interval, z: Interval, j: int) -> Interval:
        """What column j contributes, with certain bounds; by the recorded term where they are known."""
        f = self.recorded_term()
        if not f.operations() <= KNOWN:
            raise NotRecorded("its term has steps without bounds")
        return bounds_of(f, {LEFT: x, RIGHT: z}, self.at_column(j))

    def needs_nonnegative(self) -> bool:
        return self.histogram

    def reduced(self, X: Array, Z: Array, shape: tuple[int, ...]) -> Array:
        d = X.shape[-1]
        columns = {name: self.column_values(name, d) for name in self.column_names()}
        out = np.zeros(shape) if self.reduction == "sum" else np.ones(shape)
        for j in range(d):
            term = self.term(X[..., j], Z[..., j], **{name: column[j] for name, column in columns.items()})
            if self.reduction == "sum":
                out += term
            else:
                out *= term
        return out

    def checked_rows(self, x: Rows) -> Array:
        if self.histogram:
            require_nonnegative(x.vectors, type(self).__name__, x.name)
        return dense(x.vectors).astype(np.float64, copy=False)

    def block(self, x: Rows, z: Rows | None) -> Array:
        X = self.checked_rows(x)
        Z = X if z is None else self.checked_rows(z)
        out: Array = self.value(self.reduced(X[:, None, :], Z[None, :, :], (len(X), len(Z))))
        return out

    def diagonal(self, x: Rows) -> Array:
        X = self.checked_rows(x)
        out: Array = self.value(self.reduced(X, X, (len(X),)))
        return out

    def program(self, at: Place) -> None:
        if self.histogram:
            for rows in (at.x, at.z):
                if rows is not None:
                    require_nonnegative(rows.vectors, type(self).__name__, rows.name)
        write_value(self, at, lambda: self.reduction_program(at))

    def reduction_program(self, at: Place) -> None:
        """The steps of the reduced terms: here those of the recorded term, column by column."""
        write_columns(self, at)

    def contract(self, W: Array, at: Sweep) -> None:
        X = self.checked_rows(at.x)
        Z = self.checked_rows(at.z)
        d = X.shape[1]
        by_column = {name: self.column_values(name, d) for name in self.column_names()}
        numbers = [{name: values[j] for name, values in by_column.items()} for j in range(d)]
        terms = [self.term(X[:, None, j], Z[None, :, j], **numbers[j]) for j in range(d)]
        total = sum(terms) if self.reduction == "sum" else np.prod(terms, axis=0)
        G = W * self.slope(total)

        def share(j: int, leaf: PerColumn, moved: dict[str, Values]) -> float:
            """What a complex step in the term of one column comes to."""
            slope = np.imag(leaf.term(X[:, None, j], Z[None, :, j], **moved)) / STEP
            if self.reduction == "product":
                slope = slope * np.prod([t for i, t in enumerate(terms) if i != j], axis=0)
            return float((G * slope).sum())

        for name in by_column:
            parts = [share(j, self, {**at_j, name: at_j[name] + 1j * STEP}) for j, at_j in enumerate(numbers)]
            if isinstance(getattr(self, name), tuple):
                for j, part in enumerate(parts):
                    at.add(f"{name}[{j}]", part)
            else:
                at.add(name, float(np.sum(parts)))
        self.contract_value(W, at, total, but=by_column)
        # parameters of all columns that the term reads from the kernel itself
        for name in (name for name, _ in self.own_domains() if name not in by_column):
            for tail, value, rebuild in perturbed(self, name):
                leaf = rebuild(value + 1j * STEP)
                assert isinstance(leaf, PerColumn)
                for j in range(d):
                    at.add(name + tail, share(j, leaf, numbers[j]))


# Pairs at which a recorded term is compared with the function.
_CHECKED_LEFT = np.array([0.31, 1.7, 0.02, 2.9, 0.73])
_CHECKED_RIGHT = np.array([1.13, 0.45, 0.58, 2.3, 0.71])


def _record_term(k: OfOneNumber) -> Formula:
    assert isinstance(k, PerColumn)
    names = k.column_names()

    def term(x: Formula, z: Formula) -> Values:
        return symbolic(k).term(x, z, **{name: Formula("name", name=name) for name in names})

    found = record(term, LEFT, RIGHT)
    # an open parameter is 1 for this comparison
    numbers = {**dict.fromkeys(names, 1.0), **k.at_column(0)}
    with np.errstate(all="ignore"):
        sides = {LEFT: _CHECKED_LEFT, RIGHT: _CHECKED_RIGHT}
        recorded = found.at(None, {**numbers, **sides}) + np.zeros_like(_CHECKED_LEFT)
        direct = k.term(_CHECKED_LEFT, _CHECKED_RIGHT, **{name: numbers[name] for name in names})
    if not np.allclose(recorded, direct, rtol=1e-12, atol=0, equal_nan=True):
        raise NotRecorded("it does something else to numbers than to a symbol")
    return found
