"""Sequential minimal optimisation in plain NumPy: slow, obvious, and the referee of the working-set solver.

    min ½ αᵀQα + pᵀα,   0 ≤ α ≤ C,   Q_ij = s_i s_j K[r_i, r_j]

`equality` 1 keeps Σ s_i α_i, 2 keeps Σ α_i apart for each sign, 0 keeps nothing. Two variables move at a time
(one where nothing is kept): the worst one, and the partner that lowers the objective most.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np

TAU = 1e-12


def smo(K, *, rows, signs, p, C, alpha=None, equality=1, tol=1e-3, max_iter=-1, **unused):
    """The same arguments and answer as `mercer.solve.qp.working_set`."""
    start = time.perf_counter()
    K = np.asarray(K.dense() if hasattr(K, "dense") else K, dtype=float)
    r, s, p = np.asarray(rows), np.asarray(signs, dtype=float), np.asarray(p, dtype=float)
    n = len(r)
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    a = np.zeros(n) if alpha is None else np.array(alpha, dtype=float)
    Q = (s[:, None] * s[None, :]) * K[np.ix_(r, r)]
    G = Q @ a + p
    limit = max(100_000, 1000 * n) if max_iter < 0 else max_iter
    groups = {0: [np.ones(n, bool)], 1: [np.ones(n, bool)], 2: [s > 0, s < 0]}[equality]
    v = s if equality == 1 else np.ones(n)  # Σ v_i α_i is kept within each group
    status, kkt, done = "limit", np.inf, 0
    for done in range(limit + 1):
        up = np.where(v > 0, a < C, a > 0)
        down = np.where(v > 0, a > 0, a < C)
        g = -v * G
        if equality == 0:
            gain = np.maximum(np.where(a < C, -G, 0), np.where(a > 0, G, 0))
            i = int(np.argmax(gain))
            kkt = float(gain[i]) if n else 0.0
        else:
            pairs = []
            for m in groups:
                hi, lo = np.where(up & m, g, -np.inf), np.where(down & m, g, np.inf)
                if np.isfinite(hi.max(initial=-np.inf)) and np.isfinite(lo.min(initial=np.inf)):
                    pairs.append((hi.max() - lo.min(), int(np.argmax(hi)), m))
            kkt = max((q[0] for q in pairs), default=0.0)
        if kkt <= tol:
            status = "converged"
            break
        if done == limit:
            break
        if equality == 0:
            step = np.clip(a[i] - G[i] / max(Q[i, i], TAU), 0, C[i]) - a[i]
            if not np.isfinite(step) or abs(step) > 1e15:
                status = "unbounded"
                break
            a[i] += step
            G += step * Q[:, i]
            continue
        _, i, m = max(pairs, key=lambda q: q[0])
        b = g[i] - g
        curve = np.maximum(Q[i, i] + Q.diagonal() - 2 * v[i] * v * Q[i], TAU)
        j = int(np.argmax(np.where(down & m & (b > 0), b * b / curve, -np.inf)))
        room_i = C[i] - a[i] if v[i] > 0 else a[i]
        room_j = a[j] if v[j] > 0 else C[j] - a[j]
        t = min(b[j] / curve[j], room_i, room_j)
        if not np.isfinite(t) or abs(a).max() > 1e12:
            status = "unbounded"
            break
        old_i, old_j = a[i], a[j]
        a[i] = (C[i] if t == room_i else a[i] + t) if v[i] > 0 else (0.0 if t == room_i else a[i] - t)
        a[j] = (0.0 if t == room_j else a[j] - t) if v[j] > 0 else (C[j] if t == room_j else a[j] + t)
        G += (a[i] - old_i) * Q[:, i] + (a[j] - old_j) * Q[:, j]
    f = K[:, r] @ (s * a)
    objective = 0.5 * float(a @ (G - p)) + float(p @ a)
    seconds = time.perf_counter() - start
    return SimpleNamespace(
        alpha=a, f=f, kkt=kkt, worst=0, iterations=done, seconds=seconds, status=status, objective=objective
    )
