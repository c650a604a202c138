"""The whole state of a page as one value that was checked: data, machine, kernel, and what is looked at.

    data    {"preset": "moons"}, or the points themselves (`Points.read`)
    first   {"machine", "settings", "kernel", "moved", "approximation", "rank"}
    second  the same for the machine that is compared, or null
    view    what the views look at: axes, box, a chosen row, two numbers of a surface, ...

`moved` are numbers of the kernel that a slider holds: {"0": 0.7} is the first of its free numbers.
Nothing is evaluated: the text of a kernel is read by `mercer.parse`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer import parse
from mercer.errors import InputError, ParseError
from mercer.kernels.base import Kernel
from mercer.studio import limits
from mercer.studio.machines import APPROXIMATIONS, CLASSES, OFFERS, Choice
from mercer.studio.points import VECTORS, Points
from mercer.studio.presets import PRESETS, preset
from mercer.studio.readers import items, number, one_of, record, text, whole
from mercer.typing import Array, Setting

ORDERS = ("class", "cluster", "given")
PLANES = ("slice", "components")
_VIEW = ("axes", "box", "held", "plane", "chosen", "at", "order", "surface", "coordinates", "samples", "step")


class KernelTextError(InputError):
    """The text of a kernel cannot be read; `column` is where."""

    def __init__(self, sentence: str, column: int = 0) -> None:
        super().__init__(sentence)
        self.column = column


@dataclass(frozen=True)
class View:
    """What the views look at.

    axes : the two columns of a slice; held : the values of all columns on it; box : left, right, bottom, top
    of the picture, or None to find it; chosen : a row; at : a place in the plane; surface : two names of
    numbers; coordinates : three features.
    """

    axes: tuple[int, int] = (0, 1)
    box: tuple[float, float, float, float] | None = None
    held: tuple[float, ...] = ()
    plane: str = "slice"
    chosen: int | None = None
    at: tuple[float, float] | None = None
    order: str = "class"
    surface: tuple[str, str] | None = None
    coordinates: tuple[int, int, int] | None = None
    samples: int = 5


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a page shows follows from this value."""

    points: Points
    first: Choice
    second: Choice | None = None
    view: View = field(default_factory=View)

    @classmethod
    def read(cls, value: object) -> State:
        """The state of a page, checked; what is wrong with it is said in a sentence."""
        given = record(value, "the state", ("v", "data", "first", "second", "view"))
        points = _points(given.get("data", {"preset": "moons"}))
        view = _view(given.get("view", {}), points)
        first = read_choice(given.get("first", {}), points)
        second = None
        if given.get("second") is not None:
            second = read_choice(given["second"], points)
        return cls(points, first, second, view)


def _points(value: object) -> Points:
    if isinstance(value, dict) and "preset" in value and "X" not in value:
        return preset(one_of(value["preset"], "the preset", tuple(PRESETS)))
    return Points.read(value)


def read_choice(value: object, points: Points) -> Choice:
    """A machine and its kernel, checked."""
    known = ("machine", "settings", "kernel", "moved", "approximation", "rank")
    given = record(value, "the machine", known)
    usual = "SVC" if points.task == CLASSES else "GaussianProcessRegressor"
    machine = one_of(given.get("machine", usual), "the machine", tuple(OFFERS))
    offer = OFFERS[machine]
    if offer.task != points.task:
        machine = usual
        offer = OFFERS[machine]
    settings = record(given.get("settings", {}), "the numbers of the machine", _all_sliders())
    found = []
    for slider in offer.sliders:
        if slider.name in settings:
            found.append((slider.name, slider.check(number(settings[slider.name], slider.name))))
    kernel = moved(read_kernel(given.get("kernel", "RBF(1.0)"), points), given.get("moved", {}))
    return Choice(
        machine,
        kernel,
        tuple(found),
        one_of(given.get("approximation", "none"), "the approximation", APPROXIMATIONS),
        whole(given.get("rank", 20), "the rank", 1, 500),
    )


def _all_sliders() -> tuple[str, ...]:
    return tuple(dict.fromkeys(slider.name for offer in OFFERS.values() for slider in offer.sliders))


def read_kernel(value: object, points: Points) -> Kernel:
    """A kernel from its text; lengthscales that are left open are closed by the data."""
    written = text(value, "the kernel", limits.MOST_KERNEL)
    if not written.strip():
        raise KernelTextError("There is no kernel yet. Type one, such as RBF(1.0) + Linear().", 1)
    try:
        kernel = parse(written)
    except ParseError as error:
        raise KernelTextError(str(error).split("\n")[0], error.column) from error
    except (ValueError, TypeError) as error:
        raise KernelTextError(str(error)) from error
    if kernel.is_open and len(points):
        kernel = kernel.resolved(points.X)
    return kernel


def moved(kernel: Kernel, value: object) -> Kernel:
    """The kernel with some of its free numbers elsewhere, by their places among all free ones."""
    free = [p for p in kernel.parameters if p.free]
    given = record(value, "the numbers of the kernel", tuple(map(str, range(len(free)))))
    if not given:
        return kernel
    for place, new in given.items():
        p = free[int(place)]
        size = number(new, p.name)
        if p.domain.logarithmic and not size * p.value > 0:
            raise InputError(f"{p.name} must keep its sign; got {size:g}.")
        kernel = _with_number(kernel, p.name, size)
    return kernel


def _with_number(kernel: Kernel, name: str, value: float) -> Kernel:
    """The kernel with one of its numbers elsewhere; `lengthscale[1]` is the second of several."""
    whole_name, _, rest = name.partition("[")
    if not rest:
        return kernel.with_params({name: value})
    places = [int(place) for place in rest.rstrip("]").split("][")]
    return kernel.with_params({whole_name: _replaced(kernel.get_params()[whole_name], places, value)})


def _replaced(numbers: Setting, places: list[int], value: float) -> Setting:
    if not places:
        return value
    out = list(numbers)
    out[places[0]] = _replaced(out[places[0]], places[1:], value)
    return tuple(out)


def _view(value: object, points: Points) -> View:
    given = record(value, "the view", _VIEW)
    most = max(points.width - 1, 0)
    axes = [whole(a, "an axis", 0, most) for a in items(given.get("axes") or [0, min(1, most)], "axes", 2)]
    held = [number(v, "a held value") for v in items(given.get("held") or [], "held", limits.MOST_COLUMNS)]
    if points.kind == VECTORS and len(held) != points.width:
        held = points.X.mean(axis=0).tolist() if len(points) else [0.0] * points.width
    chosen = given.get("chosen")
    surface = given.get("surface")
    coordinates = given.get("coordinates")
    return View(
        (axes[0], axes[-1]),
        _box(given.get("box")),
        tuple(held),
        one_of(given.get("plane", "slice"), "the plane", PLANES),
        None if chosen is None or not len(points) else whole(chosen, "the chosen row", 0, len(points) - 1),
        _place(given.get("at")),
        one_of(given.get("order", "class"), "the order", ORDERS),
        None if surface is None else _names(surface),
        None if coordinates is None else _three(coordinates),
        whole(given.get("samples", 5), "the sample paths", 0, 20),
    )


def _box(value: object) -> tuple[float, float, float, float] | None:
    if value is None:
        return None
    sides = [number(side, "a side of the box") for side in items(value, "the box", 4)]
    if len(sides) != 4 or not (sides[0] < sides[1] and sides[2] < sides[3]):
        raise InputError("the box must be left, right, bottom and top, each pair in order.")
    return sides[0], sides[1], sides[2], sides[3]


def _place(value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    found = [number(side, "a coordinate") for side in items(value, "a place", 2)]
    if len(found) != 2:
        raise InputError("a place in the plane has two coordinates.")
    return found[0], found[1]


def _names(value: object) -> tuple[str, str]:
    found = [text(name, "a number's name", 200) for name in items(value, "the surface", 2)]
    if len(found) != 2:
        raise InputError("a surface is over two numbers.")
    return found[0], found[1]


def _three(value: object) -> tuple[int, int, int]:
    found = [whole(c, "a coordinate", 0, 10_000) for c in items(value, "the coordinates", 3)]
    if len(found) != 3:
        raise InputError("three coordinates are drawn.")
    return found[0], found[1], found[2]


def held_rows(view: View, across: Array, up: Array) -> Array:
    """Rows of a slice: two columns as given, the others at the values that are held."""
    rows = np.tile(np.asarray(view.held, dtype=float), (len(across), 1))
    rows[:, view.axes[0]] = across
    if len(view.held) > 1:
        rows[:, view.axes[1]] = up
    return rows
