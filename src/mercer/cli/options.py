"""Options that several commands share: how a table is written, and what is printed.

Only typer is imported here, so that `mercer --help` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

# The groups of commands that `mercer --help` shows.
MODELS = "Models of tables"
TABLES = "Tables"
KERNELS = "Kernels"
OTHERS = "Others"

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Arrow, JSON lines or LIBSVM's text, also .gz or .zst; - is standard input.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of the text; else found from its bytes.", show_default=False)
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help="Between fields, or tab; else found from the lines.", show_default=False
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="The decimal sign: . or ,", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line has names; else found.", show_default=False
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="A word that stands for a missing value, besides the usual ones; may be repeated.",
        show_default=False,
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="A table: .csv, .tsv, .parquet, .arrow or .jsonl, also .gz or .zst; - is CSV."
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace a file that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the answer, and what is wrong.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def layout_of(
    encoding: str | None,
    delimiter: str | None,
    decimal: str | None,
    header: bool | None,
    missing: list[str] | None,
) -> Layout:
    """How a table is written, from the options of a command."""
    from mercer.tables.delimited import MISSING, Layout

    words = (*MISSING, *missing) if missing else None
    names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    if delimiter is not None:
        delimiter = names.get(delimiter, delimiter)
    return Layout(encoding, delimiter, decimal, header, words)
