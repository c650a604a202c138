"""Forecasts: the last part of each series from what came before, with no period given.

    series    seven series, the last tenth; beside the errors of the Automatic Statistician (ABCD) and its
              rivals, from the predictions that its authors published
    dated     files with dates, the last days or months; beside Prophet
    co2       ten years after each of seven cuts; and what share of its months a path would have in the band
              if the leading model were the truth, from paths drawn from it

The published figures are those that come with the data. Where they are installed, statsforecast's AutoETS,
AutoTheta and MSTL, with the periods given, and Prophet run on the same splits, a line each, with their 95 %
bands. The ratio is to the least error of the row, ours apart: of the stored ones, and of those that ran. CPU
seconds count those of processes that a side starts.
"""

from __future__ import annotations

import argparse
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import mercer
from benchmarks import data
from mercer.scales import half_width

# RMSE on the last tenth: ABCD accurate and interpretable, spectral kernels, trend-cyclical-irregular, many
# kernels, squared exponential, AutoETS, AutoTheta, MSTL, seasonal naive.
PUBLISHED = {
    "airline": (16.67, 30.70, 14.62, 21.09, 69.17, 470.8, 41.65, 23.63, 29.34, 64.23),
    "solar": (0.3833, 0.4819, 0.4603, 0.3935, 0.3818, 0.6144, 0.4010, 0.3246, 0.3329, 0.2504),
    "mauna": (1.925, 1.373, 1.812, 1.768, 2.389, 2.537, 1.076, 1.378, 1.199, 4.987),
    "calls": (40.68, 13.65, 150.6, 24.54, 24.54, 308.8, 35.72, 35.96, 35.14, 40.73),
    "radio": (1.989, 1.208, 0.6410, 1.479, 2.006, 5.426, 0.8398, 0.5741, 1.135, 1.472),
    "gas-production": (3036, 6217, 4894, 4601, 8795, 8657, 6071, 3058, 6039, 5930),
    "wages": (14.90, 19.65, 17.87, 15.32, 15.54, 26.31, 12.74, 12.32, 12.74, 12.74),
}
# What the others are told: the periods in steps, the shortest first; 12 where nothing is said.
PERIODS: dict[str, tuple[int, ...]] = {
    "solar": (11,),
    "wages": (1,),
    "peyton_manning y": (7, 365),
    "germany_power Consumption": (7, 365),
    "pedestrians_hourly location_41": (24, 168),
    "yosemite_temps y": (288,),
}
# The longest season that AutoETS takes.
LONGEST_OF_ETS = 24
# File, column, values that are forecast, and what Prophet and seasonal naive reach (RMSE).
DATED = (
    ("peyton_manning", "y", 365, 0.539, 0.758),
    ("retail_sales", "y", 24, 15640.0, 23300.0),
    ("germany_power", "Consumption", 365, 63.7, 63.9),
    ("pedestrians_hourly", "location_41", 168, 627.0, 482.0),
    ("yosemite_temps", "y", 288, None, 0.690),
)
CUTS = (1975, 1980, 1985, 1990, 1995, 2000, 2003)
YEARS = 10
HEAD = (
    f"{'series':24}{'values':>7}{'ahead':>6}{'RMSE':>10}{'ratio':>7}{'coverage':>9}{'tested':>7}{'CPU s':>7}"
)


@dataclass(frozen=True)
class Split:
    """What is known and what is asked, and the errors of others."""

    name: str
    times: Any
    values: np.ndarray
    ahead: Any
    truth: np.ndarray
    others: tuple[float, ...]
    unit: str = ""


def run(options: argparse.Namespace) -> None:
    print(HEAD)
    for kind in (_series, _dated, _co2):
        ratios = []
        held = []
        for split in kind(options):
            if options.only not in split.name:
                continue
            ratio, coverage = _one(split, kind.__name__[1:], options.quick)
            ratios.append(ratio)
            held.append(coverage)
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            print(
                f"{kind.__name__[1:]}: geometric mean of the ratios {mean:.3f}, mean coverage of the 95 % "
                f"band {np.mean(held):.3f}, least {min(held):.2f}",
                flush=True,
            )


def _one(split: Split, kind: str, quick: bool) -> tuple[float, float]:
    times, values = split.times, split.values
    if quick:
        times, values = times[-40:], values[-40:]
    start = _cpu()
    found = mercer.forecast(times, values, at=split.ahead, unit_of_time=split.unit, verbose=0)
    cpu = _cpu() - start
    ours = _judged("mercer", Said(found.mean, *found.interval(0.95)), split, cpu)
    peers = [] if quick else [_timed(name, side, split) for name, side in _peers(split)]
    others = [*split.others, *(each.rmse for each in peers)]
    ratio = ours.rmse / min(others) if others else np.nan
    print(
        f"{split.name:24}{len(values):>7}{len(split.truth):>6}{ours.rmse:>10.4g}{ratio:>7.2f}"
        f"{ours.coverage:>9.2f}{found.coverage:>7.2f}{cpu:>7.1f}",
        flush=True,
    )
    if kind == "co2":
        own = held_of_own_paths(found)
        print(
            f"  drawn from the leading model, in its own band: {own.mean():.0%} of the months; of the paths "
            f"{np.mean(own >= 0.995):.0%} have 100 %, "
            f"{np.mean((own >= 0.85) & (own < 0.995)):.0%} have 85 to 99 %, "
            f"{np.mean(own < 0.85):.0%} have less",
            flush=True,
        )
    for each in peers:
        print(f"  {each.name:35}{each.rmse:>10.4g}{each.coverage:>16.2f}{each.cpu:>14.1f}", flush=True)
    return (ratio if others else 1.0), ours.coverage


def held_of_own_paths(found: mercer.Forecast, draws: int = 2000) -> np.ndarray:
    """What share of each path lies in the 95 % band of the leading model, paths drawn from that very model.

    So would the coverage of single forecasts scatter if the model were the truth.
    """
    t = found.series.axis.count(found.times)
    _, covariance = found.leading.model.predict(t[:, None], return_cov=True, noise=True)
    rng = np.random.default_rng(0)
    paths = rng.multivariate_normal(np.zeros(len(t)), covariance, draws, method="eigh")
    return np.mean(np.abs(paths) <= half_width(0.95) * np.sqrt(np.diag(covariance)), axis=1)


class Said(NamedTuple):
    """A forecast and its 95 % band."""

    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


Side = Callable[[Split], Said]


class Judged(NamedTuple):
    """How a side fared on one split."""

    name: str
    rmse: float
    coverage: float
    cpu: float


def _judged(name: str, said: Said, split: Split, cpu: float) -> Judged:
    inside = (split.truth >= said.lower) & (split.truth <= said.upper)
    return Judged(name, _rmse(said.mean, split.truth), float(np.mean(inside)), cpu)


def _timed(name: str, side: Side, split: Split) -> Judged:
    start = _cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = side(split)
    return _judged(name, said, split, _cpu() - start)


def _cpu() -> float:
    """Seconds of this process and of those that it started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _rmse(said: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((said - truth) ** 2)))


def _series(options: argparse.Namespace) -> Iterator[Split]:
    found = data.real(options.data, "series")
    if found is None:
        print(f"series left out: no such data in {options.data}")
        return
    for name, each in found.items():
        yield Split(
            name, each["x_train"], each["y_train"], each["x_test"], each["y_test"], PUBLISHED[name], "years"
        )


def _dated(options: argparse.Namespace) -> Iterator[Split]:
    found = data.real(options.data, "dated")
    if found is None:
        print(f"dated left out: no such data in {options.data}")
        return
    for name, column, ahead, prophet, _ in DATED:
        each = found[name]
        values = np.asarray(each[column], dtype=float)
        known = np.isfinite(values)
        times = np.asarray(each["dates"])[known]
        values = values[known]
        others = () if prophet is None else (prophet,)
        yield Split(
            f"{name} {column}", times[:-ahead], values[:-ahead], times[-ahead:], values[-ahead:], others
        )


def _co2(options: argparse.Namespace) -> Iterator[Split]:
    from mercer.applications.co2 import load_co2

    series = load_co2()
    for cut in CUTS:
        before = series.time < cut + 1
        after = (series.time >= cut + 1) & (series.time < cut + 1 + YEARS)
        yield Split(
            f"co2 to {cut}",
            series.time[before],
            series.ppm[before],
            series.time[after],
            series.ppm[after],
            (),
            "years",
        )


def _peers(split: Split) -> list[tuple[str, Side]]:
    """The other programs that are installed, by name."""
    return [*_statsforecast(split), *_prophet(split)]


def _statsforecast(split: Split) -> list[tuple[str, Side]]:
    """AutoETS and AutoTheta with the shortest period, MSTL with all; gaps between dates are not seen."""
    try:
        from statsforecast.models import MSTL, AutoETS, AutoTheta
    except ImportError:
        return []
    periods = PERIODS.get(split.name, (12,))

    def side(model: Any) -> Side:
        def forecast(split: Split) -> Said:
            said = model.fit(split.values).predict(len(split.truth), level=[95])
            return Said(said["mean"], said["lo-95"], said["hi-95"])

        return forecast

    sides = [("AutoTheta", side(AutoTheta(season_length=periods[0])))]
    if periods[0] <= LONGEST_OF_ETS:
        sides.append(("AutoETS", side(AutoETS(season_length=periods[0]))))
    if periods[0] > 1:
        trend = AutoETS(model="ZZN")
        sides.append(("MSTL", side(MSTL(season_length=list(periods), trend_forecaster=trend))))
    return sides


def _prophet(split: Split) -> list[tuple[str, Side]]:
    """Prophet with its defaults, on dates."""
    if split.unit:
        return []
    try:
        import pandas as pd
        from prophet import Prophet
    except ImportError:
        return []

    def forecast(split: Split) -> Said:
        logging.getLogger("cmdstanpy").setLevel(logging.WARNING)
        model = Prophet(interval_width=0.95)
        # Prophet draws its bands from here
        np.random.seed(0)  # noqa: NPY002
        model.fit(pd.DataFrame({"ds": split.times, "y": split.values}))
        said = model.predict(pd.DataFrame({"ds": split.ahead}))
        return Said(*(said[name].to_numpy() for name in ("yhat", "yhat_lower", "yhat_upper")))

    return [("Prophet", forecast)]
