"""Carbon dioxide at Mauna Loa: a forecast with a band, from a sum of kernels that each say one thing.

    k =  a²  · RBF(ℓ)                       the long rise
       + b²  · RBF(decay) · Periodic(1 year)  a season that may change its shape
       + c²  · RationalQuadratic            ups and downs of months and years
       + d²  · RBF(weeks)                   weather that the next month remembers
       + White                              the rest

Eleven hyperparameters, all from the evidence (Rasmussen and Williams, section 5.4.3).
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypedDict

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels import RBF, Kernel, Periodic, RationalQuadratic, White
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.views import Terms
from mercer.typing import Array, Flags

TERMS = ("long rise", "season", "medium term", "weather")
LEVEL = 0.95
# standard deviations either way of a band of 95 %
WIDE = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Series:
    """Monthly means: time in years (the middle of the month) and parts per million.

    Months without a mean are left out.
    """

    time: Array
    ppm: Array

    def __len__(self) -> int:
        return len(self.ppm)

    def until(self, year: float) -> Series:
        """The months before the end of this year."""
        early = self.time < year + 1
        return Series(self.time[early], self.ppm[early])

    def after(self, year: float) -> Series:
        late = self.time >= year + 1
        return Series(self.time[late], self.ppm[late])


def load_co2() -> Series:
    """The monthly means of NOAA and Scripps that come with mercer, March 1958 to August 2013.

    >>> series = load_co2()
    >>> len(series), float(series.time[0].round(3)), float(series.ppm[0])
    (659, 1958.208, 315.71)
    """
    place = files("mercer.applications").joinpath("data/mauna_loa_co2.csv")
    rows = list(csv.DictReader(place.read_text(encoding="utf-8").splitlines()))
    rows = [r for r in rows if r["average"]]
    months = [int(r["year"]) + (int(r["month"]) - 0.5) / 12 for r in rows]
    return Series(np.array(months), np.array([float(r["average"]) for r in rows]))


def co2_kernel() -> Kernel:
    """The sum of kernels, at round numbers from which the search starts; the period is a year and stays so.

    >>> len(co2_kernel().theta)
    11
    """
    season = RBF(100.0) * Periodic(1.0, 1.0).fix("period")
    weather = 0.01 * RBF(0.1)
    return (
        2500.0 * RBF(50.0) + 4.0 * season + 0.25 * RationalQuadratic(1.0, alpha=1.0) + weather + White(0.01)
    )


def fit_co2(series: Series, **options: Any) -> GaussianProcessRegressor:
    """The Gaussian process of a series about its mean, hyperparameters by the evidence."""
    model = GaussianProcessRegressor(co2_kernel(), normalize_y="mean", **options)
    return model.fit(series.time[:, None], series.ppm)


class YearForecast(TypedDict):
    """The means over one year in ppm; `measured` is None unless all twelve months are known."""

    year: int
    forecast: float
    band: float
    measured: float | None


@dataclass(frozen=True, eq=False)
class Study:
    """The fit to the months up to a year, the forecast after it, and how the months that followed compare."""

    series: Series
    train_to: int
    years: int
    model: GaussianProcessRegressor
    grid: Array
    mean: Array
    std_latent: Array
    std: Array
    parts: Terms
    later_mean: Array
    later_std: Array
    seconds: float

    @property
    def train(self) -> Series:
        return self.series.until(self.train_to)

    @property
    def later(self) -> Series:
        """The months that followed, as far as the forecast goes."""
        after = self.series.after(self.train_to)
        forecast = after.time < self.train_to + 1 + self.years
        return Series(after.time[forecast], after.ppm[forecast])

    @property
    def inside(self) -> Flags:
        """Which later months lie in the band of 95 %."""
        return np.abs(self.later.ppm - self.later_mean) <= WIDE * self.later_std

    @property
    def coverage(self) -> float | None:
        return float(self.inside.mean()) if len(self.later) else None

    @property
    def error(self) -> float | None:
        """Root mean square of forecast minus measurement, in ppm."""
        if not len(self.later):
            return None
        return float(np.sqrt(np.mean((self.later.ppm - self.later_mean) ** 2)))

    def hyperparameters(self) -> list[tuple[str, str, float, str]]:
        """(term, meaning, value, unit) of the eleven numbers found."""
        k = self.model.kernel_
        assert isinstance(k, Kernel)
        at = {p.name: p.value for p in k.parameters}
        root = np.sqrt
        return [
            ("long rise", "size", root(at["k1__scale"]), "ppm"),
            ("long rise", "lengthscale", at["k1__kernel__lengthscale"], "years"),
            ("season", "size", root(at["k2__scale"]), "ppm"),
            ("season", "years until its shape has changed", at["k2__kernel__k1__lengthscale"], "years"),
            ("season", "smoothness within the year", at["k2__kernel__k2__lengthscale"], ""),
            ("medium term", "size", root(at["k3__scale"]), "ppm"),
            ("medium term", "lengthscale", at["k3__kernel__lengthscale"], "years"),
            ("medium term", "shape α", at["k3__kernel__alpha"], ""),
            ("weather", "size", root(at["k4__scale"]), "ppm"),
            ("weather", "lengthscale", 12 * at["k4__kernel__lengthscale"], "months"),
            ("noise", "size", root(at["k5__noise"]), "ppm"),
        ]

    def by_year(self) -> list[YearForecast]:
        """For every whole year of the forecast: its mean, half the width of its band, what was measured."""
        rows: list[YearForecast] = []
        for year in range(self.train_to + 1, self.train_to + 1 + self.years):
            mine = np.floor(self.grid) == year
            measured = self.series.ppm[np.floor(self.series.time) == year]
            rows.append(
                {
                    "year": year,
                    "forecast": float(self.mean[mine].mean()),
                    "band": float(WIDE * self.std[mine].mean()),
                    "measured": float(measured.mean()) if len(measured) == 12 else None,
                }
            )
        return rows

    def summary(self) -> dict[str, object]:
        """The figures of the report as plain numbers and text."""
        return {
            "schema": "mercer.co2/1",
            "kernel": str(self.model.kernel_),
            "log_marginal_likelihood": self.model.log_evidence_,
            "train": {"months": len(self.train), "to": self.train_to},
            "later": {
                "months": len(self.later),
                "coverage": self.coverage,
                "level": LEVEL,
                "rms_error_ppm": self.error,
            },
            "forecast": self.by_year(),
            "hyperparameters": [
                {"term": t, "meaning": m, "value": float(v), "unit": u}
                for t, m, v, u in self.hyperparameters()
            ],
            "certificate": self.model.certificate_.to_dict(),
            "seconds": self.seconds,
        }


def study(train_to: int = 2003, years: int = 20, **options: Any) -> Study:
    """Fit the months up to the end of `train_to` and forecast `years` years, month by month.

    `options` go to `GaussianProcessRegressor` (`max_seconds`, `n_jobs`, `verbose`, …).
    """
    start = time.perf_counter()
    series = load_co2()
    first = int(series.time[0]) + 5
    last = int(series.time[-1])
    if not first <= train_to <= last:
        raise ParameterError(f"the months to train on must end between {first} and {last}; got {train_to}.")
    if not 1 <= years <= 100:
        raise ParameterError(f"the forecast goes 1 to 100 years ahead; got {years}.")
    model = fit_co2(series.until(train_to), **options)
    end = train_to + 1 + years
    grid = np.arange(np.floor(series.time[0]) * 12, end * 12) / 12 + 0.5 / 12
    mean, latent = model.predict(grid[:, None], return_std=True)
    noise = model.predict(grid[:, None], return_std=True, noise=True)[1]
    parts = model.decompose(grid[:, None], names=TERMS)
    later = series.after(train_to)
    later = Series(later.time[later.time < end], later.ppm[later.time < end])
    if len(later):
        later_mean, later_std = model.predict(later.time[:, None], return_std=True, noise=True)
    else:
        later_mean = later_std = np.empty(0)
    seconds = time.perf_counter() - start
    return Study(
        series, train_to, years, model, grid, mean, latent, noise, parts, later_mean, later_std, seconds
    )
