"""Facts: what a fitted attribute must be, in a few words, so that a file is checked by value.

    floats[f, s]        finite numbers, in two dimensions; f and s are sizes that all facts of a machine share
    wholes[s] < n       whole numbers from 0 to n - 1
    rows[n]             n rows: numbers or sparse rows with the columns of fit, or things
    size[n]             a whole number, which is the size n
    Certificate*        a list or tuple of certificates
    number | floats[n]  either

`reals` are numbers that may be infinite or NaN; `real` and `number` are single ones. A `matrix` is dense or
sparse. `labels` are classes, each once; `targets` are classes or numbers of rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer.files.nodes import Value, wrong
from mercer.files.registry import REGISTRY
from mercer.gram.on_rows import PRECOMPUTED
from mercer.kernels.base import Kernel

_GRAMMAR = re.compile(r"(?P<kind>\w+)(?P<many>\*)?(?:\[(?P<sizes>[\w, ]*)\])?(?: < (?P<below>\w+))?")


class Fact(NamedTuple):
    """One alternative of a fact."""

    kind: str
    many: bool
    sizes: tuple[str, ...]
    below: str | None


@cache
def parsed(text: str) -> tuple[Fact, ...]:
    """The alternatives of a fact.

    >>> parsed("wholes[s] < n")
    (Fact(kind='wholes', many=False, sizes=('s',), below='n'),)
    """
    out = []
    for part in text.split(" | "):
        match = _GRAMMAR.fullmatch(part)
        assert match is not None, part
        names = match["sizes"] or ""
        sizes = tuple(name.strip() for name in names.split(",") if name.strip())
        out.append(Fact(match["kind"], match["many"] is not None, sizes, match["below"]))
    return tuple(out)


@dataclass
class Sizes:
    """The sizes that the facts of one machine share, and what can be asked only when all are known."""

    known: dict[str, int] = field(default_factory=dict)
    later: list[Callable[[], None]] = field(default_factory=list)
    precomputed: bool = False

    def close(self) -> None:
        """Ask what had to wait."""
        for ask in self.later:
            ask()

    def agree(self, names: tuple[str, ...], found: tuple[int, ...]) -> bool:
        """Whether sizes are as known, or new; then they are remembered."""
        if len(names) != len(found):
            return False
        new = dict(self.known)
        for name, size in zip(names, found, strict=True):
            wanted = int(name) if name.isdigit() else new.setdefault(name, size)
            if wanted != size:
                return False
        self.known = new
        return True


def check(text: str, value: Value, sizes: Sizes, where: str) -> None:
    """Refuse a value that is not what the fact says."""
    for fact in parsed(text):
        if fact.many:
            fits = type(value) in (list, tuple) and all(_fits(fact, item, sizes, where) for item in value)
        else:
            fits = _fits(fact, value, sizes, where)
        if fits:
            return
    sized = ", ".join(f"{name} = {size}" for name, size in sizes.known.items() if name in text)
    wrong(where, f"is {_described(value)}, and must be {text}{f' with {sized}' if sized else ''}")


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        finite = ""
        if value.dtype.kind == "f":
            data = value.data if sparse.issparse(value) else value
            finite = "" if np.isfinite(data).all() else " with NaN or infinity"
        return f"{value.dtype}{list(value.shape)}{finite}"
    return f"{value!r:.60}"


def _fits(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    if fact.kind in _ARRAYS:
        return _ARRAYS[fact.kind](fact, value, sizes, where)
    if fact.kind in _SINGLE:
        return _SINGLE[fact.kind](value)
    if fact.kind == "size":
        return type(value) is int and value >= 0 and sizes.agree(fact.sizes, (value,))
    if fact.kind == "kernel":
        if isinstance(value, Kernel):
            return True
        sizes.precomputed |= isinstance(value, str)
        return isinstance(value, str) and value == PRECOMPUTED
    return REGISTRY.fits(value, fact.kind)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _is_real(value: Value) -> bool:
    return isinstance(value, float | np.floating) or _is_whole(value)


def _is_label(value: Value) -> bool:
    return isinstance(value, str | bool | np.bool_ | bytes) or _is_real(value)


_SINGLE: dict[str, Callable[[Value], bool]] = {
    "none": lambda value: value is None,
    "flag": lambda value: isinstance(value, bool | np.bool_),
    "text": lambda value: isinstance(value, str),
    "count": lambda value: _is_whole(value) and value >= 0,
    "whole": _is_whole,
    "real": _is_real,
    "number": lambda value: _is_real(value) and math.isfinite(value),
    "dict": lambda value: type(value) is dict,
}


def _floats(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return False
    return bool(np.isfinite(value).all()) and sizes.agree(fact.sizes, value.shape)


def _reals(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return False
    return sizes.agree(fact.sizes, value.shape)


def _wholes(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return False
    if fact.below is not None:
        sizes.later.append(lambda: _below(value, fact.below, sizes, where))
    return (not value.size or value.min() >= 0) and sizes.agree(fact.sizes, value.shape)


def _below(value: np.ndarray, name: str | None, sizes: Sizes, where: str) -> None:
    limit = sizes.known.get(str(name))
    if limit is not None and value.size and value.max() >= limit:
        wrong(where, f"has the index {value.max()}, and there are {limit}")


def _flags(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == bool and sizes.agree(fact.sizes, value.shape)


def _labels(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """Classes: different texts, numbers or truth values."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "OUbiuf":
        return False
    items = value.tolist()
    if not all(_is_label(item) and item == item for item in items) or len(set(items)) != len(items):
        return False
    return len(items) > 0 and sizes.agree(fact.sizes, value.shape)


def _targets(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """What was to be learned: numbers, or classes in any number of rows."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "OUbiuf":
        return False
    return all(_is_label(item) and item == item for item in value.tolist()) and sizes.agree(
        fact.sizes, value.shape
    )


def _measures(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """Numbers by their names."""
    if type(value) is not dict:
        return False
    return all(isinstance(name, str) and _is_real(number) for name, number in value.items())


def _names(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """Names of columns."""
    if not isinstance(value, np.ndarray) or not all(isinstance(name, str) for name in value.tolist()):
        return False
    return sizes.agree(fact.sizes, value.shape)


def _rows(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    if not isinstance(value, np.ndarray) and not sparse.issparse(value):
        return False
    if value.ndim not in (1, 2) or not sizes.agree(fact.sizes, value.shape[:1]):
        return False
    if value.dtype == object:
        return value.ndim == 1 or _has_columns(value, sizes, where)
    data = value.data if sparse.issparse(value) else value
    finite = value.ndim == 2 and value.dtype.kind in "fiub" and bool(np.isfinite(data).all())
    return finite and _has_columns(value, sizes, where)


def _has_columns(value: Any, sizes: Sizes, where: str) -> bool:
    """Kept rows have the columns of fit; those of a Gram matrix that was given may be left out."""

    def ask() -> None:
        columns = sizes.known.get("d")
        left_out = value.shape[1] == 0 and sizes.precomputed
        if columns is not None and value.shape[1] != columns and not left_out:
            wrong(where, f"has {value.shape[1]} columns, and the model was fitted on {columns}")

    sizes.later.append(ask)
    return True


def _matrix(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """Finite numbers in two dimensions, dense or sparse."""
    if not isinstance(value, np.ndarray) and not sparse.issparse(value):
        return False
    data = value.data if sparse.issparse(value) else value
    return value.ndim == 2 and value.dtype.kind in "fiub" and bool(np.isfinite(data).all())


def _witness(fact: Fact, value: Value, sizes: Sizes, where: str) -> bool:
    """Rows and a vector by which a kernel is none."""
    if type(value) is not tuple or len(value) != 2:
        return False
    rows, vector = value
    arrays = isinstance(rows, np.ndarray) and isinstance(vector, np.ndarray)
    return arrays and rows.dtype.kind in "iu" and vector.dtype.kind == "f" and rows.shape == vector.shape


_ARRAYS: dict[str, Callable[[Fact, Value, Sizes, str], bool]] = {
    "any": lambda fact, value, sizes, where: True,
    "floats": _floats,
    "reals": _reals,
    "wholes": _wholes,
    "flags": _flags,
    "labels": _labels,
    "targets": _targets,
    "measures": _measures,
    "names": _names,
    "rows": _rows,
    "matrix": _matrix,
    "witness": _witness,
}
