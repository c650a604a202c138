"""`mercer fit`: from a raw table to a model file and its report.

The object that --json prints, schema "mercer.fit/1":

    model, report              the files; report is null where none was asked for
    task, target, rows         what was learned
    columns                    for each column: column, kind, why
    scale                      on which the target is modelled: power (1 as it is, 0 the logarithm), shift
    kernel, machine, steps     what was found, and what was done
    estimate                   how, measures, nothing_learned
    certificate, seconds       of the machine; of everything
    by_ctrl_c                  whether Ctrl-C ended the search
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mercer import clock, places
from mercer.cli.codes import INTERRUPTED
from mercer.cli.source import Voice, finished
from mercer.cli.talk import complain, json_text, outliving_sockets
from mercer.errors import InputError, Interrupted, ModelFileError, OutputError, ParameterError, TargetError
from mercer.gram.cluster import cluster
from mercer.memory import say_bytes
from mercer.recipe.door import fit as fit_table
from mercer.recipe.estimate import Estimate
from mercer.recipe.estimators import TableClassifier, TableMachine, TableRegressor
from mercer.tables.intake import STDIN, TableFile, counted, read_table

if TYPE_CHECKING:
    from mercer.files.save import Saved
    from mercer.tables.delimited import Layout

SUFFIX = ".mercer"
# Of the time, what saving and the report may take, and at least so many seconds.
SHARE_OF_REPORT = 0.15
LEAST_OF_REPORT = 5.0
# Seconds in which the program ends when all is done.
AT_THE_END = 0.5
# Of the time, what is left for the fit however long reading takes.
LEAST_OF_FIT = 0.3
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, kw_only=True)
class _HowToFit:
    task: str | None
    kernel: str | None
    machine: str
    leave_out: tuple[str, ...]
    time: str | None
    memory: str
    seed: int
    report: bool
    force: bool
    quiet: bool
    as_json: bool
    cluster: str | None = None
    insecure: bool = False


@dataclass(frozen=True)
class FitRequest(_HowToFit):
    """What was asked of `mercer fit`."""

    table: str
    layout: Layout
    target: str | None
    output: str | None
    # when the program began, by `clock.now`
    began: float


def run_fit(asked: FitRequest) -> int:
    """Read, fit, write the model and its report, say what came of it; return the exit code."""

    def work(voice: Voice) -> int:
        code = 0
        seconds = seconds_of(asked.time)
        # the seconds began with the program: what it imports takes some of them
        end = None if seconds is None else asked.began + seconds - AT_THE_END
        place, page = _places(asked)
        found = read_table(asked.table, asked.layout)
        voice.say(str(found))
        if asked.target is None and found.frame is not None:
            raise ParameterError(
                f"name the column to predict: --target {found.frame.columns[-1]!r}, say. The table has "
                f"{', '.join(found.frame.columns)}."
            )
        try:
            with computing_at(asked.cluster, insecure=asked.insecure):
                model = _fitted(found, asked, seconds_for_fit(seconds, end, report=asked.report))
        except Interrupted as stop:
            model = cast("TableRegressor | TableClassifier", stop.model)
            complain("interrupted; the best model so far is written.")
            code = INTERRUPTED
        # what was asked of the command, and not the share of it that the fit had
        model.set_params(max_seconds=seconds)
        saved = model.save(place, force=asked.force, compact=True)
        voice.say(said_of_file(saved))
        if page is not None:
            with clock.ending(math.inf if end is None else end):
                model.report(page, table=found, force=asked.force)
        _print_fit(asked, model, place, page, interrupted=code == INTERRUPTED)
        return code

    return finished(work, quiet=asked.quiet)


@contextmanager
def computing_at(place: str | None, *, insecure: bool) -> Iterator[None]:
    """The cluster that was asked for; nothing where none was."""
    if place is None:
        yield
        return
    with outliving_sockets(), cluster(place, insecure=insecure):
        yield


def said_of_file(saved: Saved) -> str:
    """How large a model file is, and whether it has rows of the table in it."""
    head = f"{saved.path}: {say_bytes(saved.bytes)}"
    if not saved.rows:
        return f"{head}, without any row of the table"
    rows = max(saved.rows.values())
    return f"{head}, with {counted(rows, 'row')} of the table inside: it is as confidential as they are"


def seconds_for_fit(seconds: float | None, end: float | None, *, report: bool) -> float | None:
    """What the fit may take of the seconds that are left before the end; None for no limit."""
    if seconds is None or end is None:
        return None
    after = max(SHARE_OF_REPORT * seconds, LEAST_OF_REPORT) if report else 0.0
    return max(end - clock.now() - after, LEAST_OF_FIT * seconds)


def _fitted(found: TableFile, asked: FitRequest, seconds: float | None) -> TableRegressor | TableClassifier:
    """The model of the table; what is wrong with the table is said with its name."""
    try:
        return _fit(found, asked, seconds)
    except TargetError as error:
        raise TargetError(f"{found.path}, column {asked.target!r}: {error}") from error
    except InputError as error:
        if found.path in str(error):
            raise
        raise InputError(f"{found.path}: {error}") from error


def _fit(found: TableFile, asked: FitRequest, seconds: float | None) -> TableRegressor | TableClassifier:
    return fit_table(
        found,
        asked.target,
        task=asked.task,
        kernel=asked.kernel,
        machine=asked.machine,
        leave_out=asked.leave_out,
        max_seconds=seconds,
        memory=asked.memory,
        random_state=asked.seed,
        verbose=0 if asked.quiet else 1,
    )


def _places(asked: FitRequest) -> tuple[Path, Path | None]:
    """Where the model and its page go, refused before any work where they may not be written."""
    if asked.output is None:
        stem = "model" if asked.table == STDIN else Path(asked.table).name.split(".")[0] or "model"
        place = Path(stem + SUFFIX)
    else:
        place = Path(asked.output)
    places.check_place(place, force=asked.force, example="model.mercer", error=ModelFileError)
    if not asked.report:
        return place, None
    page = place.with_suffix(".html")
    places.check_place(page, force=asked.force, example="report.html", error=OutputError)
    return place, page


def seconds_of(text: str | None) -> float | None:
    """Seconds from 60, 60s, 5m or 1.5h.

    >>> seconds_of("5m"), seconds_of("1.5h"), seconds_of("20")
    (300.0, 5400.0, 20.0)
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|min|h|)\s*", text)
    try:
        seconds = float(match[1]) * UNITS[match[2]] if match else math.nan
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ParameterError(f"--time takes seconds, minutes or hours, such as 60s or 5m; got {text!r}.")
    return seconds


def _print_fit(
    asked: FitRequest, model: TableMachine, place: Path, page: Path | None, *, interrupted: bool
) -> None:
    if asked.as_json:
        print(json_text(fit_as_json(model, place, page, interrupted=interrupted)))
        return
    print(model.summary())
    print(f"{model.n_rows_fit_} rows in {model.seconds_:.1f} s")
    print(f"model: {place}")
    if page is not None:
        print(f"report: {page}")


def fit_as_json(
    model: TableMachine, place: Path, page: Path | None, *, interrupted: bool
) -> dict[str, object]:
    """What --json prints of a fit."""
    return {
        "schema": "mercer.fit/1",
        "model": str(place),
        "report": None if page is None else str(page),
        "task": model.task,
        "target": model.target_,
        "rows": model.n_rows_fit_,
        "columns": [{"column": r.column, "kind": r.kind, "why": r.why} for r in model.roles_],
        "scale": model.scale_.to_dict(),
        "kernel": str(model.kernel_),
        "machine": type(model.machine_).__name__,
        "steps": list(model.steps_),
        "estimate": {"how": model.estimate_.how, **measures_of(model.estimate_)},
        "certificate": str(model.certificate_),
        "seconds": model.seconds_,
        "by_ctrl_c": interrupted,
    }


def measures_of(estimate: Estimate) -> dict[str, object]:
    """The measures of an estimate, as JSON has them."""
    return {
        "measures": {name: finite(value) for name, value in estimate.measures.items()},
        "nothing_learned": {name: finite(value) for name, value in estimate.nothing_learned.items()},
    }


def finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
