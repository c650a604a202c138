"""The commands that make a model of a table, or use one: fit, predict, score, verify, explain.

Only typer is imported here, so that `mercer --help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from mercer import clock
from mercer.cli.options import (
    MODELS,
    Force,
    JsonFlag,
    LeaveOut,
    Output,
    Quiet,
    SeedOption,
    Table,
    reads_tables,
)

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A file that `mercer fit` wrote.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="The column to predict. LIBSVM's text has its own.",
        show_default=False,
    ),
]
NewModel = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The model; else named after the table, here.",
        show_default=False,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="KIND", help="numbers or classes; else told by the target.", show_default=False
    ),
]
TunedKernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="EXPR",
        help="A kernel to tune, in quotes; else several compete.",
        show_default=False,
    ),
]
Machine = Annotated[str, typer.Option("--machine", metavar="NAME", help="auto, gp, landmarks or features.")]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="60s", help="For everything, such as 60s or 5m.", show_default=False),
]
MemoryAmount = Annotated[str, typer.Option("--memory", metavar="AMOUNT", help="For large matrices.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="PLACE",
        help="Where to compute: local:2 for two workers here, or the address of a Dask scheduler.",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Use a scheduler that anyone on the network could use too.")
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write a page beside the model.")]
CODES = (
    "Exit codes: 0 done, 1 not done, with the reason, 64 an option that cannot be read, 74 a full disk, "
    "130 Ctrl-C."
)
CODES_OF_VERIFY = "Exit codes: 0 every claim holds, 1 one does not, or the files cannot be used."


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the app."""

    def add(words: str, command: Callable[..., None], codes: str = CODES) -> None:
        app.command(short_help=words, epilog=codes, rich_help_panel=MODELS)(command)

    add("Make a model of a table.", fit)
    add("Predict the rows of a table.", predict)
    add("Measure a model on a table that has the answers.", score)
    add("Say what a model, or one prediction, rests on.", explain)
    add("Check a model against its data.", verify, CODES_OF_VERIFY)


@reads_tables
def fit(
    table: Table,
    target: Target = None,
    output: NewModel = None,
    task: Task = None,
    kernel: TunedKernel = None,
    machine: Machine = "auto",
    leave_out: LeaveOut = None,
    time: Time = None,
    memory: MemoryAmount = "2GiB",
    cluster: ClusterOption = None,
    insecure: Insecure = False,
    seed: SeedOption = 0,
    report: Report = True,
    force: Force = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer fit flats.csv --target rent

    From a raw table to a tuned model: finds the task, lets kernels compete by their evidence, chooses the
    machine by size, and estimates the error on rows not seen. Writes flats.mercer and flats.html.

    Ctrl-C ends the search, and the best model so far is written.
    """
    # before the imports, which take some of the seconds
    began = clock.now()
    from mercer.cli.fit import FitRequest, run_fit

    asked = FitRequest(
        table,
        layout,
        target,
        output,
        began,
        task=task,
        kernel=kernel,
        machine=machine,
        leave_out=tuple(leave_out or ()),
        time=time,
        memory=memory,
        seed=seed,
        report=report,
        force=force,
        quiet=quiet,
        as_json=as_json,
        cluster=cluster,
        insecure=insecure,
    )
    raise typer.Exit(run_fit(asked))


@reads_tables
def predict(
    model: Model,
    table: Table,
    output: Output = "-",
    interval: Annotated[
        float, typer.Option("--interval", metavar="P", help="Probability of the band of numbers; 0 for none.")
    ] = 0.95,
    conformal: Annotated[
        bool,
        typer.Option("--conformal", help="Make the band by rows left out, not by what the model expects."),
    ] = False,
    sets: Annotated[
        float,
        typer.Option("--sets", metavar="P", help="Probability of a set of classes for each row; 0 for none."),
    ] = 0.0,
    only: Annotated[
        bool, typer.Option("--only", help="Write predictions without the table's columns.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer predict flats.mercer new.csv -o predicted.csv

    The table with new columns: the prediction, with a band (numbers) or the probability of each class.
    """
    from mercer.cli.models import PredictRequest, run_predict

    asked = PredictRequest(
        model, table, layout, output, interval, conformal, sets, only, force, quiet, as_json
    )
    raise typer.Exit(run_predict(asked))


@reads_tables
def score(
    model: Model,
    table: Table,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer score flats.mercer later.csv

    The error on a table that has the target, beside what nothing learned would reach.
    """
    from mercer.cli.models import UseRequest, run_score

    raise typer.Exit(run_score(UseRequest(model, table, layout, quiet, as_json)))


@reads_tables
def verify(
    model: Model,
    table: Table,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer verify flats.mercer flats.csv

    Checks what the model claims, against the table that it was fitted to: by slow and plain means.
    """
    from mercer.cli.models import UseRequest, run_verify

    raise typer.Exit(run_verify(UseRequest(model, table, layout, quiet, as_json)))


@reads_tables
def explain(
    model: Model,
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="A table with the row to explain.", show_default=False),
    ] = None,
    row: Annotated[
        int, typer.Option("--row", metavar="N", min=1, help="The number of the row in the table.")
    ] = 1,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer explain flats.mercer new.csv --row 3

    Without a table: what was done and why, the kernel and its proof, and the share of each of its terms.
    With one: what the prediction for a row rests on.
    """
    from mercer.cli.models import ExplainRequest, run_explain

    raise typer.Exit(run_explain(ExplainRequest(model, table, layout, row, quiet, as_json)))
