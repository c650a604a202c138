"""A file becomes a table: `read_table("prices.csv")`.

    .csv .tsv .txt     text with delimiters       encoding, delimiter, decimal sign, header and types are
                                                  found from the content, and stated
    .parquet           Parquet                    types as they are stored
    .arrow .feather    Arrow                      types as they are stored
    .jsonl .ndjson     one JSON object a line     types as they are written
    .svm .libsvm       LIBSVM's text              sparse rows and their target
    .npz               arrays of NumPy            a matrix and arrays of the same length (`npz`)

Any of them may be packed by gzip, Zstandard, bzip2 or xz. Parsing is the work of polars, and of
scikit-learn for LIBSVM's text; what is here decides what to ask of them, and says with file, line, column and
remedy what cannot be read. What was assumed is kept in `notes`, a sentence each.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars
from scipy import sparse

from mercer.errors import InputError
from mercer.tables.delimited import Layout, read_delimited
from mercer.tables.npz import MAGIC, read_npz
from mercer.tables.svmlight import is_svmlight, read_svmlight
from mercer.typing import Array

STDIN = "-"
DELIMITED = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None, ".dat": None, ".data": None}
LINES_OF_JSON = (".jsonl", ".ndjson")
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
SVMLIGHT = (".svm", ".libsvm", ".svmlight")
NPZ = ".npz"
PACKED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}

# What every block of bzip2 begins with.
BLOCK_OF_BZIP2 = b"1AY&SY"


@dataclass(frozen=True)
class TableFile:
    """What a file holds: a `frame` of polars, or sparse rows `matrix` with their `target`.

    `notes` says what was assumed in reading it, a sentence each.
    """

    path: str
    format: str
    frame: polars.DataFrame | None = None
    matrix: sparse.csr_array | None = None
    target: Array | None = None
    notes: tuple[str, ...] = ()
    first_line: int = field(default=1, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if self.frame is not None:
            return self.frame.shape
        assert self.matrix is not None
        rows, columns = self.matrix.shape
        return int(rows), int(columns)

    def as_wide_as(self, columns: int) -> TableFile:
        """The same rows for a model of so many columns.

        LIBSVM's text leaves out what is 0, so the columns behind its largest index are 0 in all rows.
        """
        if self.matrix is None or self.matrix.shape[1] >= columns:
            return self
        A = self.matrix
        wide = sparse.csr_array((A.data, A.indices, A.indptr), shape=(A.shape[0], columns))
        lacking = counted(columns - A.shape[1], "column")
        note = f"no row has a value in the last {lacking} of the model: what is left out is 0"
        return replace(self, matrix=wide, notes=(*self.notes, note))

    def __str__(self) -> str:
        """One line on what was read, and one for each assumption."""
        rows, columns = self.shape
        head = f"{self.path}: {counted(rows, 'row')}, {counted(columns, 'column')} ({self.format})"
        return "\n".join([head, *(f"  {note}" for note in self.notes)])


def counted(count: int, word: str) -> str:
    """A number of things, in words.

    >>> counted(1, "row"), counted(3, "column")
    ('1 row', '3 columns')
    """
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def read_table(path: str | Path, layout: Layout | None = None) -> TableFile:
    """Read a table from a file, or from standard input if `path` is "-".

    `layout` overrides what would be found from the content of text with delimiters.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "prices.csv"
    >>> _ = file.write_text("size;price\\n12,5;100\\n?;90\\n")
    >>> print(read_table(file).frame["size"].to_list())
    [12.5, None]
    """
    name = str(path)
    content = _content(name)
    layout = layout or Layout()
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() not in PACKED]
    suffix = suffixes[-1] if suffixes else ""
    if content[:4] == b"PAR1" or suffix in PARQUET:
        return _stored(name, "Parquet", content)
    if content[:6] == b"ARROW1" or suffix in ARROW:
        return _stored(name, "Arrow", content)
    if suffix == NPZ and content[:4] == MAGIC:
        frame, about = read_npz(name, content)
        return TableFile(name, "arrays of NumPy", _with_rows(name, frame), notes=about)
    if not content.strip():
        raise InputError(f"{name} is empty: a table needs a line of names and at least one row.")
    if suffix in LINES_OF_JSON:
        return _json_lines(name, content)
    if suffix in SVMLIGHT or (suffix not in DELIMITED and is_svmlight(content)):
        matrix, target, notes = read_svmlight(name, content)
        return TableFile(name, "LIBSVM's text", None, matrix, target, notes)
    if suffix not in DELIMITED and suffix and b"\x00" in content[:4096] and content[:2] not in _BOMS:
        raise InputError(
            f"{name} holds binary data, and {suffix} is no format that is read here. Export it as CSV, "
            "Parquet, Arrow, JSON lines, LIBSVM's text or NumPy's .npz."
        )
    if layout.delimiter is None:
        layout = layout.changed(delimiter=DELIMITED.get(suffix))
    frame, notes, first_line = read_delimited(name, content, layout)
    return TableFile(name, "text with delimiters", frame, notes=notes, first_line=first_line)


_BOMS = (b"\xff\xfe", b"\xfe\xff")


def _content(name: str) -> bytes:
    """The bytes of a file, unpacked."""
    if name == STDIN:
        return _unpacked("standard input", sys.stdin.buffer.read())
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name} is a directory. Name a file in it.")
    if not path.exists():
        raise InputError(f"there is no file {name}.{_nearby(path)}")
    try:
        return _unpacked(name, path.read_bytes())
    except PermissionError as error:
        raise InputError(f"{name} may not be read: {error.strerror}.") from error


def _nearby(path: Path) -> str:
    """What the directory has that is written alike."""
    from difflib import get_close_matches

    if not path.parent.is_dir():
        return f" There is no directory {path.parent} either."
    names = [entry.name for entry in path.parent.iterdir()]
    close = get_close_matches(path.name, names, n=1)
    return f" Did you mean {path.parent / close[0]}?" if close else ""


def _unpacked(name: str, content: bytes) -> bytes:
    try:
        if content[:2] == PACKED[".gz"]:
            return gzip.decompress(content)
        if content[:4] == PACKED[".zst"]:
            return _zstandard(content)
        if _is_bzip2(name, content):
            return bz2.decompress(content)
        if content.startswith(PACKED[".xz"]):
            return lzma.decompress(content)
    except (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise InputError(f"{name} is packed, and cannot be unpacked: {error}. Is it whole?") from error
    return content


def _is_bzip2(name: str, content: bytes) -> bool:
    """By its first bytes, which are letters: a table may begin with them, a packed one goes on with π."""
    return content.startswith(PACKED[".bz2"]) and (name.endswith(".bz2") or content[4:10] == BLOCK_OF_BZIP2)


def _zstandard(content: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(
            io.BytesIO(content), read_across_frames=True
        ) as reader:
            return reader.read()
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _stored(name: str, format: str, content: bytes) -> TableFile:
    read = polars.read_parquet if format == "Parquet" else polars.read_ipc
    try:
        frame = read(io.BytesIO(content))
    except Exception as error:  # polars has an error of its own for every trouble
        raise InputError(f"{name} cannot be read as {format}: {_first_line(error)}.") from error
    return TableFile(name, format, _with_rows(name, frame))


def _json_lines(name: str, content: bytes) -> TableFile:
    try:
        frame = polars.read_ndjson(io.BytesIO(content), infer_schema_length=None)
    except Exception as error:
        reason = _first_bad_json(content) or _first_line(error)
        raise InputError(
            f"{name} cannot be read as JSON lines: {reason}. Every line is one object, such as "
            '{"size": 12.5, "region": "north"}.'
        ) from error
    return TableFile(name, "JSON lines", _with_rows(name, frame))


def _with_rows(name: str, frame: polars.DataFrame) -> polars.DataFrame:
    if not frame.width or not frame.height:
        raise InputError(f"{name} holds a table of {frame.height} rows and {frame.width} columns: no data.")
    return frame


def _first_bad_json(content: bytes) -> str | None:
    import json

    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            return f"line {number}: {error}"
        if not isinstance(found, dict):
            return f"line {number} is no object"
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
