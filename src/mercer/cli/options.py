"""Options that several commands share: how a table is written, and what is printed.

Only typer is imported here, so that `mercer --help` is quick.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

# The groups of commands that `mercer --help` shows.
MODELS = "Models of tables"
TABLES = "Tables"
KERNELS = "Kernels"
OTHERS = "Others"
PANELS = (MODELS, TABLES, KERNELS, OTHERS)

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Arrow, JSON lines, LIBSVM's text or .npz, also .gz, .zst, .bz2 or .xz; "
        "- is standard input.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Of the text; else found from its bytes.", show_default=False
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="SIGN",
        help="Between fields, or tab; else found from the lines.",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="SIGN", help="The decimal sign: . or ,", show_default=False)
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
        metavar="WORD",
        help="A word that stands for a missing value, besides the usual ones; may be repeated.",
        show_default=False,
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A table: .csv, .tsv, .parquet, .arrow or .jsonl, also .gz, .zst, .bz2 or .xz; - is CSV.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out", metavar="NAME", help="A column to leave aside; may be repeated.", show_default=False
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the random numbers.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace a file that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the answer, and what is wrong.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


LAYOUT = {
    "encoding": Encoding,
    "delimiter": Delimiter,
    "decimal": Decimal,
    "header": Header,
    "missing": Missing,
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that say how a table is written, which it gets together as `layout`."""
    own = dict(inspect.signature(command).parameters)
    del own["layout"]
    written = {name: kind for name, kind in command.__annotations__.items() if name in own}
    kinds = get_type_hints(
        SimpleNamespace(__annotations__=written), globalns=command.__globals__, include_extras=True
    )

    @functools.wraps(command)
    def with_layout(**given: Any) -> None:
        try:
            layout = layout_of(**{name: given.pop(name) for name in LAYOUT})
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        command(**given, layout=layout)

    parameters = [parameter.replace(annotation=kinds[name]) for name, parameter in own.items()]
    for name, kind in LAYOUT.items():
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )
    # typer reads these, and not the command that is wrapped
    del with_layout.__wrapped__
    with_layout.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_layout.__annotations__ = {**kinds, **LAYOUT}
    return with_layout


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
