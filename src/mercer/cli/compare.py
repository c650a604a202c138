"""`mercer compare`: kernels or machines on one table, with the uncertainty of their differences.

The object that --json prints, schema "mercer.compare/1":

    file, rows, target    what was read; rows that were used
    task, scoring         "numbers" or "classes"; scikit-learn's name of the score; larger is better
    folds, repeats, seed  of the cross-validation
    interval              how the interval was computed
    proposed              the text of the kernel that was proposed, null if kernels were given
    candidates            best first: name, kernel (null if none), mean, scores (of each fold), difference (to
                          the best), low, high (null if it failed), seconds, failure (null, or why), notes
"""

from __future__ import annotations

from dataclasses import dataclass

import polars

from mercer.cli.source import Source, Voice, drawn, finished
from mercer.cli.talk import json_text
from mercer.errors import InputError
from mercer.recipe.compare import Compared, Comparison, compare
from mercer.tables.intake import TableFile, read_table
from mercer.tables.names import require_columns

INTERVAL = "95 %, corrected resampled t (Nadeau and Bengio, 2003), of each difference to the best by itself"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    source: Source
    target: str
    kernels: tuple[str, ...]
    machines: tuple[str, ...]
    task: str | None
    score: str | None
    folds: int
    repeats: int
    rows: int
    seed: int
    drop_missing: bool
    quiet: bool
    as_json: bool


def run_compare(asked: Request) -> int:
    """Read, compare, print; return the exit code."""
    return finished(lambda voice: _compare(asked, voice), quiet=asked.quiet)


def _compare(asked: Request, voice: Voice) -> None:
    file = read_table(asked.source.table, asked.source.layout)
    voice.say(str(file))
    frame = with_targets(file, asked.target, asked.drop_missing, voice)
    require_columns(frame.columns, asked.source.leave_out, file.path)
    index = drawn(frame.height, asked.rows, asked.seed)
    if len(index) < frame.height:
        voice.say(f"{len(index)} of {frame.height} rows, drawn at random; --rows takes more")
        frame = frame[index.tolist()]
    try:
        found = compare(
            frame,
            asked.target,
            kernels=asked.kernels,
            machines=asked.machines,
            task=asked.task,
            scoring=asked.score,
            folds=asked.folds,
            repeats=asked.repeats,
            leave_out=asked.source.leave_out,
            random_state=asked.seed,
            tell=voice.progress,
        )
    except InputError as error:
        raise InputError(f"{file.path}, column {asked.target!r}: {error}") from error
    if asked.as_json:
        print(json_text(_as_json(asked, file, found)))
        return
    print(
        f"{found.rows} rows, {asked.folds} folds × {asked.repeats}, seed {asked.seed}; target: {found.task}"
    )
    print(found)
    print(f"interval: {INTERVAL}; the best of several looks better than it is")
    for candidate in found.candidates:
        for note in candidate.notes:
            voice.say(f"{candidate.name}, {candidate.kernel}: {note}")


def with_targets(file: TableFile, target: str, drop_missing: bool, voice: Voice) -> polars.DataFrame:
    """The table, each row of it with a target; rows without one are an error, or left out if asked for."""
    if file.frame is None:
        raise InputError(f"{file.path} is LIBSVM's text; this command takes a table with names of columns.")
    require_columns(file.frame.columns, [target], file.path)
    gaps = file.frame[target].is_null()
    count = int(gaps.sum())
    if not count:
        return file.frame
    if not drop_missing:
        line = int(gaps.arg_true()[0]) + file.first_line
        raise InputError(
            f"{file.path}, line {line}, column {target!r} has no value, and {count} rows in all have none. "
            "--drop-missing leaves them out."
        )
    voice.say(f"{count} rows without {target!r} are left out")
    return file.frame.filter(~gaps)


def _numbers(candidate: Compared) -> dict[str, object]:
    """Scores and differences; a candidate that failed has none."""
    scores = candidate.scores.tolist()
    names = ("mean", "difference", "low", "high")
    if candidate.failure is not None:
        return {"scores": scores, **dict.fromkeys(names)}
    return {"scores": scores, **{name: getattr(candidate, name) for name in names}}


def _as_json(asked: Request, file: TableFile, found: Comparison) -> dict[str, object]:
    return {
        "schema": "mercer.compare/1",
        "file": file.path,
        "rows": found.rows,
        "target": asked.target,
        "task": found.task,
        "scoring": found.scoring,
        "folds": found.folds,
        "repeats": found.repeats,
        "seed": asked.seed,
        "interval": INTERVAL,
        "proposed": found.proposed,
        "candidates": [
            {
                "name": c.name,
                "kernel": c.kernel,
                **_numbers(c),
                "seconds": c.seconds,
                "failure": c.failure,
                "notes": list(c.notes),
            }
            for c in found.candidates
        ],
    }
