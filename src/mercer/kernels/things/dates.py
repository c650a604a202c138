"""Dates as numbers: `RBF().of(Date("years"))` goes on, `Periodic(1.0).of(Date("week"))` comes back."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np

from mercer.arrays import Rows
from mercer.errors import InputError, InputTypeError, ParameterError
from mercer.kernels.leaves.functions import Thing
from mercer.kernels.things.categories import category
from mercer.kernels.things.reading import Reading, reading
from mercer.params import given

PARTS = ("years", "day", "week", "year")
GAPS = ("refuse", "keep")
DAY = timedelta(days=1)


@reading
class Date(Reading):
    """What a date is as a number: time that goes on, or the place in a cycle.

    `part` is "years" (2020-07-02 is about 2020.5), or a phase from 0 to 1: "day" (midnight is 0), "week"
    (Monday is 0) or "year" (1 January is 0). Dates are `datetime` objects of Python, NumPy, pandas, polars
    and Arrow, or text: ISO 8601 (2020-07-02, 2020-07-02T14:30), or as `format` says in the signs of
    `datetime.strptime`, such as "%m/%d/%Y". A date with a time zone is read in its own zone. A missing
    date is refused, or with `gaps` "keep" a missing number, which `Filled` then fills:
    `RBF().of(Filled()).of(Date("years", gaps="keep"))`.

    >>> from mercer import Linear
    >>> rows = Rows(["2020-01-01", "2020-07-02", "2021-01-01"])
    >>> Date("years").read(rows).vectors.ravel().tolist()
    [2020.0, 2020.5, 2021.0]
    >>> Date("year").read(rows).vectors.ravel().tolist()
    [0.0, 0.5, 0.0]
    >>> Linear().of(Date("week"))
    Linear().of(Date("week"))
    """

    part: str = given("years")
    format: str | None = given(None)
    gaps: str = given("refuse")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part not in PARTS:
            raise ParameterError(
                f"Date: part must be one of {', '.join(map(repr, PARTS))}; got {self.part!r}."
            )
        if self.format is not None and not isinstance(self.format, str):
            raise ParameterError(f"Date: format must be text such as '%m/%d/%Y'; got {self.format!r}.")
        if self.gaps not in GAPS:
            raise ParameterError(f"Date: gaps must be 'refuse' or 'keep'; got {self.gaps!r}.")

    def read(self, x: Rows) -> Rows:
        values = [self._number(thing, i, x.name) for i, thing in enumerate(x.things)]
        return Rows(np.array(values)[:, None], x.name, x.names)

    def _number(self, thing: Thing, i: int, name: str) -> float:
        if self.gaps == "keep" and category(thing) is None:
            return np.nan
        moment = self._moment(thing, i, name)
        midnight = datetime(moment.year, moment.month, moment.day)
        clock = (moment.replace(tzinfo=None) - midnight) / DAY
        if self.part == "day":
            return clock
        if self.part == "week":
            return (moment.weekday() + clock) / 7
        first = datetime(moment.year, 1, 1)
        length = (datetime(moment.year + 1, 1, 1) - first) / DAY if moment.year < 9999 else 365.0
        phase = ((midnight - first) / DAY + clock) / length
        return phase if self.part == "year" else moment.year + phase

    def _moment(self, thing: Thing, i: int, name: str) -> datetime:
        if isinstance(thing, np.ndarray) and thing.size == 1:
            thing = thing.item()
        if isinstance(thing, np.datetime64) and not np.isnat(thing):
            thing = thing.astype("datetime64[us]").item()
        # NaT of pandas is a datetime too
        if isinstance(thing, datetime) and thing == thing:
            return thing
        if isinstance(thing, date) and not isinstance(thing, datetime):
            return datetime(thing.year, thing.month, thing.day)
        if isinstance(thing, str):
            return self._from_text(thing, i, name)
        got = "missing" if thing is None or thing != thing else f"a {type(thing).__name__} ({thing!r:.40})"
        raise InputTypeError(
            f"Date reads dates, but row {i} of {name} is {got}. Fill it, drop the row, or leave the column "
            "out."
        )

    def _from_text(self, text: str, i: int, name: str) -> datetime:
        try:
            if self.format is None:
                return datetime.fromisoformat(text.strip())
            return datetime.strptime(text.strip(), self.format)
        except ValueError as error:
            wanted = "year-month-day as in 2020-07-02" if self.format is None else f"the form {self.format}"
            raise InputError(
                f"Date cannot read {text!r:.40} in row {i} of {name}: {wanted} was expected. Say how dates "
                'are written, for example Date("years", format="%m/%d/%Y").'
            ) from error
