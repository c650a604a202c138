"""`mercer forecast`: from a file with times and values to what comes next.

The object that --json prints has the schema "mercer.forecast/1": series, kernel, terms, words, models,
backtest, forecast (a list of time, mean, lower, upper), certificate, files, seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars

from mercer import places
from mercer.cli.codes import INTERRUPTED
from mercer.cli.source import Voice, finished
from mercer.cli.talk import complain, json_text
from mercer.errors import InputError, Interrupted, OutputError, ParameterError
from mercer.series.answer import Forecast
from mercer.series.axis import dates_of_texts
from mercer.series.door import forecast
from mercer.structure.vocabulary import rounded
from mercer.tables.intake import TableFile, read_table
from mercer.tables.names import require_columns
from mercer.tables.outlet import check_table_place, write_table

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

# Cells by which a column of dates is known.
LOOKED_AT = 200
# Steps of the forecast that are printed.
SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class ForecastRequest:
    """What was asked of `mercer forecast`."""

    table: str
    layout: Layout
    time: str | None
    value: str | None
    horizon: int | None
    level: float
    unit: str
    max_seconds: float | None
    output: str | None
    report: str | None
    force: bool
    quiet: bool
    as_json: bool


def run_forecast(asked: ForecastRequest) -> int:
    """Read, forecast, write, say what came of it; return the exit code."""

    def work(voice: Voice) -> int:
        code = 0
        _check_places(asked)
        found = read_table(asked.table, asked.layout)
        voice.say(str(found))
        time, value = columns_of(found, asked.time, asked.value)
        voice.say(f"time: {time}, value: {value}")
        assert found.frame is not None
        try:
            answer = forecast(
                found.frame[time].to_list(),
                _numbers(found, value),
                horizon=asked.horizon,
                level=asked.level,
                name=value,
                unit=asked.unit,
                max_seconds=asked.max_seconds,
                verbose=0 if asked.quiet else 1,
            )
        except InputError as error:
            raise InputError(f"{found.path}: {error}") from error
        except Interrupted as stop:
            answer = cast("Forecast", stop.model)
            complain("interrupted; the best forecast so far is given.")
            code = INTERRUPTED
        _write(asked, answer)
        _print(asked, answer)
        return code

    return finished(work, quiet=asked.quiet)


def columns_of(found: TableFile, time: str | None, value: str | None) -> tuple[str, str]:
    """The column of times and the column of values: those named, else the first of each kind."""
    frame = found.frame
    if frame is None:
        raise InputError(
            f"{found.path} is LIBSVM's text, which has no times. Give a table with a column of them."
        )
    require_columns(frame.columns, [name for name in (time, value) if name is not None], found.path)
    if len(frame.columns) == 1:
        raise InputError(
            f"{found.path} has one column only, {frame.columns[0]!r}. A forecast needs one of times (dates "
            "or rising numbers) and one of values."
        )
    if time is None:
        time = _first_time(frame)
    if time is None:
        raise InputError(
            f"{found.path}: no column holds dates or rising numbers. Name the column of times: --time "
            f"{frame.columns[0]!r}, say. The table has {', '.join(map(repr, frame.columns))}."
        )
    if value is None:
        others = [name for name in frame.columns if name != time and frame[name].dtype.is_numeric()]
        empty = [name for name in frame.columns if frame[name].null_count() == len(frame)]
        if not others and empty:
            raise InputError(f"{found.path}: no row of column {empty[0]!r} has a value.")
        if not others:
            raise InputError(
                f"{found.path}: no column besides {time!r} holds numbers. Name the one of values: --value …"
            )
        if len(others) > 1:
            raise ParameterError(
                f"{found.path} has several columns of numbers: {', '.join(map(repr, others))}. Say "
                f"which one: --value {others[0]!r}, say."
            )
        value = others[0]
    return time, value


def _first_time(frame: polars.DataFrame) -> str | None:
    """The first column of dates, else the first of numbers that rise, or fall."""
    for name in frame.columns:
        column = frame[name].drop_nulls()
        if column.dtype.is_temporal():
            return name
        if column.dtype == polars.String and len(column) and _is_dated(column):
            return name
    for name in frame.columns:
        column = frame[name]
        known = column.dtype.is_numeric() and column.null_count() == 0
        in_order = known and (column.is_sorted() or column.is_sorted(descending=True))
        if in_order and column.n_unique() == len(column):
            return name
    return None


def _is_dated(column: polars.Series) -> bool:
    return dates_of_texts(column.head(LOOKED_AT).to_list()) is not None


def _numbers(found: TableFile, value: str) -> list[object]:
    assert found.frame is not None
    column = found.frame[value]
    if column.dtype == polars.String:
        text = column.drop_nulls()
        bad = next((cell for cell in text.to_list() if not _is_number(cell)), None)
        if bad is not None:
            raise InputError(
                f"column {value!r} holds the text {bad!r:.60}, and a forecast needs numbers. Name another "
                "column with --value, or the word for a missing value with --missing."
            )
        column = column.cast(polars.Float64)
    if not column.dtype.is_numeric():
        raise InputError(f"column {value!r} holds no numbers. Name another one with --value.")
    return column.to_list()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_places(asked: ForecastRequest) -> None:
    """Refuse places that cannot be written to before any work."""
    if asked.output is not None:
        check_table_place(asked.output, force=asked.force)
    if asked.report is not None:
        places.check_place(Path(asked.report), force=asked.force, example="forecast.html", error=OutputError)
        from mercer.plot.style import new_figure

        # a missing matplotlib is told before the work, not after
        new_figure(1, 1)


def _write(asked: ForecastRequest, answer: Forecast) -> None:
    if asked.output is not None:
        frame = answer.to_frame()
        write_table(frame, asked.output, force=asked.force)
    if asked.report is not None:
        answer.report(asked.report, force=asked.force)


def _print(asked: ForecastRequest, answer: Forecast) -> None:
    files = {"forecast": asked.output, "report": asked.report}
    if asked.as_json:
        print(json_text({**answer.to_dict(), "files": files}))
        return
    if asked.output == "-":
        return
    for line in answer.words:
        print(line)
    print()
    print(_table(answer))
    for name, place in files.items():
        if place is not None:
            print(f"{name}: {place}")


def _table(answer: Forecast) -> str:
    """The first steps of the forecast, and the last."""
    lower, upper = answer.interval(answer.level)
    axis = answer.series.axis
    shown = list(range(len(answer)))
    if len(shown) > SHOWN:
        shown = [*shown[: SHOWN - 1], shown[-1]]
    rows = [("time", "mean", f"{answer.level:.0%} from", "to")]
    for i in shown:
        mean, low, high = (rounded(float(numbers[i]), 5) for numbers in (answer.mean, lower, upper))
        rows.append((axis.written(answer.times[i]), mean, low, high))
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    if len(answer) > SHOWN:
        lines.insert(len(lines) - 1, f"{'…':>{widths[0]}}")
    return "\n".join(lines)
