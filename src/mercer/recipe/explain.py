"""What one prediction rests on: the columns that moved it, and the rows of the fit that are most alike.

    effect of a column    what is predicted, less what would be predicted if the column had its typical value:
                          the median of numbers, the most frequent of anything else
    likeness of rows      k(x, z) / √(k(x, x) k(z, z)), 1 for a row that the kernel cannot tell from this one

Effects are in units of the target itself, whatever the scale on which the machine was fitted, or differences
of the probability of the class that is predicted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars

from mercer.arrays import Rows
from mercer.errors import InputError
from mercer.frames import cells, is_missing
from mercer.gram import Tiles
from mercer.kernels import Kernel
from mercer.kernels.terms import latent_diag, latent_terms, split_noise
from mercer.machines.gaussian_process.classification import GaussianProcessClassifier
from mercer.machines.gaussian_process.regression import GaussianProcessRegressor
from mercer.machines.ridge.feature_base import FeatureMachine
from mercer.machines.ridge.feature_machine import FeatureMachineRegressor
from mercer.recipe.given import Given
from mercer.typing import Array, Table

if TYPE_CHECKING:
    from mercer.recipe.estimators import TableMachine

MOST_ALIKE = 5
LANDMARKS = "landmarks"


@dataclass(frozen=True)
class Effect:
    """What a column did to a prediction, beside its typical value."""

    column: str
    value: object
    typical: object
    effect: float


@dataclass(frozen=True)
class Alike:
    """A row that the fit kept: its number there (None of landmarks), its likeness, its target if kept."""

    row: int | None
    likeness: float
    target: object


@dataclass(frozen=True)
class Explanation:
    """What a prediction is, what moved it, and which rows it resembles."""

    said: str
    effects: tuple[Effect, ...]
    alike: tuple[Alike, ...]

    def __str__(self) -> str:
        lines = [self.said]
        width = max((len(effect.column) for effect in self.effects), default=0)
        for effect in self.effects:
            beside = f"{_short(effect.value)} instead of {_short(effect.typical)}"
            lines.append(f"  {effect.column:{width}}  {effect.effect:+.4g}  ({beside})")
        if self.alike:
            lines.append("Most alike of the rows that were kept:")
        for other in self.alike:
            where = "a landmark" if other.row is None else f"row {other.row + 1}"
            target = "" if other.target is None else f", {_short(other.target)}"
            lines.append(f"  {where}: likeness {other.likeness:.3f}{target}")
        return "\n".join(lines)


def explain(model: TableMachine, row: Table) -> Explanation:
    """What the prediction of a fitted model for one row rests on."""
    given = Given.of(row if not isinstance(row, dict) else polars.DataFrame({k: [v] for k, v in row.items()}))
    if len(given) != 1:
        raise InputError(f"explain takes one row; got {len(given)}.")
    table = model._rows(given.table)
    effects: tuple[Effect, ...] = ()
    if hasattr(model, "feature_names_in_"):
        effects = _effects(model, table)
    return Explanation(_said(model, table), effects, _alike(model, table))


def _said(model: TableMachine, table: Table) -> str:
    if model.task == "numbers":
        mean = float(model.predict(table)[0])
        low, high = model.predict_interval(table)
        said = f"Predicted {mean:.6g}, between {low[0]:.6g} and {high[0]:.6g} with 95 %."
        if model.scale_.is_identity:
            return said
        name = str(getattr(model, "target_", "the target"))
        return (
            f"{said} The machine was fitted to {model.scale_.words_of(name)}; effects are of {name} itself."
        )
    label, probability = _best_class(model, table)
    return f"Predicted {label!s}, with probability {probability:.3f}."


def _best_class(model: TableMachine, table: Table) -> tuple[object, float]:
    probabilities = model.predict_proba(table)[0]
    best = int(np.argmax(probabilities))
    return model.classes_[best], float(probabilities[best])


def _effects(model: TableMachine, table: Table) -> tuple[Effect, ...]:
    """One prediction for each column, with that column at its typical value; the largest effects first."""
    names = [str(name) for name in model.feature_names_in_]
    used = [role for role in model.roles_ if role.kind != "left out"]
    others = np.asarray(kept(model).data)
    row = dict(zip(Rows.of(table, "X").names or names, cells(table)[0].tolist(), strict=True))
    rows: list[dict[str, Any]] = [row]
    typical = {}
    for role in used:
        typical[role.column] = typical_value(others[:, names.index(role.column)])
        rows.append({**row, role.column: typical[role.column]})
    frame = polars.DataFrame({name: [r[name] for r in rows] for name in row}, strict=False)
    values = _values(model, frame)
    found = [
        Effect(role.column, row[role.column], typical[role.column], float(values[0] - values[j + 1]))
        for j, role in enumerate(used)
    ]
    return tuple(sorted(found, key=lambda effect: -abs(effect.effect)))


def _values(model: TableMachine, frame: Table) -> Array:
    """Predicted numbers, or the probability of the class that is predicted for the first row."""
    if model.task == "numbers":
        return np.asarray(model.predict(frame))
    probabilities = model.predict_proba(frame)
    return np.asarray(probabilities[:, int(np.argmax(probabilities[0]))])


def typical_value(column: np.ndarray) -> object:
    """The median of three numbers or more, the most frequent value of anything else, or None."""
    known = [value for value in column.tolist() if not is_missing(value)]
    if not known:
        return None
    if all(isinstance(value, int | float) for value in known) and len(set(known)) > 2:
        return float(np.median(known))
    return Counter(known).most_common(1)[0][0]


def kept(model: TableMachine) -> Rows:
    """The rows that a machine keeps: those of the fit, or landmarks."""
    machine = model.machine_
    names = getattr(machine, "feature_names_in_", None)
    listed = None if names is None else [str(name) for name in names]
    if isinstance(machine, GaussianProcessRegressor | GaussianProcessClassifier):
        if not machine.X_fit_.shape[0]:
            return Rows(machine.approximation_.landmarks_, LANDMARKS, listed)
        return Rows(machine.X_fit_, "rows of fit", listed)
    if isinstance(machine, FeatureMachine):
        if model.estimate_.refitted:
            return Rows(machine.X_fit_, "rows of fit", listed)
        # without a fit to all rows, the numbers of rows are not those of the table
        some = getattr(machine, "landmarks_", slice(None))
        return Rows(machine.X_fit_[some], LANDMARKS, listed)
    return Rows(machine.landmarks_, LANDMARKS, listed)


def _alike(model: TableMachine, table: Table) -> tuple[Alike, ...]:
    """The rows kept that the kernel finds most alike."""
    kernel, _ = split_noise(model.kernel_)
    if kernel is None:
        return ()
    others = kept(model)
    landmarks = others.name == LANDMARKS
    mine = Rows.of(table, "X")
    products = Tiles(kernel, mine, others).dense()[0]
    own = float(latent_diag(kernel, mine)[0])
    likeness = products / np.sqrt(np.maximum(own * latent_diag(kernel, others), 1e-300))
    best = np.argsort(-likeness, kind="stable")[:MOST_ALIKE]
    targets = None if landmarks else targets_of_fit(model, len(others))
    return tuple(
        Alike(
            None if landmarks else int(i),
            float(likeness[i]),
            None if targets is None else targets[i],
        )
        for i in best
    )


def targets_of_fit(model: TableMachine, n: int) -> np.ndarray | None:
    """The targets of the n rows of fit that a machine keeps; None where it keeps none.

    Those that the estimate judged, or where it judged some of them, those of the process, carried back.
    """
    truth = model.estimate_.truth
    if len(truth) == n:
        return truth
    machine = model.machine_
    if isinstance(machine, GaussianProcessRegressor) and len(machine.y_fit_) == n:
        return model.scale_.inverse(machine.y_mean_ + machine.y_scale_ * machine.y_fit_)
    if isinstance(machine, FeatureMachineRegressor) and len(machine.targets_of_fit()) == n:
        own = machine.targets_of_fit()[:, 0]
        return model.scale_.inverse(model.y_mean_ + model.y_scale_ * own)
    return None


def term_shares(kernel: Kernel, rows: Rows) -> list[tuple[Kernel | None, float]]:
    """The share of each term in the variance before any target is seen, and that of noise (None).

    The variance of a term is k(x, x), as a mean over the rows.
    """
    _, noise = split_noise(kernel)
    heights = [(term, float(latent_diag(term, rows).mean())) for term in latent_terms(kernel)]
    total = sum(height for _, height in heights) + noise
    found: list[tuple[Kernel | None, float]] = [(term, height / total) for term, height in heights]
    found.sort(key=lambda each: -each[1])
    if noise:
        found.append((None, noise / total))
    return found


def brief(text: str, longest: int = 60) -> str:
    """The text of a kernel without what its readings learned: lists longer than this become dots.

    >>> brief('RBF([1.0, 2.0]).of(Text("words", vocabulary=["a]", "many, many words"]))', longest=15)
    'RBF([1.0, 2.0]).of(Text("words", vocabulary=[…]))'
    """
    out: list[str] = []
    list_began = 0
    depth = 0
    quoted = escaped = False
    for letter in text:
        out.append(letter)
        if quoted:
            quoted = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter == "[":
            list_began = list_began if depth else len(out)
            depth += 1
        elif letter == "]" and depth:
            depth -= 1
            if not depth and len(out) - list_began > longest:
                out[list_began:] = ["…", "]"]
    return "".join(out)


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
