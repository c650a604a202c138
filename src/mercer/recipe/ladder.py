"""The machine for all rows, with the kernel found: as exact as memory and time allow.

    numbers     a Gaussian process                          while its factor fits
                a Gaussian process on landmarks (Nyström)   while rows × landmarks fit
                Falkon on landmarks                         beyond
    classes     a Gaussian process, Laplace                 while rows² × classes is small
                logistic regression on landmarks (Falkon)   beyond; its penalty is that of the process, 1

Landmarks are rows drawn at random, as many as memory and time allow, and at most 2000. Where seconds are to
be kept, what the kernel takes for a row and for a pair of rows is measured on some of them (`Pace`). A
machine that learns its features is not on the ladder: it is taken where it is asked for (`features`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer import clock
from mercer.errors import ParameterError
from mercer.kernels import Kernel, White
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.landmarks.falkon import FalkonClassifier, FalkonRegressor
from mercer.machines.landmarks.nystroem import Nystroem
from mercer.machines.ridge.feature_machine import FeatureMachineClassifier, FeatureMachineRegressor
from mercer.recipe.given import Given
from mercer.recipe.tournament import MODE_TOLERANCE, Contender
from mercer.solve.direct import seconds_of_factor
from mercer.typing import Table

Regressor = GaussianProcessRegressor | FalkonRegressor | FeatureMachineRegressor
Classifier = GaussianProcessClassifier | FalkonClassifier | FeatureMachineClassifier
MACHINES = ("auto", "gp", "landmarks", "features")
# Seconds that the machine of all rows may take where no limit is given.
SECONDS = 25.0
# A factor, its inverse for leave-one-out, and the Gram matrix: in factors.
FACTORS = 5.0
# Rows × rows × classes up to which the process of classes itself is fitted.
LARGEST_PROCESS = 1e7
# Of the seconds left, what a machine and its estimate may be hoped to take.
SHARE_OF_MACHINE = 0.85
# Rows on which the pace of a kernel is measured, and on thrice as many.
PACE_ROWS = 300
LOOKS = 3
MOST_LANDMARKS = 2000
LEAST_LANDMARKS = 300
# Multiplications for each row and landmark that Newton's steps of two classes took, as measured.
NEWTON = 6000
# Landmarks of a machine that does not keep its features; it passes over the rows once in every step.
STREAMED_LANDMARKS = 1000


@dataclass(frozen=True)
class Pace:
    """Seconds that a kernel takes to read a row, and to compare a pair of rows that were read."""

    row: float = 0.0
    pair: float = 0.0


def pace_of(kernel: Kernel, given: Given, seed: int) -> Pace:
    """The pace of a kernel on rows drawn at random.

    a rows against b others take c + (a + b) row + a b pair seconds, whatever c is; three sizes tell the two.
    """
    drawn = np.random.default_rng(seed).permutation(len(given))
    m = min(PACE_ROWS, len(given) // 6)
    if m == 0:
        return Pace()
    few, many = given.rows(drawn[:m]), given.rows(drawn[: 3 * m])
    others, more = given.rows(drawn[-m:]), given.rows(drawn[-3 * m :])
    least = _seconds_of(kernel, few, others)
    some = _seconds_of(kernel, many, others)
    most = _seconds_of(kernel, many, more)
    pair = max((most - some) - (some - least), 0.0) / (4 * m**2)
    return Pace(max((some - least) / (2 * m) - m * pair, 0.0), pair)


def _seconds_of(kernel: Kernel, rows: Table, others: Table) -> float:
    """The least of a few times: differences of these are wanted, and whatever disturbs makes them longer."""

    def once() -> float:
        began = clock.now()
        kernel(rows, others)
        return clock.now() - began

    return min(once() for _ in range(LOOKS))


@dataclass(frozen=True)
class Means:
    """What there is to work with: bytes, seconds (None for no limit), a seed, and the pace of the kernel.

    On a cluster the machines are those whose work its workers can do.
    """

    memory: int
    seconds: float | None
    seed: int
    pace: Pace = Pace()
    on_cluster: bool = False

    @property
    def for_machine(self) -> float:
        return SECONDS if self.seconds is None else SHARE_OF_MACHINE * self.seconds

    def seconds_of_pairs(self, n: int, m: int) -> float:
        """What n rows against m others take, in the fit and once more to judge it."""
        return 2 * n * (self.pace.row + m * self.pace.pair)


@dataclass(frozen=True)
class Rung:
    """A machine that is not fitted yet, and why it is this one."""

    machine: Regressor | Classifier
    words: str


def rung_for_numbers(found: Contender, n: int, means: Means, wanted: str) -> Rung:
    """The machine for n rows with numbers as targets."""
    kernel = found.kernel + White(found.noise)
    seconds = FACTORS * seconds_of_factor(n, float) + means.seconds_of_pairs(n, n)
    fits = 3 * 8 * n**2 <= means.memory and seconds <= means.for_machine
    if wanted == "gp" or (wanted == "auto" and (fits or n <= LEAST_LANDMARKS)):
        machine = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None, singular="add")
        return Rung(machine, f"An exact Gaussian process on all {n} rows.")
    m = _landmarks(n, means)
    if 2 * 8 * n * m <= means.memory and not means.on_cluster:
        machine = GaussianProcessRegressor(
            kernel,
            normalize_y=True,
            optimizer=None,
            approximation=Nystroem(n_components=m, random_state=means.seed),
            memory=means.memory,
        )
        return Rung(machine, f"A Gaussian process on {m} landmarks for {n} rows{_why(wanted, n)}.")
    m = min(STREAMED_LANDMARKS, n)
    streamed = FalkonRegressor(found.kernel, m, found.noise, random_state=means.seed, memory=means.memory)
    return Rung(streamed, f"Ridge regression on {m} landmarks for {n} rows{_why(wanted, n)}.")


def rung_for_classes(found: Contender, n: int, classes: int, means: Means, wanted: str) -> Rung:
    """The machine for n rows of so many classes."""
    if wanted == "gp" or (wanted == "auto" and n**2 * classes <= LARGEST_PROCESS):
        process = GaussianProcessClassifier(found.kernel, optimizer=None, tol=MODE_TOLERANCE)
        return Rung(process, f"A Gaussian process of {classes} classes on all {n} rows.")
    m = _landmarks_of_classes(n, classes, means)
    machine = FalkonClassifier(found.kernel, m, 1.0, tol=1e-3, random_state=means.seed, memory=means.memory)
    return Rung(machine, f"Logistic regression on {m} landmarks for {n} rows{_why(wanted, n)}.")


def check_machine(wanted: str) -> None:
    """Refuse a machine that is not on the ladder."""
    if wanted not in MACHINES:
        raise ParameterError(f"machine must be one of {', '.join(map(repr, MACHINES))}; got {wanted!r}.")


def _landmarks(n: int, means: Means) -> int:
    """As many landmarks as memory takes, and as the kernel and its features fit in the seconds."""
    by_memory = means.memory // (2 * 8 * n)
    # a factor of m rows is m³ / 3 multiplications, the features of n rows 2 n m²
    features = seconds_of_factor(MOST_LANDMARKS, float) * 6 * n / MOST_LANDMARKS**3
    pairs = means.seconds_of_pairs(n, 1) - means.seconds_of_pairs(n, 0)
    left = max(means.for_machine - means.seconds_of_pairs(n, 0), 0.0)
    # the m with features m² + pairs m = left
    by_time = 2 * left / (pairs + (pairs**2 + 4 * features * left) ** 0.5 + 1e-30)
    return int(min(n, MOST_LANDMARKS, max(LEAST_LANDMARKS, min(by_memory, by_time))))


def _landmarks_of_classes(n: int, classes: int, means: Means) -> int:
    """As many landmarks as Newton's steps over all rows fit in the seconds."""
    multiplications = NEWTON * n * (1 + classes / 4)
    rate = MOST_LANDMARKS**3 / 3 / max(seconds_of_factor(MOST_LANDMARKS, float), 1e-9)
    # the kernel is asked in the first fit, in the second, and to judge
    landmark = multiplications / rate + 3 * n * means.pace.pair
    left = max(means.for_machine - means.seconds_of_pairs(n, 0), 0.0)
    by_time = left / landmark
    return int(min(n, MOST_LANDMARKS, max(LEAST_LANDMARKS, by_time)))


def _why(wanted: str, n: int) -> str:
    return ", as you said" if wanted != "auto" else ", too many for the exact one"


def kernel_of_machine(machine: Regressor | Classifier) -> Kernel:
    """The kernel of a fitted machine."""
    found = machine.kernel_
    assert isinstance(found, Kernel)
    return found
