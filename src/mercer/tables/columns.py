"""Columns of text that are columns of numbers.

A column becomes one of numbers if every known value is a number, in one of these ways of writing, the first
that fits:

    plain        12   -3.5   6e-7
    decimal      12,5              with a comma, where a comma is not the delimiter
    thousands    1,234,567.8       with commas in groups of three
    currency     $1,234   12 %     a sign before or behind all values

What looks like a number and is none stays text: 007 keeps its zeros, since codes are written so. If nearly
all values are numbers and a few are not, that is an error with the line of the first: a column which turns
to text after 3000 rows is nearly always a slip.
"""

from __future__ import annotations

import re

import polars

from mercer.errors import InputError

# From this share of numbers on, what is no number is taken for a slip.
NEARLY_ALL = 0.95
# Fewer known values than this say nothing about shares.
ENOUGH = 20
_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?inf(inity)?$"
_COMMA = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$|^[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_SIGNED = r"^-?[$€£]\s*-?[\d.,]+$|^-?[\d.,]+\s*[$€£%]$"
_SIGNS = r"[$€£%\s]"
_PADDED = r"^[+-]?0\d"


def looks_like_number(field: str, decimal: str | None) -> bool:
    """Whether one field is a number, as a name of a column never is."""
    if re.search(_PLAIN, field):
        return True
    return decimal == "," and re.search(_COMMA, field) is not None


def as_numbers_where_all_are(
    name: str, frame: polars.DataFrame, decimal: str | None, delimiter: str, first_line: int
) -> tuple[polars.DataFrame, list[str]]:
    """The frame with numbers in place of text, and what was assumed."""
    notes: list[str] = []
    made: list[polars.Series] = []
    by_way: dict[str, list[str]] = {}
    for column in frame.columns:
        texts = frame[column]
        known = texts.drop_nulls()
        if not len(known):
            made.append(texts)
            continue
        if known.str.contains(_PADDED).any() and known.str.contains(r"^[+-]?\d+$").all():
            made.append(texts)
            notes.append(f"{column}: text, since it has numbers with leading zeros, as codes have")
            continue
        numbers, way = _numbers(texts, known, decimal, delimiter)
        if numbers is None:
            _refuse_a_slip(name, column, texts, known, decimal, first_line)
            made.append(texts)
            continue
        by_way.setdefault(way, []).append(column)
        made.append(numbers)
    for way, columns in by_way.items():
        if way:
            notes.append(f"{way}: {', '.join(columns[:8])}{' and more' if len(columns) > 8 else ''}")
    return polars.DataFrame(made), notes


def _numbers(
    texts: polars.Series, known: polars.Series, decimal: str | None, delimiter: str
) -> tuple[polars.Series | None, str]:
    """The column as numbers, and how they were written; None if it has none."""
    if decimal != "," and known.str.contains(_PLAIN).all():
        return _cast(texts), ""
    comma_is_decimal = decimal == "," or (decimal is None and delimiter != ",")
    if comma_is_decimal and known.str.contains(_COMMA).all():
        plain = texts.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        return _cast(plain), "numbers with a decimal comma"
    if decimal != "," and known.str.contains(_THOUSANDS).all():
        return _cast(texts.str.replace_all(",", "", literal=True)), "numbers with commas between thousands"
    if known.str.contains(_SIGNED).all():
        bare = texts.str.replace_all(_SIGNS, "")
        numbers, _ = _numbers(bare, bare.drop_nulls(), decimal, delimiter)
        return numbers, "numbers with a sign of currency or percent"
    return None, ""


def _cast(texts: polars.Series) -> polars.Series:
    """Whole numbers as such where all are and fit, else float64."""
    if texts.drop_nulls().str.contains(r"^[+-]?\d{1,18}$").all():
        return texts.str.strip_prefix("+").cast(polars.Int64)
    return texts.cast(polars.Float64)


def _refuse_a_slip(
    name: str,
    column: str,
    texts: polars.Series,
    known: polars.Series,
    decimal: str | None,
    first_line: int,
) -> None:
    fits = known.str.contains(_COMMA if decimal == "," else _PLAIN)
    if len(known) < ENOUGH or fits.sum() < NEARLY_ALL * len(known):
        return
    pattern = _COMMA if decimal == "," else _PLAIN
    wrong = (texts.is_not_null() & ~texts.fill_null("0").str.contains(pattern)).arg_true()
    row = int(wrong[0])
    raise InputError(
        f"{name}, row {row + 1} (line {row + first_line} unless fields hold line ends), column {column!r}: "
        f"{texts[row]!r} is no number, and {fits.sum()} of {len(known)} values of that column are. Correct "
        f"it, or name it as a missing value (--missing {texts[row]!r})."
    )
