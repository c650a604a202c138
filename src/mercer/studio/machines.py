"""The machines of the studio: which task each is for, and the numbers of it that have a slider."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.base import BaseEstimator

import mercer
from mercer.errors import InputError
from mercer.kernels.base import Kernel

CLASSES = "classes"
NUMBERS = "numbers"


@dataclass(frozen=True)
class Slider:
    """A number of a machine: its default and its range; `whole` numbers have no fraction."""

    name: str
    default: float
    low: float
    high: float
    words: str
    whole: bool = False

    def check(self, value: float) -> float:
        """The value, if it is in the range."""
        if not self.low <= value <= self.high:
            raise InputError(f"{self.name} must be between {self.low:g} and {self.high:g}; got {value:g}.")
        return int(value) if self.whole else value

    def as_json(self) -> dict[str, object]:
        return dict(vars(self))


@dataclass(frozen=True)
class Offer:
    """A machine: `most` classes at most, `extra` arguments that the page does not show."""

    name: str
    task: str
    words: str
    sliders: tuple[Slider, ...] = ()
    extra: tuple[tuple[str, object], ...] = ()
    most: int = 9
    unlabelled: bool = False
    approximates: bool = True

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "task": self.task,
            "words": self.words,
            "most": self.most,
            "unlabelled": self.unlabelled,
            "approximates": self.approximates,
            "sliders": [slider.as_json() for slider in self.sliders],
        }


_C = Slider("C", 1.0, 1e-3, 1e5, "what an error costs")

OFFERS: dict[str, Offer] = {
    offer.name: offer
    for offer in (
        Offer("SVC", CLASSES, "support vectors", (_C,)),
        Offer("GaussianProcessClassifier", CLASSES, "Gaussian process", extra=(("optimizer", None),), most=4),
        Offer(
            "KernelPerceptron",
            CLASSES,
            "kernel perceptron",
            (Slider("max_iter", 100, 1, 1000, "passes over the rows", whole=True),),
            most=2,
        ),
        Offer(
            "Adatron",
            CLASSES,
            "Adatron",
            (Slider("C", 10.0, 1e-3, 1e5, "the bound of α"),),
            (("max_iter", 500),),
            most=2,
        ),
        Offer(
            "OneClassSVM",
            CLASSES,
            "one class, labels not used",
            (Slider("nu", 0.2, 0.01, 0.99, "share of rows outside"),),
            unlabelled=True,
        ),
        Offer(
            "GaussianProcessRegressor",
            NUMBERS,
            "Gaussian process",
            (Slider("noise", 0.01, 1e-8, 1e4, "variance of the noise"),),
            (("optimizer", None), ("normalize_y", "mean")),
        ),
        Offer(
            "KernelRidge",
            NUMBERS,
            "ridge regression",
            (Slider("alpha", 0.1, 1e-8, 1e5, "the penalty"),),
            (("fit_intercept", True),),
        ),
        Offer(
            "SVR",
            NUMBERS,
            "support vectors",
            (_C, Slider("epsilon", 0.1, 1e-4, 1e3, "half the width of the tube")),
        ),
        Offer(
            "KernelLeastSquares",
            NUMBERS,
            "gradient descent",
            (Slider("max_iter", 100, 1, 5000, "steps", whole=True),),
            (("tol", 0.0),),
        ),
    )
}
APPROXIMATIONS = ("none", "Nystroem", "RandomFeatures")


@dataclass(frozen=True)
class Choice:
    """A machine with its numbers and its kernel; `approximation` stands for the kernel, if any."""

    machine: str
    kernel: Kernel
    settings: tuple[tuple[str, float], ...] = ()
    approximation: str = "none"
    rank: int = 20

    @property
    def offer(self) -> Offer:
        return OFFERS[self.machine]

    def arguments(self) -> dict[str, object]:
        """What the constructor is given besides the kernel and the approximation."""
        given = {slider.name: slider.default for slider in self.offer.sliders}
        given.update(self.settings)
        return {**given, **dict(self.offer.extra)}

    def build(self, **more: object) -> BaseEstimator:
        """The machine, not yet fitted."""
        arguments: dict[str, object] = {**self.arguments(), **more}
        if self.approximation != "none":
            kind = getattr(mercer, self.approximation)
            arguments["approximation"] = kind(self.kernel, n_components=self.rank, random_state=0)
        return getattr(mercer, self.machine)(self.kernel, **arguments)

    def python(self) -> str:
        """The same, as an expression of Python."""
        given = [f'"{self.kernel}"', *(f"{name}={value!r}" for name, value in self.arguments().items())]
        if self.approximation != "none":
            features = (
                f'mercer.{self.approximation}("{self.kernel}", n_components={self.rank}, random_state=0)'
            )
            given.append(f"approximation={features}")
        return f"mercer.{self.machine}({', '.join(given)})"
