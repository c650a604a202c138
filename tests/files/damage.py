"""Damaged model files: random changes of a sound one, with its checksums as they were or made right again."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import save

from mercer.files.container import BODY_SUM, HEADER, HEADER_SUM, body_sum, split

HUGE = [0, -1, 1, 2, 3, 7, 2**31, 2**53, 2**62, 2**63, 10**30, -(2**63), 1e308, -0.0, 5e-324]
WORDS = ["", "precomputed", "RBF(1.0)", "Linear()", "SVC", "nan", "inf", "\x00", "ü", "a" * 5000, "os.system"]
KERNELS = [
    "RBF(1e300)",
    "Polynomial(9)",
    "RBF(1.0).on(7)",
    "RBF([1.0, 2.0])",
    "Spectrum(3)",
    "Custom(f)",
    "(" * 70 + "RBF(1.0)" + ")" * 70,
    "RBF(1.0)**2000",
    "Linear()**9",
    "White(1.0)",
    'Categorical().on("city")',
    "-1.0*RBF(1.0)",
]


def sealed(header: Any, tensors: dict[str, np.ndarray]) -> bytes:
    """A file with right checksums, whatever is in it."""
    if isinstance(header, dict):
        header = {**header, BODY_SUM: body_sum(tensors)}
    text = json.dumps(header)
    return seal_text(text, tensors)


def seal_text(text: str, tensors: dict[str, np.ndarray]) -> bytes:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return save(tensors, metadata={HEADER: text, HEADER_SUM: digest})


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────


def flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def longer(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.randrange(1, 64))


def doubled(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start : start + rng.randrange(1, 200)] + data[start:]


def length_that_lies(rng: random.Random, data: bytes) -> bytes:
    length = rng.choice([0, 1, len(data), 2**32, 2**63 - 1, 2**64 - 1, rng.randrange(2**20)])
    return length.to_bytes(8, "little") + data[8:]


def table_that_lies(rng: random.Random, data: bytes) -> bytes:
    """Shapes, types and places of tensors that are not those of the body."""
    length = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + length])
    name = rng.choice([n for n in table if n != "__metadata__"])
    entry = table[name]
    kind = rng.randrange(4)
    if kind == 0:
        entry["shape"] = [rng.choice([0, 1, 2**40, 2**63, 10**20]) for _ in range(rng.randrange(4))]
    elif kind == 1:
        entry["dtype"] = rng.choice(["F64", "F32", "I8", "BF16", "C64", "NONE", "BOOL"])
    elif kind == 2:
        entry["data_offsets"] = [rng.randrange(2**20), rng.choice([0, 2**20, 2**63])]
    else:
        other = rng.choice([n for n in table if n != "__metadata__"])
        table[name], table[other] = table[other], table[name]
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


BYTES: list[Callable[[random.Random, bytes], bytes]] = [
    flip,
    cut,
    longer,
    doubled,
    length_that_lies,
    table_that_lies,
]


# ── values, with checksums that are right ───────────────────────────────────────────────────────────────────


def places(node: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every entry of a JSON value: its container and its key."""
    found = [] if found is None else found
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        found.append((node, key))
        if isinstance(value, dict | list):
            places(value, found)
    return found


def nested(depth: int) -> Any:
    out: Any = 1
    for i in range(depth):
        out = [out] if i % 2 else {"is": "tuple", "items": [out]}
    return out


def another(rng: random.Random, value: Any) -> Any:
    """A value of another size, or of another type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float) and rng.random() < 0.7:
        return rng.choice([*HUGE, value + 1, value - 1, -value, value * 1.5, float(value)])
    if isinstance(value, str) and rng.random() < 0.7:
        if "(" in value:
            return rng.choice(KERNELS)
        return rng.choice([*WORDS, value + "_", value[:-1]])
    return rng.choice(
        [None, True, *HUGE, *WORDS, [], {}, [1, 2], {"is": "array"}, nested(rng.choice([3, 90]))]
    )


def change_header(rng: random.Random, header: Any, tensors: dict[str, np.ndarray]) -> None:
    everywhere = places(header)
    for _ in range(rng.choice([1, 1, 2, 4])):
        node, key = rng.choice(everywhere)
        if (isinstance(node, dict) and key not in node) or (isinstance(node, list) and key >= len(node)):
            continue
        kind = rng.randrange(5)
        if kind == 0:
            del node[key]
        elif kind == 1:
            other, name = rng.choice(everywhere)
            if (isinstance(other, dict) and name in other) or (isinstance(other, list) and name < len(other)):
                node[key] = json.loads(json.dumps(other[name]))
        else:
            node[key] = another(rng, node[key])


def change_numbers(rng: random.Random, header: Any, tensors: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(tensors))
    array = tensors[name].copy()
    if not array.size:
        return
    flat = array.reshape(-1)
    for _ in range(rng.choice([1, 2, 5])):
        i = rng.randrange(flat.size)
        if array.dtype.kind == "f":
            flat[i] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -flat[i], 5e-324])
        elif array.dtype.kind == "b":
            flat[i] = not flat[i]
        else:
            info = np.iinfo(array.dtype)
            flat[i] = rng.choice([info.min, info.max, 0, info.max // 2, flat.size % info.max])
    tensors[name] = array


def change_shape(rng: random.Random, header: Any, tensors: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(tensors))
    array = tensors[name]
    kind = rng.randrange(6)
    if kind == 0:
        array = array[: rng.randrange(len(array) + 1)] if array.ndim else array
    elif kind == 1:
        array = np.concatenate([array, array]) if array.ndim else array
    elif kind == 2:
        array = array.reshape(-1)
    elif kind == 3:
        array = array.T
    elif kind == 4:
        kinds = ["float32", "float64", "int64", "int8", "uint8", "bool", "float16"]
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(kinds))
    else:
        other = rng.choice(sorted(tensors))
        tensors[other], array = array, tensors[other]
    tensors[name] = np.ascontiguousarray(array)


def change_tensors(rng: random.Random, header: Any, tensors: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(tensors))
    if rng.random() < 0.5:
        del tensors[name]
    else:
        tensors[name + rng.choice(["x", "", "é", "#2"])] = tensors[name]


VALUES: list[Callable[[random.Random, Any, dict[str, np.ndarray]], None]] = [
    change_header,
    change_header,
    change_header,
    change_numbers,
    change_numbers,
    change_shape,
    change_tensors,
]


def texts(rng: random.Random, header: Any, tensors: dict[str, np.ndarray]) -> bytes:
    """A header whose JSON is odd: keys twice, brackets without end, numbers without end."""
    text = json.dumps({**header, BODY_SUM: body_sum(tensors)})
    kind = rng.randrange(6)
    if kind == 0:
        text = text[:-1] + ',"format":1}'
    elif kind == 1:
        text = "[" * 200_000
    elif kind == 2:
        text = text.replace("1", "9" * rng.choice([20, 400, 5000]), 1)
    elif kind == 3:
        text = text.replace("null", "NaN", 1)
    elif kind == 4:
        place = rng.randrange(len(text))
        text = text[:place] + rng.choice(['"', "{", "}", ",", "\\", "0", "é"]) + text[place:]
    else:
        text = text.replace("RBF", rng.choice(["Custom", "Rbf", "RBF(RBF", "__import__"]), 1)
    return seal_text(text, tensors)


def damaged(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """What was done to a file, and what came of it."""
    if rng.random() < 0.3:
        change = rng.choice(BYTES)
        return change.__name__, change(rng, data)
    header, tensors = split(data)
    header = json.loads(json.dumps(header))
    if rng.random() < 0.1:
        return "texts", texts(rng, header, tensors)
    change = rng.choice(VALUES)
    change(rng, header, tensors)
    return change.__name__, sealed(header, tensors)
