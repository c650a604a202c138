"""LIBSVM's text: one row a line, `target index:value index:value …`.

scikit-learn reads it. What it accepts and no machine can use (NaN), and what it refuses without saying where,
gets the number of the line.
"""

from __future__ import annotations

import io
import re

import numpy as np
from scipy import sparse

from mercer.errors import InputError
from mercer.typing import Array

_LINE = re.compile(rb"^[+-]?[\d.]+(e[+-]?\d+)?(\s+\d+:[^\s:]+)+\s*$", re.IGNORECASE)
# scikit-learn would ask for as many columns as the largest index says.
MOST_COLUMNS = 2**31 - 1


def read_svmlight(
    name: str, content: bytes, *, zero_based: bool | None = None
) -> tuple[sparse.csr_array, Array, tuple[str, ...]]:
    """Sparse rows, their target, and what was assumed; None finds out whether indices begin at 0."""
    # scikit-learn's readers bring much of it along
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(
            io.BytesIO(content), zero_based="auto" if zero_based is None else zero_based
        )
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"{name}, {_first_bad_line(content) or error}") from error
    if not all(X.shape):
        raise InputError(f"{name} has {X.shape[0]} rows and {X.shape[1]} columns: no data.")
    if X.shape[1] > MOST_COLUMNS:
        raise InputError(f"{name} has the index {X.shape[1]}, beyond the {MOST_COLUMNS} that are possible.")
    rows = np.flatnonzero(~np.isfinite(y))
    if not np.isfinite(X.data).all():
        bad = int(np.flatnonzero(~np.isfinite(X.data))[0])
        rows = np.array([int(np.searchsorted(X.indptr, bad, side="right")) - 1])
    if len(rows):
        raise InputError(
            f"{name}: row {int(rows[0]) + 1} has a value that is no finite number. Leave the entry out (it "
            "is then 0), or fill it."
        )
    return sparse.csr_array(X), np.asarray(y, dtype=np.float64), ()


def is_svmlight(content: bytes) -> bool:
    """Whether the first lines look like it: a number, then pairs."""
    lines = [line for line in content[:65536].split(b"\n")[:5] if line.strip()]
    return bool(lines) and all(_LINE.match(line) for line in lines)


def _first_bad_line(content: bytes) -> str | None:
    """The first line that cannot be read on its own, and why."""
    from sklearn.datasets import load_svmlight_file

    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            load_svmlight_file(io.BytesIO(line), zero_based=True)
        except (ValueError, OverflowError, MemoryError) as error:
            shown = line[:60].decode("utf-8", "replace")
            return f"line {number} cannot be read: {shown!r} ({error}). A line is: target index:value …"
    return None
