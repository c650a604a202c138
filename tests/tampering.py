"""Every number that a fitted model holds, one at a time, changed by one per cent."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer import verify
from mercer.errors import MercerError
from mercer.solve.solution import Certificate

# What no data can confirm and nothing is computed from. A name stands for every attribute, at any depth,
# that ends with it.
IRRELEVANT = {
    "n_iter_": "how many steps a search took says nothing of what it found",
    "iterations": "how many steps a search took says nothing of what it found",
    "seconds": "time of day",
    "_until": "time of day",
    "worst_row": "among rows that are off by rounding alone, which one is worst is rounding too",
    "log_evidence_path_": "the history of a search; its last entry is compared",
    "objective_": "the history of a search; its last entry is compared",
    "dual_": "the history of a search; its last entry is compared",
    "_last": "where a warm start would begin",
    "memory": "how much memory may be used",
    "crossings_": "how often levels crossed in fits that were thrown away",
}
QUALITY = ("gap", "kkt", "residual", "residuals")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Paths to all numbers and arrays of numbers inside a model, a dataclass, or a sequence of them."""
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return
    if isinstance(value, int | float | np.integer | np.floating):
        yield path, value
    elif sparse.issparse(value):
        yield (*path, "data"), value.data
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "iuf" and value.size:
            yield path, value
    elif isinstance(value, list | tuple):
        if value and all(isinstance(v, int | float | np.integer | np.floating) for v in value):
            yield path, value
            return
        for k, part in enumerate(value):
            yield from leaves(part, (*path, k))
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from leaves(getattr(value, f.name), (*path, f.name))


def numbers_of(model: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number that the model learned: attributes that are no parameters, whether public or private."""
    parameters = model.get_params(deep=False)
    for name, value in vars(model).items():
        if name not in parameters and not is_irrelevant((name,)):
            for path, leaf in leaves(value, (name,)):
                if not is_irrelevant(path):
                    yield path, leaf
    for inside in ("approximation_", "machine_", "base_estimator_"):
        part = vars(model).get(inside)
        if part is not None:
            for path, leaf in numbers_of(part):
                yield (inside, *path), leaf
    for k, part in enumerate(vars(model).get("estimators_", ())):
        for path, leaf in numbers_of(part):
            yield ("estimators_", k, *path), leaf


def is_irrelevant(path: tuple[Any, ...]) -> bool:
    words = [p for p in path if isinstance(p, str)]
    return any(word in IRRELEVANT for word in words)


def changes(path: tuple[Any, ...], leaf: Any, rng: np.random.Generator) -> Iterator[Any]:
    """The leaf with one entry, and with all entries, changed by one per cent; whole numbers by one."""
    array = np.array(leaf)
    quality = any("certificate" in str(part) for part in path) and path[-1] in QUALITY
    if array.dtype.kind in "iu":
        moved = array + 1
    elif quality:
        # a number of the size of rounding is not itself to one per cent
        moved = 1.01 * array + 1e-4
    else:
        moved = np.where(array == 0, 0.0, 1.01 * array)
    finite = np.isfinite(array.astype(float))
    large = np.abs(array) >= 1e-4 * np.abs(array[finite]).max(initial=0.0)
    eligible = np.flatnonzero(np.ravel((moved != array) & finite & large))
    if len(eligible) == 0:
        return
    one = array.copy()
    at = int(rng.choice(eligible))
    one.flat[at] = moved.flat[at]
    yield _like(leaf, one)
    if array.size > 1:
        yield _like(leaf, np.where(finite, moved, array))


def _like(leaf: Any, array: np.ndarray) -> Any:
    if isinstance(leaf, np.ndarray):
        return array.astype(leaf.dtype)
    if isinstance(leaf, list | tuple):
        return type(leaf)(array.tolist())
    return array.item()


def tampered(model: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the model that differs in this one leaf."""
    out = copy.deepcopy(model)
    _put(out, path, value)
    return out


def _put(holder: Any, path: tuple[Any, ...], value: Any) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(holder, tuple):
        parts = list(holder)
        parts[key] = _put(parts[key], rest, value) if rest else value
        return tuple(parts) if type(holder) is tuple else type(holder)(*parts)
    if isinstance(holder, list):
        holder[key] = _put(holder[key], rest, value) if rest else value
        return holder
    inner = _put(getattr(holder, key), rest, value) if rest else value
    object.__setattr__(holder, key, inner)
    return holder


def noticed(model, rows, y, weights=None):
    """Whether `verify` says that something is wrong, in its answer or by refusing to go on."""
    try:
        return not verify(model, rows, y, weights)
    except MercerError:
        return True


def missed(model, rows, y, weights=None):
    """The numbers of a model that can be changed by one per cent without `verify` noticing."""
    rng = np.random.default_rng(0)
    out = []
    for path, leaf in numbers_of(model):
        for value in changes(path, leaf, rng):
            if not noticed(tampered(model, path, value), rows, y, weights):
                out.append(".".join(map(str, path)))
    return out


__all__ = ["IRRELEVANT", "Certificate", "changes", "leaves", "missed", "noticed", "numbers_of", "tampered"]
