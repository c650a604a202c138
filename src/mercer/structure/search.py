"""A beam search over the grammar: look at every step, tune the best few, judge them, go on from these.

1. every kernel one step away from the beam is looked at: few steps of tuning on few rows, by evidence
2. the best of them are tuned on all rows of the search, warm from there, and judged (`scoring`)
3. the beam is the best of all that were judged and not gone on from yet; the search ends where two rounds in
   turn do not raise the score
4. terms, factors and columns of the best one are taken away where that costs next to nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercer import clock
from mercer.kernels.base import Kernel
from mercer.progress import Talk
from mercer.solve.anytime import Anytime
from mercer.structure.grammar import (
    Menu,
    expansions,
    gate_places,
    joined,
    key_of,
    narrowed,
    parts_of,
    periods_in,
    split,
    total,
)
from mercer.structure.places import with_moved_doors
from mercer.structure.scoring import (
    GLANCE,
    NEARLY,
    Candidate,
    Sample,
    curvature_after_step,
    guessed_curvature,
    judged,
    settled,
    tuned,
)

# Rows of a first look.
FEW = 150
# Nats that a round has to gain on all rows together, and that a simpler kernel may lose.
GAIN = 1.0
# Kernels that are tuned and judged in a round, for each place in the beam.
WIDE = 3
# Nats by which two tunings of one kernel may differ.
SAME = 0.5
# Rounds in turn that may fail.
PATIENCE = 2

Propose = Callable[[Candidate], Menu]


@dataclass
class Search:
    """One search: the rows, what is proposed on them, and all that was judged so far, the best first."""

    sample: Sample
    propose: Propose
    beam: int
    talk: Talk
    run: Anytime[list[Candidate]]
    # the shortest and the longest period that the rows can show
    periods: tuple[float, float] = (0.0, np.inf)
    judged: list[Candidate] = field(default_factory=list)
    seen: set[tuple[object, ...]] = field(default_factory=set)
    left_behind: set[tuple[object, ...]] = field(default_factory=set)
    looked: int = 0

    def __post_init__(self) -> None:
        n = len(self.sample)
        few = np.sort(np.random.default_rng(n).permutation(n)[:FEW])
        self.thin = self.sample.part(few)
        # how far the rows reach, for periods: these belong to one column
        self.span = float(np.ptp(self.sample.X[:, 0]))

    @property
    def best(self) -> Candidate:
        return self.judged[0]

    def shows(self, kernel: Kernel) -> bool:
        """Whether the rows can show every period of a kernel."""
        shortest, longest = self.periods
        return all(shortest <= period <= longest for period in periods_in(kernel))

    def begin(self, kernels: Sequence[Kernel]) -> None:
        """Judge the best of the first kernels."""
        self.keep(self.tuned_and_judged(self.look(self.first(kernel) for kernel in kernels)))

    def add(self, candidate: Candidate) -> None:
        """Judge a kernel that was tuned already, whatever a look would promise."""
        self.seen.add(key_of(candidate.kernel))
        self.keep(self.tuned_and_judged([candidate]))

    def first(self, kernel: Kernel) -> Candidate:
        """A kernel that no other one led to."""
        inverse = guessed_curvature(kernel, self.span) if periods_in(kernel) else None
        return Candidate(kernel, -np.inf, len(self.sample), inverse=inverse)

    def after_step(self, candidate: Candidate, kernel: Kernel) -> Candidate:
        """A kernel one step away from a candidate."""
        return replace(candidate, kernel=kernel, inverse=curvature_after_step(candidate, kernel, self.span))

    def go_on(self, rounds: int) -> bool:
        """Round after round from the beam; whether the search ended by itself."""
        failed = 0
        for number in range(rounds):
            if clock.late():
                return False
            before = self.best.score
            fresh = self.fresh()
            steps = [
                self.after_step(candidate, step)
                for candidate in fresh
                for step in expansions(candidate.kernel, self.propose(candidate))
            ]
            self.talk(f"round {number + 1}: {len(steps)} kernels, best so far {_brief(self.best.kernel)}")
            self.keep(self.tuned_and_judged(self.look(steps)))
            failed = failed + 1 if self.best.score < before + GAIN / len(self.sample) else 0
            if failed == PATIENCE:
                break
        return not clock.late()

    def fresh(self) -> list[Candidate]:
        """The best of each structure that the search did not go on from yet, as many as the beam is wide."""
        found: list[Candidate] = []
        for candidate in self.judged:
            key = key_of(candidate.kernel)
            if len(found) < self.beam and key not in self.left_behind:
                self.left_behind.add(key)
                found.append(candidate)
        return found

    def look(self, steps: Iterable[Candidate]) -> list[Candidate]:
        """A few steps of tuning on few rows: the best of each structure that is new, by what they promise."""
        found: dict[tuple[object, ...], Candidate] = {}
        rows = len(self.sample)
        for step in clock.in_time(steps):
            key = key_of(step.kernel)
            if key in self.seen:
                continue
            self.looked += 1
            candidate = tuned(step.kernel, self.thin, GLANCE, step.inverse, NEARLY)
            if candidate is None or not self.shows(candidate.kernel):
                continue
            if key not in found or candidate.log_evidence > found[key].log_evidence:
                found[key] = candidate
        self.seen |= found.keys()
        order = sorted(found.values(), key=lambda candidate: -candidate.promise(rows))
        return order[: WIDE * self.beam]

    def tuned_and_judged(self, candidates: list[Candidate]) -> list[Candidate]:
        """Tuned on all rows of the search and judged by rows held out."""
        found: list[Candidate] = []
        for candidate in candidates:
            if clock.late() and (found or self.judged):
                break
            again = settled(candidate, self.sample)
            if again is not None and gate_places(again.kernel):
                again = with_moved_doors(again, self.sample)
                if any(_is_known(again, other) for other in (*self.judged, *found)):
                    continue
            if again is not None and self.shows(again.kernel):
                found.append(judged(again, self.sample))
                self.run.best = sorted([*self.judged, *found], key=lambda c: -c.score)
        return found

    def keep(self, found: list[Candidate]) -> None:
        self.judged = sorted([*self.judged, *found], key=lambda candidate: -candidate.score)
        self.run.best = self.judged

    def simplify(self) -> None:
        """Take away terms, factors and columns of the best kernel where that costs next to nothing.

        The simpler kernel is the answer from there on, although it may score a trace less.
        """
        best = self.best
        menu = self.propose(best)
        while not clock.late():
            self.talk(f"simplifying {_brief(best.kernel)}")
            simpler = {key_of(kernel): kernel for kernel in _simpler(best.kernel, menu)}
            warm = [self.after_step(best, kernel) for kernel in simpler.values()]
            self.keep(self.tuned_and_judged(warm))
            found = [c for c in self.judged if key_of(c.kernel) in simpler]
            next_best = max(found, key=lambda candidate: candidate.score, default=None)
            if next_best is None or next_best.score < best.score - GAIN / len(self.sample):
                break
            best = next_best
        self.judged.remove(best)
        self.judged.insert(0, best)
        self.run.best = self.judged


def _simpler(kernel: Kernel, menu: Menu) -> list[Kernel]:
    """The kernel without one of its terms, one of its factors, or columns that hardly matter."""
    terms, noise = parts_of(kernel)
    found = []
    for i, term in enumerate(terms):
        others = [*terms[:i], *terms[i + 1 :]]
        if others:
            found.append(total(others, noise))
        height, factors = split(term)
        for j in range(len(factors)):
            rest = [*factors[:j], *factors[j + 1 :]]
            changed = [rest] if rest else []
            changed += [[*factors[:j], new, *factors[j + 1 :]] for new in narrowed(factors[j], menu)]
            for new in changed:
                found.append(total([*terms[:i], joined(height, new), *terms[i + 1 :]], noise))
    return found


def _is_known(candidate: Candidate, other: Candidate) -> bool:
    """Whether another candidate is of the same structure and no worse: doors moved to the same places."""
    same = key_of(candidate.kernel) == key_of(other.kernel)
    return same and candidate.log_evidence < other.log_evidence + SAME


def _brief(kernel: Kernel) -> str:
    text = str(kernel)
    return text if len(text) <= 60 else f"{text[:57]}…"
