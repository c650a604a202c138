"""A forecast: its mean and bands, what it was made of, in words, and how earlier ones fared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mercer.errors import InputError, OutputError, ParameterError
from mercer.kernels import Kernel, as_kernel
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.gaussian_process.views import Terms
from mercer.scales import Scale
from mercer.series.axis import TimeAxis, column_of, read_times
from mercer.series.members import LAST, Member, Normals, foreseen
from mercer.series.mixture import LEAST, Mixture
from mercer.series.words import Spoken, speak
from mercer.solve.solution import Certificate
from mercer.structure.vocabulary import rounded
from mercer.typing import Array

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Series:
    """The values of a series at rising times, how the times are counted, and what was left out of it."""

    times: np.ndarray
    values: Array
    axis: TimeAxis
    name: str = "value"
    unit: str = ""
    without_value: int = 0
    in_utc: bool = False

    @property
    def counts(self) -> bool:
        """Whether the values are whole numbers and none is negative."""
        return bool(np.all(self.values >= 0) and np.all(self.values == np.round(self.values)))

    def possible(self, values: Array) -> Array:
        """Values as the series can have them: counts are not below 0."""
        if not self.counts:
            return values
        return np.maximum(values, 0.0)

    @property
    def t(self) -> Array:
        """The times in units of the axis, 0 for the last."""
        return self.axis.count(self.times)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Origin:
    """One forecast of the back-test: made after a time, and how many of the values that followed it held."""

    after: str
    values: int
    inside: int
    rmse: float

    @property
    def coverage(self) -> float:
        return self.inside / self.values


@dataclass(frozen=True, eq=False)
class Fitted:
    """A member with its process, fitted to all values."""

    member: Member
    model: GaussianProcessRegressor

    @property
    def kernel(self) -> Kernel:
        return as_kernel(self.model.kernel_)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is expected at times to come.

    mean          the mean of the value at each of `times`
    interval(p)   a lower and an upper end between which a share p of the values is expected
    terms         the parts that the leading model is made of, at all times seen and to come, with their bands
    words         what was found, a sentence each
    kernel        the kernel of the leading model, time counted in `unit_of_time` from the last value
    coverage      the share of values inside the 95 % band in the back-test, from `origins`
    certificate   of the leading model
    """

    series: Series
    times: np.ndarray
    mixture: Mixture
    fitted: tuple[Fitted, ...]
    widening: float
    origins: tuple[Origin, ...]
    outliers: np.ndarray
    tried: int
    seconds: float
    interrupted: bool
    level: float = LEVEL
    late: bool = False

    # ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def mean(self) -> Array:
        """The mean of the value at each time."""
        return self.series.possible(self.mixture.mean())

    @property
    def median(self) -> Array:
        """The value that is exceeded half of the time."""
        return self.series.possible(self.mixture.quantile(0.5))

    def quantile(self, p: float) -> Array:
        """The value that is not exceeded with probability p, its deviations widened as the back-test says."""
        if not 0 < p < 1:
            raise ParameterError(f"a probability lies between 0 and 1; got {p!r}.")
        return self.series.possible(self.mixture.wider(self.widening).quantile(p))

    def interval(self, level: float = LEVEL) -> tuple[Array, Array]:
        """Lower and upper ends between which this share of the values is expected."""
        if not 0 < level < 1:
            raise ParameterError(f"the level of a band lies between 0 and 1, such as 0.95; got {level!r}.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def at(self, times: object) -> Forecast:
        """The same forecast at other times, dates or numbers as the series has them."""
        read = read_times(column_of(times), "the times to forecast")
        if (read.dtype.kind == "M") != self.series.axis.dated:
            raise InputError(
                "the times to forecast must be of the kind that the series has: dates for dates, numbers for "
                "numbers."
            )
        return replace(self, times=read, mixture=mixed(self.fitted, self.series.axis.count(read)))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def coverage(self) -> float:
        """The share of the values of the back-test that lay inside the 95 % band, widened as now."""
        return sum(origin.inside for origin in self.origins) / sum(origin.values for origin in self.origins)

    # ── what it is made of ──────────────────────────────────────────────────────────────────────────────────

    @property
    def leading(self) -> Fitted:
        """The member with the best back-test."""
        return self.fitted[0]

    @property
    def kernel(self) -> Kernel:
        return self.leading.kernel

    @property
    def scale(self) -> Scale:
        """On which scale the leading model is one of sums."""
        return self.leading.member.values.scale

    @property
    def certificate(self) -> Certificate:
        return self.leading.model.certificate_

    @cached_property
    def terms(self) -> Terms:
        """The terms of the leading model at the times of the series and of the forecast, on its scale."""
        t = np.concatenate([self.series.t, self.series.axis.count(self.times)])
        values = self.leading.member.values
        names = [said.name for said in self._spoken[:-1]]
        found = self.leading.model.decompose(t[:, None], names=names)
        return replace(
            found,
            mean=values.spread * found.mean,
            covariance=values.spread**2 * found.covariance,
            offset=values.centre + values.spread * found.offset,
        )

    @cached_property
    def _spoken(self) -> tuple[Spoken, ...]:
        return speak(self.leading.member, self.leading.model, self.series.axis, self.series.unit)

    def term_words(self) -> tuple[Spoken, ...]:
        """The terms of the leading model in words, the largest first, noise last."""
        spoken = self._spoken
        return (*sorted(spoken[:-1], key=lambda said: -said.share), spoken[-1])

    @property
    def words(self) -> list[str]:
        """What was found, a sentence each; every number in them is one of this object."""
        return [*self.about_series(), *self.about_terms(), *self.about_backtest()]

    def about_series(self) -> list[str]:
        """What the series is, and what was left out."""
        axis = self.series.axis
        first, last = axis.written(self.series.times[0]), axis.written(self.series.times[-1])
        lines = [f"{len(self.series)} values from {first} to {last}, one every {axis.step_words}."]
        if axis.missing:
            lines.append(
                f"{axis.missing} of the times between them are missing; nothing was put in their place."
            )
        if self.series.in_utc:
            lines.append("The times have several offsets from UTC; all are counted and written in UTC.")
        if self.series.without_value:
            lines.append(f"{self.series.without_value} times have no value.")
        held = len(self.leading.model.X_fit_)
        if held < len(self.series) - len(self.outliers):
            lines.append(
                f"The forecast rests on {held} of them: the last {int(LAST * held)}, and a random part of "
                "the others."
            )
        if self.series.counts:
            lines.append("The values are counts: no forecast and no band is below 0.")
        if len(self.outliers):
            when = ", ".join(axis.written(time) for time in self.outliers[:5])
            more = "" if len(self.outliers) <= 5 else ", …"
            one = len(self.outliers) == 1
            count = "1 value" if one else f"{len(self.outliers)} values"
            lines.append(f"{count} far from all others {'was' if one else 'were'} set aside: {when}{more}.")
        return lines

    def about_terms(self) -> list[str]:
        """The terms, and on which scale they are a sum."""
        what = f"What explains {self.series.name} best"
        if not self.scale.is_identity:
            what += f", on the scale of {self.scale.words_of(self.series.name)}"
        if 0 < self.scale.power < 1:
            what += " (sizes are those at the median)"
        return [f"{what}:", *(f"  {said.text}." for said in self.term_words())]

    def about_backtest(self) -> list[str]:
        """How forecasts from earlier times fared."""
        total = sum(origin.values for origin in self.origins)
        inside = sum(origin.inside for origin in self.origins)
        averaged = len(self.fitted)
        lines = ["The forecast is that of one model."]
        if averaged > 1:
            lines = [f"The forecast is the average of {averaged} of {self.tried} models."]
        if self.interrupted:
            lines.append("The search was interrupted; this is the best that it had found.")
        if self.late:
            models = "1 model was" if self.tried == 1 else f"{self.tried} models were"
            lines.append(f"The seconds were over when {models} tried; more might forecast better.")
        lines.append(
            f"Made {len(self.origins)} times in the past, it held {inside} of the {total} values that "
            f"followed ({self.coverage:.0%}) in its {LEVEL:.0%} band."
        )
        if self.widening > LEAST:
            lines.append(
                f"For that its deviations were widened by {self.widening:.2f}: the models alone were too "
                "sure."
            )
        else:
            lines.append(
                f"Its deviations are {LEAST:.2f} times those of the models, which know nothing of the doubt "
                "about their own numbers."
            )
        return lines

    def __str__(self) -> str:
        lower, upper = self.interval(self.level)
        axis = self.series.axis
        shown = [0, *range(len(self) - 1, len(self))] if len(self) > 1 else [0]
        lines = [*self.words]
        for i in shown:
            lines.append(
                f"{axis.written(self.times[i])}: {rounded(float(self.mean[i]), 4)}, between "
                f"{rounded(float(lower[i]), 4)} and {rounded(float(upper[i]), 4)}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain numbers and text: schema "mercer.forecast/1"."""
        lower, upper = self.interval(self.level)
        axis = self.series.axis
        return {
            "schema": "mercer.forecast/1",
            "series": {
                "name": self.series.name,
                "values": len(self.series),
                "first": axis.written(self.series.times[0]),
                "last": axis.written(self.series.times[-1]),
                "step": axis.step_words,
                "missing": axis.missing,
                "outliers": [axis.written(time) for time in self.outliers],
            },
            "kernel": str(self.kernel),
            "unit_of_time": axis.unit,
            "scale": self.scale.to_dict(),
            "terms": [{"role": s.role, "words": s.text, "share": s.share} for s in self.term_words()],
            "words": self.words,
            "models": [
                {
                    "trend": each.member.shape.trend,
                    "seasons": [season.period for season in each.member.shape.seasons],
                    "scale": each.member.values.scale.words,
                    "score": each.member.score,
                    "kernel": str(each.kernel),
                }
                for each in self.fitted
            ],
            "backtest": {
                "level": LEVEL,
                "coverage": self.coverage,
                "widening": self.widening,
                "origins": [
                    {"after": o.after, "values": o.values, "inside": o.inside, "rmse": o.rmse}
                    for o in self.origins
                ],
            },
            "level": self.level,
            "forecast": [
                {"time": axis.written(time), "mean": m, "lower": low, "upper": high}
                for time, m, low, high in zip(
                    self.times, self.mean.tolist(), lower.tolist(), upper.tolist(), strict=True
                )
            ],
            "certificate": self.certificate.to_dict(),
            "by_ctrl_c": self.interrupted,
            "late": self.late,
            "seconds": self.seconds,
        }

    def to_frame(self, level: float | None = None) -> polars.DataFrame:
        """A polars table with a row for each time: time, mean, lower, upper."""
        import polars

        lower, upper = self.interval(self.level if level is None else level)
        frame = polars.DataFrame({"time": self.times, "mean": self.mean, "lower": lower, "upper": upper})
        if self.series.axis.whole_days:
            frame = frame.with_columns(polars.col("time").cast(polars.Date))
        return frame

    # ── pictures ────────────────────────────────────────────────────────────────────────────────────────────

    def plot(self) -> Figure:
        """The series with the forecast and its band."""
        from mercer.series.pictures import forecast_picture

        return forecast_picture(self)

    def plot_terms(self) -> Figure:
        """Each term of the leading model with its band."""
        from mercer.series.pictures import terms_picture

        return terms_picture(self)

    def report(self, path: str | Path | None = None, *, force: bool = False) -> str:
        """A page about the forecast, as HTML; written to `path` where one is given."""
        from mercer.series.page import page_of

        text = page_of(self)
        if path is not None:
            from mercer import places

            place = Path(path)
            places.check_place(place, force=force, example="forecast.html", error=OutputError)
            with places.whole_file(place, force=force, error=OutputError) as draft:
                draft.write_text(text, encoding="utf-8")
        return text


def mixed(fitted: tuple[Fitted, ...], t: Array) -> Mixture:
    """The mixture of all members at times in units of the axis."""
    parts: list[Normals] = [foreseen(each.model, each.member.values, t) for each in fitted]
    return Mixture(tuple(parts))
