"""The command on series: forecast.

Only typer is imported here, so that `mercer --help` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mercer.cli.options import TABLES, Force, JsonFlag, Quiet, Table, reads_tables

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

CODES = (
    "Exit codes: 0 done, 1 not done, with the reason, 64 an option that cannot be read, 74 a full disk, "
    "130 Ctrl-C."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the app."""
    app.command(short_help="Say what a series will be.", epilog=CODES, rich_help_panel=TABLES)(forecast)


@reads_tables
def forecast(
    table: Table,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="NAME", help="The column of dates or numbers; else found.", show_default=False
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            metavar="NAME",
            help="The column to forecast; else the only one of numbers.",
            show_default=False,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon",
            metavar="N",
            help="Steps to forecast; else a tenth of the series.",
            min=1,
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="P", help="The share of values expected in the band.")
    ] = 0.95,
    unit: Annotated[
        str, typer.Option("--unit", metavar="WORD", help="Of the values, for words and pictures.")
    ] = "",
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", metavar="S", help="For the search.", min=0.0, show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A table of the forecast; - is CSV.", show_default=False
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="A page about it, .html.", show_default=False),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer forecast sales.csv --value sales --horizon 24

    What a series will be, with a band that was tested on its own past.

    Dates may have gaps and any step, and times may be numbers. Periods, the trend, steps and outliers are
    found from the data; several models are tried on the past, and the best of them averaged.
    """
    from mercer.cli.forecast import ForecastRequest, run_forecast

    asked = ForecastRequest(
        table=table,
        layout=layout,
        time=time,
        value=value,
        horizon=horizon,
        level=level,
        unit=unit,
        max_seconds=max_seconds,
        output=output,
        report=report,
        force=force,
        quiet=quiet,
        as_json=as_json,
    )
    raise typer.Exit(run_forecast(asked))
