"""The doors of a kernel of one ordered column, moved to where they belong.

Place and width of a door are no numbers that the tuning knows, and a step of the search moves a door once in
a round. A change that is sharp in the data says within one row where it is: a door that is a row off, or
twice as wide, costs tens of nats, and whatever competes with that kernel is preferred by them. So each
kernel with doors has them moved, the other numbers at rest, before it is judged: to the places of a lattice,
so that two kernels which differ by their doors only end as one, and to wider and narrower ones.
"""

from __future__ import annotations

import numpy as np

from mercer.errors import InputError, NotPositiveDefiniteError
from mercer.gram.of_kernel import Tiles
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.evidence import log_evidence
from mercer.structure.grammar import gate_places, regated
from mercer.structure.scoring import Candidate, Sample, settled

# Places of the lattice over the span of the rows, and the strides by which a door is moved, far first.
PLACES = 400
STRIDES = (16, 8, 4, 2, 1)
# By how much a door is made wider or narrower.
WIDER = np.sqrt(3.0)
# What a move must bring, in nats.
WORTH = 0.01
# Times that doors are moved and all other numbers tuned again.
TIMES = 2


def with_moved_doors(candidate: Candidate, sample: Sample) -> Candidate:
    """The candidate with its doors where the evidence is largest, its numbers tuned again there.

    >>> from mercer import RBF, After, Before, Linear, White
    >>> from mercer.arrays import Rows
    >>> x = np.linspace(0.0, 10.0, 60)
    >>> y = np.where(x < 6.0, -1.0, 1.0) + 0.01 * np.sin(37 * x)
    >>> step = 1.0 * Linear().of(Before(5.0, 0.1)) + 1.0 * Linear().of(After(5.0, 0.1)) + White(0.01)
    >>> found = with_moved_doors(Candidate(step, -np.inf, 60), Sample(Rows(x[:, None], "X"), y, (), 1))
    >>> gate_places(found.kernel)
    [6.025]
    """
    for _ in range(TIMES):
        kernel = _moved(candidate.kernel, sample)
        if kernel is candidate.kernel:
            break
        again = settled(Candidate(kernel, -np.inf, len(sample), inverse=candidate.inverse), sample)
        if again is None or again.log_evidence <= candidate.log_evidence:
            break
        candidate = again
    return candidate


def _moved(kernel: Kernel, sample: Sample) -> Kernel:
    """The kernel with each door moved and made wider or narrower, as long as the evidence grows."""
    x = sample.X[:, 0]
    low = float(x.min())
    unit = float(np.ptp(x)) / PLACES
    if not unit > 0:
        return kernel
    best, reached = kernel, _evidence(kernel, sample)
    for stride in STRIDES:
        for place in gate_places(best):
            best, reached, place = _better(best, reached, place, _near(place, low, unit, stride), sample)
            best, reached, _ = _better(best, reached, place, [(place, 1 / WIDER), (place, WIDER)], sample)
    return best


def _near(place: float, low: float, unit: float, stride: int) -> list[tuple[float, float]]:
    """The places of the lattice on both sides of one."""
    at = round((place - low) / unit)
    return [(low + unit * (at + step), 1.0) for step in (-stride, stride) if 0 < at + step < PLACES]


def _better(
    kernel: Kernel, reached: float, place: float, moves: list[tuple[float, float]], sample: Sample
) -> tuple[Kernel, float, float]:
    """The best of some moves of the door at a place, or none; with its evidence and its place."""
    best = kernel, reached, place
    for new, stretch in moves:
        changed = regated(kernel, place, new, stretch)
        value = _evidence(changed, sample)
        if value > best[1] + WORTH:
            best = changed, value, new
    return best


def _evidence(kernel: Kernel, sample: Sample) -> float:
    K = Tiles(kernel, sample.rows, n_jobs=sample.n_jobs)
    try:
        return log_evidence(K, sample.y[:, None], gradient=False, diagnose=False).value
    except (NotPositiveDefiniteError, InputError):
        return -np.inf
