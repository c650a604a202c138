"""Kernels that learn their features in `mercer.fit`: as the machine, and as kernels that compete.

    machine="features"     a feature machine on the columns as `Coded` reads them
    machine="auto", …      a short search for a metric on some rows; radial kernels of its directions, with a
                           lengthscale for each, compete by evidence with those of the columns themselves

The evidence has the last word: a metric is where its search starts, and where columns matter one by one, or
nothing can be learned of directions, a kernel of the columns wins.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mercer import clock
from mercer.errors import InputError, MercerError
from mercer.kernels import Kernel, Linear, Metric, as_kernel
from mercer.machines.ridge.feature_kernel import LEAVES, Learned
from mercer.machines.ridge.feature_machine import FeatureMachineClassifier, FeatureMachineRegressor
from mercer.progress import Talk
from mercer.recipe.given import Given
from mercer.recipe.ladder import Means, Rung
from mercer.recipe.tournament import MOST_ALONE, Contender, started
from mercer.tables.propose import SMOOTHNESS, Style, coded
from mercer.tables.roles import Role
from mercer.typing import Array, Integers, Labels

# A metric has as many rows and columns as there are numbers.
MOST_NUMBERS = 2000
# Of fewer rows no directions are learned.
LEAST_ROWS = 200
# The search for directions: so many rows, updates, and share of the seconds.
SEARCHED = 500
UPDATES = 3
SHARE = 0.1
# Directions with a smaller share of the metric than this are noise.
LEAST_SHARE = 1e-4
# What is learned from: once differentiable functions are between rough and smooth.
LEARNER = "Matern(nu=1.5)"


def kernels(given: Given, roles: Sequence[Role], kernel: Kernel | str | None) -> list[Kernel]:
    """The kernels from which a feature machine chooses: the one asked for, or some of all columns."""
    if kernel is not None:
        return [as_kernel(kernel)]
    leaves = [as_kernel(leaf) for leaf in LEAVES]
    if given.names is None:
        if given.width > MOST_NUMBERS or sparse.issparse(given.table):
            raise InputError(
                f"machine='features' learns a metric of at most {MOST_NUMBERS} dense columns; got "
                f"{given.width}. Use machine='auto'."
            )
        return leaves
    reading, names = coded(roles)
    if not names:
        raise InputError("machine='features' reads numbers, categories and dates, and the table has none.")
    return [leaf.of(reading).on(*names) for leaf in leaves]


def rung(task: str, found: Sequence[Kernel], roles: Sequence[Role], n: int, means: Means) -> Rung:
    """The feature machine for n rows."""
    kind = FeatureMachineRegressor if task == "numbers" else FeatureMachineClassifier
    machine = kind(tuple(found), random_state=means.seed, memory=means.memory)
    words = f"A feature machine for {n} rows, as you said: its metric is learned from gradients."
    texts = [role.column for role in roles if role.kind == "text"]
    if texts:
        words += f" It does not read text: {', '.join(texts)} is not used."
    return Rung(machine, words)


# ── as kernels that compete ─────────────────────────────────────────────────────────────────────────────────


def contenders(
    given: Given, roles: Sequence[Role], y: Labels, task: str, seconds: float | None, seed: int, talk: Talk
) -> list[Contender]:
    """Kernels along the directions that a short search finds; none where it finds none.

    The rows of the search are not those of the first round, where there are enough others.
    """
    if given.names is None or len(y) < LEAST_ROWS or any(role.kind == "text" for role in roles):
        return []
    reading, names = coded(roles)
    if len(names) < 2:
        return []
    index = _others(len(y), seed)
    talk(f"looking for directions on {len(index)} rows")
    kernel = as_kernel(LEARNER).of(reading).on(*names)
    search = FeatureMachineRegressor(kernel, metric="full", n_updates=UPDATES, search_rows=SEARCHED)
    share = None if seconds is None else SHARE * seconds
    try:
        with warnings.catch_warnings(), clock.within(share):
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(given.rows(index), _targets(y[index], task))
    except MercerError as error:
        talk(f"no directions: {error}")
        return []
    if search.path_.iterations[search.path_.best] == 0:
        return []
    return _along(search, names)


def _others(n: int, seed: int) -> Integers:
    """Rows for the search for directions, those of the first round last."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[::-1][:SEARCHED])


def _targets(y: Labels, task: str) -> Array:
    """Numbers as they are, classes as codes ±1."""
    if task == "numbers":
        return np.asarray(y, dtype=np.float64)
    classes = np.unique(y)
    wanted = classes[1:] if len(classes) == 2 else classes
    return np.where(y[:, None] == wanted[None, :], 1.0, -1.0)


def _along(search: FeatureMachineRegressor, names: tuple[str, ...]) -> list[Contender]:
    """A kernel of each smoothness along the learned directions, each with a lengthscale of its own."""
    learned = Learned.of(search.kernel_)
    assert learned is not None
    factor = directions(search.metric_)
    lengths = (float(learned.leaf.lengthscale),) * factor.shape[1]  # type: ignore[arg-type]
    metric = Metric(factor=factor.tolist())
    reading = learned.asked.reading
    line = Linear().of(reading).on(*names)
    found = []
    for name, shape in SMOOTHNESS.items():
        radial = shape.changed(lengthscale=lengths if len(lengths) > 1 else lengths[0])
        kernel = 1.0 * radial.of(metric).of(reading).on(*names) + 1.0 * line
        functions = f"{Style(smoothness=name).functions} functions"
        words = f"{functions} of {len(lengths)} learned directions of all columns"
        found.append(Contender.starting(f"{words}, with a linear term", started(kernel, 1.0)))
    return found


def directions(M: Array) -> Array:
    """F with F Fᵀ ≈ M: eigenvectors times the roots of eigenvalues, without those of hardly any share."""
    values, vectors = np.linalg.eigh(M)
    kept = np.argsort(-values, kind="stable")[:MOST_ALONE]
    kept = kept[values[kept] > LEAST_SHARE * values.sum()]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
