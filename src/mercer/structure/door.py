"""`mercer.choose.structure(X, y)`: a search over kernels that says in words what it found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mercer import clock
from mercer.arrays import Column, Rows, column_names
from mercer.errors import InputError, ParameterError
from mercer.frames import frame_rows, is_frame
from mercer.kernels.base import Kernel
from mercer.kernels.terms import latent_terms
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.shared.targets import check_numbers
from mercer.progress import Talk
from mercer.solve.anytime import Anytime
from mercer.solve.solution import Status
from mercer.sparse import dense
from mercer.structure.answer import Alternative, Structure, column_of
from mercer.structure.averaging import Average, averaged, complements
from mercer.structure.grammar import key_of, total
from mercer.structure.plain import plain_of_table, tuned_plain
from mercer.structure.proposals import Line, first_of_line, first_of_table, menu_of_line, menu_of_table
from mercer.structure.scoring import Candidate, Sample, folds, rolling, tuned
from mercer.structure.search import Search
from mercer.structure.vocabulary import Vocabulary
from mercer.structure.words import say_fit
from mercer.threads import blas_for
from mercer.typing import Array, Table, Targets

FEWEST = 8
VALIDATIONS = ("auto", "rolling", "folds")
# Kernels that may be averaged, and that are told.
AVERAGED = 4
CONSIDERED = 15
TOLD = 5
# Rows up to which the numbers found on some of them are tuned once more on all, and that are fitted at most.
TUNED = 2000
FITTED = 5000
# Rows up to which a search works in one thread.
ALONE = 300
AGAIN = 20
NOISE = 0.1


@dataclass(frozen=True, eq=False)
class _Task:
    """The rows and targets as they came, and as the search sees them."""

    X: Table
    y: Array
    rows: Rows
    columns: list[Column]
    names: Sequence[str] | None

    @property
    def numbers(self) -> Array:
        return np.asarray(dense(self.rows.vectors), dtype=np.float64)


def structure(
    X: Table,
    y: Targets,
    *,
    units: Mapping[str, str] | str | None = None,
    target_unit: str = "",
    vocabulary: Vocabulary | None = None,
    validation: str = "auto",
    beam: int = 2,
    rounds: int = 6,
    max_rows: int = 500,
    max_seconds: float | None = None,
    average: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Structure:
    """The kernel that explains y by X best, found by a search over sums and products, and said in words.

    Parameters
    ----------
    X : rows of numbers; a list of numbers is one column. y : one number for each row.
    units : what the numbers of the columns are, such as "years": one text for all, or one for each name.
    target_unit : what y is counted in. vocabulary : how columns are spoken, in place of these.
    validation : how rows are held out: "rolling" origins of one ordered column, "folds", or "auto", which
        rolls where there is one column.
    beam : from how many kernels a round goes on. rounds : of the search, at most.
    max_rows : the search takes so many rows of more, drawn with `random_state`; the fit takes all, or 5000
        of more.
    max_seconds : seconds for the search. Ctrl-C ends it too; the best kernel so far is the answer.
    average : whether the best few may predict together, where that is better on rows held out.

    Returns a `Structure`. It is the same for the same seed at any number of threads.

    >>> import numpy as np, mercer
    >>> t = np.arange(60.0)
    >>> y = 0.1 * t + np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).normal(size=60) / 10
    >>> found = mercer.choose.structure(t, y, units="months", rounds=1, verbose=0)
    >>> any("yearly pattern" in sentence for sentence in found.words)
    True
    """
    _check_options(validation, beam, rounds, max_rows)
    task = _task(X, y)
    rng = np.random.default_rng(random_state)
    talk = Talk(verbose)
    run = Anytime[list[Candidate]](max_seconds)
    sample = _sample(task, validation, max_rows, rng, n_jobs)
    search = _begun(task, sample, run, talk, beam)
    with run, blas_for(max_rows):
        _begin(search, task, sample)
        if search.judged and search.go_on(rounds):
            run.status = Status.CONVERGED
        if search.judged:
            search.simplify()
    if not run.best:
        raise InputError(
            "the seconds ended before one kernel was judged. Give more max_seconds, or fewer rows."
        )
    ranked = run.best
    if vocabulary is None:
        vocabulary = _vocabulary(task, units, target_unit)
    talk("fitting the best kernel to all rows")
    fitted = _part(task, FITTED, rng)
    return _answer(fitted, ranked, sample, run, search.looked, vocabulary, average, n_jobs)


def _check_options(validation: str, beam: int, rounds: int, max_rows: int) -> None:
    if validation not in VALIDATIONS:
        raise ParameterError(f"validation must be one of {', '.join(VALIDATIONS)}; got {validation!r}.")
    for name, value, least in (("beam", beam, 1), ("rounds", rounds, 0), ("max_rows", max_rows, FEWEST)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ParameterError(f"{name} must be a whole number >= {least}; got {value!r}.")


def _task(X: Table, y: Targets) -> _Task:
    X = column_of(X)
    probe = GaussianProcessRegressor("RBF()")
    A = probe.check_rows(X, reset=True)
    names = column_names(X)
    targets = check_numbers(y, A.shape[0], "choose.structure")
    if len(targets) < FEWEST:
        raise InputError(
            f"there are {len(targets)} rows, too few to tell one structure from another: at least {FEWEST} "
            "are needed."
        )
    if np.all(targets == targets[0]):
        raise InputError(
            f"y is {targets[0]:g} in every row: there is nothing to explain. Pass a target that varies."
        )
    rows = Rows(dense(A), "X", names)
    columns: list[Column] = list(range(A.shape[1])) if names is None else list(names)
    if not np.ptp(np.asarray(rows.vectors), axis=0).any():
        raise InputError("no column of X varies: there is nothing to explain y by. Pass other columns.")
    return _Task(X, targets, rows, columns, names)


def _part(task: _Task, most: int, rng: np.random.Generator) -> _Task:
    """So many rows of a task, drawn at random; all where there are not more."""
    if len(task.y) <= most:
        return task
    index = np.sort(rng.permutation(len(task.y))[:most])
    rows = task.rows.rows(index)
    X = frame_rows(task.X, index.tolist()) if is_frame(task.X) else rows.data
    return _Task(X, task.y[index], rows, task.columns, task.names)


def _sample(
    task: _Task, validation: str, max_rows: int, rng: np.random.Generator, n_jobs: int | None
) -> Sample:
    """The rows of the search with standardised targets, and how rows are held out."""
    n = len(task.y)
    index = np.arange(n)
    # results do not depend on it, and threads cost more than they bring on so few rows
    if min(n, max_rows) <= ALONE:
        n_jobs = 1
    if n > max_rows:
        index = np.sort(rng.permutation(n)[:max_rows])
    rows = task.rows.rows(index)
    y = _standardised(task.y[index], task.y)
    single = len(task.columns) == 1
    if validation == "rolling" and not single:
        raise ParameterError(
            f"rolling origins need one ordered column; X has {len(task.columns)}. Use folds."
        )
    if validation == "folds" or not single:
        return Sample(rows, y, folds(len(index), rng), n_jobs)
    order = np.argsort(task.numbers[index, 0], kind="stable")
    return Sample(rows, y, rolling(order), n_jobs, ordered=True)


def _begun(task: _Task, sample: Sample, run: Anytime[list[Candidate]], talk: Talk, beam: int) -> Search:
    """The search that suits the columns."""
    if len(task.columns) > 1:
        return Search(sample, lambda c: menu_of_table(c, sample, task.columns), beam, talk, run)
    line = Line.of(task.numbers[:, 0])
    # on even steps a pattern that is faster than every second one is a slower one as well, and one that the
    # rows do not show twice was not seen to come back
    periods = (2 * line.spacing, line.span / 2)
    return Search(sample, lambda c: menu_of_line(c, sample, line), beam, talk, run, periods)


def _begin(search: Search, task: _Task, sample: Sample) -> None:
    """Judge the kernels that a search begins with, and the plain one of a table in any case.

    What is preferred to that one is preferred by the judgement, and not for want of a look.
    """
    if len(task.columns) == 1:
        begins = first_of_line(sample, Line.of(task.numbers[:, 0]))
        search.begin([_with_noise(kernel) for kernel in begins])
        return
    search.begin([_with_noise(kernel) for kernel in first_of_table(sample, task.columns)])
    if clock.late():
        return
    plain = tuned_plain(sample)
    if plain is not None:
        search.add(plain)


def _with_noise(kernel: Kernel) -> Kernel:
    return total(list(latent_terms(kernel)), NOISE)


def _vocabulary(task: _Task, units: Mapping[str, str] | str | None, target_unit: str) -> Vocabulary:
    X = task.numbers
    ends = [(float(low), float(high)) for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)]
    return Vocabulary.of(task.names, units=units, ends=ends, target_unit=target_unit)


def _answer(
    task: _Task,
    ranked: list[Candidate],
    sample: Sample,
    run: Anytime[list[Candidate]],
    looked: int,
    vocabulary: Vocabulary,
    average: bool,
    n_jobs: int | None,
) -> Structure:
    best = ranked[0]
    different = _different(ranked)
    chosen = Average(((best, 1.0),))
    if average:
        chosen = _averaged(different, _plain(different, task, sample))
    team = chosen.team
    # what is left of the seconds is not known to be enough once they ended the search
    again = run.status == Status.CONVERGED
    model = _fitted(best, task, sample, again, n_jobs)
    others = tuple((_fitted(c, task, sample, again, n_jobs), weight) for c, weight in team[1:])
    kernel = model.kernel_
    assert isinstance(kernel, Kernel)
    terms = None
    if latent_terms(kernel):
        terms = model.decompose(task.X)
    told = different[1 : TOLD + 1]
    told += [candidate for candidate, _ in team[1:] if candidate not in told]
    return Structure(
        kernel=str(kernel),
        proof=kernel.validity(),
        model=model,
        terms=terms,
        said=say_fit(model, task.X, task.y, vocabulary),
        alternatives=tuple(_alternative(other, best, team) for other in told),
        evidence=best.evidence,
        held_out=best.held_out,
        score=best.score,
        weight=team[0][1],
        others=others,
        rule=chosen.rule,
        sharpness=chosen.sharpness,
        status=run.status,
        seconds=run.seconds,
        looked=looked,
        rows=len(sample),
    )


def _different(ranked: list[Candidate]) -> list[Candidate]:
    """The best of each structure, in order."""
    found: dict[tuple[object, ...], Candidate] = {}
    for candidate in ranked:
        found.setdefault(key_of(candidate.kernel), candidate)
    return list(found.values())


def _averaged(different: list[Candidate], plain: Candidate | None = None) -> Average:
    """Who predicts, with what weight: the best alone, or with those that explain what it does not.

    One more takes part, since rows that surprise the best are too few to judge by. In a table it is the plain
    kernel, which goes back to the mean far from all rows, where lines go on for ever; in a series the most
    cautious one, whose worst row of those held out is least bad. In a table that one is often far behind all
    others, and widens a mixture however little it weighs.
    """
    best = different[0]
    team = [best, *complements(best, different[1:CONSIDERED], AVERAGED - 2)]
    last = plain
    if last is None:
        last = max(different, key=lambda c: float(np.concatenate(c.densities).min()))
    if last not in team:
        team.append(last)
    return averaged(team)


def _plain(different: list[Candidate], task: _Task, sample: Sample) -> Candidate | None:
    """The plain kernel of a table as it was judged."""
    if len(task.columns) == 1:
        return None
    key = key_of(plain_of_table(sample))
    return next((candidate for candidate in different if key_of(candidate.kernel) == key), None)


def _alternative(other: Candidate, best: Candidate, team: tuple[tuple[Candidate, float], ...]) -> Alternative:
    weight = next((weight for candidate, weight in team if candidate is other), 0.0)
    nats = best.rows * (best.evidence - other.evidence)
    return Alternative(str(other.kernel), nats, best.score - other.score, weight)


def _fitted(
    candidate: Candidate, task: _Task, sample: Sample, again: bool, n_jobs: int | None
) -> GaussianProcessRegressor:
    """The kernel on all rows: tuned `again` where the search saw some of not too many."""
    kernel = candidate.kernel
    if again and len(sample) < len(task.y) <= TUNED:
        whole = Sample(task.rows, _standardised(task.y, task.y), (), n_jobs)
        found = tuned(kernel, whole, AGAIN, candidate.inverse)
        kernel = kernel if found is None else found.kernel
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True, singular="add", n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        return model.fit(task.X, task.y)


def _standardised(y: Array, whole: Array) -> Array:
    return np.asarray((y - whole.mean()) / whole.std())
