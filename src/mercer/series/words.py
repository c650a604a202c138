"""What a forecast found, in sentences whose numbers can be computed again.

A term is spoken by what it does in time: a level that wanders by so much in a step, a pattern that comes
back, a step at a date. Sizes are in the units of the values, or in percent where it is their logarithm that
is modelled; where it is a root, sizes are those at the median of the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Rows
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.terms import terms_of
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.series.axis import TimeAxis
from mercer.series.members import Member
from mercer.series.shapes import Shape
from mercer.structure.vocabulary import Axis, rounded
from mercer.structure.words import Number
from mercer.typing import Array


@dataclass(frozen=True)
class Spoken:
    """A term in words: what it is (level, slope, line, damped, break, season, memory, noise), a name for
    pictures, the sentence, and the numbers that it states."""

    role: str
    name: str
    text: str
    numbers: tuple[Number, ...]
    share: float

    def __str__(self) -> str:
        return self.text


def axis_words(axis: TimeAxis, low: float) -> Axis:
    """The axis as lengths and places of it are spoken."""
    return Axis("", axis.unit, low, 0.0, axis.label)


def speak(member: Member, model: GaussianProcessRegressor, axis: TimeAxis, unit: str) -> tuple[Spoken, ...]:
    """A sentence for each term of a member, with its share of the variance of what was modelled.

    Shares are variances over the values, of the terms' posterior means and of what is left, divided by their
    sum.
    """
    kernel = as_kernel(model.kernel_)
    values = member.values
    speech = _Speech(member, axis, unit)
    means = []
    for role, term in zip(member.shape.roles(), terms_of(kernel), strict=True):
        if role == "noise":
            means.append((role, term, values.z - model.predict(values.t[:, None])))
            continue
        means.append((role, term, posterior_mean(model, term, values.t)))
    total = sum(float(np.var(mean)) for _, _, mean in means) or 1.0
    return tuple(speech.term(role, term, mean, float(np.var(mean)) / total) for role, term, mean in means)


def posterior_mean(model: GaussianProcessRegressor, term: Kernel, t: Array) -> Array:
    """The posterior mean of one term at times."""
    return np.ravel(model.posterior_.times_alpha(term, Rows(t[:, None])))


def _short(name: str) -> str:
    """The name of a parameter without its way; the lengthscale over which a season changes is its decay."""
    if name.endswith("k1__lengthscale"):
        return "decay"
    return name.split("__")[-1]


class _Speech:
    def __init__(self, member: Member, axis: TimeAxis, unit: str) -> None:
        self.values = member.values
        self.shape: Shape = member.shape
        self.axis = axis
        self.unit = unit
        self.spoken = axis_words(axis, float(member.values.t[0]))
        self.seasons = 0
        self.breaks = 0

    def term(self, role: str, term: Kernel, mean: np.ndarray, share: float) -> Spoken:
        """One term in words."""
        at = {_short(p.name): p.value for p in term.parameters}
        numbers: list[Number] = []
        name, text = getattr(self, f"_{role}")(at, mean, numbers)
        percent = round(100 * share)
        shown = f"{percent} %" if percent >= 1 else "less than 1 %"
        numbers.append(Number("share", share, shown))
        return Spoken(role, name, f"{text}; {shown} of the variance", tuple(numbers), share)

    def amount(self, z: float, of: str, numbers: list[Number]) -> str:
        """An amount of the model in units of the values, or in percent of them; of roots, at the median."""
        size = z * self.values.spread
        scale = self.values.scale
        if scale.power == 0:
            value = 100 * abs(float(np.expm1(size)))
            shown = f"{rounded(value)} %"
        else:
            slope = (float(np.median(self.values.y)) + scale.shift) ** (1 - scale.power)
            value = abs(size) * slope
            shown = f"{rounded(value)} {self.unit}".strip()
        numbers.append(Number(of, value, shown))
        return shown

    def length(self, value: float, of: str, numbers: list[Number]) -> str:
        """A length of time in units of the axis, or in steps where it is less than one unit."""
        if value < 1 and self.values.step < 1:
            value = value / self.values.step
            count = rounded(value)
            shown = f"{count} {self.axis.steps(1 if count == '1' else 2).split(maxsplit=1)[1]}"
        else:
            shown = self.spoken.length(value)
        numbers.append(Number(of, value, shown))
        return shown

    def _level(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        wander = np.sqrt(2 * at["scale"] * -np.expm1(-self.values.step / at["lengthscale"]))
        shown = self.amount(wander, "wander", numbers)
        return "level", f"a level that wanders by about {shown} {self.axis.each_step}"

    def _slope(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        return "trend", "a trend whose slope changes slowly"

    def _line(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        return "line", "a straight line"

    def _damped(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        shown = self.length(at["lengthscale"], "lengthscale", numbers)
        return "trend", f"a trend that is forgotten over about {shown}"

    def _break(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        place = self.shape.breaks[self.breaks]
        self.breaks += 1
        size = float(mean[-1])
        where = self.axis.label(place + 0.5 * self.values.step)
        numbers.append(Number("place", place, where))
        shown = self.amount(size, "size", numbers)
        way = "up" if size > 0 else "down"
        return f"step at {where}", f"a step {way} at {where} of about {shown}"

    def _season(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        period = at["period"]
        self.seasons += 1
        cycle = self.spoken.cycle(period)
        if cycle is None:
            name = f"period of {self.spoken.length(period)}"
            what = f"a pattern with a period of {self.length(period, 'period', numbers)}"
        else:
            name = f"{cycle} pattern"
            what = f"a {cycle} pattern"
        changing = at["decay"]
        if changing > 10 * self.values.span:
            return name, f"{what} that keeps its shape"
        return name, f"{what} that changes shape over about {self.length(changing, 'lengthscale', numbers)}"

    def _memory(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        size = self.amount(float(np.sqrt(at["scale"])), "deviation", numbers)
        shown = self.length(at["lengthscale"], "lengthscale", numbers)
        return "memory", f"deviations of about {size} that are remembered for about {shown}"

    def _noise(self, at: dict[str, float], mean: np.ndarray, numbers: list[Number]) -> tuple[str, str]:
        size = self.amount(float(np.sqrt(at["noise"])), "deviation", numbers)
        return "noise", f"noise with a deviation of {size}"
