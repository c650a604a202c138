"""`mercer.forecast`: from times and values to what comes next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer import clock
from mercer.errors import InputError, Interrupted, ParameterError
from mercer.progress import Talk
from mercer.series.answer import Fitted, Forecast, Origin, Series, mixed
from mercer.series.axis import axis_of, column_of, in_utc, read_times
from mercer.series.members import SEARCHED, conditioned, refined
from mercer.series.mixture import Mixture, backtest, covered, likely, widening
from mercer.series.study import StudiedSeries, study
from mercer.solve.anytime import Anytime
from mercer.typing import Array

# Values that a series needs.
LEAST = 8
# Ranges of values whose squares are numbers.
SMALLEST = 1e-140
LARGEST = 1e140
# The horizon where none is given, as a share of the series, and at most so many steps.
SHARE_AHEAD = 0.1
MOST_AHEAD = 365
# Steps of the last search.
STEPS = 30


def forecast(
    times: object,
    values: object | None = None,
    *,
    horizon: int | None = None,
    at: object | None = None,
    level: float = 0.95,
    name: str | None = None,
    unit: str = "",
    unit_of_time: str = "",
    max_seconds: float | None = None,
    verbose: int = 1,
) -> Forecast:
    """What a series will be, with a band whose coverage was tested on its own past.

    Parameters
    ----------
    times : dates or numbers, rising or not, in equal steps or not
        Dates are those of Python, NumPy, pandas or polars, or text such as 2024-05-31. A pandas series that
        has dates as its index may be given alone.
    values : numbers
        What was measured; rows without a value are left out, and said.
    horizon : int, optional
        How many steps to forecast; a tenth of the series where neither it nor `at` is given, at most 365.
    at : dates or numbers, optional
        The times to forecast, instead of a horizon.
    level : float
        The share of values expected within the band that is printed; `interval` gives any other.
    name, unit : str
        What the values are called, and their unit, for words and pictures.
    unit_of_time : str
        The unit of times that are numbers, such as "years".
    max_seconds : float, optional
        The search ends after so many seconds with the best it has; Ctrl-C does the same.
    verbose : int
        0 for silence; else a line of progress now and then, after the first second.

    Returns
    -------
    Forecast
        With `mean`, `interval(level)`, `terms`, `words`, `kernel`, `coverage`, `certificate`, `plot()` and
        `report(path)`.

    >>> import numpy as np
    >>> months = np.arange("2010-01", "2018-01", dtype="datetime64[M]")
    >>> rng = np.random.default_rng(0)
    >>> sales = 10 + np.sin(2 * np.pi * np.arange(96) / 12) + 0.1 * rng.normal(size=96)
    >>> found = forecast(months, sales, horizon=12, verbose=0)
    >>> str(found.times[0])[:7], bool(np.abs(found.mean - 10).max() < 2)
    ('2018-01', True)
    """
    began = clock.now()
    series = _series(times, values, name, unit, unit_of_time)
    if not 0 < level < 1:
        raise ParameterError(f"the level of a band lies between 0 and 1, such as 0.95; got {level!r}.")
    wanted, steps = _wanted(series, horizon, at)
    talk = Talk(verbose)
    with clock.within(max_seconds):
        found = study(series.t, series.values, series.axis, steps, talk)
        fitted, interrupted = _fitted(found, talk)
    found = replace(found, interrupted=found.interrupted or interrupted)
    answer = _answer(series, wanted, found, fitted, level, clock.now() - began)
    if found.interrupted:
        raise Interrupted(answer)
    return answer


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


def _series(times: object, values: object | None, name: str | None, unit: str, unit_of_time: str) -> Series:
    """Times and values in order, those without a value left out; anything that is no series is refused."""
    if values is None:
        index = getattr(times, "index", None)
        if index is None or callable(index):
            raise InputError(
                "a forecast needs times and values: forecast(times, values), or a pandas series with dates "
                "as its index."
            )
        values, times = times, index
    called = name or getattr(values, "name", None) or "value"
    column = column_of(times)
    moments = read_times(column)
    numbers = _numbers(values)
    if len(moments) != len(numbers):
        raise InputError(f"there are {len(moments)} times and {len(numbers)} values; they must be as many.")
    known = np.isfinite(numbers)
    if np.isinf(numbers).any():
        bad = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InputError(f"value {bad + 1} is {numbers[bad]}. Leave it out, or put right what made it so.")
    moments, without = moments[known], int(len(known) - known.sum())
    numbers = numbers[known]
    order = np.argsort(moments, kind="stable")
    moments, numbers = moments[order], numbers[order]
    _check(moments, numbers)
    axis = axis_of(moments, unit_of_time)
    return Series(moments, numbers, axis, str(called), unit, without, in_utc(column))


def _check(times: np.ndarray, values: Array) -> None:
    if not len(values):
        raise InputError("no time has a value: there is nothing to learn from.")
    if len(values) < LEAST:
        raise InputError(f"a forecast needs at least {LEAST} values; got {len(values)}.")
    same = np.flatnonzero(times[1:] == times[:-1])
    if len(same):
        first = str(times[same[0]]).removesuffix("T00:00:00.000000").removesuffix(".000000")
        count = "1 time occurs" if len(same) == 1 else f"{len(same)} times occur"
        raise InputError(
            f"{count} more than once, first {first}. Keep one value for each time, "
            "or their mean; several series in one file are forecast one by one."
        )
    if np.ptp(values) == 0:
        raise InputError(f"all {len(values)} values are {values[0]:g}: there is nothing to learn from them.")
    if not SMALLEST < np.ptp(values) < LARGEST:
        raise InputError(
            f"the values lie from {values.min():g} to {values.max():g}; the squares of such numbers cannot "
            "be written. Count them in another unit."
        )


def _numbers(values: object) -> Array:
    column = column_of(values)
    try:
        numbers = np.asarray([np.nan if cell is None else cell for cell in column], dtype=np.float64)
    except (TypeError, ValueError):
        bad = next((i, cell) for i, cell in enumerate(column) if not _is_number(cell))
        raise InputError(
            f"value {bad[0] + 1} is {bad[1]!r:.60}, which is no number. Take another column, or put it right."
        ) from None
    if numbers.ndim != 1:
        raise InputError(f"values must be one column; got an array of {numbers.ndim} dimensions.")
    return numbers


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return cell is None
    return True


def _wanted(series: Series, horizon: int | None, at: object | None) -> tuple[np.ndarray, int]:
    """The times to forecast, and how many steps ahead they go."""
    if at is not None and horizon is not None:
        raise ParameterError("give a horizon or the times to forecast, not both.")
    axis = series.axis
    if at is not None:
        times = read_times(column_of([at] if isinstance(at, str) else at), "the times to forecast")
        if (times.dtype.kind == "M") != axis.dated:
            raise InputError(
                "the times to forecast must be of the kind that the series has: dates or numbers."
            )
        furthest = float(axis.count(times).max()) / axis.step
        return times, max(1, int(np.ceil(furthest)))
    if horizon is None:
        horizon = max(1, min(int(SHARE_AHEAD * len(series)), MOST_AHEAD))
    if not isinstance(horizon, int | np.integer) or isinstance(horizon, bool) or horizon < 1:
        raise ParameterError(f"horizon must be a whole number of steps, 1 or more; got {horizon!r}.")
    return axis.ahead(series.times[-1], int(horizon)), int(horizon)


# ── putting together ────────────────────────────────────────────────────────────────────────────────────────


def _fitted(found: StudiedSeries, talk: Talk) -> tuple[tuple[Fitted, ...], bool]:
    """The members, their numbers searched once more on all values, and whether Ctrl-C ended that.

    Where it did, or the seconds are over, the numbers are those of the back-test. Members that explain all
    values much worse than the best of them are left out.
    """
    kernels = [member.kernel for member in found.members]
    evidences = np.full(len(kernels), np.nan)
    with Anytime(best=kernels) as run:
        for i, member in enumerate(found.members):
            if found.interrupted or clock.late():
                break
            talk(f"{member.shape.trend} on all values")
            kernels[i], evidences[i] = refined(member, STEPS)
    values = len(found.members[0].values)
    fitted = []
    for i in likely(evidences, min(values, SEARCHED)).tolist():
        member = found.members[i]
        fitted.append(Fitted(member, conditioned(kernels[i], member.values, values)))
    return tuple(fitted), run.interrupted


def _answer(
    series: Series,
    times: np.ndarray,
    found: StudiedSeries,
    fitted: tuple[Fitted, ...],
    level: float,
    seconds: float,
) -> Forecast:
    members = [each.member for each in fitted]
    values = members[0].values
    mixtures = backtest(members)
    factor = widening(mixtures, [values.y[part] for part in found.tests])
    origins = [
        _origin(series, values.t[part.start - 1], mixture, factor, values.y[part])
        for part, mixture in zip(found.tests, mixtures, strict=True)
    ]
    return Forecast(
        series,
        times,
        mixed(fitted, series.axis.count(times)),
        fitted,
        factor,
        tuple(origins),
        series.times[found.outliers],
        len(found.every),
        seconds,
        found.interrupted,
        level,
        found.late,
    )


def _origin(series: Series, last: float, mixture: Mixture, factor: float, y: Array) -> Origin:
    inside = covered(mixture.wider(factor), y, 0.95)
    rmse = float(np.sqrt(np.mean((mixture.mean() - y) ** 2)))
    return Origin(series.axis.label(last), len(y), int(inside.sum()), rmse)
