"""The functions that a fitted machine comes to, whichever machine it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from mercer.errors import ParameterError
from mercer.gram.functions import Functions
from mercer.solve.multipliers import Multipliers
from mercer.sparse import Matrix
from mercer.typing import Array, Integers, Table, Targets, Weights


class FittedMachine(Protocol):
    """What theory asks of a fitted machine."""

    n_features_in_: int

    def check_rows(self, X: Table, *, reset: bool) -> Matrix: ...

    def _functions(self) -> Functions: ...

    def named_rows(self) -> dict[str, Integers]: ...

    def named_multipliers(
        self, X: Table, y: Targets | None, sample_weight: Weights
    ) -> Sequence[Multipliers]: ...

    def bounded_support(self) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]: ...


def function_of(model: object) -> Functions:
    """f = Σ c_j k(x_j, ·) + b of a fitted machine: its rows, coefficients, offsets, kernel, values and norms.

    A machine with several functions (classes, targets, components, centres) has one column of coefficients
    for each. What has no such function, a feature map or a vote, says so.

    >>> from mercer import KernelRidge
    >>> from mercer.theory import function_of
    >>> f = function_of(KernelRidge("Linear()", alpha=1.0, solver="cholesky").fit([[1.0], [2.0]], [0.5, 1.0]))
    >>> f.norms().round(6).tolist()                                     # w = (XᵀX + 1)⁻¹Xᵀy = 2.5/6
    [0.416667]
    """
    ask = getattr(inner(model), "_functions", None)
    if ask is None:
        raise ParameterError(
            f"theory speaks of mercer's machines; got {type(model).__name__}. "
            "Fit one of them on the same data."
        )
    found: Functions = ask()
    return found


def named_rows(model: object) -> dict[str, Integers]:
    """Rows of fit that stand out, by the name they have in the field.

    Support vectors on the margin and at the bound, mistakes, relevance vectors.

    >>> from mercer import KernelPerceptron
    >>> from mercer.theory import named_rows
    >>> named_rows(KernelPerceptron("Linear()").fit([[-1.0], [2.0]], [0, 1]))
    {'rows with a mistake': array([0])}
    """
    function_of(model)
    found = inner(model).named_rows()
    return {name: rows for name, rows in found.items() if len(rows)}


def inner(model: object) -> FittedMachine:
    """The machine that does the work: a drop-in twin keeps it in `machine_`."""
    return cast("FittedMachine", getattr(model, "machine_", model))


def codes_of(functions: Functions, y: Targets, n: int) -> Integers:
    """The labels y as places in the machine's classes."""
    if functions.classes is None:
        raise ParameterError(
            f"this asks on which side of a boundary labelled rows lie, and {functions.what} of this machine "
            "tells no classes apart. Ask a classifier."
        )
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ParameterError(
            f"y must hold one label for each of the {n} rows of X; got shape {labels.shape}."
        )
    known = functions.classes
    codes: Integers = np.searchsorted(known, labels).clip(max=len(known) - 1)
    if not np.array_equal(known[codes], labels):
        raise ParameterError(f"y has labels other than those of fit: {known.tolist()}.")
    return codes


def signs_of(functions: Functions, codes: Integers) -> Array:
    """+1 and -1 for the rows of both sides of each function, NaN for rows of other classes."""
    signs = np.full((len(codes), functions.count), np.nan)
    for k, (plus, minus) in enumerate(functions.duels):
        signs[codes == plus, k] = 1.0
        others = codes != plus if minus is None else codes == minus
        signs[others, k] = -1.0
    return signs
