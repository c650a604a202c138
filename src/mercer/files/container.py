"""The container: one safetensors file, whose metadata is the header; checksums of both; a write in one step.

    safetensors metadata    "mercer"         the header, JSON in ASCII
                            "mercer.sha256"  the checksum of the header
    header["body_sha256"]                    the checksum of all tensors: names, types, shapes and bytes

`mercer.places` has the write in one step.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NoReturn

import numpy as np
import safetensors
from safetensors.numpy import save_file

from mercer import places
from mercer.errors import ModelFileError
from mercer.files.nodes import Node, read_json, wrong

FORMAT = 1
HEADER = "mercer"
HEADER_SUM = "mercer.sha256"
BODY_SUM = "body_sha256"
LENGTH_BYTES = 8
# Names of safetensors for types, and NumPy's.
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}

Tensors = dict[str, np.ndarray]


def body_sum(tensors: Tensors) -> str:
    """SHA-256 of every tensor in the order of their names: name, type, shape and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name]
        head = json.dumps([name, array.dtype.str, list(array.shape)])
        digest.update(f"{len(head)} {head}".encode("ascii"))
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.hexdigest()


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────


def write_file(path: Path, header: dict[str, Node], tensors: Tensors, *, force: bool) -> int:
    """Write the file in one step; the number of its bytes."""
    check_place(path, force=force)
    text = json.dumps({**header, BODY_SUM: body_sum(tensors)}, allow_nan=False, separators=(",", ":"))
    sums = hashlib.sha256(text.encode("ascii")).hexdigest()
    try:
        with places.whole_file(path, force=force, error=ModelFileError) as draft:
            save_file(tensors, draft, metadata={HEADER: text, HEADER_SUM: sums})
    except OSError as error:
        raise ModelFileError(f"{path} could not be written: {error}.") from error
    except safetensors.SafetensorError as error:
        raise ModelFileError(
            f"{path} could not be written: {error}. Look at the space left on the disk, and at who may write "
            f"in {path.parent}."
        ) from error
    return path.stat().st_size


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place where no file can or should be written, before anything is done."""
    places.check_place(path, force=force, example="model.mercer", error=ModelFileError)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_file(path: Path) -> tuple[dict[str, Node], Tensors]:
    """The header and the tensors of a file whose checksums are right."""
    if not path.exists():
        raise ModelFileError(f"{path} does not exist. Look at its name and its folder.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory. Name the model file in it.")
    if not path.is_file():
        raise ModelFileError(f"{path} is no plain file, but a device or a pipe. Copy it to a file first.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} could not be read: {error}.") from error
    return split(data)


def split(data: bytes) -> tuple[dict[str, Node], Tensors]:
    """The header and the tensors of the bytes of a file."""
    tensors = _tensors(data)
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    table = read_json(data[LENGTH_BYTES : LENGTH_BYTES + length], "the file")
    about = table.get("__metadata__") if type(table) is dict else None
    if type(about) is not dict or type(about.get(HEADER)) is not str:
        raise ModelFileError("This is a safetensors file without a model of mercer in it.")
    text = about[HEADER].encode("utf-8")
    header = read_json(text, "the header")
    if type(header) is not dict:
        wrong("the header", "is no JSON object")
    _check_format(header)
    if hashlib.sha256(text).hexdigest() != about.get(HEADER_SUM):
        _changed("its header")
    if body_sum(tensors) != header.get(BODY_SUM):
        _changed("its numbers")
    return header, tensors


def _tensors(data: bytes) -> Tensors:
    """What safetensors finds: it holds lengths, shapes and types against the bytes that are there."""
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        out = {}
        for name, tensor in found:
            kind = TYPES.get(tensor["dtype"])
            if kind is None:
                wrong(f"the tensor {name!r:.60}", f"has the type {tensor['dtype']}, which is not used here")
            out[name] = np.frombuffer(tensor["data"], dtype=np.dtype(kind)).reshape(tensor["shape"])
    except safetensors.SafetensorError as error:
        raise ModelFileError(
            f"This is no model file, or not a whole one ({error}). Files of mercer.save are safetensors "
            "files; copy it again from its source."
        ) from error
    except (ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, ModelFileError):
            raise
        wrong("the body", f"has tensors that do not fit the file ({error!r:.80})")
    return out


def _check_format(header: dict[str, Node]) -> None:
    found = header.get("format")
    if type(found) is int and found == FORMAT:
        return
    if type(found) is int and found > FORMAT:
        by = header.get("mercer")
        raise ModelFileError(
            f"The file has format {found}, written by mercer {by!r:.20}; this mercer reads formats up to "
            f"{FORMAT}. Install a later version."
        )
    wrong("format", f"is {found!r:.40}, and this mercer knows format {FORMAT}")


def _changed(what: str) -> NoReturn:
    raise ModelFileError(
        f"The model file was changed or damaged after it was saved: the checksum of {what} is another. Copy "
        "it again from its source."
    )
