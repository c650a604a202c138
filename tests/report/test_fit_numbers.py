"""The numbers behind the report of a fit, each with a referee."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.model_selection import StratifiedKFold

from mercer import GaussianProcessClassifier, GaussianProcessRegressor, White, parse
from mercer.arrays import Rows
from mercer.recipe.estimate import Predicted, of_classes, of_numbers
from mercer.recipe.explain import term_shares
from mercer.recipe.kept import Sample
from mercer.report import columns, fit_rows, judged
from mercer.scales import IDENTITY

R = np.random.default_rng(8)
N = 80
TABLE = pd.DataFrame({"a": R.normal(size=N), "b": R.normal(size=N), "kind": R.choice(["oak", "ash"], N)})
Y = np.sin(TABLE["a"].to_numpy()) + 0.5 * (TABLE["kind"] == "oak").to_numpy() + 0.1 * R.normal(size=N)
LABELS = np.where(Y > 0.5, "high", np.where(Y < -0.3, "low", "middle"))
PARTS = {
    "a": 'RBF(1.5).on("a")',
    "b": 'RBF(2.5).on("b")',
    "kind": 'Categorical(0.7).on("kind")',
}
TOGETHER = parse("*".join(PARTS.values()))


def sample(targets):
    return Sample(Rows.of(TABLE), targets, "the rows")


def without(name):
    """The kernel that does not read a column at all."""
    return parse("*".join(text for column, text in PARTS.items() if column != name))


@pytest.mark.parametrize("level", judged.LEVELS)
def test_coverage_counts_rows_inside_the_band(level):
    mean = R.normal(size=N)
    std = R.uniform(0.1, 2.0, size=N)
    truth = mean + std * R.normal(size=N)
    found = of_numbers("", np.arange(N), truth, Predicted(IDENTITY, mean, std))
    inside = 0
    for t, m, s in zip(truth, mean, std, strict=True):
        low, high = norm.interval(level, m, s)
        inside += low <= t <= high
    assert judged.coverage(found, level) == inside / N
    assert judged.inside(found, level).sum() == inside


def test_confusions_curves_and_bins_are_those_of_scikit_learn():
    p = np.round(R.uniform(size=300), 2)
    truth = np.where(R.uniform(size=300) < p, "yes", "no")
    found = of_classes("", np.arange(300), truth, np.array(["no", "yes"]), np.column_stack([1 - p, p]))
    counts = judged.confusion(found.truth, found.predicted, np.array(["no", "yes"]))
    assert np.array_equal(counts, metrics.confusion_matrix(truth, found.predicted))
    probability, came_true, words = judged.asked(found, np.array(["no", "yes"]))
    assert words == "probability of “yes”"
    across, up = judged.roc(probability, came_true)
    expected = metrics.roc_curve(truth == "yes", p, drop_intermediate=False)
    assert np.allclose(across, expected[0]) and np.allclose(up, expected[1])
    assert np.isclose(np.trapezoid(up, across), found.measures["roc_auc"])
    # on the border of two bins scikit-learn takes the lower one
    off = np.minimum(p + 1e-9, 1.0)
    bins = judged.reliability(off, came_true)
    true, said = calibration_curve(truth == "yes", off, n_bins=10)
    assert np.allclose([each.came_true for each in bins], true)
    assert np.allclose([each.said for each in bins], said)
    assert sum(each.rows for each in bins) == 300
    slow = 0.0
    for each in bins:
        mine = (off >= each.low) & ((off < each.high) | (each.high == 1.0))
        slow += abs(off[mine].sum() - came_true[mine].sum())
        assert np.isclose(each.uncertainty, came_true[mine].std() / np.sqrt(mine.sum()))
    assert np.isclose(judged.calibration_error(bins), slow / 300)


def test_of_many_classes_the_one_predicted_is_asked_about():
    P = R.dirichlet(np.ones(3), size=40)
    classes = np.array(["a", "b", "c"])
    truth = classes[R.integers(3, size=40)]
    found = of_classes("", np.arange(40), truth, classes, P)
    probability, came_true, _ = judged.asked(found, classes)
    assert np.array_equal(probability, P.max(axis=1))
    assert came_true.mean() == found.measures["accuracy"]


def test_the_error_without_a_column_is_that_of_refits_by_a_kernel_that_does_not_read_it():
    found = columns.leave_out_columns(TOGETHER + White(0.05), sample(Y), list(PARTS), task="numbers")
    assert not found.late and not found.failed and found.measure == "rmse"
    # every row by a refit without it
    losses = {}
    for name, kernel in [("all", TOGETHER), *((name, without(name)) for name in PARTS)]:
        machine = GaussianProcessRegressor(kernel + White(0.05), normalize_y=True, optimizer=None)
        squares = []
        for row in range(N):
            others = np.delete(np.arange(N), row)
            said = machine.fit(TABLE.iloc[others], Y[others]).predict(TABLE.iloc[[row]])[0]
            squares.append((Y[row] - said) ** 2)
        losses[name] = np.array(squares)
    full = losses["all"].mean()
    assert np.isclose(found.error, np.sqrt(full), rtol=1e-5)
    for each in found.columns:
        rises = (losses[each.column] - losses["all"]) / full
        assert np.isclose(each.error, np.sqrt(losses[each.column].mean()), rtol=1e-5)
        assert np.isclose(each.rise, rises.mean(), rtol=1e-4, atol=1e-6)
        assert np.isclose(each.uncertainty, rises.std(ddof=1) / np.sqrt(N), rtol=1e-4)
    assert [each.column for each in found.columns][-1] == "b"


def test_the_error_of_classes_without_a_column_is_that_of_the_same_folds():
    kernel = 4.0 * TOGETHER
    found = columns.leave_out_columns(kernel, sample(LABELS), list(PARTS), task="classes", seed=2)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=2).split(np.zeros(N), LABELS))
    for name, k in [("all", kernel), *((name, 4.0 * without(name)) for name in PARTS)]:
        P = np.zeros((N, 3))
        for learn, judge in folds:
            machine = GaussianProcessClassifier(k, optimizer=None, tol=1e-6, random_state=2)
            machine.fit(TABLE.iloc[learn], LABELS[learn])
            P[judge] = machine.predict_proba(TABLE.iloc[judge])
        errors = {each.column: each.error for each in found.columns} | {"all": found.error}
        assert np.isclose(errors[name], metrics.log_loss(LABELS, P), rtol=1e-5)


def test_columns_that_there_is_no_time_for_are_named():
    found = columns.leave_out_columns(
        TOGETHER + White(0.1), sample(Y), ["a", "b"], task="numbers", seconds=-1
    )
    assert found.columns == () and found.late == ("a", "b")


def test_many_rows_are_drawn_and_it_is_said(monkeypatch):
    monkeypatch.setattr(columns, "MOST_ROWS", 30)
    found = columns.leave_out_columns(TOGETHER + White(0.1), sample(Y), ["a"], task="numbers")
    assert "30 rows drawn from the rows" in found.how


def test_likeness_of_rows_that_differ_in_one_column():
    kernel = 3.0 * TOGETHER + White(0.2)
    order = np.random.default_rng(0).permutation(N)
    rows = TABLE.copy()
    rows["b"] = TABLE["b"].to_numpy()[order]
    slow = []
    for i in range(N):
        slow.append(TOGETHER(TABLE.iloc[[i]], rows.iloc[[i]])[0, 0])
    assert np.isclose(columns.likeness_alone(kernel, sample(None), "b"), np.mean(slow))
    blind = parse('RBF(1.0).on("a")')
    assert columns.likeness_alone(blind, sample(None), "b") == pytest.approx(1.0)


def test_shares_of_terms_add_up():
    kernel = parse('3.0*RBF(1.0).on("a") + 2.0*Linear().on("a", "b") + White(0.5)')
    found = term_shares(kernel, Rows.of(TABLE))
    heights = {"RBF": 3.0, "Linear": 2.0 * float((TABLE[["a", "b"]] ** 2).sum(axis=1).mean()), "None": 0.5}
    for term, share in found:
        name = next(name for name in heights if name in str(term))
        assert np.isclose(share, heights[name] / sum(heights.values()))
    assert np.isclose(sum(share for _, share in found), 1.0) and found[-1][0] is None


def test_effective_dimension_is_a_trace():
    K = TOGETHER(TABLE, TABLE)
    values = np.maximum(np.linalg.eigvalsh(K)[::-1], 0.0)
    trace = np.trace(np.linalg.solve(K + 0.3 * np.eye(N), K))
    assert np.isclose(fit_rows.effective_dimension(values, 0.3), trace)
    words = fit_rows.spectrum_words(values, 0.3, "the rows")
    assert f"{trace:.4g} of {N}" in words
    count = fit_rows.components_for(values, 0.9)
    assert values[:count].sum() >= 0.9 * values.sum() > values[: count - 1].sum()


def test_rows_that_are_alike_stand_together():
    group = R.permutation(np.repeat([0, 1, 2], 8))
    table = pd.DataFrame({"a": 10.0 * group + 0.1 * R.normal(size=24)})
    K = fit_rows.correlations(parse('2.0*RBF(1.0).on("a")'), Rows.of(table))
    assert np.allclose(np.diagonal(K), 1.0)
    order = fit_rows.cluster_order(K)
    assert sorted(order.tolist()) == list(range(24))
    assert np.count_nonzero(np.diff(group[order])) == 2


def test_a_typical_row_has_the_median_or_the_most_frequent_value():
    assert columns.typical_row(np.array([np.nan, 5.0, 1.0, 3.0])) == 3
    assert columns.typical_row(np.array([None, "ash", "oak", "oak"], dtype=object)) == 2
    assert columns.typical_row(np.array([None, None], dtype=object)) == 0
