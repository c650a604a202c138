"""The hyperparameter search of Gaussian process regression: which starts, on how many rows, in what order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mercer import clock
from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.conditioning import System
from mercer.machines.gaussian_process.moves import search_path
from mercer.machines.gaussian_process.refine import ESTIMATED, EXACT, Enough, inverse_curvature
from mercer.machines.gaussian_process.starts import (
    CHEAP,
    MIDDLE,
    PER_COLUMN,
    open_starts,
    row_ladder,
    scaled_starts,
    some_rows,
    worth_running,
)
from mercer.machines.gaussian_process.tune import Start, Tuned, maximise
from mercer.machines.shared.base import is_open, wants_each
from mercer.machines.shared.parameters import steps_allowed
from mercer.progress import say
from mercer.solve.solution import NoteKind, Status, has_note
from mercer.threads import threads
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor

# Times the scale of the data: a longer lengthscale changes the kernel too little for a search to see.
FADED = 30.0
# Per observation: what may be lost by bringing them back.
LITTLE = 0.01
# Evaluations on the next rows that the curvature on fewer of them may cost: it saves more.
WORTH = 3.0


def search(model: GaussianProcessRegressor, kernel: Kernel, system: System) -> Tuned:
    """The best θ: of a kernel left open from the data's own scales, of any other from where it stands."""
    task = _Task(model, kernel, system)
    return task.open() if is_open(model.kernel) else task.given()


class _Task:
    """One model, its kernel, and what was observed."""

    def __init__(self, model: GaussianProcessRegressor, kernel: Kernel, system: System) -> None:
        self.model = model
        self.kernel = kernel
        self.system = system
        self.Y = system.Y
        self.notes: list[str] = []
        # On these rows, one after the other, evaluations were made.
        self.seen: dict[int, int] = {}

    def given(self) -> Tuned:
        """From the kernel's own numbers and the scales of the data; on some of many rows first."""
        n = len(self.Y)
        ladder = [count for count in row_ladder(n) if MIDDLE <= count < n] + [n]
        rows = self.rows(ladder[0])
        starts = scaled_starts(self.kernel, self.system.rows, self.Y, self.system.noise)
        objective = self.system.likelihood(self.kernel, rows, self.model.n_jobs)
        starts = worth_running(starts, objective, len(self.Y) <= CHEAP)
        found = self.run(starts, rows, restarts=self.model.n_restarts)
        if len(ladder) > 1:
            self.keep_best_start(found)
        found = self.upward(found, ladder, shared=False)
        return self.said(self.or_as_given(found, ladder))

    def open(self) -> Tuned:
        """Few rows first: several starts with all lengthscales together.

        Then each column's own, on more and more rows.
        """
        n = len(self.Y)
        longest = self._longest_list()
        lists = longest > 0
        enough = n >= PER_COLUMN * longest
        single = lists and (enough or wants_each(self.model.kernel))
        ladder = row_ladder(n)
        rows = self.rows(ladder[0])
        restarts = 0
        if ladder[0] == n or n > MIDDLE:
            restarts = self.model.n_restarts
        found = self.run(open_starts(self.kernel), rows, shared=True, restarts=0 if single else restarts)
        self.keep_best_start(found)
        if single and found.status != Status.INTERRUPTED:
            found = self.run([_from(found)], rows, restarts=restarts)
        found = self.upward(found, ladder, shared=not single)
        if lists and not single:
            self.notes.append(
                f"{n} rows are fewer than {PER_COLUMN} for each column: the lengthscales of the columns "
                "keep the ratios of their spreads."
            )
        return self.said(found)

    def upward(self, found: Tuned, ladder: list[int], *, shared: bool) -> Tuned:
        """From the first rows of the ladder, where something was found, to all of them."""
        n = ladder[-1]
        for count, more in pairwise(ladder):
            if found.status == Status.INTERRUPTED:
                return found
            # an evaluation on more rows takes longer, by their number squared at least
            if clock.short_of(found.seconds * (more / count) ** 2):
                self.notes.append(f"The seconds ended the search on {count} of {n} rows.")
                return replace(found, status=Status.worst((found.status, Status.LIMIT)))
            restarts = 0
            inverse = None
            if n > MIDDLE:
                self.announce(found, count, more)
                found = self.returned(found, count)
                inverse = self.inverse_curvature(found, count, more, shared=shared)
            else:
                restarts = self.model.n_restarts
            found = self.run(
                [_from(found)], self.rows(more), shared=shared, restarts=restarts, inverse=inverse
            )
        return found

    def returned(self, found: Tuned, count: int) -> Tuned:
        """With lengthscales that faded away on fewer rows brought back to where a search can see them.

        Far away the evidence is flat, and a column that more rows would tell about could not return. Where
        that costs more than a little, with targets of nearly no noise, they stay where they are.
        """
        if not is_open(self.model.kernel):
            return found
        free = [p for p in self.kernel.parameters if p.free]
        length = np.array([p.name.split("[")[0].endswith("lengthscale") and p.bounds is None for p in free])
        highest = np.where(length, self.kernel.theta + np.log(FADED), np.inf)
        theta = np.minimum(found.theta, highest)
        if np.array_equal(theta, found.theta):
            return found
        objective = self.system.likelihood(self.kernel, self.rows(count), self.model.n_jobs)
        try:
            fall = found.value - objective(theta)[0]
        except (MercerError, clock.OutOfTime):
            return found
        if not fall <= LITTLE * count * self.Y.shape[1]:
            return found
        return replace(found, theta=theta)

    def inverse_curvature(self, found: Tuned, count: int, more: int, *, shared: bool) -> Array | None:
        """The inverse Hessian where fewer rows ended; as the search saw it where more would be dear."""
        path = search_path(self.kernel, found.theta, shared=shared)
        evaluations = 1 + len(path.names)
        cheap = evaluations * (count / more) ** 3 <= WORTH
        if not cheap or clock.short_of(evaluations * found.seconds):
            return found.inverse
        objective = self.system.likelihood(self.kernel, self.rows(count), self.model.n_jobs)
        size = count * self.Y.shape[1]

        def gradient(u: Array) -> Array:
            slope: Array = -path.slope(u, objective(path.theta(u))[1]) / size
            return slope

        try:
            inverse = inverse_curvature(gradient, len(path.names))
        except (MercerError, clock.OutOfTime):
            return found.inverse
        self.seen[count] = self.seen.get(count, 0) + evaluations
        return inverse

    def or_as_given(self, found: Tuned, ladder: list[int]) -> Tuned:
        """What was found by way of fewer rows, unless all rows prefer the kernel as given."""
        ended = found.status == Status.INTERRUPTED or clock.short_of(found.seconds)
        if len(ladder) == 1 or len(self.Y) not in self.seen or ended:
            return found
        try:
            given = self.system.at(self.kernel).height()
        except MercerError:
            return found
        if not given > found.value:
            return found
        self.notes.append(
            f"Of all rows the kernel as given has the higher {self.what}, so the search went on from there."
        )
        return self.run([Start(self.kernel.theta, "the kernel as given")], None)

    def rows(self, count: int) -> Integers | None:
        """So many of the rows; None for all."""
        n = len(self.Y)
        if count == n:
            return None
        return some_rows(n, count)

    @property
    def what(self) -> str:
        if self.model.objective == "evidence":
            return "log evidence"
        return "leave-one-out log likelihood"

    @property
    def enough(self) -> Enough:
        """What ends the search on all rows."""
        if self.system.exact:
            return EXACT
        return ESTIMATED

    def announce(self, found: Tuned, count: int, more: int) -> None:
        """Say before it begins what an evaluation on more rows will take."""
        if not self.model.verbose:
            return
        power = 3
        if not self.system.exact and more == len(self.Y):
            power = 2
        seconds = found.seconds * (more / count) ** power
        say(f"{more} rows: each evaluation of the {self.what} will take some {seconds:.2g} s")

    def keep_best_start(self, found: Tuned) -> None:
        self.notes += [note for note in found.notes if has_note([note], NoteKind.BEST_START)]

    def said(self, found: Tuned) -> Tuned:
        """What was found, with the notes of the whole search."""
        n = len(self.Y)
        if n in self.seen and len(self.seen) > 1 and n > MIDDLE:
            fewer = ", then on ".join(str(count) for count in self.seen if count != n)
            said = f"The search began on {fewer} of the {n} rows, and made {self.seen[n]} evaluations on all"
            if found.status == Status.CONVERGED:
                said += f"; another step promised less than {self.enough.gain:g} of {self.what}"
            self.notes.append(f"{said}.")
        others = [note for note in found.notes if note not in self.notes]
        return replace(found, notes=(*self.notes, *others))

    def _longest_list(self) -> int:
        """The most columns that one part of the kernel has lengthscales of its own for; 0 if none has."""
        lists = Counter(
            p.name.split("[")[0] for p in self.kernel.parameters if p.free and p.name.endswith("]")
        )
        return max(lists.values(), default=0)

    def run(
        self,
        starts: list[Start],
        rows: Integers | None,
        *,
        shared: bool = False,
        restarts: int = 0,
        inverse: Array | None = None,
    ) -> Tuned:
        model = self.model
        parallel = restarts > 0 and threads(model.n_jobs) > 1
        count = len(self.Y) if rows is None else len(rows)
        found = maximise(
            self.system.likelihood(self.kernel, rows, 1 if parallel else model.n_jobs),
            self.kernel,
            size=count * self.Y.shape[1],
            starts=starts,
            shared=shared,
            restarts=restarts,
            inverse=inverse,
            enough=EXACT if rows is not None else self.enough,
            max_iter=steps_allowed(model.max_iter),
            n_jobs=model.n_jobs,
            random_state=model._seed,
            verbose=model.verbose,
            what=self.what,
        )
        self.seen[count] = self.seen.get(count, 0) + found.evaluations
        return found


def _from(found: Tuned) -> Start:
    """Where fewer rows or fewer numbers ended."""
    return Start(found.theta, "the scales of the data")
