"""`compare(table, target)`: kernels or machines on one table, with the uncertainty of their differences.

Every candidate is scored on the same folds, so that what makes a fold easy or hard cancels in the differences
d_j, j = 1 … J. The folds share most of their training rows, and the plain variance of the mean would be far
too small. The corrected resampled t interval (Nadeau and Bengio, 2003) allows for it:

    d̄ ± t_{J-1} √((1/J + n_test/n_train) s²),      s² = Σ (d_j - d̄)² / (J - 1)

It is a rule that holds up well in practice, not a theorem. Intervals are of each difference by itself, and
the best of many candidates looks better than it is: its score is that of a winner.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

import numpy as np
from scipy.stats import t as student
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from mercer.errors import InputError, MercerError, ParameterError, TargetError
from mercer.frames import frame_names, frame_rows, is_frame
from mercer.kernels import Kernel, White
from mercer.kernels.base import as_kernel
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.margin.svc import SVC
from mercer.machines.margin.svr import SVR
from mercer.machines.ridge.ridge_cv import KernelRidgeCV
from mercer.recipe.given import find_task
from mercer.tables.names import require_columns
from mercer.tables.propose import describe_table
from mercer.typing import Array, Integers, Labels, Table, Targets

LEVEL = 0.95
# Steps of a search for hyperparameters. The first ones bring nearly all of the evidence.
STEPS = 30
NOTHING = "nothing learned"
PROPOSED = "proposed"
# Letters of a kernel that the printed table has.
SHOWN = 60
# The machine where none is named.
USUAL = {"numbers": "ridge", "classes": "svc"}
SCORES = {"numbers": "r2", "classes": "accuracy"}

Machines: TypeAlias = Sequence[str] | Mapping[str, BaseEstimator]
Split: TypeAlias = tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class Compared:
    """One candidate: its score on every fold, and how it differs from the best.

    `difference` is its mean score minus that of the best, `low` to `high` the corrected resampled t interval
    of it. A candidate that failed has the reason in `failure`, and no scores.
    """

    name: str
    kernel: str | None
    scores: Array
    seconds: float
    difference: float = 0.0
    low: float = 0.0
    high: float = 0.0
    failure: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """The mean score over all folds; NaN where the candidate failed."""
        return float(np.mean(self.scores)) if len(self.scores) else float("nan")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates on one table, the best first, and how they were compared.

    `proposed` is the text of the kernel that was proposed, None where kernels were given.
    """

    candidates: tuple[Compared, ...]
    task: str
    scoring: str
    folds: int
    repeats: int
    rows: int
    proposed: str | None = None

    @property
    def best(self) -> Compared:
        """The candidate with the largest mean score."""
        return self.candidates[0]

    def __str__(self) -> str:
        width = max(len(_title(candidate)) for candidate in self.candidates)
        width = max(width, len("candidate"))
        lines = [
            f"{'candidate':{width}}  {self.scoring:>9}  {'to the best':>11}  {'95 % interval':>19}  seconds"
        ]
        for c in self.candidates:
            if c.failure is not None:
                lines.append(f"{_title(c):{width}}  failed: {c.failure}")
                continue
            interval = "" if c is self.best else f"{c.low:+.4f} … {c.high:+.4f}"
            away = "" if c is self.best else f"{c.difference:+.4f}"
            lines.append(f"{_title(c):{width}}  {c.mean:9.4f}  {away:>11}  {interval:>19}  {c.seconds:7.2f}")
        return "\n".join(lines)


def _title(candidate: Compared) -> str:
    if candidate.kernel is None:
        return candidate.name
    text = candidate.kernel
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]} …"
    return f"{candidate.name}, {text}"


def compare(
    table: Table,
    target: str | Targets,
    *,
    kernels: Sequence[Kernel | str] = (),
    machines: Machines = (),
    task: str | None = None,
    scoring: str | None = None,
    folds: int = 5,
    repeats: int = 2,
    leave_out: Iterable[str] = (),
    random_state: int = 0,
    tell: Callable[[str], None] | None = None,
) -> Comparison:
    """Score kernels and machines on the same folds of a table, the best first.

    Every kernel goes into every machine; where none is given, the kernel is that of `table_kernel`. "nothing
    learned" (the mean, or the most frequent class) is always among the candidates. A candidate that fails
    comes last, with the reason.

    Parameters
    ----------
    target : the name of a column, or one value for each row
    machines : names, or estimators by name
        "ridge" (`KernelRidgeCV`: its penalty by leave-one-out), "svr" (C = 1, the target scaled) and "gp"
        (hyperparameters by evidence in every fold) for numbers; "svc" (C = 1) and "gp" for classes. Of an
        estimator of yours, a copy with each kernel is fitted.
    scoring : a name of scikit-learn's scores; larger is better
    tell : called with a line of progress before every fit

    >>> import pandas as pd
    >>> x = np.linspace(-3, 3, 60)
    >>> table = pd.DataFrame({"x": x, "y": np.sin(2 * x)})
    >>> found = compare(table, "y", kernels=["RBF()", "Linear()"])
    >>> [candidate.kernel for candidate in found.candidates]
    ['RBF()', 'Linear()', None]
    >>> found.candidates[1].high < 0                     # the line is worse, beyond doubt
    True
    """
    X, y = _split(table, target, leave_out)
    kind, _ = find_task(y, task)
    _check_targets(y, kind, folds)
    named = _machines(machines, kind)
    offered = {str(as_kernel(k)): as_kernel(k) for k in kernels}
    if not kernels:
        offered = {PROPOSED: describe_table(X).kernel}
    splits = _splits(y, kind, folds, repeats, random_state)
    trial = _Trial(X, y, splits, scoring or SCORES[kind])
    # imported late, here and below: few need them, and they are slow
    from sklearn.dummy import DummyClassifier, DummyRegressor

    nothing = DummyClassifier() if kind == "classes" else DummyRegressor()
    found = [trial.scored(NOTHING, None, nothing)]
    for (name, machine), (text, kernel) in product(named.items(), offered.items()):
        told = _told(tell, f"{name}, {text}")
        limited = name == "gp" and not isinstance(machines, Mapping)
        found.append(trial.scored(name, text, _with(machine, kernel), told, limited=limited))
    ordered = _ordered(found, splits)
    proposed = None if kernels else str(offered[PROPOSED])
    return Comparison(ordered, kind, trial.scoring, folds, repeats, len(y), proposed)


def paired_interval(
    differences: Sequence[float] | Array, train: float, test: float, level: float = LEVEL
) -> tuple[float, float]:
    """The corrected resampled t interval of a mean difference of scores (Nadeau and Bengio, 2003).

    `train` and `test` are the rows that a split has for each.

    >>> [round(end, 3) for end in paired_interval([1.0, 3.0], 80, 40)]        # 2 ± 12.706 √(2 (1/2 + 1/2))
    [-15.969, 19.969]
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise InputError(f"an interval needs the differences of at least 2 splits; got {d.shape}.")
    mean = float(d.mean())
    variance = float(d.var(ddof=1)) * (1 / len(d) + test / train)
    half = float(student.ppf((1 + level) / 2, len(d) - 1)) * float(np.sqrt(variance))
    return mean - half, mean + half


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────


def _split(table: Table, target: str | Targets, leave_out: Iterable[str]) -> tuple[Table, Labels]:
    """The rows to learn from, and their targets."""
    if not is_frame(table):
        raise InputError("compare takes a table with names of columns: pandas, polars or Arrow.")
    import narwhals

    frame = narwhals.from_native(table, eager_only=True)  # type: ignore[call-overload]
    names = frame_names(table)
    without = list(leave_out)
    if isinstance(target, str):
        without.append(target)
    require_columns(names, without)
    values = frame[target].to_list() if isinstance(target, str) else list(np.asarray(target).tolist())
    if len(values) != len(frame):
        raise TargetError(f"the target has {len(values)} values for {len(frame)} rows.")
    gaps = [i for i, value in enumerate(values) if value is None or value != value]
    if gaps:
        raise TargetError(
            f"the target has no value in row {gaps[0] + 1}, and {len(gaps)} rows have none. Leave them out."
        )
    return frame.drop(without).to_native(), np.asarray(values)


def _check_targets(y: Labels, kind: str, folds: int) -> None:
    if len(y) < 2 * folds:
        raise InputError(f"{len(y)} rows are too few for {folds} folds: at least {2 * folds} are needed.")
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise TargetError(f"the target is always {values[0].item()!r}: there is nothing to learn.")
    if kind == "classes" and counts.min() < folds:
        few = values[int(np.argmin(counts))].item()
        raise InputError(
            f"class {few!r} has {counts.min()} rows, and {folds} folds need as many of each. Use fewer, "
            "or leave its rows out."
        )


def _splits(y: Labels, kind: str, folds: int, repeats: int, seed: int) -> list[Split]:
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    cutter = RepeatedStratifiedKFold if kind == "classes" else RepeatedKFold
    return list(cutter(n_splits=folds, n_repeats=repeats, random_state=seed).split(np.zeros(len(y)), y))


# ── the candidates ──────────────────────────────────────────────────────────────────────────────────────────


def _machines(asked: Machines, kind: str) -> dict[str, BaseEstimator]:
    if isinstance(asked, Mapping):
        return dict(asked)
    known = _known(kind)
    names = list(asked) or [USUAL[kind]]
    for name in names:
        if name not in known:
            raise ParameterError(f"for {kind} the machines are {', '.join(known)}; got {name!r}.")
    return {name: known[name] for name in names}


def _known(kind: str) -> dict[str, BaseEstimator]:
    if kind == "classes":
        return {"svc": SVC(), "gp": GaussianProcessClassifier(max_iter=STEPS)}
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    scaled = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    process = GaussianProcessRegressor(normalize_y=True, max_iter=STEPS)
    return {"ridge": KernelRidgeCV(fit_intercept=True), "svr": scaled, "gp": process}


def _with(machine: BaseEstimator, kernel: Kernel) -> BaseEstimator:
    """A copy of the machine with this kernel, wherever it has one."""
    fresh = clone(machine)
    name = next((n for n in ("kernel", "regressor__kernel") if n in fresh.get_params(deep=True)), None)
    if name is None:
        return fresh
    if isinstance(fresh, GaussianProcessRegressor) and not _has_noise(kernel):
        kernel = kernel + White(0.1)
    return fresh.set_params(**{name: kernel})


def _has_noise(kernel: Kernel) -> bool:
    return any(p.name.split("__")[-1] == "noise" for p in kernel.parameters)


def _told(tell: Callable[[str], None] | None, said: str) -> Callable[[str], None] | None:
    if tell is None:
        return None
    return lambda fold: tell(f"{said}: {fold}")


@dataclass(frozen=True, eq=False)
class _Trial:
    """The folds on which every candidate is scored."""

    X: Table
    y: Labels
    splits: list[Split]
    scoring: str

    def scored(
        self,
        name: str,
        kernel: str | None,
        machine: BaseEstimator,
        tell: Callable[[str], None] | None = None,
        *,
        limited: bool = False,
    ) -> Compared:
        """The score of a machine on every fold, or why there is none; `limited`: it ends early on purpose."""
        try:
            from sklearn.metrics import check_scoring

            scorer = check_scoring(machine, scoring=self.scoring)
        except ValueError as error:
            raise ParameterError(
                f"scoring = {self.scoring!r} is no score of scikit-learn's: {error}"
            ) from error
        began = time.perf_counter()
        scores = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for j, (train, test) in enumerate(self.splits):
                if tell is not None:
                    tell(f"fold {j + 1} of {len(self.splits)}")
                try:
                    fitted = clone(machine).fit(self._rows(train), self.y[train])
                    scores.append(float(scorer(fitted, self._rows(test), self.y[test])))
                except (MercerError, ValueError, np.linalg.LinAlgError) as error:
                    reason = " ".join(str(error).split())
                    seconds = time.perf_counter() - began
                    return Compared(name, kernel, np.empty(0), seconds, failure=reason)
        notes = _notes([w for w in caught if not (limited and issubclass(w.category, ConvergenceWarning))])
        return Compared(name, kernel, np.array(scores), time.perf_counter() - began, notes=notes)

    def _rows(self, index: Integers) -> Table:
        chosen: Table = frame_rows(self.X, index.tolist())
        return chosen


def _notes(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """The first warning of each kind, and how many there were."""
    first: dict[type[Warning], str] = {}
    for warning in caught:
        first.setdefault(warning.category, " ".join(str(warning.message).split()))
    counts = Counter(warning.category for warning in caught)
    return tuple(f"{text} ({counts[kind]} such warnings)" for kind, text in first.items())


def _ordered(found: Sequence[Compared], splits: Sequence[Split]) -> tuple[Compared, ...]:
    """Best first, each with its difference to the best; what failed comes last."""
    good = sorted((c for c in found if c.failure is None), key=lambda c: -c.mean)
    train = float(np.mean([len(rows) for rows, _ in splits]))
    test = float(np.mean([len(rows) for _, rows in splits]))
    out = [good[0]]
    for c in good[1:]:
        differences = c.scores - good[0].scores
        low, high = paired_interval(differences, train, test)
        out.append(replace(c, difference=float(differences.mean()), low=low, high=high))
    return (*out, *(c for c in found if c.failure is not None))
