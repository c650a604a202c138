"""A table becomes a file: `write_table(frame, "out.csv")`.

    .csv .tsv          text with delimiters       UTF-8, a line of names, nothing where a value is missing
    .parquet           Parquet                    types as they are
    .arrow .feather    Arrow                      types as they are
    .jsonl .ndjson     one JSON object a line

Any of them may be packed by gzip, Zstandard, bzip2 or xz: .csv.gz, .jsonl.zst. "-" is standard output, as
CSV. polars writes; what is here decides the format, and lets a file appear whole or not at all
(`mercer.places`). Numbers are written with as many digits as `read_table` needs to have them again, bit for
bit.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import polars

from mercer import places
from mercer.errors import OutputError
from mercer.typing import Table

STDOUT = "-"
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
PACKERS = (".gz", ".zst", ".bz2", ".xz")
# Written for what is missing where nothing would leave an empty line, which readers skip.
GAP = "NA"


def write_table(table: Table, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a table to a file, in the format of its suffix; "-" is standard output, as CSV.

    The file appears whole or not at all; one that exists is replaced only with `force`. Lists and records in
    cells have no place in text with delimiters: Parquet, Arrow and JSON lines take them.

    >>> import tempfile
    >>> frame = polars.DataFrame({"town": ["Ulm", None], "height": [161.53, 0.1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(frame, f"{folder}/towers.csv")
    ...     print((Path(folder) / "towers.csv").read_text())
    town,height
    Ulm,161.53
    ,0.1
    """
    frame = _as_polars(table)
    name = os.fspath(path)
    if name == STDOUT:
        _to_stdout(_content(frame, "csv"))
        return
    check_table_place(name, force=force)
    content = _packed(_content(frame, _format_of(name)), Path(name).suffix.lower())
    with places.whole_file(Path(name), force=force, error=OutputError) as draft:
        draft.write_bytes(content)


def check_table_place(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse a place where no table can or should be written, before the work that makes the table."""
    name = os.fspath(path)
    if name == STDOUT:
        return
    if not Path(name).is_dir():
        _format_of(name)
    places.check_place(Path(name), force=force, example="table.csv", error=OutputError)


def _format_of(name: str) -> str:
    """The format by the suffix, that of the packer aside."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() not in PACKERS]
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in FORMATS:
        came = suffix or "no suffix"
        raise OutputError(
            f"the suffix of {name} decides the format: .csv, .tsv, .parquet, .arrow or .jsonl, each also "
            f"with .gz, .zst, .bz2 or .xz; got {came}."
        )
    return FORMATS[suffix]


def _as_polars(table: Table) -> polars.DataFrame:
    """The table as one of polars, whatever its make."""
    import narwhals

    frame: polars.DataFrame = narwhals.from_native(table, eager_only=True).to_polars()  # type: ignore[call-overload]
    return frame


def _content(frame: polars.DataFrame, format: str) -> bytes:
    """The bytes of the file, not packed."""
    if format in ("csv", "tsv"):
        return _delimited(frame, "\t" if format == "tsv" else ",")
    buffer = io.BytesIO()
    write: dict[str, Callable[[io.BytesIO], object]] = {
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
        "jsonl": frame.write_ndjson,
    }
    write[format](buffer)
    return buffer.getvalue()


def _delimited(frame: polars.DataFrame, separator: str) -> bytes:
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if nested:
        raise OutputError(
            f"column {nested[0]!r} has lists or records in its cells, which text with delimiters cannot "
            "hold. Write .parquet, .arrow or .jsonl."
        )
    gap = GAP if frame.width == 1 else ""
    return frame.write_csv(separator=separator, null_value=gap).encode("utf-8")


def _packed(content: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        # without the time: the same table gives the same file
        return gzip.compress(content, mtime=0)
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().compress(content)
    if suffix == ".bz2":
        return bz2.compress(content)
    if suffix == ".xz":
        return lzma.compress(content)
    return content


def _to_stdout(content: bytes) -> None:
    """As UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
