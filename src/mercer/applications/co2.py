"""Carbon dioxide at Mauna Loa: a forecast with a band, and how the months that followed compare.

The forecast is that of `mercer.forecast` on the monthly means. Beside it stands the textbook's kernel, a sum
that names each of its terms (Rasmussen and Williams, section 5.4.3):

    k =  a²  · RBF(ℓ)                       the long rise
       + b²  · RBF(decay) · Periodic(1 year)  a season that may change its shape
       + c²  · RationalQuadratic            ups and downs of months and years
       + d²  · RBF(weeks)                   weather that the next month remembers
       + White                              the rest

Its eleven hyperparameters come from the evidence. It fits better than any forecast needs, and is too sure of
the long run: of seven ends of the data, four left less than 55 % of the next ten years in its 95 % band.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypedDict

import numpy as np

from mercer.errors import ParameterError
from mercer.kernels import RBF, Kernel, Periodic, RationalQuadratic, White
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.series.answer import Forecast
from mercer.series.door import forecast
from mercer.typing import Array, Flags

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Series:
    """Monthly means: time in years (the middle of the month) and parts per million.

    Months without a mean are left out.
    """

    time: Array
    ppm: Array

    def __len__(self) -> int:
        return len(self.ppm)

    @property
    def months(self) -> np.ndarray:
        """The months as dates."""
        return months_of(self.time)

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


def months_of(time: Array) -> np.ndarray:
    """Times in years as months.

    >>> months_of(np.array([1958.208, 2004.0])).astype(str).tolist()
    ['1958-03', '2004-01']
    """
    since_1970 = np.floor(12 * np.asarray(time) + 1e-6).astype(np.int64) - 12 * 1970
    return np.asarray(since_1970.astype("datetime64[M]"))


class YearForecast(TypedDict):
    """The means over one year in ppm; `measured` is None unless all twelve months are known."""

    year: int
    forecast: float
    band: float
    measured: float | None


@dataclass(frozen=True, eq=False)
class Study:
    """The forecast from the months up to a year, and how the months that followed compare."""

    series: Series
    train_to: int
    years: int
    found: Forecast

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
        lower, upper = self.found.at(self.later.months).interval(LEVEL)
        return np.asarray((self.later.ppm >= lower) & (self.later.ppm <= upper))

    @property
    def coverage(self) -> float | None:
        return float(self.inside.mean()) if len(self.later) else None

    @property
    def error(self) -> float | None:
        """Root mean square of forecast minus measurement, in ppm."""
        if not len(self.later):
            return None
        return float(np.sqrt(np.mean((self.later.ppm - self.found.at(self.later.months).mean) ** 2)))

    def by_year(self) -> list[YearForecast]:
        """For every year of the forecast: its mean, half the width of its band, what was measured."""
        rows: list[YearForecast] = []
        mean = self.found.mean
        lower, upper = self.found.interval(LEVEL)
        of = self.found.times.astype("datetime64[Y]").astype(np.int64) + 1970
        for year in range(self.train_to + 1, self.train_to + 1 + self.years):
            mine = of == year
            measured = self.series.ppm[np.floor(self.series.time) == year]
            rows.append(
                {
                    "year": year,
                    "forecast": float(mean[mine].mean()),
                    "band": float(0.5 * (upper - lower)[mine].mean()),
                    "measured": float(measured.mean()) if len(measured) == 12 else None,
                }
            )
        return rows

    def summary(self) -> dict[str, object]:
        """The figures of the report as plain numbers and text."""
        return {
            **self.found.to_dict(),
            "schema": "mercer.co2/2",
            "train": {"months": len(self.train), "to": self.train_to},
            "later": {
                "months": len(self.later),
                "coverage": self.coverage,
                "level": LEVEL,
                "rms_error_ppm": self.error,
            },
            "by_year": self.by_year(),
        }


def study(train_to: int = 2003, years: int = 20, **options: Any) -> Study:
    """Forecast `years` years from the months up to the end of `train_to`.

    `options` go to `mercer.forecast` (`max_seconds`, `verbose`).
    """
    series = load_co2()
    first = int(series.time[0]) + 5
    last = int(series.time[-1])
    if not first <= train_to <= last:
        raise ParameterError(f"the months to train on must end between {first} and {last}; got {train_to}.")
    if not 1 <= years <= 100:
        raise ParameterError(f"the forecast goes 1 to 100 years ahead; got {years}.")
    train = series.until(train_to)
    ahead = np.arange(np.datetime64(f"{train_to + 1}-01"), np.datetime64(f"{train_to + 1 + years}-01"))
    found = forecast(train.months, train.ppm, at=ahead, name="carbon dioxide", unit="ppm", **options)
    return Study(series, train_to, years, found)
