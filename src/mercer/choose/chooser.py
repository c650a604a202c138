"""One call that tunes a kernel for any machine, and says by what, why, and what else was tried."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv, cross_val_score

from mercer import clock
from mercer.arrays import Rows, check_vectors
from mercer.choose.criteria import CRITERIA
from mercer.choose.search import Ledger, Trial, along_gradients, by_trials
from mercer.errors import InputError, Interrupted, ParameterError, ShapeError
from mercer.kernels import White
from mercer.kernels.base import Kernel
from mercer.machines.shared.base import PRECOMPUTED
from mercer.machines.shared.defaults import resolve
from mercer.solve.solution import Certificate, Status
from mercer.theory.alignment import are_labels, targets

METHODS = ("auto", "evidence", "loo", "cv", "alignment")
STARTS, TRIALS = (
    4,
    32,
)  # L-BFGS starts, and cross-validated trials, for each kernel unless n_trials says otherwise


@dataclass(frozen=True, eq=False)
class Choice:
    """What `mercer.choose` found.

    `machine` is fitted on all rows with the best `kernel` and `parameters` (its alpha or C, where they were tuned);
    `score` is the criterion's value, larger is better; `trials` are all that was tried, the best first; `why` says how the
    criterion was chosen and what it leaves open; `certificate` says how the search ended.
    """

    machine: Any
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
    machine: Any,
    X: Any,
    y: Any,
    *,
    by: str = "auto",
    kernels: Iterable[Kernel | str] | None = None,
    n_trials: int | None = None,
    cv: Any = 5,
    scoring: Any = None,
    max_rows: int | None = 2000,
    max_seconds: float | None = None,
    random_state: int = 0,
    verbose: int = 0,
    n_jobs: int | None = None,
) -> Choice:
    """Tune all free hyperparameters of a kernel, and the machine's alpha or C, and fit the machine with the best.

    Parameters
    ----------
    machine : a machine with a `kernel` (a scikit-learn estimator), or a kernel or its text: then `SVC` for labels and
        `KernelRidge` for numbers.
    by : what to choose by.
        "evidence"   the log marginal likelihood of a Gaussian process: numbers only.
        "loo"        the closed-form leave-one-out error of kernel ridge regression.
        "cv"         cross-validation with the machine itself: any machine, any `scoring`.
        "alignment"  centred kernel-target alignment: quickest, but for the kernel alone; alpha and C stay as they are.
        "auto"       evidence for Gaussian processes, loo for kernel ridge regression, cv for all others.
    kernels : kernels to compare, each tuned; None for the machine's own.
    n_trials : starts of the gradient search (4), or cross-validated trials (32), for each kernel.
    cv, scoring, n_jobs : for cross-validation, as in scikit-learn.
    max_rows : tune on at most so many rows, drawn at random; the machine is fitted on all. None for all.
    max_seconds : for the search and the last fit together: fits inside get what is left of it where they have a `max_seconds` of their own,
        and no new step is begun that would leave nothing for the last fit.

    Ctrl-C raises `mercer.Interrupted` with the `Choice` so far as its `model`; its machine has the best kernel and parameters,
    and is fitted only if the last fit had begun and had something to keep.

    `fix` and `bounded` parameters of the kernel are respected.

    >>> from mercer import KernelRidge, choose
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 40)
    >>> found = choose(KernelRidge("RBF(10.0)"), X, y)
    >>> found.by, 0.5 < found.kernel.lengthscale < 5, found.machine.kernel_ == found.kernel
    ('loo', True, True)
    """
    _check(by, n_trials, max_rows, max_seconds)
    machine = _machine(machine, y)
    numbers_wanted = not is_classifier(machine)
    rows = _rows(X, y)
    chosen, why = _criterion(by, machine, numbers_wanted)
    part = _sample(rows, max_rows, random_state)
    if len(part) < rows:
        why += f" Tuned on {len(part)} of {rows} rows, fitted on all."
    x, t = _take(X, part), np.asarray(y)[part]
    A = check_vectors(x)
    named = Rows.of(x, "X") if hasattr(x, "columns") else Rows.of(A, "X")
    ledger = Ledger(max_seconds, verbose, rows / len(part))
    status: Status = Status.CONVERGED
    try:
        with clock.within(max_seconds):
            for one in [machine.kernel] if kernels is None else list(kernels):
                kernel = resolve(one, named)
                if kernel is None:
                    raise ParameterError(
                        "a precomputed kernel has no parameters to choose; pass the kernel itself."
                    )
                if chosen == "cv":
                    trials = TRIALS if n_trials is None else int(n_trials)
                    score = _scorer(machine, x, t, cv, scoring, n_jobs, ledger)
                    by_trials(score, kernel, _others(machine), A, trials, ledger, random_state)
                else:
                    starts = STARTS if n_trials is None else int(n_trials)
                    kernel, noise, name, note = _noise(chosen, machine, kernel, named, t)
                    why += "" if note in why else note
                    Y = _targets(machine, t)
                    how = CRITERIA[chosen]
                    along_gradients(how, kernel, noise, name, named, Y, A, starts, ledger, random_state)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    best = ledger.best
    if best is None and status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    if best is None:
        tried = "; ".join(dict.fromkeys(t.note for t in ledger.trials if t.note)) or "no trial was finished"
        raise InputError(f"nothing could be chosen by {chosen}: {tried}. Try other kernels or more seconds.")
    if status == Status.CONVERGED and (ledger.spent or ledger.cut):
        status = Status.LIMIT
    certificate = Certificate(
        status,
        f"choice by {chosen}",
        iterations=ledger.evaluations,
        seconds=ledger.seconds,
        notes=(f"{len(ledger.trials)} trials",),
    )
    ranked = tuple(sorted(ledger.trials, key=lambda t: -t.score))
    last = _with(machine, best.kernel, best.parameters)
    choice = Choice(last, best.kernel, best.parameters, best.score, chosen, why, ranked, certificate)
    if status == Status.INTERRUPTED:
        raise Interrupted(choice, "choose: Ctrl-C ended the search; the best so far is kept, not yet fitted.")
    limit = {} if ledger.left is None else _seconds(last, ledger.left)
    try:
        last.set_params(**limit).fit(X, y)
    except KeyboardInterrupt as stop:
        cut = replace(choice, certificate=replace(certificate, status=Status.INTERRUPTED))
        raise Interrupted(cut, "choose: Ctrl-C ended the last fit; the choice is kept.") from stop
    finally:
        last.set_params(**{name: machine.get_params(deep=False)[name] for name in limit})
    return choice


# ── what is given ───────────────────────────────────────────────────────────────────────────────────────────


def _check(by: str, n_trials: Any, max_rows: Any, max_seconds: Any) -> None:
    if by not in METHODS:
        raise ParameterError(f"by must be one of {', '.join(METHODS)}; got {by!r}.")
    for name, value, least in (("n_trials", n_trials, 1), ("max_rows", max_rows, 2)):
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if value is not None and (not whole or value < least):
            raise ParameterError(f"{name} must be None or a whole number >= {least}; got {value!r}.")
    real = isinstance(max_seconds, numbers.Real) and not isinstance(max_seconds, bool)
    if max_seconds is not None and (not real or not max_seconds > 0):
        raise ParameterError(f"max_seconds must be None or a number > 0; got {max_seconds!r}.")


def _machine(machine: Any, y: Any) -> Any:
    """The machine, or the usual one for a kernel on such targets."""
    if isinstance(machine, Kernel | str):
        if machine == PRECOMPUTED:
            raise ParameterError("a precomputed kernel has no parameters to choose; pass the kernel itself.")
        if are_labels(np.asarray(y)):
            from mercer.machines.margin.svc import SVC

            return SVC(machine)
        from mercer.machines.ridge.ridge import KernelRidge

        return KernelRidge(machine)
    if not hasattr(machine, "get_params") or "kernel" not in machine.get_params(deep=False):
        raise ParameterError(
            f"choose tunes a machine with a kernel, or a kernel; got {type(machine).__name__}. Pass for example "
            "KernelRidge('RBF()')."
        )
    return clone(machine)


def _rows(X: Any, y: Any) -> int:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if y is None or np.shape(y)[:1] != (n,):
        raise ShapeError(f"X has {n} rows and y has shape {np.shape(y)}. Pass one target for each row.")
    return int(n)


def _sample(n: int, max_rows: int | None, seed: int) -> np.ndarray:
    if max_rows is None or n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, int(max_rows), replace=False))


def _take(X: Any, part: np.ndarray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[part]
    return X[part] if hasattr(X, "shape") else np.asarray(X)[part]


# ── how to choose ───────────────────────────────────────────────────────────────────────────────────────────


def _criterion(by: str, machine: Any, numbers_wanted: bool) -> tuple[str, str]:
    """The criterion and the reason for it."""
    name, parameters = type(machine).__name__, machine.get_params(deep=False)
    if by == "evidence" and not numbers_wanted:
        raise ParameterError(
            f"the evidence here is that of regression, and {name} learns labels. Use 'cv' or 'alignment'."
        )
    if by == "auto":
        if numbers_wanted and "optimizer" in parameters and "kernel" in parameters:
            return (
                "evidence",
                f"{name} is a Gaussian process: its own marginal likelihood weighs fit against freedom.",
            )
        if numbers_wanted and _is_ridge(machine):
            return "loo", f"{name} has its leave-one-out error in closed form, at the price of one fit."
        return "cv", f"Cross-validation, because {name} has no criterion of its own in closed form."
    said = {
        "evidence": "the evidence",
        "loo": "the leave-one-out error",
        "alignment": "the alignment",
        "cv": "cross-validation",
    }
    why = f"Chosen by {said[by]}, as asked."
    own = (
        by == "cv"
        or (_is_ridge(machine) and by in ("evidence", "loo"))
        or (by == "evidence" and "optimizer" in parameters)
    )
    if not own:
        left = " and ".join(_others(machine)) or "nothing else"
        why += f" It tunes the kernel; {left} of {name} stays as given."
    return by, why


def _is_ridge(machine: Any) -> bool:
    parameters = machine.get_params(deep=False)
    return "alpha" in parameters and "loss" not in parameters and not is_classifier(machine)


def _others(machine: Any) -> dict[str, float]:
    """The machine's own numbers that are tuned with the kernel: alpha or C, where they are positive and finite."""
    parameters = machine.get_params(deep=False)
    found = {name: parameters[name] for name in ("alpha", "C") if name in parameters}
    return {
        name: float(v)
        for name, v in found.items()
        if isinstance(v, numbers.Real) and not isinstance(v, bool) and 0 < float(v) < np.inf
    }


def _noise(
    by: str, machine: Any, kernel: Kernel, x: Rows, t: np.ndarray
) -> tuple[Kernel, float | None, str, str]:
    """The kernel, the first guess of λ (None: it has none of its own), the parameter it is, and what to say."""
    if by == "alignment":
        return kernel, None, "", ""
    one = x.rows(np.arange(1))
    noisy = not np.isclose(kernel(one)[0, 0], kernel(one, one)[0, 0], rtol=1e-9, atol=0.0)
    if _is_ridge(machine):
        alpha = _others(machine).get("alpha", 1.0)
        return kernel, alpha, "alpha", ""
    if "optimizer" in machine.get_params(deep=False):
        if noisy or machine.get_params(deep=False).get("noise") is not None:
            return kernel, None, "", ""
        level = 0.1 * float(np.var(np.asarray(t, dtype=float))) or 1.0
        return kernel + White(level), None, "", " A White term was added to a kernel without noise."
    return kernel, (None if noisy else 0.1), "", ""


def _targets(machine: Any, t: np.ndarray) -> np.ndarray:
    """Targets as numbers; centred where the machine has an intercept, for machines without a scale of y in units of it."""
    Y = targets(t, len(t)) if is_classifier(machine) else np.asarray(t, dtype=np.float64).reshape(len(t), -1)
    parameters = machine.get_params(deep=False)
    if is_classifier(machine) or parameters.get("fit_intercept"):
        Y = Y - Y.mean(axis=0)
    if not _is_ridge(machine) and "optimizer" not in parameters:
        size = float(np.sqrt(np.mean(Y**2)))
        Y = Y / size if size > 0 else Y
    return Y


def _scorer(
    machine: Any,
    X: Any,
    y: np.ndarray,
    cv: Any,
    scoring: Any,
    n_jobs: int | None,
    ledger: Ledger,
) -> Any:
    """The mean score of a trial by cross-validation; with a limit, each of its fits has its share of what is left."""
    splits = list(check_cv(cv, y, classifier=is_classifier(machine)).split(X, y))
    folds = len(splits)
    together = ledger.left is None or n_jobs not in (None, 1)
    rounds = [splits] if together else [[one] for one in splits]
    grown = ledger.grown / (1 - 1 / max(folds, 2))

    def score(kernel: Kernel, others: dict[str, float]) -> float:
        began = ledger.seconds
        one = _with(machine, kernel, others)
        if ledger.left is not None:
            one.set_params(**_seconds(one, ledger.left / (folds + 1)))
        found: list[float] = []
        for some in rounds:
            found += cross_val_score(one, X, y, cv=some, scoring=scoring, n_jobs=n_jobs).tolist()
            # A fit costs n² at least; the last one is of all rows.
            ledger.cost = (ledger.seconds - began) / len(found) * grown**2
            if ledger.spent and len(found) < len(splits):
                # Where nothing else is known, the folds so far are the score.
                raise clock.OutOfTime(None if ledger.best else float(np.mean(found)))
        return float(np.mean(found))

    return score


def _seconds(machine: Any, left: float) -> dict[str, float]:
    """The machine's own limit, if it has one, no longer than what is left."""
    parameters = machine.get_params(deep=False)
    if "max_seconds" not in parameters:
        return {}
    own = parameters["max_seconds"]
    return {"max_seconds": left if own is None else min(float(own), left)}


def _with(machine: Any, kernel: Kernel, others: dict[str, float]) -> Any:
    """A fresh machine with this kernel, which does not tune again what was chosen."""
    parameters = machine.get_params(deep=False)
    own = {"optimizer": None} if "optimizer" in parameters else {}
    return clone(machine).set_params(kernel=kernel, **others, **own)
