"""The report of a fit: what was done with a table, how good the model is, and what it rests on.

`write_report` is behind `model.report(path)`. The parts that need rows are in `fit_rows`, the numbers of the
estimate in `judged`, those of columns in `columns`, and the pictures in `fit_pictures`.
"""

from __future__ import annotations

import os
import platform
import shlex
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import OutputError
from mercer.places import check_place, whole_file
from mercer.plot.style import new_figure, with_few_digits
from mercer.recipe.estimate import LEVEL
from mercer.recipe.estimators import TableClassifier, TableRegressor
from mercer.recipe.explain import brief
from mercer.recipe.given import Source
from mercer.recipe.kept import sample_of
from mercer.report import fit_pictures, fit_rows, judged
from mercer.report.page import Page
from mercer.report.words import quoted, shown, some_of

if TYPE_CHECKING:
    from mercer.recipe.estimators import TableMachine

NAME = "report.html"
# Seconds for a witness, should no rule prove the kernel of a fit.
SECONDS_OF_PROOF = 5.0
# Lines of a proof, and characters of each, that are shown; classes in the table of confusions.
MOST_LINES = 60
LONGEST_LINE = 160
MOST_CLASSES = 15
WORST = 5
MEANINGS = {
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "r2": "R², the share of the variance that is explained",
    "coverage": f"share of rows inside the {LEVEL:.0%} band",
    "accuracy": "share of rows whose class is right",
    "log_loss": "mean of −log of the probability of the true class",
    "roc_auc": "area under the ROC curve",
}
VERDICTS = {
    "proved": "It is a kernel, proved.",
    "declared": "It is a kernel, given what was declared.",
    "refuted": "It is not a kernel: points show it.",
    "undecided": "Whether it is a kernel is not decided.",
}


def write_report(
    model: TableMachine,
    path: str | os.PathLike[str] | None = None,
    *,
    table: Source | None = None,
    force: bool = False,
) -> Path:
    """Write the report of a fitted model as one HTML file, whole or not at all, and return its path."""
    check_is_fitted(model, "machine_")
    place = Path(NAME if path is None else path)
    check_place(place, force=force, example=NAME, error=OutputError)
    # a missing matplotlib is told before the work, not after
    new_figure(1, 1)
    text = report_of(model, table=table)
    with whole_file(place, force=force, error=OutputError) as draft:
        draft.write_bytes(text.encode("utf-8", errors="replace"))
    return place


def report_of(model: TableMachine, *, table: Source | None = None) -> str:
    """The page as text."""
    sample = sample_of(model, table)
    target = target_of(model)
    page = Page(f"A model of {quoted(target)}")
    _say_first(page, model)
    _say_error(page, model)
    fit_rows.say_fit(page, model, sample)
    _say_data(page, model)
    _say_kernel(page, model)
    fit_rows.say_columns(page, model, sample)
    fit_rows.say_rows(page, model, sample)
    _say_certificate(page, model)
    _say_again(page, model)
    return page.html()


def target_of(model: TableMachine) -> str:
    """The name of the target; a model that was fitted to arrays has none."""
    return str(getattr(model, "target_", "target"))


# ── what matters most ───────────────────────────────────────────────────────────────────────────────────────


def _say_first(page: Page, model: TableMachine) -> None:
    measures = model.estimate_.measures
    kind = "Numbers" if model.task == "numbers" else f"{len(model.classes_)} classes"
    used = len([role for role in model.roles_ if role.kind != "left out"]) or model.n_features_in_
    columns = f"{used} column{'s' * (used != 1)}"
    page.paragraph(f"{kind} predicted from {columns} of a table with {model.n_rows_fit_} rows.")
    tiles = [(f"{model.n_rows_fit_}", "rows")]
    if "r2" in measures:
        tiles.append((f"{measures['r2']:.3f}", "R² on rows not seen"))
        tiles.append((shown(measures["rmse"]), "root mean square error"))
        tiles.append((f"{measures['coverage']:.1%}", f"of rows inside the {LEVEL:.0%} band"))
    if "accuracy" in measures:
        tiles.append((f"{measures['accuracy']:.1%}", "of rows not seen have their class right"))
        tiles.append((f"{measures['log_loss']:.3f}", "log loss"))
    if "roc_auc" in measures:
        tiles.append((f"{measures['roc_auc']:.3f}", "area under the ROC curve"))
    tiles.append((f"{model.seconds_:.1f} s", "for everything"))
    page.tiles(tiles)


def _say_error(page: Page, model: TableMachine) -> None:
    estimate = model.estimate_
    page.heading("How good it is on rows it has not seen")
    page.paragraph(estimate.how)
    if not len(estimate.truth):
        return
    rows = []
    for name, value in estimate.measures.items():
        base = estimate.nothing_learned.get(name)
        rows.append((MEANINGS.get(name, name), shown(value), "" if base is None else shown(base)))
    page.table(("measure", "this model", "nothing learned"), rows)
    nothing = "the mean (or the median, for the absolute error)"
    if model.task == "classes":
        nothing = "the most frequent class, with the classes' own shares as probabilities,"
    if not model.scale_.is_identity:
        target = quoted(target_of(model))
        page.paragraph(
            f"The machine was fitted to {model.scale_.words_of(target)}, which had more evidence than "
            f"{target} as it is. All numbers here are of {target} itself: what is predicted is its mean, and "
            "bands have as much probability below as above."
        )
    page.paragraph(f"Nothing learned is what predicting {nothing} for every row would have reached.")
    if isinstance(model, TableClassifier):
        _say_classes(page, model)
    else:
        _say_numbers(page, model)


def _say_numbers(page: Page, model: TableMachine) -> None:
    estimate = model.estimate_
    page.figures(
        [
            (
                fit_pictures.predicted_and_true(estimate),
                f"Every point is a row, predicted without it. Lines are {LEVEL:.0%} bands, of "
                f"{min(fit_pictures.MOST_BANDS, len(estimate.truth))} rows.",
            ),
            (
                fit_pictures.residuals(estimate),
                _caption_of_residuals(model),
            ),
            (
                fit_pictures.normal_quantiles(estimate),
                "On the line if the errors are normal with the deviations that the bands say; ends that turn "
                "away are errors larger than bands expect.",
            ),
            (
                fit_pictures.coverage_curve(estimate),
                "On the line if bands hold what they promise; above it they are too wide, below too narrow.",
            ),
        ]
    )
    rows = [(f"{level:.0%}", f"{judged.coverage(estimate, level):.1%}") for level in judged.LEVELS]
    page.table(("level of the band", "share of rows inside"), rows)
    if np.ptp(estimate.numbers.width) == 0:
        page.paragraph(
            f"The machine has no bands of its own: they are equally wide everywhere{_on_scale(model)}, and "
            f"their width was set on these very rows so that {LEVEL:.0%} are inside. Other levels are a "
            "test, that one is not."
        )
    page.paragraph(f"Conformal bands, by rows left out: {model.guarantee(LEVEL)}")
    _say_worst(page, model)


def _caption_of_residuals(model: TableMachine) -> str:
    if model.scale_.is_identity:
        return "A trend or a funnel here is something that the model has not learned."
    words = model.scale_.words_of(quoted(target_of(model)))
    return (
        f"The machine was fitted to {words}, so that errors which grow with what is predicted are as "
        "expected. A trend is something that the model has not learned."
    )


def _on_scale(model: TableMachine) -> str:
    """Where the scale is not that of the target itself, a word of it."""
    if model.scale_.is_identity:
        return ""
    return f" on the scale of {model.scale_.words_of(quoted(target_of(model)))}"


def _say_worst(page: Page, model: TableMachine) -> None:
    """The rows whose errors are largest in units of their bands."""
    estimate = model.estimate_
    errors = judged.standardised(estimate)
    low, high = estimate.numbers.interval(LEVEL)
    worst = np.argsort(-np.abs(errors), kind="stable")[:WORST]
    rows = []
    for i in worst.tolist():
        said = f"{shown(float(estimate.predicted[i]))} ({shown(float(low[i]))} to {shown(float(high[i]))})"
        rows.append((f"{estimate.rows[i] + 1}", shown(float(estimate.truth[i])), said, f"{errors[i]:+.1f}"))
    page.table(
        ("row", "true", f"predicted, {LEVEL:.0%}", "error in deviations"),
        rows,
        left=(),
        title="The most surprising rows: mistakes in the data are often among them",
    )


def _say_classes(page: Page, model: TableClassifier) -> None:
    estimate = model.estimate_
    probability, came_true, words = judged.asked(estimate, model.classes_)
    bins = judged.reliability(probability, came_true)
    pictures = [
        (
            fit_pictures.reliability(bins, words),
            "On the line if probabilities are what they say; below it less came true than was said, above it "
            "more. "
            "Bars at the bottom and their numbers are rows, whiskers one standard error. Mean distance from "
            "the line: "
            f"{judged.calibration_error(bins):.3f}.",
        )
    ]
    if "roc_auc" in estimate.measures:
        area = estimate.measures["roc_auc"]
        pictures.append(
            (
                fit_pictures.roc(probability, came_true, area, model.classes_[1]),
                f"For every threshold of the probability. The area, {area:.3f}, is the chance that a row of "
                f"{quoted(model.classes_[1])} has a higher probability than one that is not.",
            )
        )
    page.figures(pictures)
    page.paragraph(f"Sets of classes: {model.guarantee(LEVEL)}")
    _say_confusion(page, model)


def _say_confusion(page: Page, model: TableClassifier) -> None:
    estimate = model.estimate_
    classes = model.classes_
    counts = judged.confusion(estimate.truth, estimate.predicted, classes)
    often = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
    rows = []
    for i in often.tolist():
        mine = int(counts[i].sum())
        found = f"{counts[i, i] / mine:.1%}" if mine else ""
        rows.append((str(classes[i]), *(str(counts[i, j]) for j in often.tolist()), f"{mine}", found))
    title = "How many rows of each true class (down) were taken for which (across)"
    if len(often) < len(classes):
        title += f"; the {len(often)} most frequent of {len(classes)} classes"
    head = ("true", *(str(classes[j]) for j in often.tolist()), "rows", "found")
    page.table(head, rows, title=title)


# ── the data, the kernel, the certificate ───────────────────────────────────────────────────────────────────


def _say_data(page: Page, model: TableMachine) -> None:
    page.heading("The data, and what was done with it")
    page.points(model.steps_)
    gone = left_out_by_wish(model)
    if gone:
        page.paragraph(f"Left out as you said: {some_of(gone)}.")
    if model.roles_:
        rows = [
            (role.column, role.kind, role.why, f"{role.gaps}", f"{role.distinct}") for role in model.roles_
        ]
        page.table(("column", "taken for", "because", "missing", "different"), rows, left=(0, 1, 2))
    else:
        page.paragraph(f"The {model.n_features_in_} columns are numbers that are compared as a whole.")
    if model.rounds_:
        page.heading("Which kernels competed")
        page.paragraph(
            "Every kernel was tuned by its log evidence, the logarithm of the probability of the targets "
            "before they were seen; of numbers it is a density of the target itself, whatever the scale on "
            "which it is modelled. Higher is better. It can be compared within a round, not between "
            "rounds. A search that ended at its limit of steps is not a fault: the best go on."
        )
        places = [
            (f"{place.round}", place.words, f"{place.evidence:.2f}", f"{place.rows}", place.status)
            for place in model.rounds_
        ]
        page.table(("round", "kernel", "log evidence", "rows", "search"), places, left=(1, 4))


def left_out_by_wish(model: TableMachine) -> list[str]:
    """The columns that were not to be used."""
    names = model.leave_out
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _say_kernel(page: Page, model: TableMachine) -> None:
    page.heading("The kernel")
    page.code(with_few_digits(repr(model.kernel_)))
    verdict = model.kernel_.validity(seconds=SECONDS_OF_PROOF)
    page.paragraph(VERDICTS[verdict.status])
    page.folded("The proof, step by step", "\n".join(_cut(str(verdict).splitlines()[1:])))


def _cut(lines: list[str]) -> list[str]:
    """The lines of a proof with few digits, long ones and many of them cut."""
    out = []
    for line in lines[:MOST_LINES]:
        words = line.lstrip()
        # a step to the right is one column, not three: phones are narrow
        text = " " * ((len(line) - len(words)) // 3) + with_few_digits(brief(words))
        out.append(text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…")
    if len(lines) > MOST_LINES:
        out.append(f"… and {len(lines) - MOST_LINES} more lines: print(model.kernel_.validity())")
    return out


def _say_certificate(page: Page, model: TableMachine) -> None:
    page.heading("The certificate")
    found = model.certificate_
    page.paragraph(
        f"The machine is a {type(model.machine_).__name__}. Its solver ended as “{found.status}”: "
        f"{found.status.meaning}."
    )
    page.code(str(found))
    targets = "y" if model.scale_.is_identity else "model.scale_.forward(y)"
    page.paragraph(
        f"mercer.verify(model.machine_, X, {targets}) computes it again from the rows, without the solver's "
        "word."
    )


# ── once more ───────────────────────────────────────────────────────────────────────────────────────────────


def _say_again(page: Page, model: TableMachine) -> None:
    page.heading("How to have it again")
    page.code(python_call(model))
    page.paragraph("Or, on the command line:")
    page.code(command(model))
    page.paragraph(
        "The same rows and versions give the same model, unless seconds end a search: then a slower machine "
        "does less."
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("mercer", "numpy", "scipy", "scikit-learn"))
    when = datetime.now().astimezone().strftime("%d %B %Y, %H:%M %Z")
    page.footer(f"Written on {when} by {libraries}, Python {platform.python_version()}.")


def python_call(model: TableMachine) -> str:
    """The call that made the model, with every parameter that is not as usual."""
    standard = (TableRegressor if model.task == "numbers" else TableClassifier)().get_params(deep=False)
    said = model.get_params(deep=False)
    options = [f"task={model.task!r}"]
    if said["kernel"] is not None:
        options.append(f"kernel={str(said['kernel'])!r}")
    gone = left_out_by_wish(model)
    if gone:
        options.append(f"leave_out={gone!r}")
    for name in ("machine", "max_seconds", "memory", "random_state"):
        if said[name] != standard[name]:
            options.append(f"{name}={said[name]!r}")
    call = ", ".join(['"table.csv"', repr(target_of(model)), *options])
    return f'import mercer\n\nmodel = mercer.fit({call})\nmodel.report("{NAME}")'


def command(model: TableMachine) -> str:
    """The same for a shell."""
    parts = ["mercer", "fit", "table.csv", "--target", target_of(model), "--task", model.task]
    if model.kernel is not None:
        parts += ["--kernel", str(model.kernel)]
    if model.machine != "auto":
        parts += ["--machine", model.machine]
    for name in left_out_by_wish(model):
        parts += ["--leave-out", name]
    if model.max_seconds is not None:
        parts += ["--time", f"{model.max_seconds:g}s"]
    if model.random_state:
        parts += ["--seed", str(model.random_state)]
    return shlex.join([*parts, "-o", "model.mercer"])
