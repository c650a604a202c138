"""Kernels that learn their features in `mercer.fit`: asked for by name, and in its choice."""

import numpy as np
import polars as pl
import pytest

import mercer
from mercer import FeatureMachineClassifier, FeatureMachineRegressor
from mercer.errors import InputError
from mercer.progress import Talk
from mercer.recipe import features, tournament
from mercer.recipe.given import Given
from mercer.tables import propose
from mercer.tables.propose import roles_of

RNG = np.random.default_rng(0)
N = 90
TABLE = pl.DataFrame(
    {
        "size": RNG.normal(50.0, 9.0, size=N),
        "other": RNG.normal(size=N),
        "kind": RNG.choice(["oak", "ash", "elm"], size=N),
    }
)
Y = (
    np.sin(TABLE["size"].to_numpy() / 9.0)
    + 2.0 * (TABLE["kind"].to_numpy() == "oak")
    + 0.1 * RNG.normal(size=N)
)
KERNEL = 'RBF().of(Coded(["number", "number", "category"])).on("size", "other", "kind")'


@pytest.fixture(scope="module")
def numbers():
    return mercer.fit(TABLE, Y, kernel=KERNEL, machine="features", verbose=0)


def test_numbers_by_a_feature_machine(numbers, tmp_path):
    machine = numbers.machine_
    assert isinstance(machine, FeatureMachineRegressor)
    assert "A feature machine for 90 rows" in numbers.summary()
    assert numbers.estimate_.measures["rmse"] < 0.5 * numbers.estimate_.nothing_learned["rmse"]
    assert "9 rows kept out of a fit on the other 81" in numbers.estimate_.how
    low, high = numbers.predict_interval(TABLE[:5])
    mean, std = numbers.predict(TABLE[:5], return_std=True)
    np.testing.assert_allclose((low + high) / 2, mean)
    assert np.all(std == std[0]) and np.all(high > low)
    assert numbers.guarantee(0.9).method == "split"
    numbers.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(TABLE), numbers.predict(TABLE))
    np.testing.assert_array_equal(again.predict_interval(TABLE)[0], numbers.predict_interval(TABLE)[0])


def test_its_explanation_and_its_report(numbers, tmp_path):
    found = numbers.explain(TABLE[:1])
    assert {effect.column for effect in found.effects} == {"size", "other", "kind"}
    assert found.alike[0].row == 0 and found.alike[0].likeness == pytest.approx(1.0)
    assert found.alike[0].target == pytest.approx(Y[0])
    other = numbers.predict(TABLE[:1].with_columns(pl.lit("ash").alias("kind")))
    here = next(effect for effect in found.effects if effect.column == "kind")
    if here.typical == "ash":
        assert here.effect == pytest.approx(float(numbers.predict(TABLE[:1])[0] - other[0]))
    page = numbers.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "A feature machine for 90 rows" in page


def test_classes_by_a_feature_machine(tmp_path):
    labels = np.where(Y > 0.5, "high", "low")
    model = mercer.fit(TABLE, labels, kernel=KERNEL, machine="features", verbose=0)
    assert isinstance(model.machine_, FeatureMachineClassifier)
    assert np.mean(model.predict(TABLE) == labels) > 0.9
    np.testing.assert_allclose(model.predict_proba(TABLE).sum(axis=1), 1.0)
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(TABLE), model.predict(TABLE))


def test_columns_are_read_by_their_roles_and_text_is_not():
    table = TABLE.with_columns(
        pl.Series("when", [f"{1 + i % 28:02d}.03.2020" for i in range(N)]),
        pl.Series("words", [f"a text with number {i} of its own" for i in range(N)]),
    )
    roles = roles_of(table)
    reading, names = propose.coded(roles)
    assert names == ("size", "other", "kind", "when")
    assert reading.kinds == ("number", "number", "category", "date %d.%m.%Y")
    found = features.kernels(Given.of(table), roles, None)
    assert [str(kernel).split("(")[0] for kernel in found] == ["Exponential", "Matern", "RBF"]
    with pytest.raises(InputError, match="reads numbers, categories and dates"):
        features.kernels(Given.of(table.select("words")), roles_of(table.select("words")), None)


def test_directions_are_a_factor_of_the_metric():
    A = RNG.normal(size=(6, 6))
    M = A @ A.T
    F = features.directions(M)
    np.testing.assert_allclose(F @ F.T, M, atol=1e-9 * np.abs(M).max())
    thin = np.outer(A[0], A[0]) + 1e-9 * np.eye(6)
    assert features.directions(thin).shape == (6, 1)


def turned(n, seed):
    """A wave along a direction of which every column has a part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, np.sin(2.0 * X.sum(axis=1) / np.sqrt(6.0))


def test_where_the_target_follows_a_direction_the_learned_metric_wins_by_evidence_and_on_new_rows():
    X, y = turned(220, 1)
    y = y + 0.1 * np.random.default_rng(2).normal(size=220)
    given = Given.of(X)
    roles = roles_of(given.table)
    talk = Talk(0)
    plain = [
        each
        for each in tournament.field_of(given, roles, talk).contenders
        if "all columns together" in each.words
    ]
    learned = features.contenders(given, roles, y, "numbers", None, 0, talk)
    assert len(plain) == 6 and len(learned) == 3
    new, truth = turned(300, 3)
    best = {}
    for name, field in (("plain", plain), ("learned", learned)):
        standing = max(
            (tournament._Judge().search(each, given.table, y, 15) for each in field),
            key=lambda standing: standing.evidence,
        )
        process = mercer.GaussianProcessRegressor(
            standing.contender.kernel + mercer.White(standing.contender.noise),
            normalize_y=True,
            optimizer=None,
        ).fit(given.table, y)
        error = np.sqrt(np.mean((process.predict(Given.of(new).table) - truth) ** 2))
        best[name] = (standing.evidence, error)
    assert best["learned"][0] > best["plain"][0] + 20.0
    assert best["learned"][1] < 0.7 * best["plain"][1]
