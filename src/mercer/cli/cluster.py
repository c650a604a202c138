"""`mercer cluster`: the rows of a table with the cluster of each.

The object that --json prints, schema "mercer.cluster/1":

    file, rows          what was read
    kernel              its text; open lengthscales are closed by the spread of the columns
    clusters            how many
    chosen              whether their number was chosen here, or given
    strengths           if it was: for each number tried its `clusters`, `strength`, and standard `error`
    sizes               rows in each cluster
    explained           the share of the variance in feature space that lies between the clusters
    labels, distances   of each row: its cluster, from 0, and its distance to the centre in feature space
    seed, landmarks     of the random numbers; of Nyström's approximation, null if there was none
    output              the file that was written, or null
    notes               what else has to be said
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.cli.source import (
    LANDMARKS,
    Seen,
    Source,
    Voice,
    drawn,
    finished,
    landmarks_for,
    seen,
    some_rows,
    with_columns,
)
from mercer.cli.talk import json_text
from mercer.errors import InputError
from mercer.machines.structure.kmeans import KernelKMeans
from mercer.tables.grouping import CUTS, STRONG, Strength, most_clusters, strengths, strongest
from mercer.tables.outlet import check_table_place, write_table

# Runs of k-means, of which the best is kept.
RUNS = 10
# Rows, drawn at random, on which the number of clusters is chosen.
ROWS_TO_CHOOSE = 1000


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    source: Source
    clusters: int | None
    output: str
    force: bool
    seed: int
    quiet: bool
    as_json: bool


def run_cluster(asked: Request) -> int:
    """Read, cluster, write; return the exit code."""
    return finished(lambda voice: _cluster(asked, voice), quiet=asked.quiet)


def _cluster(asked: Request, voice: Voice) -> None:
    check_table_place(asked.output, force=asked.force)
    table = seen(asked.source, voice)
    n = len(table)
    if asked.clusters is not None and asked.clusters > n:
        raise InputError(f"{table.found.path} has {n} rows: fewer than {asked.clusters} clusters.")
    found: list[Strength] = []
    count = asked.clusters
    if count is None:
        found = _strengths(table, asked.seed, voice)
        count = strongest(found)
        voice.say(_chosen(found, count, n))
    landmarks = landmarks_for(n, asked.seed)
    if landmarks is not None:
        voice.say(f"{n} rows: the kernel is approximated by {LANDMARKS} landmarks (Nyström)")
    voice.progress(f"{count} clusters of {n} rows")
    model = KernelKMeans(
        table.kernel, count, n_init=RUNS, random_state=asked.seed, approximation=landmarks
    ).fit(table.rows)
    whole = KernelKMeans(table.kernel, 1, random_state=asked.seed, approximation=landmarks).fit(table.rows)
    explained = 1 - model.inertia_ / whole.inertia_ if whole.inertia_ > 0 else 0.0
    labels = model.labels_
    distances = model.transform(table.rows)[np.arange(n), labels]
    sizes = np.bincount(labels, minlength=count).tolist()
    frame, names = with_columns(table.frame, {"cluster": labels, "distance": distances}, voice)
    voice.say(
        f"{_clusters(count)} of {', '.join(map(str, sizes))} rows; {explained:.1%} of the variance in "
        "feature space lies between them"
    )
    voice.notes(model.certificate_.notes)
    if asked.output != "-" or not asked.as_json:
        write_table(frame, asked.output, force=asked.force)
    if asked.output != "-":
        voice.say(f"{asked.output}: the rows with columns {names[0]!r} and {names[1]!r}")
    if asked.as_json:
        facts = {
            "schema": "mercer.cluster/1",
            "file": table.found.path,
            "rows": n,
            "kernel": str(table.kernel),
            "clusters": count,
            "chosen": asked.clusters is None,
            "strengths": [{"clusters": s.clusters, "strength": s.mean, "error": s.error} for s in found],
            "sizes": sizes,
            "explained": explained,
            "labels": labels.tolist(),
            "distances": distances.tolist(),
            "seed": asked.seed,
            "landmarks": None if landmarks is None else LANDMARKS,
            "output": None if asked.output == "-" else asked.output,
            "notes": [*model.certificate_.notes],
        }
        print(json_text(facts))


def _strengths(table: Seen, seed: int, voice: Voice) -> list[Strength]:
    """How well each number of clusters is found again, on some of many rows."""
    index = drawn(len(table), ROWS_TO_CHOOSE, seed)
    rows = some_rows(table.rows, index)
    K = table.kernel.resolved(rows)(rows)
    return strengths(np.asarray(K, dtype=np.float64), seed=seed, tell=voice.progress)


def _chosen(found: list[Strength], count: int, n: int) -> str:
    """The table of what was tried, and the reason in words."""
    rows = f"{ROWS_TO_CHOOSE} of {n} rows" if n > ROWS_TO_CHOOSE else f"{n} rows"
    lines = [
        f"prediction strength of k clusters ({CUTS} random halves of {rows}; 1: every cluster is found again "
        "in the other half):"
    ]
    lines += [f"  {s.clusters:2d}  {s.mean:.2f} ± {s.error:.2f}" for s in found]
    if most_clusters(n) == 1:
        lines.append(f"{n} rows are too few to choose a number of clusters: give --clusters.")
    elif count == 1:
        lines.append(
            f"No number above 1 reaches {STRONG}: the table has no clusters that another sample would show. "
            "Give --clusters to cut it all the same."
        )
    else:
        lines.append(f"{count} is the largest that reaches {STRONG} (with one standard error).")
    return "\n".join(lines)


def _clusters(count: int) -> str:
    return "1 cluster" if count == 1 else f"{count} clusters"
