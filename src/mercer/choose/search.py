"""The search for one machine: every kernel by the evidence first, then by the criterion asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer import clock
from mercer.choose.ascent import FEW, Guess, Numbers, along_gradients, stages
from mercer.choose.compass import by_trials
from mercer.choose.ledger import Ledger, Trial
from mercer.choose.machines import NOTHING_TO_CHOOSE, Subject, with_noise
from mercer.choose.sample import Sample
from mercer.choose.validation import CrossValidation
from mercer.errors import Interrupted, MercerError, ParameterError
from mercer.kernels.base import Kernel
from mercer.machines.gaussian_process.starts import PER_COLUMN
from mercer.machines.shared.base import is_open, resolve, wants_each

# for each kernel, unless n_trials says otherwise: starts of L-BFGS, and cross-validated trials at most
STARTS = 4
TRIALS = 24
# rows that the evidence is asked on, where it is only the beginning
EVIDENCE_ROWS = 1000
# the share of the seconds that a Gaussian process may take for its own search; the rest is for the last fit
OWN_SEARCH = 0.7
# the share of that search which a fit of the kernel found takes
ONE_FIT = 0.1


@dataclass(eq=False)
class Search:
    """What is tuned, on which rows, and why by this criterion; every trial is entered in the ledger."""

    subject: Subject
    sample: Sample
    ledger: Ledger
    n_trials: int | None
    random_state: int
    why: str
    validation: CrossValidation | None = None

    @property
    def starts(self) -> int:
        return STARTS if self.n_trials is None else int(self.n_trials)

    @property
    def trials(self) -> int:
        return TRIALS if self.n_trials is None else int(self.n_trials)

    def tune(self, candidate: Kernel | str, waiting: int = 1) -> None:
        """One of the kernels; so many are waiting with it for the seconds that are left."""
        kernel = resolve(candidate, self.sample.rows)
        if kernel is None:
            raise ParameterError(NOTHING_TO_CHOOSE)
        by = self.ledger.by
        if self.subject.is_gaussian_process and by in ("evidence", "cv"):
            begun = self.by_own_evidence(candidate, kernel, waiting)
        else:
            begun = self.along_gradients(candidate, kernel)
        if by == "cv":
            self.by_trials(candidate, kernel, begun)

    def say(self, words: str) -> None:
        """Add to the reasons, once for all kernels."""
        if words not in self.why:
            self.why += words

    # ── along gradients ─────────────────────────────────────────────────────────────────────────────────────

    def along_gradients(self, candidate: Kernel | str, kernel: Kernel) -> Trial | None:
        """The kernel by the gradient of the criterion, beginning with the evidence where that is another."""
        by = self.ledger.by
        guess = self.subject.guess(by, kernel, self.sample.rows)
        if by in ("evidence", "alignment"):
            return self.ascend(by, guess, candidate, self.starts)
        begun = self.ascend("evidence", guess, candidate, STARTS)
        if by == "cv":
            return begun
        if begun is not None:
            guess = Guess(begun.kernel, begun.parameters.get("alpha", guess.noise))
        return self.ascend(by, guess, candidate, self.starts)

    def ascend(self, by: str, guess: Guess, candidate: Kernel | str, starts: int) -> Trial | None:
        """Maximise one criterion from several starts; few rows do where it is only the beginning."""
        ends = by == self.ledger.by
        most = len(self.sample) if ends else min(len(self.sample), EVIDENCE_ROWS)
        if not ends and self.ledger.by == "loo":
            most = min(most, FEW)
        columns = _columns(guess.kernel) if is_open(candidate) else 0
        each = wants_each(candidate)
        if not self.subject.learns_labels:
            # labels without noise are told by few columns alone, and the others would fade away
            each = each or most >= PER_COLUMN * columns
        way = stages(most, lists=columns > 0, each=each, at_the_end=ends)
        Y = self.subject.targets(self.sample.y)
        return along_gradients(
            by, guess, self.sample, Y, way, starts, self.numbers_by(by), self.ledger, self.random_state
        )

    def numbers_by(self, by: str) -> Numbers:
        """What a criterion says of the machine's numbers."""
        subject = self.subject
        if by == "evidence" and self.ledger.by in ("cv", "loo"):
            return subject.begun

        def penalty(height: float, noise: float) -> dict[str, float]:
            if by == "alignment" or not subject.is_ridge:
                return {}
            return {"alpha": noise}

        return penalty

    # ── a Gaussian process by itself ────────────────────────────────────────────────────────────────────────

    def by_own_evidence(self, candidate: Kernel | str, closed: Kernel, waiting: int) -> Trial | None:
        """A Gaussian process tunes its kernel itself, by the evidence of its own model."""
        ledger = self.ledger
        if ledger.over:
            return None
        sample = self.sample
        kernel, said = with_noise(candidate, self.subject.machine, sample.rows, sample.y)
        self.say(said)
        left = None if ledger.left is None else OWN_SEARCH * ledger.left / waiting
        restarts = None if self.n_trials is None else self.n_trials - 1
        process = self.subject.process(kernel, left, restarts)
        began = clock.now()
        note = ""
        stop: Interrupted | None = None
        try:
            with ledger.telling():
                process.fit(sample.seen, sample.y)
        except Interrupted as pressed:
            stop = pressed
        except MercerError as error:
            note = str(error)[:80]
        seconds = clock.now() - began
        ledger.expect(ONE_FIT * seconds, len(sample))
        if note:
            ledger.add(Trial(closed, {}, -np.inf, seconds, note, "evidence", len(sample)))
            return None
        if not process.certificate_.converged:
            note = str(process.certificate_.status)
            ledger.cut = ledger.cut or ledger.max_seconds is not None
        ledger.evaluations += process.certificate_.iterations
        trial = Trial(process.kernel_, {}, process.log_evidence_, seconds, note, "evidence", len(sample))
        ledger.add(trial)
        if stop is not None:
            raise stop
        return trial

    # ── by trials ───────────────────────────────────────────────────────────────────────────────────────────

    def by_trials(self, candidate: Kernel | str, kernel: Kernel, begun: Trial | None) -> None:
        """The machine's numbers by cross-validated trials, around what the evidence has begun with."""
        assert self.validation is not None
        numbers = self.subject.numbers()
        if begun is not None:
            kernel = begun.kernel
            numbers = {**numbers, **begun.parameters}
            self.say(f" The trials began where the evidence of {begun.rows} rows led.")
        guess = Guess(kernel, shared=is_open(candidate) and not wants_each(candidate))
        by_trials(
            self.validation.score,
            self.validation.trifle,
            guess,
            numbers,
            self.sample,
            self.trials,
            self.ledger,
            self.random_state,
            spread=begun is None,
            common=begun is not None and not self.subject.is_gaussian_process,
        )


def _columns(kernel: Kernel) -> int:
    """The most columns that one part of the kernel has lengthscales of its own for; 0 if none has."""
    names = [p.name.split("[")[0] for p in kernel.parameters if p.free and p.name.endswith("]")]
    return max((names.count(name) for name in set(names)), default=0)
