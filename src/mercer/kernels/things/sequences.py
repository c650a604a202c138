"""Sequences as arrays, and loops over pairs of them: what alignments and gaps are computed with.

symbols_of(thing)        a string, or a tuple of symbols
codes_of(k, x, z)        symbols as numbers, the same in both samples
all_pairs(a, b, many)    one sequence against several padded ones at a time, in bounded memory
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputTypeError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.things.on_things import OnThings
from mercer.kernels.things.vocabulary import Vocabulary
from mercer.typing import Array, Integers

# One sequence, several others padded to the same length, and their lengths: a number for each of the others.
OneAgainstMany: TypeAlias = Callable[[Array, Array, Integers], Array]

# Numbers in one table of a dynamic programme.
TABLE = 2**19


def symbols_of(thing: Thing) -> str | tuple[Hashable, ...]:
    """A string as it is, another sequence as a tuple of its symbols."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, np.ndarray) and thing.ndim == 1:
        return tuple(thing.tolist())
    if isinstance(thing, bytes | bytearray):
        raise TypeError('bytes are no text: decode them first, as in thing.decode("ascii")')
    if isinstance(thing, Sequence):
        symbols = tuple(thing)
        if None in symbols:
            raise TypeError(f"its symbol {symbols.index(None)} is None")
        return symbols
    raise TypeError("it is neither text nor a list of symbols")


def require_one_form(things: Sequence[Thing], name: str) -> str | None:
    """Refuse text beside lists of symbols, whose substrings are never equal; which of them these are."""
    form = None
    first = 0
    for i, thing in enumerate(things):
        if len(thing) == 0:
            continue
        mine = "text" if isinstance(thing, str) else "a list of symbols"
        if form is None:
            form = mine
            first = i
        if mine != form:
            raise InputTypeError(
                f"row {i} of {name} is {mine} and row {first} is {form}: their substrings are never equal. "
                "Give all of them as text, or all as lists."
            )
    return form


def written_symbols(symbols: Hashable) -> str:
    """Symbols as a person would write them."""
    if isinstance(symbols, tuple):
        return " ".join(map(str, symbols))
    return str(symbols)


def codes_of(k: OnThings, x: Rows, z: Rows | None) -> tuple[list[Array], list[Array] | None]:
    """Every sequence as an array of numbers from 0 up, equal where the symbols are."""
    symbols = Vocabulary()

    def code(thing: Thing) -> Array:
        numbers: Array = symbols.columns(symbols_of(thing)).astype(np.float64)
        return numbers

    def read(rows: Rows) -> list[Array]:
        return list(k.each(code, rows.things, rows.name))

    return read(x), None if z is None else read(z)


def all_pairs(a: list[Array], b: list[Array] | None, many: OneAgainstMany, fill: float) -> Array:
    """A function of every pair; of one sample the upper half, mirrored. Shorter sequences end in `fill`."""
    others = a if b is None else b
    lengths = np.array([len(s) for s in others])
    out: Array | None = None
    for i, one in enumerate(a):
        first = i if b is None else 0
        # by length, so that what is padded together is of about one length
        order = first + np.argsort(lengths[first:], kind="stable")
        for index in _batches(order, lengths, len(one)):
            found = many(one, _padded([others[j] for j in index], fill), lengths[index])
            if out is None:
                out = np.empty((len(a), len(others)), dtype=found.dtype)
            out[i, index] = found
            if b is None:
                out[index, i] = found
    assert out is not None
    return out


def with_themselves(a: list[Array], many: OneAgainstMany) -> Array:
    """The function of every sequence with itself."""
    return np.array([many(one, one[None], np.array([len(one)]))[0] for one in a])


def _batches(order: Integers, lengths: Integers, length: int) -> list[Integers]:
    """Sequences in the given order, a few at a time, so that one table stays small."""
    longest = max(int(lengths[order].max()), 1)
    size = max(1, TABLE // (max(length, 1) * longest))
    return [order[start : start + size] for start in range(0, len(order), size)]


def _padded(sequences: list[Array], fill: float) -> Array:
    longest = max(len(s) for s in sequences)
    out = np.full((len(sequences), longest, *sequences[0].shape[1:]), fill, dtype=sequences[0].dtype)
    for row, s in zip(out, sequences, strict=True):
        row[: len(s)] = s
    return out
