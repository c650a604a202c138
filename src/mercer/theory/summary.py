"""The bounds of theory beside the measured error, as one table (T4, T5, T7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.errors import MercerError, ParameterError
from mercer.gram.functions import ByRows, Functions
from mercer.sparse import Matrix
from mercer.theory.bounds import (
    margin_bound,
    margin_estimate,
    novikoff_bound,
    perceptron_estimate,
    support_vector_bound,
)
from mercer.theory.complementarity import essential
from mercer.theory.functions import FittedMachine, codes_of, function_of, inner, signs_of
from mercer.theory.margins import Margins, margins
from mercer.typing import Array, Integers, Table, Targets

NEAREST = 1e-6  # relative: rows this near to the smallest distance count among the vectors of smallest margin


@dataclass(frozen=True, eq=False)
class Line:
    """One row of the table: a name, a value for each function (None where there is none), what it means."""

    name: str
    values: tuple[float | None, ...]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """What `report` found, to print: `lines` are its rows, `train_error` and `test_error` are measured."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    measure: str
    train_error: float
    test_error: float | None

    def __getitem__(self, name: str) -> tuple[float | None, ...]:
        """The values of a row by its name."""
        for line in self.lines:
            if line.name == name:
                return line.values
        raise KeyError(f"{name!r}; the rows are {[line.name for line in self.lines]}")

    def __str__(self) -> str:
        table = [["", *self.columns, ""]]
        for line in self.lines:
            table.append([line.name, *(_said(v) for v in line.values), line.note])
        widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]
        out = [self.title]
        for row in table:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
            out.append("  ".join([*cells, row[-1]]).rstrip())
        test = "" if self.test_error is None else f", on the test rows {_said(self.test_error)}"
        out.append(f"measured {self.measure}: on the training rows {_said(self.train_error)}{test}")
        return "\n".join(out)


def report(
    model: object, X: Table, y: Targets, X_test: Table | None = None, y_test: Targets | None = None
) -> Report:
    """What theory promises of a fitted machine, beside what it does: a table to print.

    X and y are the training data. Of a classifier the table has, for each plane, the margin and its bound
    X²/(Pδ²), the support vectors and the essential ones with their share of P, Novikoff's bound on the
    mistakes of a perceptron, and the estimates for random labels; of a machine that predicts numbers, the
    norm of f. The bounds are on expectations over samples, and "—" stands where one says nothing: for a plane
    that does not separate, or a map without finitely many dimensions.

    >>> from mercer import SVC
    >>> from mercer.theory import report
    >>> X, y = [[-2.0], [-1.0], [1.0], [3.0]], [0, 0, 1, 1]
    >>> print(report(SVC("Linear()", C=float("inf")).fit(X, y), X, y, [[-0.5], [4.0]], [0, 1]))
    SVC, Linear()
                                  1 : 0
    examples P                        4
    dimensions N                      1
    norm ‖w‖                          1
    smallest signed distance δ        1
    margin bound X²/(Pδ²)          0.25  expected error; X over the vectors of smallest margin
    support vectors                   2
    support vectors / P             0.5  expected error after P - 1 examples
    essential support vectors         2
    essential / P                   0.5  the same, with those of every solution
    Novikoff (X/δ)²                  10  most mistakes of a perceptron on these rows
    random labels: δ               0.25  the estimate 1/(P√N), for vectors of norm 1
    random labels: P²N               16  the estimate of a perceptron's mistakes
    measured error rate: on the training rows 0, on the test rows 0
    """
    machine = inner(model)
    functions = function_of(machine)
    if (X_test is None) != (y_test is None):
        raise ParameterError("X_test and y_test come together, or not at all.")
    measure, train = _error(model, functions, X, y)
    test = None
    if X_test is not None:
        _, test = _error(model, functions, X_test, y_test)
    kernel = getattr(machine, "kernel_", getattr(machine, "kernel", ""))
    title = f"{type(model).__name__}, {kernel}"
    if functions.classes is None:
        names: tuple[str, ...] = ("f",)
        if functions.count > 1:
            names = tuple(f"f{k}" for k in range(functions.count))
        norms = Line("norm ‖f‖", tuple(functions.norms().tolist()))
        return Report(title, names, (norms,), measure, train, test)
    lines = _planes(machine, functions, X, y)
    return Report(title, _duels(functions), lines, measure, train, test)


def _error(model: object, functions: Functions, X: Table, y: Targets | None) -> tuple[str, float]:
    predict = getattr(model, "predict", None)
    if predict is None or y is None:
        raise ParameterError(
            f"{type(model).__name__} has no error to measure: it predicts no target. "
            "Its function is in theory.function_of(model)."
        )
    found = np.asarray(predict(X))
    wanted = np.asarray(y)
    if found.shape != wanted.shape:
        raise ParameterError(
            f"predictions have shape {found.shape} and y {wanted.shape}: no error can be measured. "
            "Pass the targets of fit."
        )
    if functions.classes is not None:
        return "error rate", float(np.mean(found != wanted))
    if not _predicts_targets(model):
        raise ParameterError(
            f"{type(model).__name__} predicts no target that y could be compared with; "
            "report is for classifiers and regressors."
        )
    return "root mean squared error", float(np.sqrt(np.mean(np.square(found - wanted))))


def _predicts_targets(model: object) -> bool:
    from sklearn.base import is_regressor

    return bool(is_regressor(model))


def _duels(functions: Functions) -> tuple[str, ...]:
    assert functions.classes is not None
    names = [str(c) for c in functions.classes.tolist()]
    return tuple(f"{names[a]} : {'rest' if b is None else names[b]}" for a, b in functions.duels)


def _planes(machine: FittedMachine, functions: Functions, X: Table, y: Targets) -> tuple[Line, ...]:
    found = margins(machine, X, y)
    A = machine.check_rows(X, reset=False)
    signs = signs_of(functions, codes_of(functions, y, A.shape[0]))
    counts = (~np.isnan(signs)).sum(axis=0)
    columns = _dimensions(machine, functions)
    rows = [
        Line("examples P", tuple(int(c) for c in counts)),
        Line("dimensions N", (columns,) * functions.count),
        Line("norm ‖w‖", tuple(found.norms.tolist())),
        Line("smallest signed distance δ", tuple(found.smallest.tolist())),
    ]
    rows += _margin_line(functions, A, found, counts)
    rows += _support_lines(machine, functions, X, y, counts)
    rows.append(_novikoff(machine, functions, A, signs))
    made = getattr(machine, "n_mistakes_", None)
    if made is not None:
        rows.append(Line("mistakes made", (int(made),), "by this perceptron, on its way to this plane"))
    finite = math.isfinite(columns)
    estimates = [margin_estimate(int(c), int(columns)) if finite else None for c in counts]
    mistakes = [perceptron_estimate(int(c), int(columns)) if finite else None for c in counts]
    rows.append(Line("random labels: δ", tuple(estimates), "the estimate 1/(P√N), for vectors of norm 1"))
    rows.append(Line("random labels: P²N", tuple(mistakes), "the estimate of a perceptron's mistakes"))
    return tuple(rows)


def _dimensions(machine: FittedMachine, functions: Functions) -> float:
    """How many dimensions φ has; infinity where it has no end or is not known."""
    if not isinstance(functions, ByRows):
        return float(functions.explicit()[1].shape[1])
    if functions.kernel is None:
        return math.inf
    try:
        return float(functions.kernel.feature_dimension(machine.n_features_in_))
    except MercerError:
        return math.inf


def _margin_line(functions: Functions, A: Matrix, found: Margins, counts: Integers) -> list[Line]:
    try:
        lengths = functions.lengths(A)
    except MercerError:
        return []
    values: list[float | None] = []
    for k in range(functions.count):
        if not found.separates[k]:
            values.append(None)
            continue
        near = found.distances[:, k] <= found.smallest[k] * (1 + NEAREST)
        radius = float(np.sqrt(lengths[near].max()))
        values.append(margin_bound(radius, float(found.smallest[k]), int(counts[k])))
    note = "expected error; X over the vectors of smallest margin"
    return [Line("margin bound X²/(Pδ²)", tuple(values), note)]


def _support_lines(
    machine: FittedMachine, functions: Functions, X: Table, y: Targets, counts: Integers
) -> list[Line]:
    if not functions.canonical or not isinstance(functions, ByRows):
        return []
    sizes = [int((functions.coefficients[:, k] != 0).sum()) for k in range(functions.count)]
    shares = tuple(support_vector_bound(s, int(c)) for s, c in zip(sizes, counts, strict=True))
    out = [
        Line("support vectors", tuple(sizes)),
        Line("support vectors / P", shares, "expected error after P - 1 examples"),
    ]
    try:
        always = [len(each.essential) for each in essential(machine, X, y)]
    except MercerError:
        return out
    out.append(Line("essential support vectors", tuple(always)))
    shares = tuple(support_vector_bound(s, int(c)) for s, c in zip(always, counts, strict=True))
    out.append(Line("essential / P", shares, "the same, with those of every solution"))
    return out


def _novikoff(machine: FittedMachine, functions: Functions, A: Matrix, signs: Array) -> Line:
    """(X/δ)² of (φ(x), 1) and (w, b) as a perceptron with a bias sees them; else of φ(x) and w."""
    name = "Novikoff (X/δ)²"
    note = "most mistakes of a perceptron on these rows"
    try:
        lengths = functions.lengths(A)
    except MercerError:
        return Line(name, (None,) * functions.count, note)
    bias = bool(getattr(machine, "fit_intercept", True))
    sides = signs * functions.values(A)
    sizes = np.sqrt(np.square(functions.norms()) + (np.square(functions.offset) if bias else 0.0))
    values: list[float | None] = []
    for k in range(functions.count):
        mine = ~np.isnan(sides[:, k])
        smallest = float(sides[mine, k].min())
        if smallest <= 0 or sizes[k] == 0:
            values.append(None)
            continue
        radius = float(np.sqrt(lengths[mine].max() + (1.0 if bias else 0.0)))
        values.append(novikoff_bound(radius, smallest / float(sizes[k])))
    return Line(name, tuple(values), note)


def _said(value: float | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if isinstance(value, float) and math.isinf(value):
        return "∞"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
