"""Data to begin with, each with a machine and a kernel that suit it. The same numbers every time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import Graph
from mercer.errors import InputError
from mercer.studio.machines import CLASSES, NUMBERS
from mercer.studio.points import GRAPHS, STRINGS, VECTORS, Points
from mercer.typing import Array


@dataclass(frozen=True)
class Preset:
    """How points are made, and what they are first looked at with."""

    title: str
    make: Callable[[], Points]
    machine: str
    kernel: str
    settings: tuple[tuple[str, float], ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "title": self.title,
            "machine": self.machine,
            "kernel": self.kernel,
            "settings": dict(self.settings),
        }


def preset(name: str) -> Points:
    """The points of a preset.

    >>> len(preset("xor")), preset("moons").labels
    (60, ('0', '1'))
    """
    if name not in PRESETS:
        raise InputError(f"there is no preset {name!r}. There are {', '.join(PRESETS)}.")
    return PRESETS[name].make()


def _in_plane(name: str, X: Array, y: Array) -> Points:
    labels = tuple(str(c) for c in range(int(y.max()) + 1))
    return Points(VECTORS, CLASSES, X.round(4), y.astype(float), ("x1", "x2"), "class", labels, (), name)


def _xor() -> Points:
    rng = np.random.default_rng(1)
    corners = np.array([[-1, -1], [1, 1], [-1, 1], [1, -1]], dtype=float)
    X = np.repeat(corners, 15, axis=0) + rng.normal(0, 0.28, (60, 2))
    return _in_plane("xor", X, np.repeat([0, 0, 1, 1], 15))


def _moons(n: int = 120) -> Points:
    rng = np.random.default_rng(2)
    t = np.pi * rng.random(n // 2)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])
    X = np.vstack([upper, lower]) + rng.normal(0, 0.16, (n, 2))
    return _in_plane("moons", X - X.mean(axis=0), np.repeat([0, 1], n // 2))


def _many() -> Points:
    found = _moons(500)
    return Points(**{**vars(found), "preset": "moons500"})


def _rings() -> Points:
    rng = np.random.default_rng(3)
    angle = 2 * np.pi * rng.random(120)
    radius = np.repeat([0.5, 1.3], 60) + rng.normal(0, 0.13, 120)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _in_plane("rings", X, np.repeat([0, 1], 60))


def _spiral() -> Points:
    rng = np.random.default_rng(4)
    arms = []
    for turn in range(3):
        t = np.linspace(0.25, 1.0, 40)
        angle = 4.2 * t + turn * 2 * np.pi / 3
        arms.append(1.6 * t[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
    X = np.vstack(arms) + rng.normal(0, 0.05, (120, 2))
    return _in_plane("spiral", X, np.repeat([0, 1, 2], 40))


def _blobs() -> Points:
    rng = np.random.default_rng(5)
    centres = np.array([[-1.2, -0.6], [1.1, -0.8], [0.0, 1.2], [1.6, 1.4]])
    X = np.repeat(centres, 25, axis=0) + rng.normal(0, 0.35, (100, 2))
    return _in_plane("blobs", X, np.repeat(range(4), 25))


def _sinc() -> Points:
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(-10, 10, 50)).round(4)
    y = (np.sinc(x / np.pi) + rng.normal(0, 0.08, 50)).round(4)
    return Points(VECTORS, NUMBERS, x[:, None], y, ("x",), "y", (), (), "sinc")


def _co2() -> Points:
    from mercer.applications.co2 import load_co2

    series = load_co2()
    # every third month: enough for trend and seasons, and quick to drag
    x, y = series.time[::3].round(4), series.ppm[::3]
    return Points(VECTORS, NUMBERS, x[:, None], y, ("year",), "CO₂ in ppm", (), (), "co2")


def _digits() -> Points:
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    rows = np.flatnonzero(digit < 5)[:300]
    names = tuple(f"p{i // 8}{i % 8}" for i in range(64))
    labels = tuple("01234")
    note = "300 images of 8 by 8 pixels, the digits 0 to 4."
    return Points(
        VECTORS, CLASSES, images[rows], digit[rows].astype(float), names, "digit", labels, (note,), "digits"
    )


def _strings() -> Points:
    rng = np.random.default_rng(7)
    strings: list[Any] = []
    for row in range(60):
        letters = rng.choice(list("ACGT"), 24)
        if row % 2:
            at = int(rng.integers(0, 18))
            letters[at : at + 6] = list("TATAAT")
        strings.append("".join(letters))
    y = np.arange(60.0) % 2
    note = "Half of the strings hide the motif TATAAT."
    return Points(STRINGS, CLASSES, strings, y, (), "class", ("random", "motif"), (note,), "strings")


def _graphs() -> Points:
    rng = np.random.default_rng(8)
    graphs: list[Any] = []
    for row in range(40):
        nodes = int(rng.integers(6, 12))
        # a random tree; every second graph gets a ring of three
        edges = [(node, int(rng.integers(0, node))) for node in range(1, nodes)]
        if row % 2:
            edges += [(0, 1), (1, 2), (0, 2)]
        graphs.append(Graph(nodes, edges))
    y = np.arange(40.0) % 2
    note = "Trees, and trees with a triangle."
    return Points(GRAPHS, CLASSES, graphs, y, (), "class", ("tree", "triangle"), (note,), "graphs")


PRESETS: dict[str, Preset] = {
    "moons": Preset("Two moons", _moons, "SVC", "RBF(0.6)"),
    "xor": Preset("XOR", _xor, "SVC", "Polynomial(2)", (("C", 1.0),)),
    "rings": Preset("Two rings", _rings, "SVC", "RBF(0.8)", (("C", 10.0),)),
    "spiral": Preset("Three spirals", _spiral, "SVC", "RBF(0.3)", (("C", 10.0),)),
    "blobs": Preset("Four blobs", _blobs, "SVC", "RBF(1.0)"),
    "moons500": Preset("Two moons, 500 points", _many, "SVC", "RBF(0.6)"),
    "sinc": Preset("sinc, with noise", _sinc, "GaussianProcessRegressor", "RBF(2.0)"),
    "co2": Preset(
        "CO₂ at Mauna Loa",
        _co2,
        "GaussianProcessRegressor",
        "2000.0*RBF(40.0) + 5.0*RBF(80.0)*Periodic(1.0) + 0.5*RBF(2.0)",
        (("noise", 0.1),),
    ),
    "digits": Preset("Handwritten digits", _digits, "SVC", "RBF(25.0)", (("C", 10.0),)),
    "strings": Preset("Strings with a motif", _strings, "SVC", "Spectrum(3).normalized()", (("C", 10.0),)),
    "graphs": Preset("Small graphs", _graphs, "SVC", "WeisfeilerLehman(2).normalized()", (("C", 10.0),)),
}
