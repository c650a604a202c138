"""`mercer.fit(table, target)`: from a file, a data frame or arrays to a tuned, judged model."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mercer.errors import InputError, Interrupted, TargetError
from mercer.frames import (
    frame_column,
    frame_names,
    frame_without,
    is_frame,
    with_text_names,
)
from mercer.kernels import Kernel
from mercer.recipe.estimators import TableClassifier, TableRegressor
from mercer.recipe.given import Source, as_target, find_task, rows_in
from mercer.tables.intake import TableFile, read_table
from mercer.tables.names import require_columns
from mercer.typing import Memory, Table, Targets

TARGET = "target"


def fit(
    table: Source,
    target: str | Targets | None = None,
    *,
    task: str | None = None,
    kernel: Kernel | str | None = None,
    machine: str = "auto",
    leave_out: Iterable[str] = (),
    max_seconds: float | None = None,
    memory: Memory = "2GiB",
    random_state: int = 0,
    verbose: int = 1,
) -> TableRegressor | TableClassifier:
    """A model of one column of a table by the others: tuned, judged, and explained in words.

    Parameters
    ----------
    table : a data frame of pandas, polars or Arrow, an array, a list of texts, or the path of a file.
    target : the name of the column to predict, or its values. A file of LIBSVM's text brings its own.
    task : "numbers" or "classes"; None decides by the values of the target, and says why.
    kernel : a kernel or its text, to be tuned; None lets kernels proposed from the columns compete.
    machine : "auto", "gp" (an exact Gaussian process), "landmarks", or "features" (ridge whose kernel learns
        along which directions of the columns the target changes).
    leave_out : names of columns that are not used, such as those that give the answer away.
    max_seconds : seconds for everything. memory : bytes for large matrices.

    Returns a fitted `TableRegressor` or `TableClassifier`. Ctrl-C ends the search for a kernel, fits the best
    so far, and raises `mercer.Interrupted` with that model.

    >>> import mercer, pandas as pd
    >>> table = pd.DataFrame({"size": [k % 20 * 0.5 for k in range(60)], "kind": ["oak", "ash", "elm"] * 20})
    >>> table["price"] = 3.0 * table["size"] + 5.0 * (table["kind"] == "oak")
    >>> model = mercer.fit(table, "price", verbose=0)
    >>> model.predict(pd.DataFrame({"kind": ["oak"], "size": [4.0]})).round(1)
    array([17.])
    """
    rows, values, name = split(table, target)
    known, _ = as_target(values)
    found, why = find_task(known, task)
    kind = TableRegressor if found == "numbers" else TableClassifier
    model = kind(
        kernel,
        machine,
        leave_out=tuple(leave_out) if not isinstance(leave_out, str) else (leave_out,),
        max_seconds=max_seconds,
        memory=memory,
        random_state=random_state,
        verbose=verbose,
    )
    model.target_ = name
    try:
        model.fit(rows, values)
    except Interrupted:
        model.steps_.insert(0, why)
        raise
    model.steps_.insert(0, why)
    return model


def split(table: Source, target: str | Targets | None) -> tuple[Table, Targets, str]:
    """The rows, the values of the target, and its name."""
    whose = "the table"
    if isinstance(table, str | os.PathLike):
        table = read_table(os.fspath(table))
    if isinstance(table, TableFile):
        if table.frame is None:
            assert table.target is not None and table.matrix is not None
            return table.matrix, table.target, TARGET
        whose = table.path
        table = rows_in(table)
    if isinstance(target, str):
        return _by_name(table, target, whose)
    if target is None:
        raise InputError("name the column to predict: fit(table, target='price').")
    name = getattr(target, "name", None)
    return table, target, str(name) if name else TARGET


def _by_name(table: Table, target: str, whose: str) -> tuple[Table, Targets, str]:
    if not is_frame(table):
        raise TargetError(
            f"the target {target!r} is a name, and the table is an array without names: pass a data frame, "
            "or the values of the target."
        )
    table = with_text_names(table)
    names = frame_names(table)
    require_columns(names, [target], whose)
    if len(names) == 1:
        raise InputError(f"the table has no other column than {target!r}: there is nothing to learn from.")
    return frame_without(table, [target]), frame_column(table, target), target
