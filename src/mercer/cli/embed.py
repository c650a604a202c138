"""`mercer embed`: the rows of a table with coordinates that keep most of what the kernel sees.

The object that --json prints, schema "mercer.embed/1":

    file, rows          what was read
    kernel              its text; open lengthscales are closed by the spread of the columns
    method              "pca": kernel principal components
    dimensions          how many coordinates, which are fewer than asked for if the rest is rounding
    shares              of each component: its share of the variance in feature space
    coordinates         of each row
    seed, landmarks     of the random numbers; of Nyström's approximation, null if there was none
    output, picture     the files that were written, or null
    notes               what else has to be said
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.source import (
    LANDMARKS,
    Seen,
    Source,
    Voice,
    finished,
    landmarks_for,
    seen,
    with_columns,
)
from mercer.cli.talk import json_text
from mercer.errors import InputError, OutputError, ParameterError
from mercer.machines.structure.pca import KernelPCA
from mercer.tables.names import require_columns
from mercer.tables.outlet import check_table_place, write_table

if TYPE_CHECKING:
    from mercer.typing import Array, Labels

DPI = 150


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    source: Source
    dimensions: int
    picture: Path | None
    colour: str | None
    output: str
    force: bool
    seed: int
    quiet: bool
    as_json: bool


def run_embed(asked: Request) -> int:
    """Read, embed, write; return the exit code."""
    return finished(lambda voice: _embed(asked, voice), quiet=asked.quiet)


def _embed(asked: Request, voice: Voice) -> None:
    check_table_place(asked.output, force=asked.force)
    if asked.picture is not None:
        _check_picture(asked.picture, asked.dimensions, asked.force)
    table = seen(asked.source, voice)
    colours = _colours(table, asked.colour)
    n = len(table)
    if n < 2:
        raise InputError(f"{table.found.path} has one row: nothing varies. An embedding needs two or more.")
    landmarks = landmarks_for(n, asked.seed)
    if landmarks is not None:
        voice.say(f"{n} rows: the kernel is approximated by {LANDMARKS} landmarks (Nyström)")
    model = KernelPCA(table.kernel, asked.dimensions, random_state=asked.seed, approximation=landmarks)
    coordinates: Array = model.fit_transform(table.rows)
    shares = model.explained_variance_ratio_.tolist()
    new = {f"component_{j + 1}": coordinates[:, j] for j in range(coordinates.shape[1])}
    frame, names = with_columns(table.frame, new, voice)
    shown = ", ".join(f"{share:.1%}" for share in shares)
    voice.say(f"{len(shares)} components have {sum(shares):.1%} of the variance in feature space: {shown}")
    voice.notes(model.certificate_.notes)
    if asked.picture is not None:
        _draw(model, table, colours, asked.picture)
        voice.say(f"{asked.picture}: the rows on the first two components")
    if asked.output != "-" or not asked.as_json:
        write_table(frame, asked.output, force=asked.force)
    if asked.output != "-":
        voice.say(f"{asked.output}: the rows with {', '.join(map(repr, names))}")
    if asked.as_json:
        facts = {
            "schema": "mercer.embed/1",
            "file": table.found.path,
            "rows": n,
            "kernel": str(table.kernel),
            "method": "pca",
            "dimensions": len(shares),
            "shares": shares,
            "coordinates": coordinates.tolist(),
            "seed": asked.seed,
            "landmarks": None if landmarks is None else LANDMARKS,
            "output": None if asked.output == "-" else asked.output,
            "picture": None if asked.picture is None else str(asked.picture),
            "notes": [*model.certificate_.notes],
        }
        print(json_text(facts))


def _colours(table: Seen, name: str | None) -> Labels | None:
    """The values of a column by which the picture is coloured; what is missing is a value of its own."""
    if name is None:
        return None
    require_columns(table.frame.columns, [name], table.found.path)
    column = table.frame[name]
    if column.dtype.is_numeric():
        return column.to_numpy()
    return column.cast(str).fill_null("missing").to_numpy()


def _check_picture(picture: Path, dimensions: int, force: bool) -> None:
    """What stands in the way of the picture is told before the work, a missing matplotlib too."""
    from mercer.cli.draw import checked_kind
    from mercer.plot.style import new_figure

    if dimensions < 2:
        raise OutputError("a picture needs two components: give --dimensions 2 or more.")
    try:
        checked_kind(picture, force)
    except ParameterError as error:
        raise OutputError(str(error)) from error
    new_figure(1, 1)


def _draw(model: KernelPCA, table: Seen, colours: Labels | None, picture: Path) -> None:
    from mercer import plot
    from mercer.cli.draw import save

    if model.n_components_ < 2:
        raise InputError("the rows vary along fewer than two components: there is no picture to draw.")
    figure = plot.embedding(model, table.rows, colours)
    save(figure, picture, picture.suffix.lower().lstrip("."), DPI)
