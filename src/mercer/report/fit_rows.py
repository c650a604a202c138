"""What the report of a fit says with rows at hand: the fit itself, the columns, and how alike rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mercer import clock
from mercer.arrays import Rows
from mercer.errors import MercerError
from mercer.kernels import Kernel, White
from mercer.kernels.terms import split_noise
from mercer.machines.landmarks.falkon import FalkonRegressor
from mercer.machines.ridge.feature_machine import FeatureMachineRegressor
from mercer.plot.style import with_few_digits
from mercer.recipe.estimators import TableClassifier, TableRegressor
from mercer.recipe.explain import brief, term_shares
from mercer.recipe.kept import Sample
from mercer.report import columns, fit_pictures
from mercer.report.columns import LeftOut
from mercer.report.page import Page
from mercer.report.words import shown, some_of
from mercer.typing import Array, Integers

if TYPE_CHECKING:
    from mercer.recipe.estimators import TableMachine

RESOLUTION = 200
# Rows of the picture of the Gram matrix, and rows whose spectrum is computed.
MOST_IN_PICTURE = 200
MOST_IN_SPECTRUM = 1000
# Seconds for the likeness of rows that differ in one column.
SECONDS_OF_LIKENESS = 10.0
# Of the seconds left, what these may take, and the spectrum.
SHARE_FOR_LIKENESS = 0.2
SHARE_FOR_SPECTRUM = 0.4
LONGEST_TERM = 300
SHARES_OF_TRACE = (0.9, 0.99)


# ── the fit over one or two columns ─────────────────────────────────────────────────────────────────────────


def say_fit(page: Page, model: TableMachine, sample: Sample) -> None:
    """The fit as a curve or a map, where one or two columns of numbers are all there is."""
    used = [role for role in model.roles_ if role.kind != "left out"]
    if len(used) not in (1, 2) or any(role.kind != "number" for role in used) or sample.targets is None:
        return
    names = [role.column for role in used]
    points = np.column_stack([np.asarray(sample.column(name), dtype=np.float64) for name in names])
    known = np.isfinite(points).all(axis=1)
    if not known.any():
        return
    if len(names) == 1 and isinstance(model, TableRegressor):
        page.figures([_curve(model, names[0], points[known, 0], sample.targets[known])])
    elif len(names) == 2:
        page.figures([_map(model, names, points[known], sample.targets[known])])


def _ticks(values: Array, count: int) -> Array:
    pad = 0.05 * (float(np.ptp(values)) or 1.0)
    return np.linspace(float(values.min()) - pad, float(values.max()) + pad, count)


def _curve(model: TableRegressor, name: str, x: Array, y: Array) -> tuple[str, str]:
    grid = _ticks(x, RESOLUTION)
    table = polars.DataFrame({name: grid})
    mean = np.asarray(model.predict(table))
    names = (name, str(getattr(model, "target_", "target")))
    picture = fit_pictures.curve(x, y, grid, mean, model.predict_interval(table), names)
    return picture, "Predicted mean with its band, and the rows."


def _map(model: TableMachine, names: list[str], points: Array, y: Array) -> tuple[str, str]:
    side = RESOLUTION // 2
    ticks = (_ticks(points[:, 0], side), _ticks(points[:, 1], side))
    across, up = np.meshgrid(*ticks)
    table = polars.DataFrame({names[0]: across.ravel(), names[1]: up.ravel()})
    if isinstance(model, TableClassifier):
        best = np.argmax(model.predict_proba(table), axis=1).reshape(side, side)
        picture = fit_pictures.regions(points, y, ticks, best, model.classes_, (names[0], names[1]))
        return picture, "The class with the highest probability at each place, and the rows."
    mean = np.asarray(model.predict(table)).reshape(side, side)
    target = str(getattr(model, "target_", "target"))
    picture = fit_pictures.surface(points, y, ticks, mean, (*names, target))
    return picture, "The predicted mean at each place; rows have the colour of their own target."


# ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────


def say_columns(page: Page, model: TableMachine, sample: Sample) -> None:
    """Which columns matter: left out one at a time, by likeness, and by lengthscales."""
    names = [role.column for role in model.roles_ if role.kind != "left out"]
    if not names:
        return
    page.heading("Which columns matter")
    likeness = _likenesses(model, sample, names)
    order = sorted(names, key=lambda name: likeness.get(name, 1.0))
    found = _left_out(page, model, sample, order)
    if found is not None:
        page.figures([(fit_pictures.importance(found), _caption(found))])
    _importance_table(page, names, likeness, found)
    _say_terms(page, model, sample)


def _likenesses(model: TableMachine, sample: Sample, names: list[str]) -> dict[str, float]:
    """The likeness of rows that differ in one column, of as many columns as there is time for."""
    found = {}
    seed = int(model.random_state)
    with clock.within(_share(SHARE_FOR_LIKENESS, SECONDS_OF_LIKENESS)):
        for name in clock.in_time(names):
            found[name] = columns.likeness_alone(model.kernel_, sample, name, seed)
    return found


def _share(share: float, most: float) -> float:
    """A share of the seconds left, and at most so many."""
    left = clock.left()
    return most if left is None else min(share * left, most)


def _left_out(page: Page, model: TableMachine, sample: Sample, names: list[str]) -> LeftOut | None:
    """The error without each column; a sentence instead where there are no targets for it."""
    if sample.targets is None:
        page.paragraph(
            "What is lost without a column was not computed: it needs rows with their targets, which this "
            "machine does not keep. Give them: model.report(path, table=…), or mercer report --table FILE."
        )
        return None
    try:
        found = columns.leave_out_columns(
            noisy_kernel(model),
            sample,
            names,
            task=model.task,
            seed=int(model.random_state),
            scale=model.scale_,
        )
    except MercerError as error:
        page.paragraph(f"What is lost without a column was not computed: {error}.")
        return None
    if len(found.late) == len(names):
        page.paragraph(
            "What is lost without a column was not computed: the seconds for it had passed. "
            "mercer report MODEL writes this page without a limit."
        )
    elif found.late:
        page.paragraph(
            "Not left out, because the seconds for it had passed: "
            f"{some_of(found.late)}, {len(found.late)} of {len(names)} columns."
        )
    if found.failed:
        page.paragraph(f"No process could be fitted without {some_of(found.failed)}.")
    return found if found.columns else None


def noisy_kernel(model: TableMachine) -> Kernel:
    """The kernel with the noise of the machine as a `White` term; that of ridge is its penalty."""
    if isinstance(model.machine_, FalkonRegressor):
        return model.kernel_ + White(float(model.machine_.get_params()["alpha"]))
    if isinstance(model.machine_, FeatureMachineRegressor):
        return model.kernel_ + White(float(model.machine_.alpha_))
    return model.kernel_


def _caption(found: LeftOut) -> str:
    loss = "squared error" if found.measure == "rmse" else "log loss"
    return (
        f"How much the mean {loss} on rows not seen rises if a column has the same value in every row, with "
        f"one standard error. {found.how}; with all columns the {_measure(found)} is {shown(found.error)}. "
        "The kernel's numbers are kept, nothing is tuned again: of two columns that say the same, each alone "
        "costs little. A fall beyond its error says that with this kernel the loss is smaller without it."
    )


def _measure(found: LeftOut) -> str:
    return found.measure.replace("_", " ").replace("rmse", "root mean square error")


def _importance_table(
    page: Page, names: list[str], likeness: dict[str, float], found: LeftOut | None
) -> None:
    if found is None and not likeness:
        # nothing was there to be said, and a table of names alone says nothing
        return
    without = {} if found is None else {each.column: each for each in found.columns}
    order = [*without, *(name for name in names if name not in without)]
    rows = []
    for name in order:
        row = [name, f"{likeness[name]:.3f}" if name in likeness else ""]
        if found is not None:
            each = without.get(name)
            row += ["", ""]
            if each is not None:
                # + 0.0: no minus before a zero
                rise = round(100 * each.rise, 1) + 0.0
                row[2:] = [f"{rise:+.1f} ± {100 * each.uncertainty:.1f} %", shown(each.error)]
        rows.append(row)
    head = ["column", "likeness"]
    if found is not None:
        head += ["rise of the loss without it", f"{_measure(found)} without it"]
    page.table(head, rows)
    page.paragraph(
        "Likeness is how alike the kernel finds two rows that differ in this column alone (its value is that "
        "of another row): 1 if it cannot tell them apart. It says how closely the kernel looks at a column, "
        "not whether the column helps. It is left empty where there was no time for it."
    )


def _say_terms(page: Page, model: TableMachine, sample: Sample) -> None:
    some = sample.some(columns.PAIRS, int(model.random_state))
    rows = []
    for term, share in term_shares(noisy_kernel(model), some.rows):
        text = "noise of a single row" if term is None else with_few_digits(brief(str(term)))
        rows.append((f"{share:.1%}", text if len(text) <= LONGEST_TERM else f"{text[:LONGEST_TERM]}…"))
    page.table(
        ("share", "term"), rows, left=(1,), title="Terms of the kernel, by their share of the variance"
    )
    page.paragraph(
        f"The variance is that{_of_scale(model)} before any target is seen, k(x, x) as a mean over rows. A "
        "term that may vary much need not do so."
    )
    lengthscales = columns.lengthscales(model.kernel_)
    if not lengthscales:
        return
    listed = [
        (each.column, shown(each.value), each.part + (", shared by its columns" if each.shared else ""))
        for each in lengthscales
    ]
    page.table(("column", "lengthscale", "part"), listed, left=(0, 2), title="Lengthscales")
    page.paragraph(
        "A long lengthscale says that this part of the kernel changes slowly along the column, in the units "
        "in which it is read (standard deviations, or normal scores of ranks). It does not say that the "
        "column is useless: another part may read it, and a straight line is long too. Lengthscales of "
        "columns that are read in different ways cannot be compared."
    )


def _of_scale(model: TableMachine) -> str:
    if model.scale_.is_identity:
        return ""
    return f" of {model.scale_.words_of(str(getattr(model, 'target_', 'the target')))}"


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────


def say_rows(page: Page, model: TableMachine, sample: Sample) -> None:
    """How alike rows are: the Gram matrix in clusters, and its spectrum."""
    latent, _ = split_noise(model.kernel_)
    if latent is None:
        return
    page.heading("How alike rows are")
    seed = int(model.random_state)
    few = sample.some(MOST_IN_PICTURE, seed)
    began = clock.now()
    K = correlations(latent, few.rows)
    many = sample.some(_rows_in_spectrum(len(few), clock.now() - began), seed)
    order = cluster_order(K)
    targets = None if few.targets is None else few.targets[order]
    classes = model.classes_ if isinstance(model, TableClassifier) else None
    values = np.maximum(np.linalg.eigvalsh(latent(many.rows, many.rows))[::-1], 0.0)
    _, noise = split_noise(noisy_kernel(model))
    caption = (
        f"k(x, z) / √(k(x, x) k(z, z)) of {few.words}, in the order of a hierarchical clustering: blocks are "
        "rows that the kernel finds alike."
    )
    if targets is not None:
        caption += (
            " The strip at the right has their targets: where its colours follow the blocks, likeness tells "
            "the target."
        )
    page.figures(
        [
            (fit_pictures.gram(K[np.ix_(order, order)], targets, classes), caption),
            (fit_pictures.spectrum(values, noise or None), spectrum_words(values, noise, many.words)),
        ]
    )


def _rows_in_spectrum(tried: int, took: float) -> int:
    """As many rows as a share of the seconds left is enough for, if so many took so long."""
    left = clock.left()
    if left is None:
        return MOST_IN_SPECTRUM
    # the kernel grows with the square of the rows, the eigenvalues with their cube
    return int(min(MOST_IN_SPECTRUM, tried * max(SHARE_FOR_SPECTRUM * left / max(took, 1e-9), 1.0) ** 0.4))


def correlations(kernel: Kernel, rows: Rows) -> Array:
    """The Gram matrix with 1 on its diagonal."""
    K = kernel(rows, rows)
    size = np.sqrt(np.maximum(np.diagonal(K), 1e-300))
    scaled: Array = K / np.outer(size, size)
    return scaled


def cluster_order(K: Array) -> Integers:
    """The rows of a matrix of likeness in the order of a hierarchical clustering by mean distance."""
    if len(K) < 3:
        return np.arange(len(K))
    distance = np.sqrt(np.maximum(2.0 - 2.0 * (K + K.T) / 2, 0.0))
    np.fill_diagonal(distance, 0.0)
    links = hierarchy.linkage(squareform(distance, checks=False), method="average", optimal_ordering=True)
    order: Integers = hierarchy.leaves_list(links)
    return order


def components_for(values: Array, share: float) -> int:
    """How many of the largest eigenvalues have this share of their sum.

    >>> components_for(np.array([6.0, 3.0, 1.0]), 0.9)
    2
    """
    return int(np.searchsorted(np.cumsum(values) / values.sum(), share - 1e-12) + 1)


def effective_dimension(values: Array, noise: float) -> float:
    """Σ λ / (λ + σ²), the trace of K(K + σ²I)⁻¹: how many free numbers a fit with this noise has.

    >>> effective_dimension(np.array([1.0, 1.0, 0.0]), 1.0)
    1.0
    """
    return float(np.sum(values / (values + noise)))


def spectrum_words(values: Array, noise: float, words: str) -> str:
    """What the eigenvalues say."""
    counts = [f"{components_for(values, share)} have {share:.0%}" for share in SHARES_OF_TRACE]
    text = f"Eigenvalues of the Gram matrix of {words}, without noise. Of their sum {' and '.join(counts)}."
    if noise:
        size = effective_dimension(values, noise)
        text += (
            f" With noise {shown(noise)} the effective dimension Σ λ / (λ + σ²) is {shown(size)} of "
            f"{len(values)}: so many free numbers the fit of these rows has."
        )
    return text
