"""What a hard margin needs when it fails: rows that contradict each other, bounds, violations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.gram import GramOperator
from mercer.solve.box import BoxProblem
from mercer.typing import Array

SMALL_PROGRAM = 300
"""Rows up to which the smallest violation is computed by a linear program."""
MOST_PAIRS = 2000
"""Rows up to which all pairs are looked at."""
NOTHING = 1e-6
"""A violation that a linear program cannot tell from 0."""


def contradiction(K: GramOperator, q: BoxProblem) -> tuple[int, int] | None:
    """Two rows with different signs and the same kernel values: no function can tell them apart.

    Rows that agree with three of the others, and with themselves, are candidates; these are compared in full.
    """
    n = len(q.rows)
    probes = q.rows[[0, n // 2, n - 1]]
    keys = np.vstack([K.diag()[q.rows], K.block(probes, q.rows)]).T
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    plus = np.bincount(group, q.signs > 0)
    minus = np.bincount(group, q.signs < 0)
    for g in np.flatnonzero((plus > 0) & (minus > 0)):
        members = q.rows[group == g]
        signs = q.signs[group == g]
        values = K.block(members, q.rows)
        _, same = np.unique(values, axis=0, return_inverse=True)
        same = same.reshape(-1)
        for i in range(len(members)):
            other = np.flatnonzero((same == same[i]) & (signs != signs[i]))
            if len(other):
                return int(members[i]), int(members[other[0]])
    return None


def widest_margin(K: GramOperator, q: BoxProblem, alphas: Sequence[Array]) -> float:
    """A bound on the margin of every function that separates, from any α ≥ 0 that keeps its sums at 0.

    y f ≥ 1 gives Σα ≤ Σ α y f = ⟨w, Σ yαφ⟩ ≤ ‖w‖ ‖Σ yαφ‖, so that 1/‖w‖ ≤ ‖Σ yαφ‖ / Σα; rounding is added.
    """
    bounds = [np.inf]
    norms = np.sqrt(np.abs(K.diag()[q.rows]))
    for alpha in (*alphas, _closest(K, q)):
        if not 0 < alpha.sum() < np.inf:
            continue
        shares = alpha / alpha.sum()
        beta = q.beta(shares, K.shape[0])
        square = max(float(beta @ np.asarray(K @ beta)), 0.0)
        rounding = len(alpha) * np.finfo(float).eps * float(shares @ norms) ** 2
        bounds.append(float(np.sqrt(square + rounding)))
    return min(bounds)


def _closest(K: GramOperator, q: BoxProblem) -> Array:
    """α = 1 for the two rows of different signs that are nearest in the feature space; of few rows."""
    alpha = np.zeros(len(q.rows))
    if len(alpha) <= MOST_PAIRS:
        plus = np.flatnonzero(q.signs > 0)
        minus = np.flatnonzero(q.signs < 0)
        diag = K.diag()[q.rows]
        apart = diag[plus][:, None] + diag[minus] - 2 * K.block(q.rows[plus], q.rows[minus])
        i, j = np.unravel_index(int(np.argmin(apart)), apart.shape)
        alpha[[plus[i], minus[j]]] = 1.0
    return alpha


def least_violation(K: GramOperator, q: BoxProblem) -> Array | None:
    """Violations of smallest sum, of few rows, by a linear program; None where it has no answer."""
    n = len(q.rows)
    if n > SMALL_PROGRAM:
        return None
    from scipy.optimize import linprog

    rows = np.hstack(
        [q.signs[:, None] * K.block(q.rows, q.rows), q.signs[:, None] * (q.equality > 0), np.eye(n)]
    )
    free = [(None, None)] * (n + 1)
    cost = np.repeat([0.0, 1.0], [n + 1, n])
    found = linprog(cost, A_ub=-rows, b_ub=-np.ones(n), bounds=free + [(0, None)] * n)
    return np.asarray(found.x[n + 1 :]) if found.status == 0 else None


def softened(K: GramOperator, q: BoxProblem) -> BoxProblem:
    """The same problem with a C that is large beside the kernel's values."""
    C = 1e4 / max(float(np.median(np.abs(K.diag()[q.rows]))), 1e-300)
    return BoxProblem(q.rows, q.signs, q.p, np.full(len(q.rows), C), q.equality)
