"""`mercer test two-sample` and `mercer test independence`: kernel tests with permutation p-values.

The objects that --json prints, schemas "mercer.test.two-sample/1" and "mercer.test.independence/1":

    files, sizes          what was read; rows in each sample, or in the table
    kernel, kernels       the text of the kernel, or of both; open lengthscales by the spread of the columns
    statistic, value      "MMD²" or "HSIC", unbiased, and its value
    effect                the share of the variance in feature space that lies between the samples; or the
                          dependence from 0 to 1 (HSIC as a correlation)
    p_value, permutations, seed
    meaning               what the p-value says and what not
    witness               two samples only: `sample`, `row` and `value` of the rows at which they differ most
    notes                 what else has to be said
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars

from mercer.cli.source import (
    Seen,
    Source,
    Voice,
    drawn,
    finished,
    proposed,
    seen,
    shortened,
    some_rows,
)
from mercer.cli.talk import json_text
from mercer.errors import InputError, ParameterError
from mercer.kernels import Kernel, parse
from mercer.tables.intake import read_table
from mercer.tables.names import require_columns
from mercer.theory import hsic, hsic_test, mmd_test
from mercer.typing import Array, Integers, Table

if TYPE_CHECKING:
    from mercer.theory.permutation import KernelTest
    from mercer.theory.two_sample import TwoSampleTest

# Rows of each side at which the samples differ most that are shown.
TELLING = 3
# Letters of a row that are shown.
WIDTH = 240


@dataclass(frozen=True)
class TwoSamples:
    """What was asked for on the command line."""

    source: Source
    other: str | None
    by: str | None
    rows: int
    permutations: int
    seed: int
    drop_missing: bool
    quiet: bool
    as_json: bool


@dataclass(frozen=True)
class Independence:
    """What was asked for on the command line."""

    source: Source
    left: tuple[str, ...]
    right: tuple[str, ...]
    rows: int
    permutations: int
    seed: int
    quiet: bool
    as_json: bool


@dataclass(frozen=True)
class _Samples:
    """Both samples one after the other, what they are called, and which rows of the files they are."""

    names: tuple[str, str]
    both: Table
    frame: polars.DataFrame
    first: Integers
    second: Integers
    kernel: Kernel
    files: list[str]
    rows_of_file: Integers


# ── two samples ─────────────────────────────────────────────────────────────────────────────────────────────


def run_two_sample(asked: TwoSamples) -> int:
    """Read, test, print; return the exit code."""
    return finished(lambda voice: _two_sample(asked, voice), quiet=asked.quiet)


def _two_sample(asked: TwoSamples, voice: Voice) -> None:
    if (asked.by is None) == (asked.other is None):
        raise ParameterError("give two tables, or one table and --by COLUMN.")
    samples = _of_two_tables(asked, voice) if asked.by is None else _by_column(asked, voice)
    first = samples.first[drawn(len(samples.first), asked.rows, asked.seed)]
    second = samples.second[drawn(len(samples.second), asked.rows, asked.seed + 1)]
    for name, all_rows, some in zip(
        samples.names, (samples.first, samples.second), (first, second), strict=True
    ):
        if len(some) < 2:
            raise InputError(f"sample {name} has {len(some)} rows: at least 2 are needed.")
        if len(some) < len(all_rows):
            voice.say(f"{name}: {len(some)} of {len(all_rows)} rows, drawn at random; --rows takes more")
    x = some_rows(samples.both, first)
    z = some_rows(samples.both, second)
    pooled = some_rows(samples.both, np.concatenate([first, second]))
    kernel = samples.kernel.resolved(pooled)
    voice.progress(f"{asked.permutations} permutations of {len(first) + len(second)} rows")
    found = mmd_test(x, z, kernel, n_permutations=asked.permutations, random_state=asked.seed)
    effect = _share_between(found, kernel, pooled)
    witness = _telling(found, samples, first, second, pooled)
    meaning = _meaning_of_two(found)
    if asked.as_json:
        facts = {
            "schema": "mercer.test.two-sample/1",
            "files": samples.files,
            "sizes": list(found.sizes),
            "kernel": str(samples.kernel),
            **_facts(found, asked.permutations, asked.seed),
            "effect": effect,
            "meaning": meaning,
            "witness": [{"sample": s, "row": r, "value": v} for s, r, v, _ in witness],
        }
        print(json_text(facts))
        return
    print(
        f"{found.name} = {found.statistic:.6g}, p = {found.p_value:.4g} ({found.method}, seed {asked.seed})"
    )
    print(f"{samples.names[0]}: {found.sizes[0]} rows; {samples.names[1]}: {found.sizes[1]} rows")
    print(f"effect: {effect:.2%} of the variance in feature space lies between the two samples")
    print(f"kernel: {shortened(samples.kernel)}")
    print(meaning)
    print("rows at which the samples differ most (the witness function; positive: more of the first there)")
    for name, row, value, text in witness:
        print(f"  {value:+.3g}  {name}, row {row}: {text}")
    for note in found.notes:
        print(f"note: {note}")


def _of_two_tables(asked: TwoSamples, voice: Voice) -> _Samples:
    assert asked.other is not None
    one = read_table(asked.source.table, asked.source.layout)
    two = read_table(asked.other, asked.source.layout)
    voice.say(f"{one}\n{two}")
    if one.frame is None or two.frame is None:
        raise InputError("mercer test two-sample takes tables with names of columns, not LIBSVM's text.")
    require_columns(one.frame.columns, asked.source.leave_out, one.path)
    frame = _one_after_the_other(one.frame, two.frame, (one.path, two.path), asked.source.leave_out)
    kernel = _kernel_of(asked.source, frame, one.path)
    m = one.frame.height
    n = two.frame.height
    places = np.concatenate([np.arange(m), np.arange(n)])
    names = (one.path, two.path)
    return _Samples(
        names, frame, frame, np.arange(m), np.arange(m, m + n), kernel, [one.path, two.path], places
    )


def _one_after_the_other(
    one: polars.DataFrame, two: polars.DataFrame, paths: tuple[str, str], leave_out: Sequence[str]
) -> polars.DataFrame:
    """Both tables in one, by the names of their columns."""
    names = [name for name in one.columns if name not in leave_out]
    missing = [name for name in names if name not in two.columns]
    more = [name for name in two.columns if name not in (*names, *leave_out)]
    for path, other, lacking in ((paths[1], paths[0], missing), (paths[0], paths[1], more)):
        if lacking:
            raise InputError(
                f"{path} has no column {lacking[0]!r}, and {other} has. Both samples need the same columns; "
                f"--leave-out {lacking[0]!r} tests the others."
            )
    for name in names:
        kinds = [frame[name].dtype for frame in (one, two) if frame[name].null_count() < frame.height]
        if len(kinds) == 2 and kinds[0].is_numeric() != kinds[1].is_numeric():
            words = ["numbers" if kind.is_numeric() else "text or dates" for kind in kinds]
            raise InputError(
                f"column {name!r} has {words[0]} in {paths[0]} and {words[1]} in {paths[1]}. Correct one of "
                f"them, name its words for missing values (--missing), or --leave-out {name!r}."
            )
        if len(kinds) == 1:
            one = one.with_columns(one[name].cast(kinds[0]))
            two = two.with_columns(two[name].cast(kinds[0]))
    return polars.concat([one.select(names), two.select(names)], how="vertical_relaxed")


def _by_column(asked: TwoSamples, voice: Voice) -> _Samples:
    assert asked.by is not None
    table = seen(asked.source, voice, also_without=[asked.by])
    path = table.found.path
    column = table.frame[asked.by]
    gaps = column.is_null().arg_true()
    if len(gaps) and not asked.drop_missing:
        raise InputError(
            f"{path}, line {int(gaps[0]) + table.found.first_line}, has no value in column {asked.by!r}, and "
            f"so have {len(gaps)} rows in all. --drop-missing leaves them out."
        )
    values = column.drop_nulls().unique(maintain_order=True).to_list()
    if len(values) != 2:
        raise InputError(
            f"{path}: column {asked.by!r} has {len(values)} different values, and a test of two samples "
            f"needs two: {', '.join(repr(v) for v in values[:6])}."
        )
    first = (column == values[0]).fill_null(False).arg_true().to_numpy().astype(np.intp)
    second = (column == values[1]).fill_null(False).arg_true().to_numpy().astype(np.intp)
    names = (f"{asked.by} = {values[0]}", f"{asked.by} = {values[1]}")
    places = np.arange(len(table))
    return _Samples(names, table.rows, _frame_of(table), first, second, table.kernel, [path], places)


def _frame_of(table: Seen) -> polars.DataFrame:
    return table.rows if isinstance(table.rows, polars.DataFrame) else table.frame


def _share_between(found: TwoSampleTest, kernel: Kernel, pooled: Table) -> float:
    """mn/(m + n)² MMD² / mean ‖φ - φ̄‖²: the part of the variance that knowing the sample explains."""
    m, n = found.sizes
    K = kernel.gram(pooled)
    diagonal: Array = np.asarray(K.diag(), dtype=np.float64)
    sums: Array = np.asarray(K @ np.ones(m + n), dtype=np.float64)
    variance = float(diagonal.mean() - sums.mean() / (m + n))
    if variance <= 0:
        return 0.0
    return max(found.statistic, 0.0) * m * n / (m + n) ** 2 / variance


def _telling(
    found: TwoSampleTest, samples: _Samples, first: Integers, second: Integers, pooled: Table
) -> list[tuple[str, int, float, str]]:
    """The rows at which the witness is largest and smallest: sample, row from 1, value, and the cells."""
    places = np.concatenate([first, second])
    values = found.witness(pooled)
    order = np.argsort(-values, kind="stable")
    count = min(TELLING, len(order) // 2)
    # what is the same in all rows tells nothing
    varying = [column.name for column in samples.frame if column.n_unique() > 1]
    out = []
    for i in [*order[:count], *order[-count:]]:
        name = samples.names[0] if i < len(first) else samples.names[1]
        row = int(samples.rows_of_file[places[i]]) + 1
        cells = samples.frame.row(int(places[i]), named=True)
        text = ", ".join(f"{column} {_cell(cells[column])}" for column in varying)
        if len(text) > WIDTH:
            text = f"{text[:WIDTH]} …"
        out.append((name, row, float(values[i]), text))
    return out


def _cell(value: object) -> str:
    if value is None:
        return "missing"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meaning_of_two(found: KernelTest) -> str:
    return (
        "If both samples came from one distribution, a random relabelling of the rows would show a "
        f"difference at least as large with probability {found.p_value:.4g}. That is not the probability "
        "that they are equal, it does not say how much they differ (the effect does), and a large p does "
        "not show that they are equal. It holds for rows that are independent of one another."
    )


# ── independence ────────────────────────────────────────────────────────────────────────────────────────────


def run_independence(asked: Independence) -> int:
    """Read, test, print; return the exit code."""
    return finished(lambda voice: _independence(asked, voice), quiet=asked.quiet)


def _independence(asked: Independence, voice: Voice) -> None:
    table = read_table(asked.source.table, asked.source.layout)
    voice.say(str(table))
    if table.frame is None:
        raise InputError("mercer test independence takes a table with names of columns, not LIBSVM's text.")
    left = named_columns(asked.left, table.frame, table.path)
    right = named_columns(asked.right, table.frame, table.path)
    both = [name for name in left if name in right]
    if both:
        raise InputError(f"column {both[0]!r} is on both sides: nothing is independent of itself.")
    index = drawn(table.frame.height, asked.rows, asked.seed)
    if len(index) < table.frame.height:
        voice.say(f"{len(index)} of {table.frame.height} rows, drawn at random; --rows takes more")
    frame = table.frame[index.tolist()]
    x = frame.select(left)
    y = frame.select(right)
    k = proposed(x, table.path)
    l = proposed(y, table.path)
    closed = (k.resolved(x), l.resolved(y))
    voice.progress(f"{asked.permutations} permutations of {len(index)} rows")
    found = hsic_test(x, y, *closed, n_permutations=asked.permutations, random_state=asked.seed)
    own = hsic(x, x, closed[0], closed[0]) * hsic(y, y, closed[1], closed[1])
    effect = float(np.clip(found.statistic / np.sqrt(own), 0.0, 1.0)) if own > 0 else 0.0
    meaning = _meaning_of_independence(found)
    if asked.as_json:
        facts = {
            "schema": "mercer.test.independence/1",
            "files": [table.path],
            "sizes": list(found.sizes),
            "left": left,
            "right": right,
            "kernels": [str(k), str(l)],
            **_facts(found, asked.permutations, asked.seed),
            "effect": effect,
            "meaning": meaning,
        }
        print(json_text(facts))
        return
    print(
        f"{found.name} = {found.statistic:.6g}, p = {found.p_value:.4g} ({found.method}, seed {asked.seed})"
    )
    print(f"{', '.join(left)} against {', '.join(right)}, {found.sizes[0]} rows")
    print(f"effect: dependence {effect:.3f} on a scale from 0 (independent) to 1 (HSIC as a correlation)")
    print(f"kernels: {shortened(k)}\n         {shortened(l)}")
    print(meaning)
    for note in found.notes:
        print(f"note: {note}")


def named_columns(asked: Sequence[str], frame: polars.DataFrame, path: str) -> list[str]:
    """Columns by name; a word that is no column is a list of them with commas between."""
    names: list[str] = []
    for word in asked:
        parts = [word] if word in frame.columns else [part.strip() for part in word.split(",")]
        names += [part for part in parts if part and part not in names]
    require_columns(frame.columns, names, path)
    if not names:
        raise InputError("each side needs at least one column: --left a,b --right c.")
    return names


def _meaning_of_independence(found: KernelTest) -> str:
    return (
        f"If both sides were independent, pairing their rows at random would show a dependence at least as "
        f"large with probability {found.p_value:.4g}. That is not the probability that they are independent, "
        "it says nothing of cause and effect, and a large p does not show independence. It holds for rows "
        "that are independent of one another."
    )


# ── both ────────────────────────────────────────────────────────────────────────────────────────────────────


def _facts(found: KernelTest, permutations: int, seed: int) -> dict[str, object]:
    return {
        "statistic": found.name,
        "value": found.statistic,
        "p_value": found.p_value,
        "permutations": permutations,
        "seed": seed,
        "notes": list(found.notes),
    }


def _kernel_of(source: Source, frame: polars.DataFrame, path: str) -> Kernel:
    if source.kernel is not None:
        return parse(source.kernel)
    return proposed(frame, path)
