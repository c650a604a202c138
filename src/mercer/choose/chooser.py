"""One call that tunes a kernel for any machine, and says by what, why, and what else was tried."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sklearn.base import BaseEstimator, is_classifier

from mercer.choose.criteria import CRITERIA
from mercer.choose.machines import (
    NOTHING_TO_CHOOSE,
    first_guess,
    is_gaussian_process,
    is_ridge,
    machine_for,
    penalties,
    take_things,
    targets_for,
    with_kernel,
    within_seconds,
)
from mercer.choose.sample import Sample, number_of_rows
from mercer.choose.search import Ledger, Trial, along_gradients, by_trials
from mercer.choose.validation import CrossValidation, Folds, Scoring
from mercer.errors import InputError, Interrupted, ParameterError
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import resolve
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.typing import Table, Targets

METHODS = ("auto", "evidence", "loo", "cv", "alignment")
# for each kernel, unless n_trials says otherwise: starts of L-BFGS, and cross-validated trials
STARTS = 4
TRIALS = 32


@dataclass(frozen=True, eq=False)
class Choice:
    """What `mercer.choose` found.

    `machine` is fitted on all rows with the best `kernel` and `parameters` (its alpha or C, where they were
    tuned); `score` is the criterion's value, larger is better; `trials` are all that was tried, the best
    first; `why` says how the criterion was chosen and what it leaves open; `certificate` says how the search
    ended.
    """

    machine: BaseEstimator
    kernel: Kernel
    parameters: dict[str, float]
    score: float
    by: str
    why: str
    trials: tuple[Trial, ...]
    certificate: Certificate

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {self.by} {self.score:.6g}. {self.why}", str(self.certificate)]
        return "\n".join([*lines, *(f"  {t}" for t in self.trials[:5])])


def choose(
    machine: Kernel | str | BaseEstimator,
    X: Table,
    y: Targets,
    *,
    by: str = "auto",
    kernels: Iterable[Kernel | str] | None = None,
    n_trials: int | None = None,
    cv: Folds = 5,
    scoring: Scoring = None,
    max_rows: int | None = 2000,
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Tune the free hyperparameters of a kernel, and the machine's alpha or C, and fit it with the best.

    Parameters
    ----------
    machine : a machine with a `kernel` (a scikit-learn estimator), or a kernel or its text: then `SVC` for
        labels and `KernelRidge` for numbers.
    by : what to choose by.
        "evidence"   the log marginal likelihood of a Gaussian process: numbers only.
        "loo"        the closed-form leave-one-out error of kernel ridge regression.
        "cv"         cross-validation with the machine itself: any machine, any `scoring`.
        "alignment"  centred kernel-target alignment: quickest, but for the kernel alone; alpha and C stay
                     as they are.
        "auto"       evidence for Gaussian processes, loo for kernel ridge regression, cv for all others.
    kernels : kernels to compare, each tuned; None for the machine's own.
    n_trials : starts of the gradient search (4), or cross-validated trials (32), for each kernel.
    cv, scoring, n_jobs : for cross-validation, as in scikit-learn.
    max_rows : tune on at most so many rows, drawn at random; the machine is fitted on all. None for all.
    max_seconds : for the search and the last fit together. Fits inside get what is left of it, where they
        have a `max_seconds` of their own, and no new step is begun that would leave nothing for the last fit.

    Ctrl-C raises `mercer.Interrupted` with the `Choice` so far as its `model`. Its machine has the best
    kernel and parameters, and is fitted only if the last fit had begun and had something to keep.

    `fix` and `bounded` parameters of the kernel are respected. X is whatever the kernels take: numbers, or
    strings, graphs and tables of several types, where none of the kernels reads every column as a number.

    >>> import numpy as np
    >>> from mercer import KernelRidge, choose
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 40)
    >>> found = choose(KernelRidge("RBF(10.0)"), X, y)
    >>> found.by, 0.5 < found.kernel.lengthscale < 5, found.machine.kernel_ == found.kernel
    ('loo', True, True)
    """
    _check(by, n_trials, max_rows, max_seconds)
    search = _Search.of(machine, X, y, by, kernels, max_rows, random_state)
    ledger = Ledger(max_seconds, verbose, search.rows / len(search.sample))
    with ledger.run:
        for kernel in search.candidates():
            if search.by == "cv":
                validation = CrossValidation.of(search.template, search.sample, cv, scoring, n_jobs, ledger)
                search.by_trials(validation, kernel, n_trials, ledger)
            else:
                search.along_gradients(kernel, n_trials, ledger)
        ledger.run.status = Status.CONVERGED
    choice = search.best(ledger)
    if ledger.run.interrupted:
        raise Interrupted(choice, "choose: Ctrl-C ended the search; the best so far is kept, not yet fitted.")
    _fit_the_chosen(choice, search.template, X, y, ledger.left)
    return choice


@dataclass
class _Search:
    """What is tuned (`template` with each of the `kernels`), on which rows, by which criterion, and why."""

    template: BaseEstimator
    kernels: list[Kernel | str]
    sample: Sample
    rows: int
    by: str
    why: str
    random_state: int

    @classmethod
    def of(
        cls,
        machine: Kernel | str | BaseEstimator,
        X: Table,
        y: Targets,
        by: str,
        kernels: Iterable[Kernel | str] | None,
        max_rows: int | None,
        random_state: int,
    ) -> _Search:
        """The machine, its criterion, and the rows on which it is tuned."""
        template = machine_for(machine, y)
        rows = number_of_rows(X, y)
        chosen, why = _criterion(by, template)
        candidates = [template.kernel] if kernels is None else list(kernels)
        sample = Sample.of(X, y, max_rows, random_state, things=take_things(candidates))
        if len(sample) < rows:
            why += f" Tuned on {len(sample)} of {rows} rows, fitted on all."
        return cls(template, candidates, sample, rows, chosen, why, random_state)

    def candidates(self) -> Iterator[Kernel]:
        """The kernels to compare, their open lengthscales closed by the rows."""
        for candidate in self.kernels:
            kernel = resolve(candidate, self.sample.rows)
            if kernel is None:
                raise ParameterError(NOTHING_TO_CHOOSE)
            yield kernel

    def by_trials(
        self, validation: CrossValidation, kernel: Kernel, n_trials: int | None, ledger: Ledger
    ) -> None:
        """Tune one kernel, and alpha or C with it, by cross-validated trials."""
        trials = TRIALS if n_trials is None else int(n_trials)
        others = penalties(self.template)
        by_trials(validation.score, kernel, others, self.sample.numbers, trials, ledger, self.random_state)

    def along_gradients(self, kernel: Kernel, n_trials: int | None, ledger: Ledger) -> None:
        """Tune one kernel along the gradient of the criterion."""
        starts = STARTS if n_trials is None else int(n_trials)
        guess = first_guess(self.by, self.template, kernel, self.sample.rows, self.sample.y)
        if guess.note not in self.why:
            self.why += guess.note
        Y = targets_for(self.template, self.sample.y)
        along_gradients(CRITERIA[self.by], guess, self.sample, Y, starts, ledger, self.random_state)

    def best(self, ledger: Ledger) -> Choice:
        """The best of all trials, with its machine not yet fitted."""
        best = ledger.best
        if best is None:
            tried = (
                "; ".join(dict.fromkeys(t.note for t in ledger.trials if t.note)) or "no trial was finished"
            )
            raise InputError(
                f"nothing could be chosen by {self.by}: {tried}. Try other kernels or more seconds."
            )
        status = ledger.run.status
        if status == Status.CONVERGED and (ledger.spent or ledger.cut):
            status = Status.LIMIT
        certificate = Certificate(
            status,
            f"choice by {self.by}",
            iterations=ledger.evaluations,
            seconds=ledger.seconds,
            notes=(f"{len(ledger.trials)} trials",),
        )
        ranked = tuple(sorted(ledger.trials, key=lambda t: -t.score))
        machine = with_kernel(self.template, best.kernel, best.parameters)
        return Choice(
            machine, best.kernel, best.parameters, best.score, self.by, self.why, ranked, certificate
        )


def _fit_the_chosen(
    choice: Choice, template: BaseEstimator, X: Table, y: Targets, left: float | None
) -> None:
    """The last fit, on all rows, in the seconds that are left; the machine's own limit is put back then."""
    machine = choice.machine
    limit = {} if left is None else within_seconds(machine, left)
    with Anytime(best=choice) as run:
        machine.set_params(**limit).fit(X, y)
    before = template.get_params(deep=False)
    machine.set_params(**{name: before[name] for name in limit})
    if run.interrupted:
        certificate = replace(choice.certificate, status=Status.INTERRUPTED)
        cut = replace(choice, certificate=certificate)
        raise Interrupted(cut, "choose: Ctrl-C ended the last fit; the choice is kept.")


def _check(by: str, n_trials: int | None, max_rows: int | None, max_seconds: float | None) -> None:
    if by not in METHODS:
        raise ParameterError(f"by must be one of {', '.join(METHODS)}; got {by!r}.")
    for name, value, least in (("n_trials", n_trials, 1), ("max_rows", max_rows, 2)):
        if value is None:
            continue
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not whole or value < least:
            raise ParameterError(f"{name} must be None or a whole number >= {least}; got {value!r}.")
    if max_seconds is None:
        return
    real = isinstance(max_seconds, numbers.Real) and not isinstance(max_seconds, bool)
    if not real or not max_seconds > 0:
        raise ParameterError(f"max_seconds must be None or a number > 0; got {max_seconds!r}.")


# ── the criterion ───────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "evidence": "the evidence",
    "loo": "the leave-one-out error",
    "alignment": "the alignment",
    "cv": "cross-validation",
}


def _criterion(by: str, machine: BaseEstimator) -> tuple[str, str]:
    """The criterion and the reason for it."""
    name = type(machine).__name__
    if by == "auto":
        return _usual_criterion(machine)
    if by == "evidence" and is_classifier(machine):
        raise ParameterError(
            f"the evidence here is that of regression, and {name} learns labels. Use 'cv' or 'alignment'."
        )
    why = f"Chosen by {WORDS[by]}, as asked."
    if not _tunes_the_penalty_too(by, machine):
        left = " and ".join(penalties(machine)) or "nothing else"
        why += f" It tunes the kernel; {left} of {name} stays as given."
    return by, why


def _usual_criterion(machine: BaseEstimator) -> tuple[str, str]:
    """The criterion of the machine itself, where it has one in closed form."""
    name = type(machine).__name__
    if not is_classifier(machine) and is_gaussian_process(machine):
        why = f"{name} is a Gaussian process: its own marginal likelihood weighs fit against freedom."
        return "evidence", why
    if is_ridge(machine):
        return "loo", f"{name} has its leave-one-out error in closed form, at the price of one fit."
    return "cv", f"Cross-validation, because {name} has no criterion of its own in closed form."


def _tunes_the_penalty_too(by: str, machine: BaseEstimator) -> bool:
    """Whether the criterion speaks of the machine's noise, alpha or C as well as of the kernel."""
    if by == "cv":
        return True
    if by == "alignment":
        return False
    return is_ridge(machine) or (by == "evidence" and is_gaussian_process(machine))
