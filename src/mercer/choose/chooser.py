"""One call that tunes a kernel for any machine, and says by what, why, and what else was tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sklearn.base import BaseEstimator

from mercer.choose.cost import affordable_rows
from mercer.choose.ledger import Ledger, Trial
from mercer.choose.machines import Subject, take_things
from mercer.choose.sample import Sample, number_of_columns, number_of_rows
from mercer.choose.search import Search
from mercer.choose.validation import CrossValidation, Folds, Scoring
from mercer.errors import InputError, Interrupted, ParameterError
from mercer.kernels.base import Kernel
from mercer.notebook import folded, paragraph, table
from mercer.params import is_real, is_whole
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Certificate, Status
from mercer.typing import Table, Targets

METHODS = ("auto", "evidence", "loo", "cv", "alignment")


@dataclass(frozen=True, eq=False)
class Choice:
    """What `mercer.choose` found.

    `machine` is fitted on all rows with the best `kernel` and `parameters` (its alpha, C, epsilon or nu,
    where they were tuned); `score` is the criterion's value, larger is better, and `by` the criterion;
    `trials` are all that was tried, the best first; `why` says how the criterion was chosen and what it
    leaves open; `certificate` says how the search ended.
    """

    machine: BaseEstimator
    kernel: Kernel
    parameters: dict[str, float]
    score: float
    by: str
    why: str
    trials: tuple[Trial, ...]
    certificate: Certificate

    def _repr_html_(self) -> str:
        """What a notebook shows: what was chosen and why, and all trials, folded."""
        rows = [(str(t.kernel), t.by, f"{t.score:.6g}", _numbers(t.parameters), t.note) for t in self.trials]
        trials = table(("kernel", "by", "score", "numbers", ""), rows)
        head = paragraph(f"{self.kernel}: {self.by} {self.score:.6g}. {self.why}")
        return head + self.certificate.html() + folded(f"{len(rows)} trials, the best first", trials)

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {self.by} {self.score:.6g}. {self.why}", str(self.certificate)]
        return "\n".join([*lines, *(f"  {t}" for t in self.trials[:5])])


def _numbers(parameters: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in parameters.items())


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
    max_rows: int | str | None = "auto",
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Tune the free hyperparameters of a kernel, and the machine's own numbers, and fit it with the best.

    Parameters
    ----------
    machine : a machine with a `kernel` (a scikit-learn estimator); a Pipeline with one as its last step; or a
        kernel or its text: then `SVC` for labels and `KernelRidge` for numbers.
    by : what to choose by.
        "evidence"   the log marginal likelihood of a Gaussian process: of the machine itself where it is one.
                     For other machines it is for the kernel alone.
        "loo"        the closed-form leave-one-out error of kernel ridge regression.
        "cv"         cross-validation with the machine itself: any machine, any `scoring`. The kernel is
                     first tuned by the evidence, and the machine's numbers (alpha, C, epsilon, nu) and the
                     common length of all lengthscales then by few trials around what it says.
        "alignment"  centred kernel-target alignment: quickest, but for the kernel alone.
        "auto"       evidence for Gaussian processes, loo for kernel ridge regression, cv for all others.
    kernels : kernels to compare, each tuned; None for the machine's own.
    n_trials : starts of the gradient search (4), or cross-validated trials at most (24), for each kernel.
    cv, scoring, n_jobs : for cross-validation, as in scikit-learn.
    max_rows : tune on at most so many rows, drawn at random; the machine is fitted on all. None for all,
        "auto" for as many as a search of about a minute of one core, or of half of `max_seconds`, is
        predicted to be able to use.
    max_seconds : for the search and the last fit together. Fits inside get what is left of it, where they
        have a `max_seconds` of their own, and no new step is begun that would leave nothing for the last fit.
    verbose : 0 tells of progress on stderr, once a second after the first; 1 also prints every trial, -1
        nothing.

    Ctrl-C raises `mercer.Interrupted` with the `Choice` so far as its `model`. Its machine has the best
    kernel and parameters, and is fitted only if the last fit had begun and had something to keep.

    `fix` and `bounded` parameters of the kernel are respected. X is whatever the kernels take: numbers, or
    strings, graphs and tables of several types, where none of the kernels reads every column as a number.
    The transformers of a Pipeline are fitted anew in every fold of a cross-validation.

    >>> import numpy as np
    >>> from mercer import KernelRidge, choose
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 40)
    >>> found = choose(KernelRidge("RBF(10.0)"), X, y)
    >>> found.by, 0.5 < found.kernel.lengthscale < 5, found.machine.kernel_ == found.kernel
    ('loo', True, True)
    """
    _check(by, n_trials, max_rows, max_seconds)
    subject = Subject.of(machine, y)
    chosen, why = _criterion(by, subject)
    ledger = Ledger(chosen, number_of_rows(X, y), max_seconds, verbose)
    with ledger.run:
        candidates = [subject.parameter("kernel")] if kernels is None else list(kernels)
        things = take_things(candidates) and subject.before is None
        most = _most_rows(max_rows, chosen, subject, None if things else X, cv, max_seconds)
        sample = Sample.of(X, y, most, random_state, things=things, before=subject.before)
        if len(sample) < ledger.rows:
            why += f" Tuned on {len(sample)} of {ledger.rows} rows, fitted on all."
        search = Search(subject, sample, ledger, n_trials, random_state, why)
        if chosen == "cv":
            search.validation = CrossValidation.of(subject, sample, cv, scoring, n_jobs, ledger)
            ledger.most = len(candidates) * search.trials
        for number, candidate in enumerate(candidates):
            search.tune(candidate, waiting=len(candidates) - number)
        ledger.run.status = Status.CONVERGED
    choice = _best(search)
    if ledger.run.interrupted:
        raise Interrupted(choice, "choose: Ctrl-C ended the search; the best so far is kept, not yet fitted.")
    _fit_the_chosen(choice, subject, X, y, ledger.left)
    return choice


def _most_rows(
    asked: int | str | None, by: str, subject: Subject, X: Table | None, cv: Folds, max_seconds: float | None
) -> int | None:
    """How many rows to tune on; X is None where the rows are things that are no vectors."""
    if not isinstance(asked, str):
        return asked
    columns = None if X is None else number_of_columns(X)
    folds = cv if isinstance(cv, int) else 5
    return affordable_rows(by, columns, folds, max_seconds, margin=subject.has_margin)


def _best(search: Search) -> Choice:
    """The best of all trials, with its machine not yet fitted."""
    ledger = search.ledger
    best = ledger.best
    if best is None:
        notes = dict.fromkeys(trial.note for trial in ledger.trials if trial.note)
        tried = "; ".join(notes) or "no trial was finished"
        raise InputError(
            f"nothing could be chosen by {ledger.by}: {tried}. Try other kernels or more seconds."
        )
    status = ledger.run.status
    if status == Status.CONVERGED and (ledger.spent or ledger.cut):
        status = Status.LIMIT
    certificate = Certificate(
        status,
        f"choice by {best.by}",
        iterations=ledger.evaluations,
        seconds=ledger.seconds,
        notes=(f"{len(ledger.trials)} trials",),
    )
    why = search.why
    if best.by != ledger.by:
        why += f" There was no time for a trial by {WORDS[ledger.by]}: this is what {WORDS[best.by]} says."
    machine = search.subject.with_kernel(best.kernel, best.parameters)
    return Choice(
        machine, best.kernel, best.parameters, best.score, best.by, why, ledger.ranked(), certificate
    )


def _fit_the_chosen(choice: Choice, subject: Subject, X: Table, y: Targets, left: float | None) -> None:
    """The last fit, on all rows, in the seconds that are left; the machine's own limit is put back then."""
    machine = choice.machine
    limit = subject.within_seconds(left)
    with Anytime(best=choice) as run:
        machine.set_params(**limit).fit(X, y)
    before = subject.estimator.get_params()
    machine.set_params(**{name: before[name] for name in limit})
    if run.interrupted:
        certificate = replace(choice.certificate, status=Status.INTERRUPTED)
        cut = replace(choice, certificate=certificate)
        raise Interrupted(cut, "choose: Ctrl-C ended the last fit; the choice is kept.")


def _check(by: str, n_trials: int | None, max_rows: int | str | None, max_seconds: float | None) -> None:
    if by not in METHODS:
        raise ParameterError(f"by must be one of {', '.join(METHODS)}; got {by!r}.")
    _check_whole("n_trials", n_trials, 1, "None")
    if max_rows != "auto":
        _check_whole("max_rows", max_rows, 2, "'auto', None")
    if max_seconds is None:
        return
    if not is_real(max_seconds) or not max_seconds > 0:
        raise ParameterError(f"max_seconds must be None or a number > 0; got {max_seconds!r}.")


def _check_whole(name: str, value: int | str | None, least: int, words: str) -> None:
    if value is None:
        return
    if not is_whole(value) or int(value) < least:
        raise ParameterError(f"{name} must be {words} or a whole number >= {least}; got {value!r}.")


# ── the criterion ───────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "evidence": "the evidence",
    "loo": "the leave-one-out error",
    "alignment": "the alignment",
    "cv": "cross-validation",
}


def _criterion(by: str, subject: Subject) -> tuple[str, str]:
    """The criterion and the reason for it."""
    if by == "auto":
        return _usual_criterion(subject)
    why = f"Chosen by {WORDS[by]}, as asked."
    if not _tunes_the_numbers_too(by, subject):
        left = " and ".join(subject.numbers()) or "nothing else"
        why += f" It tunes the kernel; {left} of {subject.name} stays as given."
    if by == "loo" and subject.before is not None:
        why += " The transformers were fitted once, with the rows that are left out."
    return by, why


def _usual_criterion(subject: Subject) -> tuple[str, str]:
    """The criterion of the machine itself, where it has one in closed form."""
    name = subject.name
    if subject.is_gaussian_process:
        why = f"{name} is a Gaussian process: its own marginal likelihood weighs fit against freedom."
        return "evidence", why
    if subject.is_ridge and subject.before is None:
        return "loo", f"{name} has its leave-one-out error in closed form, at the price of one fit."
    if subject.is_ridge:
        return "cv", f"Cross-validation, so that the transformers before {name} do not see the rows left out."
    return "cv", f"Cross-validation, because {name} has no criterion of its own in closed form."


def _tunes_the_numbers_too(by: str, subject: Subject) -> bool:
    """Whether the criterion speaks of the machine's numbers as well as of the kernel."""
    if by == "cv":
        return True
    if by == "alignment":
        return False
    return subject.is_ridge or (by == "evidence" and subject.is_gaussian_process)
