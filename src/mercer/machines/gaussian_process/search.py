"""The hyperparameter search of Gaussian process regression: which starts, on how many rows, in what order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mercer import clock
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.conditioning import System
from mercer.machines.gaussian_process.starts import (
    CHEAP,
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
from mercer.solve.solution import NoteKind, Status, has_note
from mercer.threads import threads
from mercer.typing import Integers

if TYPE_CHECKING:
    from mercer.machines.gaussian_process.regression import GaussianProcessRegressor


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

    def given(self) -> Tuned:
        starts = scaled_starts(self.kernel, self.system.rows, self.Y, self.system.noise)
        objective = self.system.likelihood(self.kernel, None, self.model.n_jobs)
        starts = worth_running(starts, objective, len(self.Y) <= CHEAP)
        return self.run(starts, None, restarts=self.model.n_restarts)

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
        notes: list[str] = []
        starts = open_starts(self.kernel)
        for count in ladder:
            rows = None if count == n else some_rows(n, count)
            last = count == n
            restarts = self.model.n_restarts if last else 0
            if count == ladder[0]:
                found = self.run(starts, rows, shared=True, restarts=0 if single else restarts)
                notes += [note for note in found.notes if has_note([note], NoteKind.BEST_START)]
            if count != ladder[0] or single:
                found = self.run(
                    [Start(found.theta, "the scales of the data")], rows, shared=not single, restarts=restarts
                )
            if last or found.status == Status.INTERRUPTED:
                break
            # an evaluation on more rows takes longer, by their number squared at least
            more = ladder[ladder.index(count) + 1] / count
            if clock.short_of(found.seconds * more**2):
                notes.append(f"The seconds ended the search on {count} of {n} rows.")
                found = replace(found, status=Status.worst((found.status, Status.LIMIT)))
                break
        if lists and not single:
            notes.append(
                f"{n} rows are fewer than {PER_COLUMN} for each column: the lengthscales of the columns "
                "keep the ratios of their spreads."
            )
        return replace(found, notes=(*notes, *(note for note in found.notes if note not in notes)))

    def _longest_list(self) -> int:
        """The most columns that one part of the kernel has lengthscales of its own for; 0 if none has."""
        lists = Counter(
            p.name.split("[")[0] for p in self.kernel.parameters if p.free and p.name.endswith("]")
        )
        return max(lists.values(), default=0)

    def run(
        self, starts: list[Start], rows: Integers | None, *, shared: bool = False, restarts: int = 0
    ) -> Tuned:
        model = self.model
        parallel = restarts > 0 and threads(model.n_jobs) > 1
        return maximise(
            self.system.likelihood(self.kernel, rows, 1 if parallel else model.n_jobs),
            self.kernel,
            size=self.Y.size if rows is None else len(rows) * self.Y.shape[1],
            starts=starts,
            shared=shared,
            restarts=restarts,
            max_iter=steps_allowed(model.max_iter),
            n_jobs=model.n_jobs,
            random_state=model._seed,
            verbose=model.verbose,
            what="log evidence" if model.objective == "evidence" else "leave-one-out log likelihood",
        )
