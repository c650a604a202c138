"""`mercer predict`, `score`, `verify`, `explain`, and `inspect` of a model: models of tables, used.

The objects that --json prints:

    mercer.predict/1   model, table, task, target, rows, columns (those that were added), interval and sets
                       (the probabilities, null where there are none), guarantee (what conformal bands or
                       sets promise, in words), file (null if none was written) and predictions: the added
                       columns by name, null where a file has them
    mercer.score/1     model, table, rows, measures, nothing_learned
    mercer.inspect-model/1   as mercer.fit/1; of other machines model, machine, kernel, certificate
    mercer.verify/1    model, table, ok, compared, findings, unchecked
    mercer.explain/1   of a model: steps, kernel, validity, terms [{term, share}]; of a row: said, effects
                       [{column, value, typical, effect}], alike [{row, likeness, target}]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars
from sklearn.base import BaseEstimator

from mercer.cli.fit import finite, fit_as_json, measures_of
from mercer.cli.source import Voice, finished, with_columns
from mercer.cli.talk import json_text
from mercer.errors import InputError, ModelFileError, ParameterError
from mercer.files.load import load
from mercer.memory import say_bytes
from mercer.recipe.door import split
from mercer.recipe.estimate import Estimate, of_classes, of_numbers
from mercer.recipe.estimators import TableClassifier, TableMachine, TableRegressor
from mercer.recipe.explain import Explanation, brief, kept, term_shares
from mercer.recipe.given import Given, as_target
from mercer.tables.intake import TableFile, counted, read_table
from mercer.tables.outlet import STDOUT, check_table_place, write_table
from mercer.typing import Array, Labels

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

# ── a model and a table ─────────────────────────────────────────────────────────────────────────────────────


def loaded(path: str) -> TableRegressor | TableClassifier:
    """The model of a table in a file."""
    model = read_model(path)
    if not isinstance(model, TableRegressor | TableClassifier):
        raise InputError(
            f"{path} holds a {type(model).__name__}, which reads rows of numbers and no tables: load it in "
            "Python by mercer.load. This command takes what `mercer fit` wrote."
        )
    return model


def read_model(path: str) -> BaseEstimator:
    """The model in a file; what is wrong with the file is said with its name."""
    try:
        return load(path)
    except ModelFileError as error:
        if path in str(error):
            raise
        raise ModelFileError(f"{path}: {error}") from error


def _rows_of(found: TableFile) -> Given:
    if found.frame is not None:
        return Given.of(found.frame)
    assert found.matrix is not None
    return Given.of(found.matrix)


@dataclass(frozen=True)
class PredictRequest:
    """What was asked of `mercer predict`."""

    model: str
    table: str
    layout: Layout
    output: str
    interval: float
    conformal: bool
    sets: float
    only: bool
    force: bool
    quiet: bool
    as_json: bool


def run_predict(asked: PredictRequest) -> int:
    """Predict every row of a table, and write them; return the exit code."""

    def work(voice: Voice) -> None:
        if not 0 <= asked.interval < 1:
            raise ParameterError(f"--interval must be at least 0 and below 1; got {asked.interval}.")
        if not 0 <= asked.sets < 1:
            raise ParameterError(f"--sets must be at least 0 and below 1; got {asked.sets}.")
        check_table_place(asked.output, force=asked.force)
        model = loaded(asked.model)
        found = read_table(asked.table, asked.layout).as_wide_as(model.n_features_in_)
        voice.say(str(found))
        given = _rows_of(found)
        new = predictions(model, given, asked.interval, asked.sets, asked.conformal)
        promise = _promise(asked, model)
        if promise is not None:
            voice.say(promise)
        frame, names = polars.DataFrame(new), list(new)
        if found.frame is not None and not asked.only:
            frame, names = with_columns(found.frame, new, voice)
        if asked.output != STDOUT or not asked.as_json:
            write_table(frame, asked.output, force=asked.force)
        if asked.output != STDOUT:
            voice.say(f"{asked.output}: {', '.join(map(repr, names))} of {counted(frame.height, 'row')}")
        if asked.as_json:
            print(json_text(_predicted(asked, model, frame.select(names))))

    return finished(work, quiet=asked.quiet)


def _promise(asked: PredictRequest, model: TableMachine) -> str | None:
    """What the bands or sets promise, where they are conformal."""
    if isinstance(model, TableClassifier):
        return str(model.guarantee(asked.sets)) if asked.sets else None
    assert isinstance(model, TableRegressor)
    return str(model.guarantee(asked.interval)) if asked.interval and asked.conformal else None


def _predicted(asked: PredictRequest, model: TableMachine, added: polars.DataFrame) -> dict[str, object]:
    """What --json prints of predictions; they are in it where no file has them."""
    numbers = isinstance(model, TableRegressor)
    file = None if asked.output == STDOUT else asked.output
    each = {name: [_plain(value) for value in added[name]] for name in added.columns if file is None}
    return {
        "schema": "mercer.predict/1",
        "model": asked.model,
        "table": asked.table,
        "task": model.task,
        "target": model.target_,
        "rows": added.height,
        "columns": added.columns,
        "interval": asked.interval if numbers and asked.interval else None,
        "sets": asked.sets if not numbers and asked.sets else None,
        "guarantee": _promise(asked, model),
        "file": file,
        "predictions": each or None,
    }


def predictions(
    model: TableRegressor | TableClassifier,
    given: Given,
    interval: float,
    sets: float = 0.0,
    conformal: bool = False,
) -> dict[str, Labels | Array]:
    """The columns that are written: prediction, and low and high, or a probability for each class.

    With `sets` a column has the classes among which the true one is, with | between them.
    """
    if isinstance(model, TableClassifier):
        probabilities = model.predict_proba(given.table)
        best = model.classes_[np.argmax(probabilities, axis=1)]
        each = {f"probability_{label}": probabilities[:, j] for j, label in enumerate(model.classes_)}
        found: dict[str, Labels | Array] = {"prediction": best, **each}
        if sets:
            listed = model.predict_set(given.table, sets)
            found["set"] = np.array(["|".join(map(str, some)) for some in listed], dtype=object)
        return found
    if not interval:
        return {"prediction": np.asarray(model.predict(given.table))}
    said = model.predicted(given.table)
    low, high = said.interval(interval)
    if conformal:
        low, high = model.predict_interval(given.table, interval, conformal=True)
    return {"prediction": said.mean, "low": low, "high": high}


@dataclass(frozen=True)
class UseRequest:
    """A model and a table that has the target."""

    model: str
    table: str
    layout: Layout
    quiet: bool
    as_json: bool


def _with_target(asked: UseRequest, voice: Voice) -> tuple[TableRegressor | TableClassifier, Given, Labels]:
    """The model, the rows that have a target, and their targets."""
    model = loaded(asked.model)
    found = read_table(asked.table, asked.layout).as_wide_as(model.n_features_in_)
    voice.say(str(found))
    rows, values, _ = split(found, None if found.frame is None else model.target_)
    given = Given.of(rows)
    truth, known = as_target(values, len(given))
    if len(known) < len(given):
        voice.say(f"{len(given) - len(known)} rows have no target and were left out")
        given = Given(given.rows(known), given.names)
    return model, given, truth


def run_score(asked: UseRequest) -> int:
    """Measure a model on a table that has the answers; return the exit code."""

    def work(voice: Voice) -> None:
        model, given, truth = _with_target(asked, voice)
        found = measured(model, given, truth)
        if asked.as_json:
            head = {"schema": "mercer.score/1", "model": asked.model, "table": asked.table}
            print(json_text({**head, "rows": len(truth), **measures_of(found)}))
            return
        print(f"{len(truth)} rows of {asked.table}")
        for name, value in found.measures.items():
            base = found.nothing_learned.get(name)
            beside = "" if base is None else f"   (nothing learned: {base:.4g})"
            print(f"{name:10} {value:.6g}{beside}")

    return finished(work, quiet=asked.quiet)


def measured(model: TableRegressor | TableClassifier, given: Given, truth: Labels) -> Estimate:
    """The measures of a model on rows whose targets are known."""
    index = np.arange(len(truth))
    if isinstance(model, TableRegressor):
        return of_numbers("", index, np.asarray(truth, dtype=np.float64), model.predicted(given.table))
    unknown = sorted(set(truth.tolist()) - set(model.classes_.tolist()), key=str)
    if unknown:
        raise InputError(
            f"the table has the class {unknown[0]!r}, which the model was never shown; it knows "
            f"{', '.join(map(str, model.classes_))}."
        )
    return of_classes("", index, truth, model.classes_, model.predict_proba(given.table))


def run_verify(asked: UseRequest) -> int:
    """Check what a model claims against the table that it was fitted to; return the exit code."""
    from mercer.theory.verify import verify

    def work(voice: Voice) -> int:
        model, given, truth = _with_target(asked, voice)
        targets = truth
        if isinstance(model, TableRegressor):
            targets = (model.scale_.forward(truth) - model.y_mean_) / model.y_scale_
        found = verify(model.machine_, given.table, targets)
        if asked.as_json:
            out = {
                "schema": "mercer.verify/1",
                "model": asked.model,
                "table": asked.table,
                "ok": found.ok,
                "compared": found.asked,
                "findings": list(found.findings),
                "unchecked": list(found.unchecked),
            }
            print(json_text(out))
        else:
            print(found)
        return int(not found.ok)

    return finished(work, quiet=asked.quiet)


def run_inspect_model(path: str, *, as_json: bool) -> int:
    """Say what a model file holds; return the exit code."""

    def work(_: Voice) -> None:
        model = read_model(path)
        table = isinstance(model, TableRegressor | TableClassifier)
        if as_json:
            print(json_text(_inspected(path, model)))
            return
        print(f"{path}: {type(model).__name__}, {say_bytes(Path(path).stat().st_size)}")
        if table:
            print(f"predicts {model.target_} ({model.task}) from {', '.join(_used(model))}")
            print(model.summary())
        else:
            print(f"kernel: {brief(str(getattr(model, 'kernel_', model.get_params().get('kernel'))))}")
            print(f"certificate: {getattr(model, 'certificate_', 'none')}")

    return finished(work, quiet=False)


def _used(model: TableMachine) -> list[str]:
    if not hasattr(model, "feature_names_in_"):
        return [f"{model.n_features_in_} columns of numbers"]
    return [role.column for role in model.roles_ if role.kind != "left out"]


def _inspected(path: str, model: BaseEstimator) -> dict[str, object]:
    """What --json prints of a model."""
    if isinstance(model, TableRegressor | TableClassifier):
        found = fit_as_json(model, Path(path), None, interrupted=False)
        return {**found, "schema": "mercer.inspect-model/1"}
    return {
        "schema": "mercer.inspect-model/1",
        "model": path,
        "machine": type(model).__name__,
        "kernel": str(getattr(model, "kernel_", None)),
        "certificate": str(getattr(model, "certificate_", None)),
    }


# ── explain ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ExplainRequest:
    """What was asked of `mercer explain`."""

    model: str
    table: str | None
    layout: Layout
    row: int
    quiet: bool
    as_json: bool


def run_explain(asked: ExplainRequest) -> int:
    """Say what a model, or one prediction of it, rests on; return the exit code."""

    def work(_: Voice) -> None:
        model = loaded(asked.model)
        if asked.table is None:
            _explain_model(model, asked)
            return
        found = read_table(asked.table, asked.layout)
        given = _rows_of(found)
        if asked.row > len(given):
            raise InputError(f"{asked.table} has {len(given)} rows; --row {asked.row} is not among them.")
        explained = model.explain(given.rows(np.array([asked.row - 1])))
        print(json_text(explanation_as_json(explained)) if asked.as_json else explained)

    return finished(work, quiet=asked.quiet)


def explanation_as_json(found: Explanation) -> dict[str, object]:
    """What --json prints of one prediction."""
    return {
        "schema": "mercer.explain/1",
        "said": found.said,
        "effects": [
            {"column": e.column, "value": _plain(e.value), "typical": _plain(e.typical), "effect": e.effect}
            for e in found.effects
        ],
        "alike": [
            {"row": None if a.row is None else a.row + 1, "likeness": a.likeness, "target": _plain(a.target)}
            for a in found.alike
        ],
    }


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _shares(model: TableMachine) -> list[tuple[str, float]]:
    """The terms of the kernel, and the share of each in the prior variance of the rows that are kept."""
    found = term_shares(model.kernel_, kept(model))
    return [("noise" if term is None else str(term), share) for term, share in found]


def _explain_model(model: TableMachine, asked: ExplainRequest) -> None:
    validity = model.kernel_.validity()
    shares = _shares(model)
    if asked.as_json:
        out = {
            "schema": "mercer.explain/1",
            "steps": list(model.steps_),
            "kernel": str(model.kernel_),
            "validity": validity.status,
            "scale": model.scale_.to_dict(),
            "terms": [{"term": term, "share": share} for term, share in shares],
        }
        print(json_text(out))
        return
    print(model.summary())
    of = "" if model.scale_.is_identity else f", of {model.scale_.words_of(model.target_)}"
    print(f"\nThe terms of the kernel, by their share of its prior variance{of}:")
    for term, share in shares:
        print(f"  {share:6.1%}  {brief(term)}")
    print(f"\n{brief(str(validity))}")
