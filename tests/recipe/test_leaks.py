"""Columns that give the answer away are asked about, and honest ones are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.errors import MercerWarning
from mercer.recipe.given import Given
from mercer.recipe.leaks import suspicions
from mercer.recipe.tournament import Round
from mercer.tables.propose import roles_of

R = np.random.default_rng(2)
N = 200
SIZE = R.normal(size=N)
CLASS = np.where(SIZE + 0.5 * R.normal(size=N) > 0, "yes", "no")


@pytest.fixture(autouse=True)
def own_numbers():
    R.bit_generator.state = np.random.default_rng(7).bit_generator.state


def asked(table, y, task):
    roles = [role for role in roles_of(table) if role.kind != "left out"]
    return suspicions(Given.of(table), roles, y, task)


def told_by_a_loop(values, y):
    """The share of the rest, each row by the most frequent class of the other rows with its value."""
    right = 0
    for i, value in enumerate(values):
        others = [y[j] for j in range(len(y)) if j != i and values[j] == value]
        if others:
            counts = {label: others.count(label) for label in sorted(set(y))}
            right += max(counts, key=counts.get) == y[i]
    base = max(list(y).count(label) for label in set(y)) / len(y)
    return (right / len(y) - base) / (1 - base)


def test_a_column_that_is_the_target_in_other_words_is_asked_about():
    paid = np.where(CLASS == "yes", "p", "q")
    paid[:3] = "q"
    table = pd.DataFrame({"size": SIZE, "paid": paid})
    (text,) = asked(table, CLASS, "classes")
    assert text.startswith(f"'paid' alone tells {100 * told_by_a_loop(paid, CLASS):.0f} % of")


def test_a_column_that_is_filled_in_for_one_class_only_is_asked_about():
    note = np.where((CLASS == "yes") & (np.arange(N) % 2 == 0), 3.5, np.nan)
    note[note == 3.5] += R.normal(size=int((note == 3.5).sum()))
    (text,) = asked(pd.DataFrame({"size": SIZE, "note": note}), CLASS, "classes")
    assert f"'note' is known in {int(np.isfinite(note).sum())} rows, and the target is yes in all" in text


def test_numbers_that_follow_a_category_are_asked_about():
    kind = R.choice(list("abcdef"), N)
    y = np.array([ord(k) for k in kind]) * 10.0 + 0.1 * R.normal(size=N)
    (text,) = asked(pd.DataFrame({"size": SIZE, "kind": kind}), y, "numbers")
    assert text.startswith("'kind' alone")


def test_the_target_in_other_units_is_asked_about_and_a_near_thing_is_not():
    y = 3.0 * SIZE + 1.0
    (text,) = asked(pd.DataFrame({"feet": SIZE, "kind": R.choice(list("ab"), N)}), y, "numbers")
    assert text.startswith("'feet' alone tells 100 %")
    noisy = y + 0.1 * R.normal(size=N)
    assert asked(pd.DataFrame({"feet": SIZE, "kind": R.choice(list("ab"), N)}), noisy, "numbers") == []


@pytest.mark.parametrize("seed", range(5))
def test_honest_columns_are_not_asked_about(seed):
    rng = np.random.default_rng(seed)
    gaps = rng.normal(size=N)
    gaps[rng.random(N) < 0.5] = np.nan
    keys = [f"row {i}" for i in range(N)]
    table = pd.DataFrame({"size": SIZE, "gaps": gaps, "text": keys, "kind": rng.choice(list("ab"), N)})
    assert asked(table, CLASS, "classes") == []
    assert asked(table, np.sin(3 * SIZE), "numbers") == []


def test_a_fit_warns_and_keeps_the_sentence(monkeypatch):
    monkeypatch.setattr("mercer.recipe.tournament.ROUNDS", (Round(40, 2, 1, 0.3),))
    table = pd.DataFrame({"size": SIZE, "answer": CLASS})
    with pytest.warns(MercerWarning, match="'answer' alone tells 100 %"):
        model = mercer.fit(table, CLASS, verbose=0)
    assert any("'answer' alone" in step for step in model.steps_)
