"""Forecasts: the last part of each series from what came before, with no period given.

    series    seven series, the last tenth; beside the errors of the Automatic Statistician (ABCD) and its
              rivals, from the predictions that its authors published
    dated     files with dates, the last days or months; beside Prophet
    co2       ten years after each of seven cuts

The published figures are those that come with the data. statsforecast's AutoETS and AutoTheta run on the same
splits where it is installed, with the period given. The ratio is to the least error of the row, ours apart.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mercer
from benchmarks import data

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
PERIODS = {"solar": 11, "wages": 1}
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
            ratio, coverage = _one(split, options.quick)
            ratios.append(ratio)
            held.append(coverage)
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            print(
                f"{kind.__name__[1:]}: geometric mean of the ratios {mean:.3f}, mean coverage of the 95 % "
                f"band {np.mean(held):.3f}, least {min(held):.2f}",
                flush=True,
            )


def _one(split: Split, quick: bool) -> tuple[float, float]:
    times, values = split.times, split.values
    if quick:
        times, values = times[-40:], values[-40:]
    start = time.process_time()
    found = mercer.forecast(times, values, at=split.ahead, unit_of_time=split.unit, verbose=0)
    cpu = time.process_time() - start
    lower, upper = found.interval(0.95)
    error = _rmse(found.mean, split.truth)
    coverage = float(np.mean((split.truth >= lower) & (split.truth <= upper)))
    others = [*split.others, *(_rmse(side(split), split.truth) for side in _peers(split))]
    ratio = error / min(others) if others else np.nan
    print(
        f"{split.name:24}{len(values):>7}{len(split.truth):>6}{error:>10.4g}{ratio:>7.2f}{coverage:>9.2f}"
        f"{found.coverage:>7.2f}{cpu:>7.1f}",
        flush=True,
    )
    return (ratio if others else 1.0), coverage


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


def _peers(split: Split) -> list[Callable[[Split], np.ndarray]]:
    """AutoETS and AutoTheta of statsforecast, where it is installed and the steps are counted in years."""
    try:
        from statsforecast.models import AutoETS, AutoTheta
    except ImportError:
        return []
    if split.unit != "years":
        return []
    period = PERIODS.get(split.name, 12)

    def side(kind: Any) -> Callable[[Split], np.ndarray]:
        def forecast(split: Split) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kind(season_length=period).fit(split.values)
                return np.asarray(model.predict(len(split.truth))["mean"])

        return forecast

    return [side(AutoETS), side(AutoTheta)]
