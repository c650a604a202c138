"""A table of every kind of column, and models of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd

import mercer
from mercer.recipe import tournament

N = 48


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    days = rng.integers(0, 900, N)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(1, 9, N).round(2),
            "kind": rng.choice(["oak", "ash", None], N),
            "when": [(datetime(2020, 1, 1) + timedelta(days=int(day))).date().isoformat() for day in days],
            "note": [f"tree {i} {'with moss' if i % 2 else 'bare'} number {i * 7}" for i in range(N)],
            "flag": rng.choice([True, False], N),
            "const": [3] * N,
        }
    )
    frame["price"] = 3.0 * frame["size"] + 5.0 * (frame["kind"] == "oak") + rng.normal(0, 0.1, N)
    frame["mossy"] = np.where(np.arange(N) % 2, "mossy", "bare")
    return frame


def fitted(target: str) -> mercer.TableRegressor | mercer.TableClassifier:
    """A model with one short round of the tournament."""
    rounds = tournament.ROUNDS
    tournament.ROUNDS = (tournament.Round(40, 3, 1, 0.3),)
    other = {"price": "mossy", "mossy": "price"}[target]
    try:
        return mercer.fit(table().drop(columns=other), target, verbose=0)
    finally:
        tournament.ROUNDS = rounds
