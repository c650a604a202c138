"""`fit_table(table, target)`: from a raw table to a fitted machine, and in words what was done.

task      numbers or classes, by the values of the target
kernel    as `table_kernel` proposes it, its scales and words learned from all rows
tuning    the evidence of a Gaussian process, on some of many rows, within bounds
machine   on all rows, with the kernel found
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.arrays import Rows
from mercer.errors import InputError, ParameterError
from mercer.frames import frame_rows
from mercer.kernels import Kernel, White
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.margin.svc import SVC
from mercer.tables.propose import Proposal, describe_table
from mercer.typing import Labels, Table, Targets

TASKS = ("numbers", "classes")
# A target of whole numbers with at most so many different values is a label.
MOST_LABELS = 10
# Rows on which hyperparameters are searched: of numbers, and of two classes. More classes cost more each.
ROWS_FOR_NUMBERS = 1000
ROWS_FOR_CLASSES = 1500
# Steps of the search. The first ones bring nearly all of the evidence.
STEPS = 30
# Every column is read on a scale of about 1, so that no number of a good kernel is far from it.
HEIGHTS = (1e-3, 1e2)
LENGTHS = (0.05, 1e2)
NOISE = (1e-4, 1.0)
# Rows × rows × classes above which the process of classes is too large, and a margin takes its place.
LARGEST_PROCESS = 1e7
# Newton's residual that the mode of classes is worth.
MODE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class TableFit:
    """A machine fitted to a table, the kernel's reasons, and what was done, step by step, in words."""

    model: GaussianProcessRegressor | GaussianProcessClassifier | SVC
    task: str
    proposal: Proposal
    steps: tuple[str, ...]

    @property
    def kernel(self) -> Kernel:
        """The kernel with the hyperparameters found."""
        found = self.model.kernel_
        assert isinstance(found, Kernel)
        return found

    def predict(self, table: Table) -> Labels:
        """Numbers or classes for the rows of a raw table, its columns in any order."""
        return np.asarray(self.model.predict(table))

    def __str__(self) -> str:
        return "\n".join([str(self.proposal), *self.steps])


def fit_table(
    table: Table,
    target: Targets,
    *,
    task: str | None = None,
    leave_out: Iterable[str] = (),
    max_seconds: float | None = None,
) -> TableFit:
    """A machine for the rows of a table and their targets, from `table_kernel`, tuned by the evidence.

    `task` is "numbers" or "classes"; None decides by the values of the target. Columns that give the answer
    away are yours to name in `leave_out`. `max_seconds` ends the search for hyperparameters.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": np.arange(40) * 0.5, "kind": ["oak", "ash"] * 20})
    >>> found = fit_table(table, ["small"] * 20 + ["large"] * 20)
    >>> print(found.steps[0])
    The target has 2 different values: classes.
    >>> new = pd.DataFrame({"kind": ["ash", "elm", None], "size": [3.2, 17.0, 12.5]})
    >>> found.predict(new).tolist()
    ['small', 'large', 'large']
    """
    values = np.asarray(target)
    proposal = describe_table(table, leave_out=leave_out)
    rows = Rows.of(table, "the table")
    if values.shape != (len(rows),):
        raise InputError(f"the target must have one value for each of {len(rows)} rows; got {values.shape}.")
    kind, why = _task(values, task)
    kernel = _started(proposal.kernel.resolved(table), 1.0 if kind == "numbers" else 4.0)
    if kind == "numbers":
        model, steps = _fit_numbers(kernel, table, values, max_seconds)
    else:
        model, steps = _fit_classes(kernel, table, values, max_seconds)
    return TableFit(model, kind, proposal, (why, *steps))


def _task(values: Labels, wanted: str | None) -> tuple[str, str]:
    """Numbers or classes, and why."""
    if wanted is not None:
        if wanted not in TASKS:
            raise ParameterError(f"task must be 'numbers', 'classes' or None; got {wanted!r}.")
        return wanted, f"The target is {wanted}, as you said."
    distinct = len(set(values.tolist()))
    if values.dtype.kind not in "iuf":
        return "classes", f"The target has {distinct} different values: classes."
    whole = bool(np.all(values == np.round(values)))
    if whole and distinct <= MOST_LABELS:
        return "classes", f"The target has {distinct} different whole numbers: classes."
    return "numbers", f"The target has {distinct} different numbers."


def _started(kernel: Kernel, height: float) -> Kernel:
    """The closed kernel with this height at the start, shared by its terms."""
    terms = [p.name for p in kernel.parameters if p.name.split("__")[-1] == "scale"]
    return kernel.set_params(**{name: height / len(terms) for name in terms})


def _fit_numbers(
    kernel: Kernel, table: Table, y: Labels, max_seconds: float | None
) -> tuple[GaussianProcessRegressor, list[str]]:
    noisy = kernel + White(0.1)
    bounded = noisy.bounded(scale=HEIGHTS, lengthscale=LENGTHS, noise=NOISE)
    some = _some(len(y), ROWS_FOR_NUMBERS, None)
    search = GaussianProcessRegressor(bounded, normalize_y=True, max_iter=STEPS, max_seconds=max_seconds)
    with _no_word_of_limits():
        search.fit(frame_rows(table, some.tolist()), y[some])
    found = _with_numbers_of(noisy, search.kernel_)
    model = GaussianProcessRegressor(found, normalize_y=True, optimizer=None).fit(table, y)
    return model, [_searched(search, len(some), len(y)), f"A Gaussian process on all {len(y)} rows."]


def _fit_classes(
    kernel: Kernel, table: Table, y: Labels, max_seconds: float | None
) -> tuple[GaussianProcessClassifier | SVC, list[str]]:
    count = len(set(y.tolist()))
    bounded = kernel.bounded(scale=HEIGHTS, lengthscale=LENGTHS)
    # an evaluation takes about rows³ × classes²
    some = _some(len(y), int(ROWS_FOR_CLASSES * (2 / max(count, 2)) ** (2 / 3)), y)
    search = GaussianProcessClassifier(bounded, max_iter=STEPS, tol=MODE_TOLERANCE, max_seconds=max_seconds)
    with _no_word_of_limits():
        search.fit(frame_rows(table, some.tolist()), y[some])
    found = _with_numbers_of(kernel, search.kernel_)
    said = _searched(search, len(some), len(y))
    if len(y) ** 2 * count > LARGEST_PROCESS:
        margin = SVC(found, C=1.0).fit(table, y)
        return margin, [said, f"A margin machine on all {len(y)} rows, too many for the process."]
    process = GaussianProcessClassifier(found, optimizer=None, tol=MODE_TOLERANCE).fit(table, y)
    return process, [said, f"A Gaussian process of {count} classes on all {len(y)} rows."]


def _searched(search: GaussianProcessRegressor | GaussianProcessClassifier, some: int, n: int) -> str:
    where = f"all {n} rows" if some == n else f"{some} of {n} rows"
    status = search.certificate_.status
    kernel = search.kernel_
    assert isinstance(kernel, Kernel)
    return (
        f"{len(kernel.theta)} hyperparameters by the evidence of {where}, at most {STEPS} steps: "
        f"{status}, log evidence {search.log_evidence_:.6g}."
    )


def _with_numbers_of(kernel: Kernel, tuned: Kernel | str) -> Kernel:
    """The kernel with the numbers of one that is the same but for its bounds."""
    assert isinstance(tuned, Kernel)
    found = {p.name: p.value for p in tuned.parameters}
    free = [p for p in kernel.parameters if p.free]
    return kernel.with_theta(np.array([p.domain.to_real(found[p.name], p.bounds) for p in free]))


def _some(n: int, most: int, labels: Labels | None) -> np.ndarray:
    """Some of the rows, the same for the same n, in their order; of every class a few."""
    order = np.random.default_rng(n).permutation(n)
    chosen = order[:most]
    if labels is not None:
        shuffled = labels[order]
        firsts = [np.flatnonzero(shuffled == label)[:5] for label in np.unique(labels)]
        chosen = np.union1d(chosen, order[np.concatenate(firsts)])
    return np.sort(chosen)


@contextmanager
def _no_word_of_limits() -> Iterator[None]:
    """The search ends on purpose after some steps, and `steps` says so: no warning besides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
