"""The commands of `mercer`. Results go to stdout, talk to stderr.

`codes` has the table of exit codes. numpy and everything on top of it is imported inside the commands only.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from mercer.cli import on_models, on_series, on_tables
from mercer.cli.codes import FAILURE, USAGE
from mercer.cli.options import (
    KERNELS,
    MODELS,
    OTHERS,
    PANELS,
    TABLES,
    JsonFlag,
    LeaveOut,
    Quiet,
    Table,
    reads_tables,
)

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class _Group(TyperGroup):
    """Wrong options leave with 64: 2 is taken by `mercer check`, where it means undecided."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return _with_usage_code(super().make_context, *args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        try:
            return _with_usage_code(super().invoke, ctx)
        finally:
            # what cannot be written is found here, where there is still a code to leave with
            sys.stdout.flush()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by their groups: the plain page of typer has one list of them all."""
        widest = max(map(len, self.commands))
        for panel in PANELS:
            rows = []
            for name, command in self.commands.items():
                if command.rich_help_panel == panel:  # type: ignore[attr-defined]
                    rows.append((name.ljust(widest), command.get_short_help_str(formatter.width)))
            with formatter.section(panel):
                formatter.write_dl(rows)


def _with_usage_code(call: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
    try:
        return call(*args, **kwargs)
    except Exception as error:
        if getattr(error, "exit_code", None) == 2 and hasattr(error, "format_message"):
            error.exit_code = USAGE  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # plain pages: rich's take as long to import as everything else together
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

on_models.register(app)

Expression = Annotated[
    str,
    typer.Argument(
        metavar="EXPR",
        help="A kernel, in quotes. Put -- before one that begins with a minus.",
        show_default=False,
    ),
]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"mercer {version('mercer')}")
        raise typer.Exit


@app.callback(epilog="Exit codes: 64 an expression or option that cannot be read, 130 Ctrl-C.")
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Example: mercer fit flats.csv --target rent

    Models of tables, and kernels that prove what they claim.
    """


@app.command(
    short_help="Prove or refute a kernel.",
    epilog="Exit codes: 0 proved, 1 refuted, 2 undecided, 64 an expression or option that cannot be read.",
    rich_help_panel=KERNELS,
)
def check(
    expression: Expression,
    dimension: Annotated[
        int | None,
        typer.Option("--dimension", "-d", metavar="D", min=1, help="Count features for this many columns."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.0, help="How long to look for a witness.")
    ] = 10.0,
    latex: Annotated[bool, typer.Option("--latex", help="Print formula and proof as LaTeX instead.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Example: mercer check "Sigmoid(1.0)"

    Is it a kernel? Prints the proof, or points and a vector that refute it.
    """
    from mercer.cli.check import run_check

    raise typer.Exit(run_check(expression, dimension, seconds, latex=latex, as_json=as_json))


@app.command(
    short_help="Draw a kernel.",
    epilog="Exit codes: 0 drawn, 1 not drawn, 64 an expression or option that cannot be read.",
    rich_help_panel=KERNELS,
)
def draw(
    expression: Expression,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.", show_default=False
        ),
    ],
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file if it exists.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the prior samples.")] = 0,
    samples: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="How many prior samples.")] = 5,
    span: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Of every column, such as -3:3; if not given, from lengthscales.",
        ),
    ] = None,
    dpi: Annotated[int, typer.Option(metavar="N", min=20, max=1200, help="Dots per inch of a .png.")] = 150,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.0, help="How long to look for a witness.")
    ] = 5.0,
    as_json: JsonFlag = False,
) -> None:
    """Example: mercer draw "RBF(2.0) * Periodic(1.0)" -o kernel.png

    One picture: the profile, the Gram matrix, and sample functions of the prior.
    """
    from mercer.cli.draw import Request, run_draw

    request = Request(expression, output, force, seed, samples, span, dpi, seconds, as_json)
    raise typer.Exit(run_draw(request))


@app.command(
    short_help="Forecast carbon dioxide at Mauna Loa.",
    epilog="Exit codes: 0 done, 1 not done, 64 an option that cannot be read.",
    rich_help_panel=OTHERS,
)
def co2(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Directory for the report and the pictures."),
    ] = Path("."),
    train_to: Annotated[
        int, typer.Option("--train-to", metavar="YEAR", help="The last year that is fitted.")
    ] = 2003,
    years: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many years to forecast.")] = 20,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")] = False,
    dpi: Annotated[
        int, typer.Option(metavar="N", min=20, max=1200, help="Dots per inch of the pictures.")
    ] = 150,
    as_json: JsonFlag = False,
    quiet: Quiet = False,
) -> None:
    """Example: mercer co2 --output out

    Forecasts the monthly means with a band, as `mercer forecast` does with any series.

    Shows the months that followed in that band. Writes co2.html and two pictures.
    """
    from mercer.cli.co2 import Request, run_co2

    raise typer.Exit(run_co2(Request(output, train_to, years, force, dpi, as_json, quiet)))


@app.command(
    short_help="Say what a table or a model holds.",
    epilog="Exit codes: 0 done, 1 the table cannot be read, 64 an option that cannot be read.",
    rich_help_panel=TABLES,
)
@reads_tables
def inspect(
    table: Table,
    leave_out: LeaveOut = None,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer inspect flats.csv --leave-out rent

    What was read, what each column is taken for and why, and the kernel proposed for the table. Of a model:
    what it predicts, from what, and how well.
    """
    from mercer.cli.inspect import Request, run_inspect

    raise typer.Exit(run_inspect(Request(table, layout, tuple(leave_out or ()), as_json)))


@app.command(
    short_help="LIBSVM's programs, by their flags.",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
    epilog="Exit codes: 0 done, 1 not done, as LIBSVM's.",
    rich_help_panel=OTHERS,
)
def compat(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="svm-train, svm-predict or svm-scale.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="FLAGS FILES", help="As for that program.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Example: mercer compat svm-train -c 10 -g 0.5 data.svm model

    Takes LIBSVM's flags and files, and reads and writes its models.
    """
    from mercer.cli.compat import PROGRAMS, run_compat

    if program not in PROGRAMS:
        raise typer.BadParameter(f"{program!r} is none of {', '.join(PROGRAMS)}.")
    raise typer.Exit(run_compat(program, arguments or [], as_json=as_json))


@app.command(
    short_help="Answer for a model over HTTP.",
    epilog="Exit codes: 130 stopped by Ctrl-C, 1 not started, 64 an option that cannot be read.",
    rich_help_panel=MODELS,
)
def serve(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file of mercer.save.", show_default=False)
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8000,
    max_rows: Annotated[
        int, typer.Option("--max-rows", metavar="N", min=1, help="Rows of one request.")
    ] = 10_000,
    max_bytes: Annotated[
        str, typer.Option("--max-bytes", metavar="AMOUNT", help="Bytes of one request.")
    ] = "10MB",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, in a line, as soon as it listens.")
    ] = False,
) -> None:
    """Example: mercer serve model.mercer

    POST /predict, POST /explain, GET /model, GET /health, and the OpenAPI schema of the table's columns.
    """
    from mercer.cli.serve import Request, run_serve

    raise typer.Exit(run_serve(Request(model, host, port, max_rows, max_bytes, as_json)))


@app.command(
    short_help="Open a page on which kernels can be touched.",
    epilog="Exit codes: 130 stopped by Ctrl-C, 1 not started, 64 an option that cannot be read.",
    rich_help_panel=KERNELS,
)
def studio(
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="A table to begin with; else a preset.", show_default=False),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, in a line, as soon as it listens.")
    ] = False,
) -> None:
    """Example: mercer studio

    Points to drag, a kernel to type, its proof, its Gram matrix, and machines with their certificates. The
    address works on this machine only.
    """
    from mercer.cli.studio import Request, run_studio

    raise typer.Exit(run_studio(Request(table, port, browser, as_json)))


@app.command(
    short_help="Say what this machine gives to mercer.", epilog="Exit code: 0.", rich_help_panel=OTHERS
)
def doctor(as_json: JsonFlag = False) -> None:
    """Example: mercer doctor

    Versions, instruction set, threads, BLAS and memory, and what stands in the way.
    """
    from mercer.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(as_json))


@app.command(
    short_help="Write the report of a model.",
    epilog=on_tables.CODES,
    rich_help_panel=MODELS,
)
def report(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model file of `mercer fit` or model.save.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file.")] = Path(
        "report.html"
    ),
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="FILE",
            help="Rows with the target, for a model that keeps none.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file if it exists.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Example: mercer report model.mercer -o report.html

    One HTML file: what was done, how good the model is, the kernel and its proof, which columns matter.
    """
    from mercer.cli.report import Request, run_report

    raise typer.Exit(run_report(Request(model, output, table, force, as_json)))


on_tables.register(app)
on_series.register(app)


def run() -> None:
    """The entry point: the app, with output that survives any encoding and an honest code for a crash."""
    if sys.platform != "win32":
        # otherwise click and rich leave a closed pipe with 1, which means refuted
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="mercer")
    except Exception as error:
        # not 1: that would read as "refuted"
        from mercer.cli.talk import is_full, leave_unwritten

        if is_full(error):
            leave_unwritten(error)
        import traceback

        traceback.print_exc()
        typer.echo("mercer failed unexpectedly; the lines above say where.", err=True)
        sys.exit(FAILURE)


if __name__ == "__main__":
    run()
