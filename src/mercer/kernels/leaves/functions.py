"""Leaves that users write: a function of the difference of two vectors, and a function of any two things."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError
from mercer.kernels.leaves.leaf import Leaf, leaf
from mercer.kernels.leaves.writing import latex_value
from mercer.kernels.maps.parts import Node, Space, unknown_map
from mercer.kernels.proofs.densities import Band, Verdict, judge_density
from mercer.kernels.proofs.proof import Fact, Proof
from mercer.params import given
from mercer.sparse import dense
from mercer.typing import Array, Setting
from mercer.vectors import real_numbers

# A vector, a string, a graph: what the function of a user takes.
Thing: TypeAlias = Any

# What is said of the feature map of such a function.
OWN_FUNCTION = "it is a function of your own, and nothing is known of its features."

# Columns of a declared density: the volumes of higher dimensions leave no digits to compare.
MOST_COLUMNS = 32


@leaf
class Stationary(Leaf):
    """Any function of the difference: k(x, z) = f(x - z).

    `f` gets differences as an array whose last axis runs over the columns, and returns an array without that
    axis. By Bochner's theorem it is a kernel iff its Fourier transform is non-negative. Declare it with
    `density`, a function ρ of the length of a frequency: on rows of `columns` columns (1 if not given),

        f(δ) = ∫ ρ(‖ω‖) cos(ω·δ) dω    over all ω in so many dimensions.

    It is compared with f by quadrature and then taken on your word. Without it, mercer looks for a
    counter-example.

    >>> triangle = Stationary(lambda delta: np.maximum(0, 1 - np.abs(delta).sum(-1)))
    >>> float(triangle([[0.0]], [[0.25]])[0, 0])              # 1 - 1/4
    0.75
    >>> sinc = lambda w: np.sinc(w / (2 * np.pi)) ** 2 / (2 * np.pi)
    >>> Stationary(triangle.f, density=sinc).validity().status
    'declared'
    """

    f: Callable[[Array], Array] = given()
    density: Callable[[Array], Array] | None = given(None)
    columns: int | None = given(None)

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise ParameterError(f"Stationary: f must be a function of the difference x - z; got {self.f!r}.")
        if self.density is None:
            if self.columns is not None:
                raise ParameterError(
                    "Stationary: columns belongs to a density; give density= with it, or leave it out."
                )
            return
        if not callable(self.density):
            raise ParameterError(
                f"Stationary: density must be a function of the length of a frequency; got {self.density!r}."
            )
        columns = 1 if self.columns is None else self.columns
        whole = isinstance(columns, int | np.integer) and not isinstance(columns, bool)
        if not whole or not 1 <= columns <= MOST_COLUMNS:
            raise ParameterError(
                f"Stationary: columns must be a whole number from 1 to {MOST_COLUMNS}; got {self.columns!r}. "
                "It is the number of "
                "dimensions in which the density is one."
            )
        object.__setattr__(self, "columns", int(columns))

    def columns_needed(self) -> tuple[int | None, int]:
        return self.columns, self.columns or 1

    def _evaluate(self, delta: Array) -> Array:
        if self.columns is not None and delta.shape[-1] != self.columns:
            raise ShapeError(
                f"Stationary: the declared density is one of {self.columns} column(s), but the rows have "
                f"{delta.shape[-1]}. "
                "Declare the density of that many columns, or use .on(…) to choose columns."
            )
        out = real_numbers(self.f(delta), "Stationary")
        if out.shape != delta.shape[:-1]:
            raise ShapeError(
                f"Stationary: f returned shape {out.shape} for differences of shape {delta.shape}; it must "
                "drop the last "
                "axis, for example by np.linalg.norm(delta, axis=-1)."
            )
        return out

    def block(self, x: Rows, z: Rows | None) -> Array:
        X = dense(x.vectors).astype(np.float64, copy=False)
        Z = X if z is None else dense(z.vectors).astype(np.float64, copy=False)
        return self._evaluate(X[:, None, :] - Z[None, :, :])

    def diagonal(self, x: Rows) -> Array:
        return self._evaluate(np.zeros(x.vectors.shape))

    def feature_map(self, space: Space) -> Node:
        raise unknown_map(self, OWN_FUNCTION)

    @cached_property
    def _verdict(self) -> Verdict:
        """What was found about the declared density; looking takes a second."""
        assert self.density is not None and self.columns is not None
        return judge_density(self._evaluate, self.density, self.columns)

    def proof(self) -> Proof | None:
        if self.density is None or self._verdict.doubt:
            return None
        fact = Fact("Bochner's theorem", "a mixture of the kernels cos ω·(x - z) with weights ρ(‖ω‖) ≥ 0")
        claim = (
            "f(δ) = ∫ ρ(‖ω‖) cos(ω·δ) dω with ρ ≥ 0 "
            "(ρ was looked at on a grid, and compared with f by quadrature)"
        )
        return Proof(self, fact, (), (f"x and z have {self.columns} column(s)",), (claim,))

    def wanting(self) -> str:
        if self.density is None:
            return f"For a proof of {self}, declare its Fourier transform with density=."
        return self._verdict.doubt

    def negative_band(self) -> Band | None:
        """Frequencies at which the declared density is negative, if some were met."""
        if self.density is None:
            return None
        return self._verdict.band

    def latex(self) -> str:
        return rf"\mathrm{{{latex_value(self.f)}}}(x - z)"


@leaf
class Custom(Leaf):
    """Any Python function of two things: vectors, strings, graphs.

    `function(a, b)` returns one number; with `blocks=True` it gets two whole samples and returns the matrix.

    >>> shared = Custom(lambda a, b: len(set(a) & set(b)))
    >>> shared(["kernel", "nerve"])
    array([[5., 3.],
           [3., 4.]])
    """

    function: Callable[[Thing, Thing], Setting] = given()
    blocks: bool = given(False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"Custom: a function of two things was expected; got {self.function!r}.")

    def takes_things(self) -> bool:
        return True

    def feature_map(self, space: Space) -> Node:
        raise unknown_map(self, OWN_FUNCTION)

    @property
    def is_slow(self) -> bool:
        return not self.blocks

    def _call(self, a: Thing, b: Thing, i: int, j: int) -> float:
        out = self.function(a, b)
        if np.iscomplexobj(out):
            real_numbers(out, str(self))
        try:
            one = np.asarray(out, dtype=float if np.ndim(out) == 0 else None)
            number = float(one.item())
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self}: the function returned {type(out).__name__} for rows {i} and {j}; it must return "
                "one number."
            ) from error
        if not np.isfinite(number):
            raise NotFiniteError(
                f"{self}: the function returned {number} for rows {i} and {j}. Look at that pair."
            )
        return number

    def block(self, x: Rows, z: Rows | None) -> Array:
        a = x.things
        b = a if z is None else z.things
        if not self.blocks:
            return np.array([[self._call(p, q, i, j) for j, q in enumerate(b)] for i, p in enumerate(a)])
        out = real_numbers(self.function(a, b), str(self))
        if out.shape != (len(a), len(b)):
            raise ShapeError(
                f"{self}: the function returned shape {out.shape} for {len(a)} by {len(b)} things."
            )
        if not np.all(np.isfinite(out)):
            i, j = np.argwhere(~np.isfinite(out))[0]
            raise NotFiniteError(
                f"{self}: the function returned {out[i, j]} for rows {i} and {j}. Look at that pair."
            )
        return out

    def diagonal(self, x: Rows) -> Array:
        if self.blocks:
            return np.array([self.block(Rows(x.things[i : i + 1]), None)[0, 0] for i in range(len(x))])
        return np.array([self._call(p, p, i, i) for i, p in enumerate(x.things)])

    def latex(self) -> str:
        return rf"\mathrm{{{latex_value(self.function)}}}(x, z)"
