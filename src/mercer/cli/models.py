"""`mercer fit`, `predict`, `score`, `verify`, `explain`: models of tables, made and used.

The objects that --json prints:

    mercer.fit/1       model, report (or null), task, target, rows, columns, kernel, machine, steps, estimate
                       {how, measures, nothing_learned}, certificate, seconds, by_ctrl_c
    mercer.score/1     model, table, rows, measures, nothing_learned
    mercer.inspect-model/1   as mercer.fit/1; of other machines model, machine, kernel, certificate
    mercer.verify/1    model, table, ok, compared, findings, unchecked
    mercer.explain/1   of a model: steps, kernel, validity, terms [{term, share}]; of a row: said, effects
                       [{column, value, typical, effect}], alike [{row, likeness, target}]
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars
from sklearn.base import BaseEstimator

from mercer import clock, places
from mercer.cli.codes import INTERRUPTED
from mercer.cli.source import Voice, finished, with_columns
from mercer.cli.talk import complain, json_text
from mercer.errors import InputError, Interrupted, ModelFileError, OutputError, ParameterError
from mercer.files.load import load
from mercer.kernels.terms import latent_diag, latent_terms
from mercer.memory import say_bytes
from mercer.recipe.door import fit as fit_table
from mercer.recipe.door import split
from mercer.recipe.estimate import Estimate, of_classes, of_numbers
from mercer.recipe.estimators import TableClassifier, TableMachine, TableRegressor
from mercer.recipe.explain import Explanation, brief, kept
from mercer.recipe.given import Given, as_target
from mercer.tables.intake import STDIN, TableFile, read_table
from mercer.tables.outlet import check_table_place, write_table
from mercer.typing import Array, Labels

if TYPE_CHECKING:
    from mercer.tables.delimited import Layout

SUFFIX = ".mercer"
# Of the time, what the report may take, and at least so many seconds.
SHARE_OF_REPORT = 0.2
LEAST_OF_REPORT = 2.0
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


# ── fit ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class _HowToFit:
    task: str | None
    kernel: str | None
    machine: str
    leave_out: tuple[str, ...]
    time: str | None
    memory: str
    seed: int
    report: bool
    force: bool
    quiet: bool
    as_json: bool


@dataclass(frozen=True)
class FitRequest(_HowToFit):
    """What was asked of `mercer fit`."""

    table: str
    layout: Layout
    target: str | None
    output: str | None


def run_fit(asked: FitRequest) -> int:
    """Read, fit, write the model and its report, say what came of it; return the exit code."""
    talk = Voice(asked.quiet)
    code = 0

    def work() -> None:
        nonlocal code
        began = clock.now()
        seconds = seconds_of(asked.time)
        for_fit = seconds
        if seconds is not None and asked.report:
            for_fit = (1 - SHARE_OF_REPORT) * seconds
        place, page = _places(asked)
        found = read_table(asked.table, asked.layout)
        talk.say(str(found))
        if asked.target is None and found.frame is not None:
            raise ParameterError(
                f"name the column to predict: --target {found.frame.columns[-1]!r}, say. The table has "
                f"{', '.join(found.frame.columns)}."
            )
        try:
            model = _fitted(found, asked, for_fit)
        except Interrupted as stop:
            model = cast("TableRegressor | TableClassifier", stop.model)
            complain("interrupted; the best model so far is written.")
            code = INTERRUPTED
        saved = model.save(place, force=asked.force, compact=True)
        talk.say(str(saved))
        if page is not None:
            left = None if seconds is None else max(began + seconds - clock.now(), LEAST_OF_REPORT)
            with clock.within(left):
                model.report(page, table=found, force=asked.force)
        _print_fit(asked, model, place, page, interrupted=code == INTERRUPTED)

    return finished(work, talk) or code


def _fitted(found: TableFile, asked: FitRequest, seconds: float | None) -> TableRegressor | TableClassifier:
    return fit_table(
        found,
        asked.target,
        task=asked.task,
        kernel=asked.kernel,
        machine=asked.machine,
        leave_out=asked.leave_out,
        max_seconds=seconds,
        memory=asked.memory,
        random_state=asked.seed,
        verbose=0 if asked.quiet else 1,
    )


def _places(asked: FitRequest) -> tuple[Path, Path | None]:
    """Where the model and its page go, refused before any work where they may not be written."""
    if asked.output is None:
        stem = "model" if asked.table == STDIN else Path(asked.table).name.split(".")[0] or "model"
        place = Path(stem + SUFFIX)
    else:
        place = Path(asked.output)
    places.check_place(place, force=asked.force, example="model.mercer", error=ModelFileError)
    if not asked.report:
        return place, None
    page = place.with_suffix(".html")
    places.check_place(page, force=asked.force, example="report.html", error=OutputError)
    return place, page


def seconds_of(text: str | None) -> float | None:
    """Seconds from 60, 60s, 5m or 1.5h.

    >>> seconds_of("5m"), seconds_of("1.5h"), seconds_of("20")
    (300.0, 5400.0, 20.0)
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|min|h|)\s*", text)
    try:
        seconds = float(match[1]) * UNITS[match[2]] if match else math.nan
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ParameterError(f"--time takes seconds, minutes or hours, such as 60s or 5m; got {text!r}.")
    return seconds


def _print_fit(
    asked: FitRequest, model: TableMachine, place: Path, page: Path | None, *, interrupted: bool
) -> None:
    if asked.as_json:
        print(json_text(fit_as_json(model, place, page, interrupted=interrupted)))
        return
    print(model.summary())
    print(f"{model.n_rows_fit_} rows in {model.seconds_:.1f} s")
    print(f"model: {place}")
    if page is not None:
        print(f"report: {page}")


def fit_as_json(
    model: TableMachine, place: Path, page: Path | None, *, interrupted: bool
) -> dict[str, object]:
    """What --json prints of a fit."""
    return {
        "schema": "mercer.fit/1",
        "model": str(place),
        "report": None if page is None else str(page),
        "task": model.task,
        "target": model.target_,
        "rows": model.n_rows_fit_,
        "columns": [{"column": r.column, "kind": r.kind, "why": r.why} for r in model.roles_],
        "kernel": str(model.kernel_),
        "machine": type(model.machine_).__name__,
        "steps": list(model.steps_),
        "estimate": {"how": model.estimate_.how, **_measures(model.estimate_)},
        "certificate": str(model.certificate_),
        "seconds": model.seconds_,
        "by_ctrl_c": interrupted,
    }


def _measures(estimate: Estimate) -> dict[str, object]:
    return {
        "measures": {name: _number(value) for name, value in estimate.measures.items()},
        "nothing_learned": {name: _number(value) for name, value in estimate.nothing_learned.items()},
    }


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None


# ── a model and a table ─────────────────────────────────────────────────────────────────────────────────────


def loaded(path: str) -> TableRegressor | TableClassifier:
    """The model of a table in a file."""
    model = load(path)
    if not isinstance(model, TableRegressor | TableClassifier):
        raise InputError(
            f"{path} holds a {type(model).__name__}, which reads rows of numbers and no tables: load it in "
            "Python by mercer.load. This command takes what `mercer fit` wrote."
        )
    return model


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
    sets: float
    only: bool
    force: bool
    quiet: bool


def run_predict(asked: PredictRequest) -> int:
    """Predict every row of a table, and write them; return the exit code."""
    talk = Voice(asked.quiet)

    def work() -> None:
        if not 0 <= asked.interval < 1:
            raise ParameterError(f"--interval must be at least 0 and below 1; got {asked.interval}.")
        if not 0 <= asked.sets < 1:
            raise ParameterError(f"--sets must be at least 0 and below 1; got {asked.sets}.")
        check_table_place(asked.output, force=asked.force)
        model = loaded(asked.model)
        found = read_table(asked.table, asked.layout)
        talk.say(str(found))
        given = _rows_of(found)
        new = predictions(model, given, asked.interval, asked.sets)
        frame = polars.DataFrame(new)
        if found.frame is not None and not asked.only:
            frame, _ = with_columns(found.frame, new, talk)
        write_table(frame, asked.output, force=asked.force)

    return finished(work, talk)


def predictions(
    model: TableRegressor | TableClassifier, given: Given, interval: float, sets: float = 0.0
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
    low, high = model.predict_interval(given.table, interval)
    return {"prediction": 0.5 * (low + high), "low": low, "high": high}


@dataclass(frozen=True)
class UseRequest:
    """A model and a table that has the target."""

    model: str
    table: str
    layout: Layout
    quiet: bool
    as_json: bool


def _with_target(asked: UseRequest, talk: Voice) -> tuple[TableRegressor | TableClassifier, Given, Labels]:
    """The model, the rows that have a target, and their targets."""
    model = loaded(asked.model)
    found = read_table(asked.table, asked.layout)
    talk.say(str(found))
    rows, values, _ = split(found, None if found.frame is None else model.target_)
    given = Given.of(rows)
    truth, known = as_target(values, len(given))
    if len(known) < len(given):
        talk.say(f"{len(given) - len(known)} rows have no target and were left out")
        given = Given(given.rows(known), given.names)
    return model, given, truth


def run_score(asked: UseRequest) -> int:
    """Measure a model on a table that has the answers; return the exit code."""
    talk = Voice(asked.quiet)

    def work() -> None:
        model, given, truth = _with_target(asked, talk)
        found = measured(model, given, truth)
        if asked.as_json:
            head = {"schema": "mercer.score/1", "model": asked.model, "table": asked.table}
            print(json_text({**head, "rows": len(truth), **_measures(found)}))
            return
        print(f"{len(truth)} rows of {asked.table}")
        for name, value in found.measures.items():
            base = found.nothing_learned.get(name)
            beside = "" if base is None else f"   (nothing learned: {base:.4g})"
            print(f"{name:10} {value:.6g}{beside}")

    return finished(work, talk)


def measured(model: TableRegressor | TableClassifier, given: Given, truth: Labels) -> Estimate:
    """The measures of a model on rows whose targets are known."""
    index = np.arange(len(truth))
    if isinstance(model, TableRegressor):
        mean, std = model.predict(given.table, return_std=True)
        return of_numbers("", index, np.asarray(truth, dtype=np.float64), mean, std)
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

    talk = Voice(asked.quiet)
    holds = True

    def work() -> None:
        nonlocal holds
        model, given, truth = _with_target(asked, talk)
        targets = truth
        if isinstance(model, TableRegressor):
            targets = (np.asarray(truth, dtype=np.float64) - model.y_mean_) / model.y_scale_
        found = verify(model.machine_, given.table, targets)
        holds = found.ok
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

    return finished(work, talk) or int(not holds)


def run_inspect_model(path: str, *, as_json: bool) -> int:
    """Say what a model file holds; return the exit code."""
    talk = Voice(quiet=False)

    def work() -> None:
        model = load(path)
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

    return finished(work, talk)


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
    talk = Voice(asked.quiet)

    def work() -> None:
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

    return finished(work, talk)


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
        return _number(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def term_shares(model: TableMachine) -> list[tuple[str, float]]:
    """The terms of the kernel, and the share of each in the prior variance of the rows that are kept."""
    rows = kept(model)
    terms = latent_terms(model.kernel_)
    sizes = [float(np.sum(latent_diag(term, rows))) for term in terms]
    total = sum(sizes) or 1.0
    shares = [(str(term), size / total) for term, size in zip(terms, sizes, strict=True)]
    return sorted(shares, key=lambda share: -share[1])


def _explain_model(model: TableMachine, asked: ExplainRequest) -> None:
    validity = model.kernel_.validity()
    shares = term_shares(model)
    if asked.as_json:
        out = {
            "schema": "mercer.explain/1",
            "steps": list(model.steps_),
            "kernel": str(model.kernel_),
            "validity": validity.status,
            "terms": [{"term": term, "share": share} for term, share in shares],
        }
        print(json_text(out))
        return
    print(model.summary())
    print("\nThe terms of the kernel, by their share of its prior variance:")
    for term, share in shares:
        print(f"  {share:6.1%}  {brief(term)}")
    print(f"\n{brief(str(validity))}")
