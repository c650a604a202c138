"""Kernels compete by their evidence, on a few rows first, and the best go on to more.

    round     rows     steps of each search     who goes on
    1         500      30                       the best three
    2         1000     30                       the best
    3         2000     15

Each kernel of a round is searched from where the round before left it, and judged by its evidence on the same
rows as the others. Of numbers the best three of the first round then play on the other scales of the target
(its logarithm and roots, where it has them): evidences are densities of y itself,

    log p(y) = log p((t(y) - mean) / deviation) - n log deviation + Σ log dt/dy,

so that they can be compared between scales. Of classes the first round asks a Gaussian process on the codes
±1, which costs a factor whatever the number of classes, and the later ones the Laplace evidence of the
classes themselves, on rows³ × classes² operations as many rows as two classes would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer import clock
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.kernels import Kernel, Linear, White, as_kernel
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.params import Open
from mercer.progress import Talk
from mercer.recipe.given import MOST_COLUMNS, Given
from mercer.scales import IDENTITY, Scale, candidates
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.sparse import Matrix
from mercer.tables.propose import SMOOTHNESS, Style, coded, kernel_of
from mercer.tables.roles import Role
from mercer.typing import Array, Integers, Labels, Table


@dataclass(frozen=True)
class Round:
    """On how many rows, with how many steps; `keep` of the best go on; at most this share of the time."""

    rows: int
    steps: int
    keep: int
    share: float


ROUNDS = (Round(500, 30, 3, 0.25), Round(1000, 30, 1, 0.15), Round(2000, 15, 1, 0.1))
# How far a search may go from where it starts, as a factor down and up.
REACH = {"scale": (1e-3, 1e4), "lengthscale": (0.03, 1e2), "noise": (1e-4, 10.0)}
ELSE = (1e-3, 1e3)
NOISE_AT_START = 0.1
# The share of the time in which the best kernels may be tried on other scales of the target.
SHARE_OF_SCALES = 0.15
# The share of the time in which columns may be read, for one kernel after the other.
SHARE_OF_READING = 0.1
# Rows that kernels learn ranks, means, words and lengthscales from before they compete.
MOST_READ = 100_000
# Beyond so many columns a term for each of them costs more than it brings.
MOST_ALONE = 24
# Between the variance of codes ±1 and that of the logit of a class.
HEIGHT_OF_CLASSES = 8.0
# Newton's residual that the mode of classes is worth.
MODE_TOLERANCE = 1e-6
# Of every class at least so many rows take part.
LEAST_OF_A_CLASS = 5


# How a search ended, in words.
ENDED: dict[str, str] = {
    Status.LIMIT: "its search used all its steps",
    Status.CONVERGED: "its search ended at the top",
}


Boxes = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Contender:
    """A kernel without noise, all lengthscales closed, and in words what it assumes.

    `boxes` keep its parameters within reach of where the first search started, None for no such bounds;
    `noise` is that of its `White` term, where it has one. `scale` is that of the target.
    """

    words: str
    kernel: Kernel
    boxes: Boxes | None
    noise: float = NOISE_AT_START
    scale: Scale = IDENTITY

    @property
    def said(self) -> str:
        """What it assumes, of the target too where that is not taken as it is."""
        if self.scale.is_identity:
            return self.words
        return f"{self.words}, for {self.scale.words}"

    @classmethod
    def starting(cls, words: str, kernel: Kernel) -> Contender:
        """A kernel where its search starts."""
        boxes = []
        for owner in owners(kernel):
            values = [p.value for p in kernel.parameters if p.name.split("[")[0] == owner]
            low, high = REACH.get(owner.split("__")[-1], ELSE)
            boxes.append((min(values) * low, max(values) * high))
        return cls(words, kernel, tuple(boxes))

    def searched(self, kernel: Kernel, *, noisy: bool) -> Kernel:
        """The kernel, with noise if it is `noisy`, between its bounds."""
        full = kernel + White(self.noise) if noisy else kernel
        if self.boxes is None:
            return full
        boxes = list(self.boxes)
        if noisy:
            low, high = REACH["noise"]
            boxes.append((NOISE_AT_START * low, NOISE_AT_START * high))
        return full.bounded(**dict(zip(owners(full), boxes, strict=True)))

    def found(self, tuned: Kernel, *, noisy: bool) -> Contender:
        """The contender with the numbers of a tuned kernel."""
        values = [p.value for p in tuned.parameters if p.free]
        free = [p for p in self.kernel.parameters if p.free]
        noise = self.noise
        if noisy:
            noise = float(values[-1])
        theta = [p.domain.to_real(value, p.bounds) for p, value in zip(free, values, strict=False)]
        return replace(self, kernel=self.kernel.with_theta(np.array(theta)), noise=noise)

    def raised(self, factor: float) -> Contender:
        """The contender with all its heights raised, as far as its bounds go."""
        if self.boxes is None:
            return self
        changed = {}
        for owner, (_, high) in zip(owners(self.kernel), self.boxes, strict=True):
            if owner.split("__")[-1] == "scale":
                value = next(p.value for p in self.kernel.parameters if p.name == owner)
                changed[owner] = min(value * factor, high)
        return replace(self, kernel=self.kernel.set_params(**changed))


def owners(kernel: Kernel) -> list[str]:
    """The names of the free parameters, those of a vector once."""
    return list(dict.fromkeys(p.name.split("[")[0] for p in kernel.parameters if p.free))


@dataclass(frozen=True)
class Standing:
    """What the search found for a contender: its evidence on so many rows, and how the search ended."""

    contender: Contender
    evidence: float
    rows: int
    status: str

    def __str__(self) -> str:
        ended = ENDED.get(self.status, self.status)
        return f"{self.contender.said}, log evidence {self.evidence:.6g} ({ended})"


@dataclass(frozen=True)
class Place:
    """A standing as a model keeps it: in which round (from 1) which kernel had which evidence."""

    round: int
    words: str
    evidence: float
    rows: int
    status: str


@dataclass(frozen=True)
class Outcome:
    """The winner, and the standings of each round, the best first."""

    winner: Contender
    rounds: tuple[tuple[Standing, ...], ...]
    interrupted: bool
    # kernels that would have competed, had there been time
    wanted: int = 0

    def words(self, target: str) -> list[str]:
        """A sentence for each round, and one about the scale of the target where others were tried."""
        lines = []
        for number, standings in enumerate(self.rounds):
            best = standings[0]
            kernels = len({each.contender.words for each in standings})
            count = f"{kernels} kernels" if kernels > 1 else "1 kernel"
            line = f"{count} by the evidence of {best.rows} rows. Best: {best}."
            if number == 0 and kernels < self.wanted:
                line += f" For {self.wanted - kernels} more there was no time."
            lines.append(line)
        if self.interrupted:
            lines.append("Ctrl-C ended the search for a kernel.")
        return lines + self._words_of_scale(target)

    def _words_of_scale(self, target: str) -> list[str]:
        """Which scale of the target was chosen, and by how much in the last round that had both."""
        chosen = self.winner.scale
        tried = [_best_of_scales(standings) for standings in self.rounds]
        if not any(len(best) > 1 for best in tried):
            return []
        if chosen.is_identity:
            return [f"{target} is taken as it is: no other scale had more evidence."]
        best = [found for found in tried if {chosen, IDENTITY} <= found.keys()][-1]
        more = best[chosen].evidence - best[IDENTITY].evidence
        return [
            f"The process is fitted to {chosen.words_of(target)}: on {best[chosen].rows} rows its log "
            f"evidence is higher by {more:.4g} than that of {target} as it is. What is predicted is {target} "
            "itself."
        ]

    def places(self) -> list[Place]:
        """All standings, round by round, the best first."""
        return [
            Place(number, each.contender.said, each.evidence, each.rows, each.status)
            for number, standings in enumerate(self.rounds, 1)
            for each in standings
        ]


def _best_of_scales(standings: Iterable[Standing]) -> dict[Scale, Standing]:
    """The best standing of each scale, of standings in their order."""
    best: dict[Scale, Standing] = {}
    for standing in standings:
        best.setdefault(standing.contender.scale, standing)
    return best


@dataclass(frozen=True)
class Field:
    """The kernels that compete, and how many there would be with more time to read the columns."""

    contenders: list[Contender]
    wanted: int


def field_of(
    given: Given, roles: Sequence[Role], talk: Talk, seed: int = 0, max_seconds: float | None = None
) -> Field:
    """The kernels that compete: readings of numbers, smoothness, columns alone or only together.

    Ranks, means, words and lengthscales are those of at most `MOST_READ` rows: more of them take minutes to
    read, and say the same. Where there are seconds to keep, reading has its share of them and no more; there
    is always one kernel.
    """
    if len(given) > MOST_READ:
        some = np.sort(np.random.default_rng(seed).permutation(len(given))[:MOST_READ])
        given = Given(given.rows(some), given.names)
    if given.names is None:
        whole = _of_whole_rows(given)
        return Field(whole, len(whole))
    used = [role for role in roles if role.kind != "left out"]
    if len(used) > MOST_COLUMNS and all(role.kind != "text" for role in used):
        whole = _of_coded_rows(given, used)
        return Field(whole, len(whole))
    measured = any(role.kind in ("number", "date") for role in used)
    styles = [
        Style(reading, smoothness, alone)
        for alone in (False, True)
        for smoothness in SMOOTHNESS
        for reading in ("standard", "ranks")
        if measured or (smoothness == "smooth" and reading == "ranks")
    ]
    several = len(used) > 1
    # read once for all of them
    rows = Rows.of(given.table, "the table")
    styles = [style for style in styles if style.alone is False or (several and len(used) <= MOST_ALONE)]
    found: list[Contender] = []
    end = clock.until(None if max_seconds is None else SHARE_OF_READING * max_seconds)
    for number, style in enumerate(styles):
        if found and clock.now() >= end:
            break
        talk(f"reading the columns for kernel {number + 1} of {len(styles)}")
        kernel = kernel_of(roles, style).resolved(rows)
        found.append(Contender.starting(style.words(roles), started(kernel, 1.0)))
    return Field(found, len(styles))


def _of_whole_rows(given: Given) -> list[Contender]:
    """Kernels of rows of numbers without names: one lengthscale for all, and a linear term."""
    return [
        _whole(name, radial.resolved(given.table), Linear(), _size(given.matrix))
        for name, radial in _with_one_lengthscale()
    ]


def _of_coded_rows(given: Given, used: Sequence[Role]) -> list[Contender]:
    """The same of many columns with names: numbers standardised, an indicator for each category."""
    reading, names = coded(used)
    rows = Rows.of(given.table, "the table")
    closed = reading.resolved_on(rows.take(names), None)
    read = closed.read(rows.take(names)).vectors
    line = Linear().of(closed).on(*names)
    return [
        _whole(name, radial.resolved(read).of(closed).on(*names), line, _size(read))
        for name, radial in _with_one_lengthscale()
    ]


def _with_one_lengthscale() -> list[tuple[str, Kernel]]:
    return [(name, shape.changed(lengthscale=Open.ONE)) for name, shape in SMOOTHNESS.items()]


def _whole(smoothness: str, radial: Kernel, line: Kernel, size: float) -> Contender:
    """Functions of the distance between whole rows of such a mean square length, with a linear term."""
    functions = Style(smoothness=smoothness).functions
    words = f"{functions} functions of all columns, with a linear term"
    return Contender.starting(words, 1.0 * radial + (1.0 / size) * line)


def _size(rows: Matrix) -> float:
    """The mean square length of rows of numbers."""
    squares = float(rows.multiply(rows).sum()) if sparse.issparse(rows) else float(np.square(rows).sum())
    return float(max(squares / rows.shape[0], 1e-12))


def started(kernel: Kernel, height: float) -> Kernel:
    """The closed kernel with this height at the start, shared by its terms."""
    terms = [p.name for p in kernel.parameters if p.name.split("__")[-1] == "scale"]
    return kernel.set_params(**{name: height / len(terms) for name in terms})


def own_kernel(kernel: Kernel, given: Given) -> Contender:
    """The kernel that was asked for, on its own."""
    return Contender("the kernel you gave", kernel.resolved(given.table), None)


# ── the rounds ──────────────────────────────────────────────────────────────────────────────────────────────


def compete(
    field: Sequence[Contender],
    given: Given,
    y: Labels,
    *,
    task: str,
    max_seconds: float | None,
    seed: int,
    talk: Talk,
) -> Outcome:
    """Let kernels compete by evidence; Ctrl-C and the end of the seconds keep the best so far."""
    order = np.random.default_rng(seed).permutation(len(y))
    rounds: list[tuple[Standing, ...]] = []
    left = list(field)
    scales = candidates(y) if task == "numbers" else (IDENTITY,)
    before: tuple[object, int] | None = None
    # those of the round that is played, which Ctrl-C may end
    played: list[Standing] = []
    number = 0
    with Anytime(best=left[0]) as run:
        for number, each in enumerate(ROUNDS):
            judge = _judge(task, y, first=number == 0)
            index = _some(order, judge.rows(each.rows), y if task == "classes" else None)
            if before == (type(judge), len(index)):
                break
            before = (type(judge), len(index))
            seconds = None if max_seconds is None else each.share * max_seconds
            played = []
            _play(left, judge, given.rows(index), y[index], each, seconds, talk, played)
            if not played:
                break
            standings = _ordered(played)
            rounds.append(standings)
            run.best = standings[0].contender
            if number == 0 and len(scales) > 1:
                others = _on(scales[1:], standings[: each.keep], field)
                seconds = None if max_seconds is None else SHARE_OF_SCALES * max_seconds
                _play(others, judge, given.rows(index), y[index], each, seconds, talk, played)
                standings = rounds[0] = _ordered(played)
            left = [standing.contender for standing in standings[: each.keep]]
            run.best = left[0]
            if task == "classes" and number == 0:
                left = [contender.raised(HEIGHT_OF_CLASSES) for contender in left]
    if run.interrupted and played:
        rounds[number:] = [_ordered(played)]
        run.best = rounds[number][0].contender
    assert run.best is not None
    return Outcome(run.best, tuple(rounds), run.interrupted)


def _play(
    field: Sequence[Contender],
    judge: _Judge,
    rows: Table,
    y: Labels,
    each: Round,
    seconds: float | None,
    talk: Talk,
    standings: list[Standing],
) -> None:
    """One round: every contender that there is time for, each added to the standings when it is found."""
    with clock.within(seconds):
        for number, contender in enumerate(clock.in_time(field)):
            talk(f"kernel {number + 1} of {len(field)} on {len(y)} rows: {contender.said}")
            try:
                standings.append(judge.search(contender, rows, y, each.steps))
            except MercerError as error:
                talk(f"left out: {error}")


def _ordered(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """The best first."""
    return tuple(sorted(standings, key=lambda standing: -standing.evidence))


def _on(
    scales: Sequence[Scale], standings: Sequence[Standing], field: Sequence[Contender]
) -> list[Contender]:
    """The contenders of some standings on every scale, the first of them on all scales before the next.

    They start where they started: a search that goes on where another ended would have had more steps.
    """
    starts = {contender.words: contender for contender in field}
    again = [starts[standing.contender.words] for standing in standings]
    return [replace(contender, scale=scale) for contender in again for scale in scales]


class _Judge:
    """The evidence of numbers."""

    def __init__(self, classes: int = 0) -> None:
        self.classes = classes

    def rows(self, wanted: int) -> int:
        return wanted

    def search(self, contender: Contender, rows: Table, y: Labels, steps: int) -> Standing:
        kernel = contender.searched(contender.kernel, noisy=True)
        search = GaussianProcessRegressor(kernel, normalize_y=True, max_iter=steps, singular="add")
        with _no_word_of_limits():
            search.fit(rows, self.targets(y, contender.scale))
        found = contender.found(as_kernel(search.kernel_), noisy=True)
        evidence = float(search.log_evidence_) + self.units(search, y, contender.scale)
        return Standing(found, evidence, len(y), str(search.certificate_.status))

    def targets(self, y: Labels, scale: Scale) -> Array:
        return scale.forward(y)

    def units(self, search: GaussianProcessRegressor, y: Labels, scale: Scale) -> float:
        """What makes a log density of standardised targets on a scale one of y itself."""
        return scale.log_jacobian(y) - len(y) * float(np.log(search.y_scale_).sum())


class _CodesJudge(_Judge):
    """The evidence of the codes ±1 of classes, each a target of its own."""

    def targets(self, y: Labels, scale: Scale) -> Array:
        classes = np.unique(y)
        if len(classes) == 2:
            classes = classes[1:]
        return np.where(y[:, None] == classes[None, :], 1.0, -1.0)

    def units(self, search: GaussianProcessRegressor, y: Labels, scale: Scale) -> float:
        return 0.0


class _ClassesJudge(_Judge):
    """The Laplace evidence of classes."""

    def rows(self, wanted: int) -> int:
        # an evaluation takes about rows³ × classes²
        return int(wanted * (2 / max(self.classes, 2)) ** (2 / 3))

    def search(self, contender: Contender, rows: Table, y: Labels, steps: int) -> Standing:
        kernel = contender.searched(contender.kernel, noisy=False)
        search = GaussianProcessClassifier(kernel, max_iter=steps, tol=MODE_TOLERANCE)
        with _no_word_of_limits():
            search.fit(rows, y)
        found = contender.found(as_kernel(search.kernel_), noisy=False)
        return Standing(found, float(search.log_evidence_), len(y), str(search.certificate_.status))


def _judge(task: str, y: Labels, *, first: bool) -> _Judge:
    if task == "numbers":
        return _Judge()
    classes = len(np.unique(y))
    return _CodesJudge(classes) if first else _ClassesJudge(classes)


def _some(order: Integers, most: int, labels: Labels | None) -> Integers:
    """The first rows of an order, sorted; of every class a few."""
    chosen = order[:most]
    if labels is not None:
        shuffled = labels[order]
        firsts = [np.flatnonzero(shuffled == label)[:LEAST_OF_A_CLASS] for label in np.unique(labels)]
        chosen = np.union1d(chosen, order[np.concatenate(firsts)])
    return np.sort(chosen)


@contextmanager
def _no_word_of_limits() -> Iterator[None]:
    """Searches end on purpose after some steps, and the standings say so: no warning besides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
