"""Nodes to values: whatever a file says is checked before anything is made of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable
from datetime import date, datetime
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import MercerError
from mercer.files.facts import Sizes, check
from mercer.files.nodes import (
    BIT_GENERATORS,
    DEEPEST,
    GLOBAL_STATE,
    MERSENNE_WORDS,
    NOT_FINITE,
    SCALARS,
    Node,
    Value,
    field,
    read_json,
    sizes,
    unreadable,
    wrong,
)
from mercer.files.registry import REGISTRY, MachineForm
from mercer.kernels.base import Kernel
from mercer.kernels.text import parse
from mercer.sparse import check_format

# Of all words of an array together, with what fills them up to one width.
MOST_LETTERS = 2**26


class Reader:
    """Nodes to values. Whatever a node says is checked before anything is made of it."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors
        self.used: set[str] = set()
        self._made: dict[tuple[str, bool], np.ndarray] = {}
        self._depth = 0
        self._sizes = Sizes()

    def read(self, node: Node, where: str) -> Value:
        self._depth += 1
        if self._depth > DEEPEST:
            wrong(where, f"nests more than {DEEPEST} deep")
        try:
            return self._read(node, where)
        finally:
            self._depth -= 1

    def _read(self, node: Node, where: str) -> Value:
        if node is None or type(node) in (bool, int, str):
            return node
        if type(node) is float:
            return _finite(node, where)
        if type(node) is list:
            return [self.read(item, where) for item in node]
        kind = field(node, "is", str, where)
        if kind not in _READ:
            wrong(where, f"is a {kind!r:.40}, which this format does not have")
        return _READ[kind](self, node, where)

    # ── objects and machines ──

    def object(self, node: Node, where: str) -> Value:
        """A small object of the table, whose fields are those of its form."""
        form = _named(REGISTRY.forms, node, where, "of")
        fields = field(node, "fields", dict, where)
        if not form.has(fields):
            wrong(where, f"has the fields {sorted(fields)!r:.120} for a {form.name}")
        outer = self._sizes
        if form.own:
            self._sizes = Sizes()
        found = self._checked(form.facts, fields, where)
        if form.own:
            self._sizes.close()
            self._sizes = outer
        try:
            return form.made_of(found)
        except (MercerError, ValueError, TypeError, ArithmeticError, MemoryError) as error:
            wrong(where, f"is no {form.name} ({error!s:.120})")

    def _checked(self, facts: dict[str, str], nodes: dict[str, Node], where: str) -> dict[str, Value]:
        """Values in the order of their facts, each of which they pass."""
        found = {}
        for name, fact in facts.items():
            if name in nodes:
                place = f"{where}.{name}" if where else name
                found[name] = self.read(nodes[name], place)
                check(fact, found[name], self._sizes, place)
        return found

    def machine(self, node: Node, where: str) -> Value:
        """A machine of the table, with parameters that it takes and attributes that passed their facts."""
        form = _named(REGISTRY.machines, node, where, "of")
        parameters = field(node, "parameters", dict, where)
        fitted = field(node, "fitted", dict, where)
        unknown = [name for name in fitted if name not in form.facts]
        unknown += [name for name in parameters if name not in signature(form.kind).parameters]
        if unknown:
            wrong(where or form.name, f"has {unknown[0]!r:.60}, which no {form.name} has")
        outer = self._sizes
        self._sizes = Sizes()
        model = self._built(form, {name: self.read(node, name) for name, node in parameters.items()})
        model.__dict__.update(self._checked(form.facts, fitted, where))
        self._sizes.close()
        self._sizes = outer
        if form.complete is not None:
            _complete(form, model, where)
        return model

    @staticmethod
    def _built(form: MachineForm, parameters: dict[str, Value]) -> Value:
        """The machine before its fit; its own rules say what its parameters may be."""
        try:
            model = form.kind(**parameters)
            form.check(model)
        except (MercerError, ValueError, TypeError, ArithmeticError) as error:
            wrong(form.name, f"has parameters that it does not take ({error!s:.160})")
        return model

    # ── arrays ──

    def tensor(self, name: str, where: str) -> np.ndarray:
        if name not in self.tensors:
            wrong(where, f"names the tensor {name!r:.60}, which is not in the file")
        self.used.add(name)
        return self.tensors[name]

    def array(self, node: Node, where: str) -> np.ndarray:
        name = field(node, "tensor", str, where)
        turned = node.get("order", "C") == "F"
        stored = self.tensor(name, where)
        if (name, turned) not in self._made:
            self._made[name, turned] = stored.T if turned else stored
        return self._made[name, turned]

    def part(self, node: Node, where: str) -> np.ndarray:
        pool = self.tensor(f"things.{field(node, 'dtype', str, where)}", where)
        shape = sizes(node, where)
        start = field(node, "start", int, where)
        count = math.prod(shape)
        if pool.ndim != 1 or not 0 <= start <= start + count <= len(pool):
            wrong(where, f"is a run of {count} numbers from {start}, and there are {pool.size}")
        return pool[start : start + count].reshape(shape)

    def json(self, node: Node, where: str) -> list[Node]:
        """Items of an array of objects, from a tensor of bytes or in place."""
        found = node.get("json")
        if isinstance(found, str):
            found = read_json(self.tensor(found, where).tobytes(), where)
        if type(found) is not list:
            wrong(where, "has no list of items")
        count = math.prod(sizes(node, where))
        if len(found) != count:
            wrong(where, f"has {len(found)} items, and its shape says {count}")
        return found

    def things(self, node: Node, where: str) -> np.ndarray:
        items = self.json(node, where)
        out = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            out[i] = self.read(item, where)
        return out.reshape(sizes(node, where))

    def words(self, node: Node, where: str) -> np.ndarray:
        items = self.json(node, where)
        width = field(node, "width", int, where)
        if not all(type(item) is str for item in items):
            wrong(where, "has an item that is no text")
        longest = max((len(item) for item in items), default=0)
        if not longest <= width <= MOST_LETTERS // max(len(items), 1):
            wrong(where, f"has {len(items)} words of {width} letters; the longest has {longest}")
        return np.array(items, dtype=f"<U{width}").reshape(sizes(node, where))

    def dates(self, node: Node, where: str) -> np.ndarray:
        numbers = self.read(node.get("numbers"), where)
        kind = _date_type(f"datetime64[{field(node, 'unit', str, where)}]", where)
        if not isinstance(numbers, np.ndarray) or numbers.dtype != np.int64:
            wrong(where, "has dates that are no whole numbers")
        return numbers.view(kind)

    def scalar(self, node: Node, where: str) -> Value:
        name = field(node, "dtype", str, where)
        value = self.read(node.get("value"), where)
        if name == "str":
            return np.str_(_of(str, value, where))
        dated = name.startswith("datetime64")
        if not dated and name not in SCALARS:
            wrong(where, f"has the type {name!r:.40}, which this format does not have")
        try:
            if dated:
                return np.int64(_of(int, value, where)).view(_date_type(name, where))
            wanted = {"f": float, "b": bool}.get(SCALARS[name].kind, int)
            return SCALARS[name].type(_of(wanted, value, where))
        except OverflowError:
            wrong(where, f"is {value!r:.40}, which is no {name}")

    def items(self, node: Node, where: str, make: Callable[[list[Value]], Value]) -> Value:
        found = field(node, "items", list, where)
        try:
            return make([self.read(item, where) for item in found])
        except TypeError as error:
            wrong(where, f"is a set of things that cannot be in one ({error})")

    def dictionary(self, node: Node, where: str) -> dict[Hashable, Value]:
        out = {}
        for pair in field(node, "items", list, where):
            if type(pair) is not list or len(pair) != 2:
                wrong(where, "has an entry that is no pair")
            key = self.read(pair[0], where)
            if not isinstance(key, Hashable) or isinstance(key, tuple | frozenset):
                wrong(where, f"has a {type(key).__name__} as a key")
            if key in out:
                wrong(where, f"has the key {key!r:.40} twice")
            out[key] = self.read(pair[1], where)
        return out

    def sparse(self, node: Node, where: str) -> sparse.csr_array:
        shape = sizes(node, where)
        parts = [self.read(node.get(name), f"{where}.{name}") for name in ("data", "indices", "indptr")]
        if len(shape) != 2 or not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
            wrong(where, "has sparse rows without data, indices or indptr")
        if parts[1].dtype.kind != "i" or parts[2].dtype.kind != "i" or len(parts[2]) != shape[0] + 1:
            wrong(where, "has sparse rows whose indices are no whole numbers, or too few of them")
        make = sparse.csr_matrix if node.get("old") is True else sparse.csr_array
        try:
            # Without the constructor's own choice of types, so that the indices keep theirs.
            out = make(shape, dtype=parts[0].dtype)
            out.data, out.indices, out.indptr = parts
            check_format(out, where)
        except (MercerError, ValueError, TypeError, OverflowError) as error:
            wrong(where, f"has no well-formed sparse rows ({error})")
        return out

    def kernel(self, node: Node, where: str) -> Kernel:
        text = field(node, "text", str, where)
        try:
            found = parse(text)
        except (MercerError, ValueError, TypeError, OverflowError, RecursionError, ArithmeticError) as error:
            wrong(where, f"has a kernel that cannot be read ({str(error).splitlines()[0]:.120})")
        problem = unreadable(found, text)
        if problem:
            wrong(where, f"has the kernel {text:.80}, and {problem}")
        return found

    def moment(self, node: Node, where: str, kind: type[date]) -> date:
        text = field(node, "text", str, where)
        try:
            return kind.fromisoformat(text)
        except ValueError:
            wrong(where, f"is no date: {text!r:.40}")

    def generator(self, node: Node, where: str) -> np.random.Generator | np.random.RandomState:
        of = field(node, "of", str, where)
        if of == "global":
            return GLOBAL_STATE
        state = self.read(node.get("state"), where)
        if type(state) is not dict or state.get("bit_generator") not in BIT_GENERATORS:
            wrong(where, "has no state of a generator of random numbers that this format knows")
        name = state["bit_generator"]
        inner = state.get("state")
        if name == "MT19937" and not _is_mersenne(inner):
            wrong(where, "has a state of random numbers whose position is outside of it")
        bits = BIT_GENERATORS[name]()
        try:
            if of == "RandomState":
                legacy = np.random.RandomState(bits)
                legacy.set_state(state)
                return legacy
            bits.state = state
            return np.random.Generator(bits)
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
            wrong(where, f"has no state of random numbers ({error!r:.80})")

    def bytes(self, node: Node, where: str) -> bytes:
        try:
            return bytes.fromhex(field(node, "hex", str, where))
        except ValueError:
            wrong(where, "has bytes that are no hexadecimal digits")

    def slice(self, node: Node, where: str) -> slice:
        found = [self.read(item, where) for item in field(node, "items", list, where)]
        if len(found) != 3 or not all(item is None or type(item) is int for item in found):
            wrong(where, "has a slice that is not of three whole numbers")
        return slice(*found)


def _is_mersenne(inner: Value) -> bool:
    if type(inner) is not dict:
        return False
    key, position = inner.get("key"), inner.get("pos")
    fits = isinstance(key, np.ndarray) and key.shape == (MERSENNE_WORDS,) and key.dtype.kind == "u"
    return fits and type(position) is int and 0 <= position <= MERSENNE_WORDS


def _date_type(name: str, where: str) -> np.dtype:
    units = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
    if name not in {f"datetime64[{unit}]" for unit in units}:
        wrong(where, f"has dates in {name!r:.40}")
    return np.dtype(name)


def _complete(form: MachineForm, model: Value, where: str) -> None:
    """Make what the file leaves out; a file from which it does not follow is refused."""
    assert form.complete is not None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            form.complete(model)
    except (MercerError, ValueError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        wrong(where or form.name, f"has rows and weights that do not fit together ({error!s:.160})")


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        wrong(where, "has a number beyond the range of float64")
    return value


def _of(kind: type, value: Value, where: str) -> Any:
    if type(value) is not kind:
        wrong(where, f"is {value!r:.40}, where a {kind.__name__} belongs")
    return value


def _named(table: dict[str, Any], node: Node, where: str, key: str) -> Any:
    name = field(node, key, str, where)
    if name not in table:
        wrong(where, f"names {name!r:.40}, which this format does not have")
    return table[name]


_READ: dict[str, Callable[[Reader, Node, str], Value]] = {
    "array": Reader.array,
    "part": Reader.part,
    "things": Reader.things,
    "words": Reader.words,
    "dates": Reader.dates,
    "scalar": Reader.scalar,
    "tuple": partial(Reader.items, make=tuple),
    "set": partial(Reader.items, make=set),
    "frozenset": partial(Reader.items, make=frozenset),
    "dict": Reader.dictionary,
    "csr": Reader.sparse,
    "kernel": Reader.kernel,
    "date": partial(Reader.moment, kind=date),
    "datetime": partial(Reader.moment, kind=datetime),
    "random": Reader.generator,
    "bytes": Reader.bytes,
    "slice": Reader.slice,
    "float": lambda self, node, where: _named(NOT_FINITE, node, where, "text"),
    "machine": Reader.machine,
    "object": Reader.object,
}
