"""A trial: a model that was read must answer for one row before anybody gets it.

Facts check every value and how sizes fit together. What only the machine knows, such as how many functions so
many classes need, is found out by asking it. A `MercerError` is an answer too, unless it is about the width
of the row: the row may lie outside of what the kernel is defined on.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from mercer.errors import MercerError, ShapeError
from mercer.files.nodes import Value, wrong
from mercer.gram.of_kernel import Tiles
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.base import Kernel
from mercer.sparse import Matrix

METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "transform")
# Where machines keep rows, in the order in which they are looked for.
KEPT = ("X_fit_", "support_vectors_", "relevance_vectors_", "landmarks_", "X_train_", "_A")
# Without kept rows: one row of so many zeros at most; of more columns it is a sparse one.
WIDEST = 2**24
MOST_COLUMNS = 2**31


def answers(model: Value) -> None:
    """Refuse a model that cannot be asked anything."""
    columns = getattr(model, "n_features_in_", 1)
    if not 0 < columns < MOST_COLUMNS:
        wrong("n_features_in_", f"says {columns!r:.40} columns, which no rows of a fit have")
    _reads_its_rows(model)
    row = one_row(model)
    if row is None:
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in METHODS:
            _ask(model, name, row)


def _reads_its_rows(model: Value) -> None:
    """Refuse kept rows of mixed cells that the kernel cannot read, such as a number that is infinite.

    A fit has read them. Cells of columns that the kernel does not look at may be anything.
    """
    kernel = getattr(model, "kernel_", None)
    if not isinstance(kernel, Kernel):
        return
    for name in KEPT:
        rows = vars(model).get(name)
        if not isinstance(rows, np.ndarray) or rows.dtype != object or not len(rows):
            continue
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                Tiles(kernel, model.as_rows(rows, name), model.as_rows(rows[:1], name)).dense()
        except (MercerError, ValueError, TypeError, ArithmeticError, AttributeError, IndexError) as error:
            wrong(name, f"has cells that the kernel cannot read ({error!s:.200})")


def _ask(model: Value, name: str, row: Matrix) -> None:
    try:
        method = getattr(model, name, None)
        if method is not None:
            method(row)
    except ShapeError as error:
        wrong(name, f"does not take rows as wide as the file says ({error!s:.160})")
    except MercerError:
        return
    except Exception as error:
        wrong(name, f"does not work with what is in the file ({error!r:.160})")


def one_row(model: Value) -> Matrix | None:
    """A row that the model can be asked about: one that it kept, or zeros; None where there is none."""
    columns = getattr(model, "n_features_in_", None)
    kernel = getattr(model, "kernel_", getattr(model, "kernel", None))
    if isinstance(kernel, str) and kernel == PRECOMPUTED:
        return _zeros(columns)
    for name in KEPT:
        rows: Matrix = getattr(model, name, None)
        kept = isinstance(rows, np.ndarray) or sparse.issparse(rows)
        if kept and rows.shape[0] and (rows.ndim == 1 or rows.shape[1]) and rows.dtype.kind not in "iub":
            return rows[:1]
    return _zeros(columns)


def _zeros(columns: int | None) -> Matrix | None:
    if columns is None:
        return None
    if columns > WIDEST:
        return sparse.csr_array((1, columns))
    return np.zeros((1, columns))
