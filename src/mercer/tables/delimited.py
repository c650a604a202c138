"""Text with delimiters, as spreadsheets and statistics programs write it.

Found from the content, in this order, each of them unless it is given:

    encoding      a byte order mark; UTF-8 if the bytes are; else Windows' Western code page
    delimiter     the one of , ; tab | under which the lines have the same number of fields, the most of them
    header        the first line, unless one of its fields is a number, or a value that its column has again
    quotes        as CSV has them; letters like any other where no line could be split otherwise
    missing       the words of `MISSING`
    decimal       a comma where columns are numbers with it and not without
    types         numbers if every value is one, else text; see `columns`

polars splits the fields. Lines of another length are refused with their number; polars would fill them.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import polars

from mercer.errors import InputError, ParameterError
from mercer.tables.columns import as_numbers_where_all_are, looks_like_number
from mercer.typing import Setting

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A")
DELIMITERS = (",", ";", "\t", "|")
WESTERN = "cp1252"
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
# Lines from which the delimiter is found.
SAMPLE = 200
# Bytes in which the ends of fields are looked for at one time.
PIECE = 1 << 24


@dataclass(frozen=True)
class Layout:
    """How a text with delimiters is written; None is found from the content."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    missing: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"delimiter = {self.delimiter!r}, but it must be one character.")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal = {self.decimal!r}, but it must be '.' or ','.")

    def changed(self, **values: Setting) -> Layout:
        """A copy with other values."""
        return replace(self, **values)


def read_delimited(
    name: str, content: bytes, layout: Layout
) -> tuple[polars.DataFrame, tuple[str, ...], int]:
    """The frame, what was assumed, and the line of the file on which the first row stands."""
    notes: list[str] = []
    text = _decoded(name, content, layout, notes)
    delimiter = layout.delimiter or _delimiter(text)
    if delimiter != ",":
        notes.append(f"delimiter: {_NAMES.get(delimiter, repr(delimiter))}")
    lines = Lines(name, text, delimiter)
    names, has_header = _header(lines, layout)
    if not has_header:
        notes.append(f"no line of names was found: the columns are called {names[0]} to {names[-1]}")
    lines = replace(lines, regular=_is_regular(lines, len(names)))
    height = _height(lines, len(names), has_header)
    frame = _split(lines, names, has_header, height, notes)
    frame = _without(frame, layout.missing or MISSING)
    first_line = 2 if has_header else 1
    frame, more = as_numbers_where_all_are(name, frame, layout.decimal, delimiter, first_line)
    return frame, (*notes, *more, *_gaps(frame)), first_line


# ── bytes to text ───────────────────────────────────────────────────────────────────────────────────────────


def _decoded(name: str, content: bytes, layout: Layout, notes: list[str]) -> str:
    """The text, with one kind of line end."""
    if layout.encoding is not None:
        try:
            text = content.decode(layout.encoding)
        except LookupError as error:
            raise ParameterError(f"encoding = {layout.encoding!r} is no encoding that is known.") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name} is not written in {layout.encoding}: {_where(content, error)}."
            ) from error
    else:
        text = _guessed(name, content, notes)
    if "\x00" in text[:4096]:
        raise InputError(f"{name} holds binary data and no table as text.")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _guessed(name: str, content: bytes, notes: list[str]) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        notes.append("encoding: UTF-16, by its mark")
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise InputError(f"{name} begins as UTF-16, but is not whole: {error.reason}.") from error
    if b"\x00" in content[:4096]:
        raise InputError(
            f"{name} holds zero bytes: it is binary, or UTF-16 without its mark. Name the encoding "
            "(utf-16-le, say), or export it as CSV."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        notes.append(
            f"encoding: not UTF-8 ({_where(content, error)}), read as {WESTERN}; name another if letters "
            "are wrong"
        )
    return content.decode(WESTERN, errors="replace")


def _where(content: bytes, error: UnicodeDecodeError) -> str:
    line = content.count(b"\n", 0, error.start) + 1
    return f"byte {content[error.start]:#04x} in line {line}"


# ── lines to fields ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Lines:
    """A text and how its lines are split; `regular` if it has only lines of equal width, and no quotes."""

    name: str
    text: str
    delimiter: str
    quoted: bool = True
    regular: bool = False

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The fields of every line that is not empty, with the number of the line on which they end."""
        stream = io.StringIO(self.text, newline="")
        reader = csv.reader(stream, delimiter=self.delimiter)
        if not self.quoted:
            reader = csv.reader(stream, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        try:
            for record in reader:
                if any(field.strip() for field in record) or len(record) > 1:
                    yield reader.line_num, record
        except csv.Error as error:
            raise InputError(f"{self.name}, line {reader.line_num}: {error}.") from error


def _delimiter(text: str) -> str:
    """The one under which most lines have the same number of fields, more than one; else a comma."""
    sample = "\n".join(text.split("\n", SAMPLE)[:SAMPLE])
    best = (0.0, 0.0, ",")
    for rank, delimiter in enumerate(DELIMITERS):
        widths = Counter(len(record) for _, record in Lines("", sample, delimiter).records())
        if not widths:
            continue
        width, lines = widths.most_common(1)[0]
        if width > 1:
            best = max(best, (lines / widths.total(), width - rank / 10, delimiter))
    return best[2]


def _header(lines: Lines, layout: Layout) -> tuple[list[str], bool]:
    """The names of the columns, and whether the first line has them."""
    sample = [[field.strip() for field in record] for _, record in islice(lines.records(), SAMPLE)]
    if not sample:
        raise InputError(f"{lines.name} has no line that is not empty.")
    fields = sample[0]
    has_header = layout.header
    if has_header is None:
        has_header = not _is_data(fields, sample[1:], layout)
    if not has_header:
        return [f"column_{j + 1}" for j in range(len(fields))], False
    fields = [field or f"column_{j + 1}" for j, field in enumerate(fields)]
    twice = [field for field, times in Counter(fields).items() if times > 1]
    if twice:
        places = ", ".join(str(j + 1) for j, field in enumerate(fields) if field == twice[0])
        raise InputError(
            f"{lines.name} has the name {twice[0]!r} {fields.count(twice[0])} times, in columns {places}. "
            "Give every column a name of its own."
        )
    return fields, True


def _is_data(fields: list[str], others: list[list[str]], layout: Layout) -> bool:
    """Whether the first line is a row: it holds a number, or values that their columns have again."""
    words = layout.missing or MISSING
    known = [field for field in fields if field not in words]
    if not known or any(looks_like_number(field, layout.decimal) for field in known):
        return True
    for j, field in enumerate(fields):
        again = sum(j < len(record) and record[j] == field for record in others)
        if again >= 2 and field not in words:
            return True
    return False


def _is_regular(lines: Lines, width: int) -> bool:
    """Whether every line has that many fields, and none is empty or has a quote: as large files do.

    Of such a text `records` would say nothing else, and take a hundred times as long.
    """
    if width == 1 or lines.delimiter == '"' or not lines.delimiter.isascii() or '"' in lines.text:
        return False
    raw = _as_bytes(lines.text)
    begin = 0
    while begin < len(raw):
        end = raw.index(b"\n", min(begin + PIECE, len(raw) - 1)) + 1
        part = np.frombuffer(raw, np.uint8, end - begin, begin)
        ends_line = part == ord("\n")
        ends_field = ends_line[ends_line | (part == ord(lines.delimiter))]
        if len(ends_field) % width:
            return False
        # of every `width` ends the last is that of a line
        fields = ends_field.reshape(-1, width)
        if fields[:, :-1].any() or not fields[:, -1].all():
            return False
        begin = end
    return True


def _as_bytes(text: str) -> bytes:
    """The text with one end of line after its last line."""
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _height(lines: Lines, width: int, has_header: bool) -> int:
    """The number of rows; lines of another width are refused."""
    count = lines.text.rstrip("\n").count("\n") + 1 if lines.regular else _counted(lines, width)
    if count <= has_header:
        raise InputError(f"{lines.name} has names of columns, but no row.")
    return count - has_header


def _counted(lines: Lines, width: int) -> int:
    count = 0
    for line, record in lines.records():
        if len(record) != width:
            raise InputError(
                f"{lines.name}, line {line}, has {len(record)} fields, and the first has {width}: "
                f"{_shown(lines.delimiter.join(record))}. A field that holds a "
                f"{_NAMES.get(lines.delimiter, lines.delimiter)} must be in double quotes."
            )
        count += 1
    return count


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _split(
    lines: Lines, names: list[str], has_header: bool, height: int, notes: list[str]
) -> polars.DataFrame:
    """Every field as text; quotes are letters where polars cannot split the lines otherwise."""
    try:
        frame = _split_once(lines, names, has_header)
        trouble = f"{frame.height} rows were found in place of {height}"
    except polars.exceptions.PolarsError as error:
        frame = None
        trouble = str(error).strip().split("\n")[0].rstrip(".")
    if frame is not None and frame.height == height:
        return frame
    plain = replace(lines, quoted=False, regular=False)
    try:
        height = _height(plain, len(names), has_header)
        frame = _split_once(plain, names, has_header)
        if frame.height != height:
            raise InputError(trouble)
    except (InputError, polars.exceptions.PolarsError) as error:
        raise InputError(
            f"{lines.name} cannot be split into fields: {trouble}. Is every quote in it closed, and doubled "
            "inside a field?"
        ) from error
    notes.append("quotes are letters like any other: they do not enclose fields")
    return frame


def _split_once(lines: Lines, names: list[str], has_header: bool) -> polars.DataFrame:
    frame = polars.read_csv(
        io.BytesIO(_as_bytes(lines.text) if lines.regular else _without_empty_lines(lines).encode("utf-8")),
        separator=lines.delimiter,
        has_header=False,
        infer_schema=False,
        quote_char='"' if lines.quoted else None,
        new_columns=names,
    )
    return frame.slice(1) if has_header else frame


def _without_empty_lines(lines: Lines) -> str:
    """The text without lines that hold nothing, of which polars makes rows; inside a field they stay."""
    blank = " \t".replace(lines.delimiter, "")
    kept: list[str] = []
    inside = False
    for line in lines.text.split("\n"):
        if inside or line.strip(blank):
            kept.append(line)
        if lines.quoted:
            inside ^= line.count('"') % 2 == 1
    return "\n".join(kept) + "\n"


def _without(frame: polars.DataFrame, missing: tuple[str, ...]) -> polars.DataFrame:
    """Fields without the space around them, None where a value is missing."""
    bare = polars.all().str.strip_chars()
    return frame.select(polars.when(bare.is_in(list(missing))).then(None).otherwise(bare).name.keep())


def _gaps(frame: polars.DataFrame) -> Iterator[str]:
    """How many values are missing, in a line for all columns."""
    counts = {column: frame[column].null_count() for column in frame.columns}
    some = [f"{column} {count}" for column, count in counts.items() if count]
    if some:
        more = f" and {len(some) - 8} more columns" if len(some) > 8 else ""
        yield f"missing values: {', '.join(some[:8])}{more}"
