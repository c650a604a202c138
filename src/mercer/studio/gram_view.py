"""The Gram matrix: ordered by class or cluster, its spectrum, effective rank, alignment with the targets."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mercer.errors import MercerError
from mercer.kernels.base import Kernel
from mercer.studio.fitted import plain
from mercer.studio.limits import MOST_GRAM
from mercer.studio.machines import CLASSES
from mercer.studio.packing import packed
from mercer.studio.points import Points
from mercer.studio.readers import Json
from mercer.theory import alignment, gram_report
from mercer.typing import Array, Integers


def gram_view(kernel: Kernel, points: Points, order: str) -> Json:
    """The matrix of at most so many rows, drawn evenly from all, and what it says."""
    rows = np.arange(len(points))
    if len(rows) > MOST_GRAM:
        rows = np.unique(np.linspace(0, len(points) - 1, MOST_GRAM).astype(int))
    some = points.part(rows)
    K = np.asarray(kernel(some.X), dtype=float)
    ordered = ordering(K, some, order)
    report = gram_report(K)
    found: Json = {
        "matrix": packed(K[np.ix_(ordered, ordered)]),
        "rows": rows[ordered].tolist(),
        "of": len(points),
        "spectrum": packed(np.maximum(report.eigenvalues[::-1], -np.inf)),
        "verdict": report.verdict,
        "rank": report.rank,
        "effectiveRank": plain(report.effective_rank),
        "condition": plain(report.condition),
        "duplicates": report.duplicate_count,
        "tests": [{"name": t.name, "says": t.says, "detail": t.detail} for t in report.tests],
        "alignment": None,
    }
    if points.task == CLASSES:
        found["classes"] = some.y[ordered].astype(int).tolist()
    try:
        found["alignment"] = plain(alignment(K, _target_gram(some)))
    except MercerError:
        # one class only, or a constant matrix: there is nothing to be aligned with
        found["alignment"] = None
    return found


def ordering(K: Array, points: Points, order: str) -> Integers:
    """The rows by class or target, by cluster, or as they are given."""
    n = len(points)
    if order == "given" or n < 3:
        return np.arange(n)
    if order == "class":
        return np.argsort(points.y, kind="stable")
    size = np.diag(K)
    distance = np.sqrt(np.maximum(size[:, None] + size[None, :] - K - K.T, 0.0))
    np.fill_diagonal(distance, 0.0)
    joined = linkage(squareform((distance + distance.T) / 2, checks=False), method="average")
    return np.asarray(leaves_list(joined), dtype=np.intp)


def _target_gram(points: Points) -> Array:
    """ "Same class or not", or the product of centred numbers."""
    if points.task == CLASSES:
        return np.asarray(points.y[:, None] == points.y[None, :], dtype=float)
    centred = points.y - points.y.mean()
    return np.outer(centred, centred)
