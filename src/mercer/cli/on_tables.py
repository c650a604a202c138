"""The commands that take a table and need no model file: cluster, embed, compare, and the kernel tests.

Only typer is imported here, so that `mercer --help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mercer.cli.options import (
    TABLES,
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
    from mercer.cli.source import Source
    from mercer.tables.delimited import Layout

KernelText = Annotated[
    str | None,
    typer.Option(
        "--kernel", metavar="EXPR", help="A kernel, in quotes; else one is proposed.", show_default=False
    ),
]
MostRows = Annotated[
    int, typer.Option("--rows", metavar="N", min=2, help="At most so many rows, drawn at random.")
]
Permutations = Annotated[int, typer.Option("--permutations", metavar="N", min=1, help="Random relabellings.")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows without a value in the column that is named.")
]
CODES = "Exit codes: 0 done, 1 not done, with the reason, 64 an option that cannot be read, 74 a full disk."

tests = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Example: mercer test two-sample before.csv after.csv\n\nKernel tests with permutation p-values.",
    short_help="Test two samples, or independence.",
)


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the app."""

    def add(words: str, command: Callable[..., None]) -> None:
        app.command(short_help=words, epilog=CODES, rich_help_panel=TABLES)(command)

    add("Find clusters of rows.", cluster)
    add("Give rows coordinates in few dimensions.", embed)
    add("Compare kernels or machines on one table.", compare)
    app.add_typer(tests, name="test", rich_help_panel=TABLES)


def source_of(
    table: str,
    kernel: str | None,
    leave_out: list[str] | None,
    layout: Layout,
    *,
    ranks: bool = True,
) -> Source:
    """The table and how it is to be seen, from the options of a command."""
    from mercer.cli.source import Source

    return Source(table, layout, tuple(leave_out or ()), kernel, ranks)


@reads_tables
def cluster(
    table: Table,
    clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters",
            "-k",
            metavar="K",
            min=1,
            help="How many; else those found again in another half of the rows.",
            show_default=False,
        ),
    ] = None,
    kernel: KernelText = None,
    leave_out: LeaveOut = None,
    output: Output = "-",
    force: Force = False,
    seed: SeedOption = 0,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer cluster flats.csv --leave-out rent -o clustered.csv

    The rows with two more columns: their cluster by kernel k-means, and the distance to its centre.

    Without --clusters their number is the largest whose clusters are found again in another half of the rows.
    """
    from mercer.cli.cluster import Request, run_cluster

    source = source_of(table, kernel, leave_out, layout, ranks=False)
    raise typer.Exit(run_cluster(Request(source, clusters, output, force, seed, quiet, as_json)))


@reads_tables
def embed(
    table: Table,
    dimensions: Annotated[
        int, typer.Option("--dimensions", "-d", metavar="D", min=1, help="How many coordinates.")
    ] = 2,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="pca: kernel principal components.")
    ] = "pca",
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture", metavar="FILE", help="Draw the first two: .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
    colour: Annotated[
        str | None,
        typer.Option(
            "--colour",
            "--color",
            metavar="NAME",
            help="A column that colours the picture.",
            show_default=False,
        ),
    ] = None,
    kernel: KernelText = None,
    leave_out: LeaveOut = None,
    output: Output = "-",
    force: Force = False,
    seed: SeedOption = 0,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer embed flats.csv --leave-out rent --picture flats.png --colour rent -o placed.csv

    The rows with coordinates along which the kernel sees them vary most, and the share of each.
    """
    from mercer.cli.embed import Request, run_embed

    if method != "pca":
        raise typer.BadParameter(f"--method is pca; got {method!r}.")
    source = source_of(table, kernel, leave_out, layout, ranks=False)
    request = Request(source, dimensions, picture, colour, output, force, seed, quiet, as_json)
    raise typer.Exit(run_embed(request))


@tests.command("two-sample", short_help="Do two samples differ?", epilog=CODES)
@reads_tables
def two_sample(
    table: Table,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[OTHER]", help="The second sample, with the same columns.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="A column of one table whose two values are the samples.",
            show_default=False,
        ),
    ] = None,
    kernel: KernelText = None,
    leave_out: LeaveOut = None,
    rows: MostRows = 2000,
    permutations: Permutations = 999,
    seed: SeedOption = 0,
    drop_missing: DropMissing = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer test two-sample before.csv after.csv

    Whether two samples come from one distribution (MMD), how much they differ, and at which rows.
    """
    from mercer.cli.kernel_tests import TwoSamples, run_two_sample

    source = source_of(table, kernel, leave_out, layout)
    request = TwoSamples(source, other, by, rows, permutations, seed, drop_missing, quiet, as_json)
    raise typer.Exit(run_two_sample(request))


@tests.command("independence", short_help="Do columns depend on one another?", epilog=CODES)
@reads_tables
def independence(
    table: Table,
    left: Annotated[
        list[str], typer.Option("--left", metavar="NAMES", help="Columns: a,b; may be repeated.")
    ],
    right: Annotated[
        list[str], typer.Option("--right", metavar="NAMES", help="Columns: c; may be repeated.")
    ],
    rows: MostRows = 2000,
    permutations: Permutations = 499,
    seed: SeedOption = 0,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer test independence flats.csv --left size,district --right rent

    Whether some columns of a table are independent of others (HSIC), of whatever kind they are.
    """
    from mercer.cli.kernel_tests import Independence, run_independence

    source = source_of(table, None, None, layout)
    request = Independence(source, tuple(left), tuple(right), rows, permutations, seed, quiet, as_json)
    raise typer.Exit(run_independence(request))


@reads_tables
def compare(
    table: Table,
    target: Annotated[
        str, typer.Option("--target", metavar="NAME", help="The column to learn.", show_default=False)
    ],
    kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--kernels", metavar="EXPR", help="A kernel, in quotes; may be repeated.", show_default=False
        ),
    ] = None,
    machines: Annotated[
        str | None,
        typer.Option(
            "--machines",
            metavar="NAMES",
            help="svc,gp for classes; ridge,svr,gp for numbers.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="KIND", help="numbers or classes; else by the values.", show_default=False
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="NAME",
            help="A name of scikit-learn's; else r2 or accuracy.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", metavar="N", min=2, help="Parts of the rows.")] = 5,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="How often they are cut anew.")
    ] = 2,
    leave_out: LeaveOut = None,
    rows: MostRows = 2000,
    seed: SeedOption = 0,
    drop_missing: DropMissing = False,
    quiet: Quiet = False,
    as_json: JsonFlag = False,
    *,
    layout: Layout,
) -> None:
    """Example: mercer compare flats.csv --target rent --machines ridge,svr,gp

    Cross-validated scores on the same folds, best first, with the difference to the best and its interval.
    """
    from mercer.cli.compare import Request, run_compare

    source = source_of(table, None, leave_out, layout)
    request = Request(
        source,
        target,
        tuple(kernels or ()),
        tuple(name.strip() for name in (machines or "").split(",") if name.strip()),
        task,
        score,
        folds,
        repeats,
        rows,
        seed,
        drop_missing,
        quiet,
        as_json,
    )
    raise typer.Exit(run_compare(request))
