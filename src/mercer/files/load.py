"""`mercer.load`: a machine from a file, of which nothing is believed before it is checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.errors import MercerError
from mercer.files import tables
from mercer.files.container import Tensors, read_file, split
from mercer.files.nodes import Node, wrong
from mercer.files.read import Reader
from mercer.files.trial import answers
from mercer.machines.gaussian_process.compact import with_factors


def load(path: str | os.PathLike[str]) -> Any:
    """The machine that `mercer.save` wrote, bit for bit.

    Loading runs nothing that is in the file: it holds numbers, text and names of a fixed table. Checksums,
    types, sizes, ranges and how they fit together are checked, and the machine must answer for one row; a
    file that is not sound is refused with a `mercer.errors.ModelFileError` that says where.
    """
    return _machine(*read_file(Path(path)))


def loads(data: bytes) -> Any:
    """The machine from the bytes of a file."""
    return _machine(*split(data))


def _machine(header: dict[str, Node], tensors: Tensors) -> Any:
    name = header.get("machine")
    tables.with_more_for(name)
    reader = Reader(tensors)
    model = reader.machine({**header, "of": name}, "")
    unused = sorted(tensors.keys() - reader.used)
    if unused:
        wrong("the body", f"has the tensor {unused[0]!r:.60}, which nothing names")
    inner = getattr(model, "machine_", model)
    try:
        with_factors(inner)
    except (MercerError, ValueError, TypeError, IndexError, AttributeError, MemoryError) as error:
        wrong("posterior_", f"cannot be completed ({error!r:.120})")
    answers(inner)
    if inner is not model:
        answers(model)
    return model
