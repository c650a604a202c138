"""Machines that learn their features: gradients by differences, a search by loops, directions in words."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer
from mercer import (
    RBF,
    Coded,
    Exponential,
    FeatureMachineClassifier,
    FeatureMachineRegressor,
    KernelRidge,
    Matern,
    Metric,
    RationalQuadratic,
    Standardized,
    parse,
    verify,
)
from mercer.arrays import Rows
from mercer.errors import MemoryBudgetError, ParameterError
from mercer.machines.ridge.feature_fits import folds_of, left_out
from mercer.machines.ridge.feature_metric import average_outer_product, gradients, shaped

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0] + [0.0, 100.0, 0.0, 0.0, 5.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = np.sin(Z[:, 0] + Z[:, 1]) + 0.05 * RNG.normal(size=90)
LABELS = np.where(np.sin(2 * Z[:, 0]) + 0.3 * Z[:, 2] > 0, "up", "down")
LEAVES = [RBF(0.8), Exponential(1.3), Matern(1.1, nu=1.5), RationalQuadratic(0.9, alpha=0.7)]


# ── gradients ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
def test_gradients_are_differences_of_the_function(leaf):
    U = RNG.normal(size=(12, 3))
    coef = RNG.normal(size=(12, 2))
    found = gradients(leaf, U, coef)
    step = 1e-6
    for i in range(12):
        # a row of the sum that is at its own place has no slope there, in any direction alike
        others = np.delete(np.arange(12), i)
        for j in range(3):
            e = step * np.eye(3)[j]
            ends = [leaf(U[i : i + 1] + sign * e, U[others]) @ coef[others] for sign in (1, -1)]
            np.testing.assert_allclose(
                found[i, :, j], (ends[0] - ends[1])[0] / (2 * step), rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
def test_the_average_outer_product_is_that_of_loops_by_the_rows_themselves(leaf):
    A = RNG.normal(size=(15, 4))
    root = RNG.normal(size=(4, 3))
    coef = RNG.normal(size=(15, 2))
    w = RNG.uniform(0.5, 2.0, size=15)
    wanted = np.zeros((4, 4))
    U = A @ root
    for i in range(15):
        for t in range(2):
            g = np.zeros(4)
            for j in range(15):
                if i != j:
                    s = ((U[i] - U[j]) ** 2).sum() / leaf.lengthscale**2
                    # the complex step: exact to rounding
                    slope = np.imag(leaf.value(np.array([s + 1e-30j]))[0]) / 1e-30
                    g += coef[j, t] * slope * 2 / leaf.lengthscale**2 * (root @ (U[i] - U[j]))
            wanted += w[i] / w.sum() * np.outer(g, g)
    found = average_outer_product(leaf, U, root, coef, w)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max())


def test_panels_do_not_change_the_gradients(monkeypatch):
    U = RNG.normal(size=(20, 3))
    coef = RNG.normal(size=(20, 1))
    whole = gradients(Exponential(1.0), U, coef)
    monkeypatch.setattr("mercer.machines.ridge.feature_metric.PANEL", 60)
    np.testing.assert_allclose(gradients(Exponential(1.0), U, coef), whole, rtol=1e-11)


def test_rows_that_are_equal_up_to_rounding_have_no_direction_between_them():
    U = RNG.normal(size=(20, 3))
    twice = np.vstack([U, U[:7] * (1 + 1e-15)])
    coef = RNG.normal(size=(27, 1))
    merged = coef[:20].copy()
    merged[:7] += coef[20:]
    wanted = gradients(Exponential(1.0), U, merged)
    np.testing.assert_allclose(gradients(Exponential(1.0), twice, coef)[:20], wanted, rtol=1e-6, atol=1e-7)


# ── the metric ──────────────────────────────────────────────────────────────────────────────────────────────


@settings(deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from(["full", "diagonal"]),
    st.sampled_from([0.5, 1.0, 1.7]),
    st.integers(1, 6),
    st.integers(0, 10**6),
)
def test_the_shape_of_a_metric(d, form, exponent, rank, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d)) * 10.0 ** rng.integers(-9, 9)
    M = A @ A.T
    C = np.cov(rng.normal(size=(d, 50))).reshape(d, d)
    root = shaped(M, form, exponent, rank, C)
    found = root @ root.T
    assert np.trace(found @ C) == pytest.approx(np.trace(C), rel=1e-9)
    values, vectors = np.linalg.eigh(np.diag(np.diag(M)) if form == "diagonal" else M)
    values = np.where(np.arange(d) < d - rank, 0.0, values)
    wanted = (vectors * np.maximum(values, 0.0) ** exponent) @ vectors.T
    wanted *= np.trace(C) / np.trace(wanted @ C)
    np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


def test_without_a_direction_there_is_no_metric():
    assert shaped(np.zeros((3, 3)), "full", 1.0, None, np.eye(3)) is None


# ── leaving one out ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_is_that_of_fits_without_the_row(intercept):
    K = RBF(1.5)(Z[:25])
    w = RNG.uniform(0.5, 2.0, size=25)
    T = np.column_stack([Y[:25], Z[:25, 3]])
    total = 0.0
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        model = KernelRidge(RBF(1.5), 0.1, fit_intercept=intercept).fit(
            Z[rest], T[rest], sample_weight=w[rest]
        )
        total += w[i] * ((T[i] - model.predict(Z[i : i + 1])[0]) ** 2).mean()
    assert left_out(K.copy(), T, w, 0.1, intercept).error == pytest.approx(total / w.sum(), rel=1e-9)


def test_a_matrix_that_cannot_be_factored_is_no_candidate():
    assert left_out(-np.eye(3), np.ones((3, 1)), np.ones(3), 0.5, True) is None


# ── the machines ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def model():
    return FeatureMachineRegressor("RBF()").fit(X, Y)


def test_it_finds_the_direction_and_beats_the_kernel_that_sees_all_columns_alike(model):
    new = RNG.normal(size=(300, 5))
    truth = np.sin(new[:, 0] + new[:, 1])
    rows = new * X.std(axis=0) + X.mean(axis=0)
    plain = FeatureMachineRegressor("RBF()", n_updates=0).fit(X, Y)
    errors = [np.sqrt(np.mean((m.predict(rows) - truth) ** 2)) for m in (model, plain)]
    assert errors[0] < 0.5 * errors[1]
    top = model.directions(list("abcde"))[0]
    assert top.share > 0.8 and list(top.weights)[:2] in (["a", "b"], ["b", "a"])
    assert abs(top.weights["a"] - top.weights["b"]) < 0.25
    assert str(top).split(":")[1].strip().startswith("0.7")
    assert np.sort(np.argsort(-model.feature_importances_)[:2]).tolist() == [0, 1]
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_the_model_is_the_ridge_of_its_kernel_and_its_error_that_of_its_path(model):
    twin = KernelRidge(parse(str(model.kernel_)), model.alpha_, fit_intercept=True).fit(X, Y)
    np.testing.assert_allclose(model.predict(X[:9]), twin.predict(X[:9]), rtol=1e-9, atol=1e-9)
    path = model.path_
    assert path.expected[path.best] == path.expected.min() and np.all(path.expected >= path.errors)
    assert model.loo_error_ == pytest.approx(path.errors[path.best] * Y.var(), rel=1e-6)
    assert model.kernel_.validity().status == "proved"
    np.testing.assert_allclose(np.trace(model.metric_ @ np.cov(Z.T, bias=True)), 5.0, rtol=1e-6)


def test_a_metric_of_many_numbers_does_not_win_by_having_seen_the_rows():
    # fifty marks, of which one matters a little: what the gradients of noise say of the others is noise
    rng = np.random.default_rng(5)
    marks = (rng.random((420, 50)) < 0.15).astype(float)
    y = 0.8 * marks[:, 0] + rng.normal(size=420)
    model = FeatureMachineRegressor("RBF()", metric="full").fit(marks[:120], y[:120])
    path = model.path_
    flattered = int(np.argmin(path.errors))
    error = float(np.mean((model.predict(marks[120:]) - y[120:]) ** 2)) / y[:120].var()
    assert path.errors[flattered] < 0.9 * error
    assert path.expected[path.best] == pytest.approx(error, rel=0.15)


def test_what_is_expected_is_the_error_of_searches_on_folds(model):
    path = model.path_
    assert path.iterations[1] == 1 and path.forms[1] == "full"
    unseen = seen = 0.0
    for learned, judged in folds_of(90):
        # the units of the columns and of the targets are those of all rows
        reading = Standardized().resolved_on(Rows(X), None).read(Rows(X)).vectors
        T = (Y - Y.mean()) / Y.std()
        fit = KernelRidge(RBF(float(path.bandwidths[0])), path.alphas[0], fit_intercept=True)
        fit.fit(reading[learned], T[learned])
        step = 1e-5
        G = np.column_stack(
            [
                (fit.predict(reading[learned] + move) - fit.predict(reading[learned] - move)) / (2 * step)
                for move in step * np.eye(5)
            ]
        )
        M = G.T @ G
        M *= 5.0 / np.trace(M @ np.cov(reading.T, bias=True))
        values, vectors = np.linalg.eigh(M)
        U = reading @ (vectors * np.sqrt(np.maximum(values, 0)))
        after = KernelRidge(RBF(float(path.bandwidths[1])), path.alphas[1], fit_intercept=True)
        after.fit(U[learned], T[learned])
        unseen += np.sum((after.predict(U[judged]) - T[judged]) ** 2)
        seen += np.sum((after.loo_predictions_ - T[learned]) ** 2) / 3
    assert path.expected[1] == pytest.approx(path.errors[1] * max(unseen / seen, 1.0), rel=1e-4)


def test_marks_are_as_far_apart_as_even_ones_however_rare_they_are():
    rare = np.zeros((60, 2))
    rare[:2, 0] = 1.0
    rare[:, 1] = np.arange(60)
    model = FeatureMachineRegressor("RBF()", n_updates=0).fit(rare, rare[:, 1] % 7)
    reading = model.kernel_.reading
    assert reading.deviations[0] == 0.5 and reading.deviations[1] == pytest.approx(rare[:, 1].std())


def test_units_do_not_matter(model):
    other = FeatureMachineRegressor("RBF()").fit(X * [1e6, 1e-3, 1.0, 7.0, 1e3], Y)
    np.testing.assert_allclose(other.metric_, model.metric_, atol=1e-5 * np.abs(model.metric_).max())


def test_the_honest_error_is_that_of_searches_that_have_not_seen_the_rows(model):
    found = model.honest_error(random_state=3)
    order = np.random.default_rng(3).permutation(90)
    # which rows are folds goes by their order
    halves = (np.sort(order[:45]), np.sort(order[45:]))
    total = 0.0
    for learned, judged in (halves, halves[::-1]):
        part = FeatureMachineRegressor("RBF()").fit(X[learned], Y[learned])
        for i in judged:
            rest = np.delete(np.arange(90), i)
            twin = KernelRidge(part.kernel_, part.alpha_, fit_intercept=True).fit(X[rest], Y[rest])
            total += (Y[i] - twin.predict(X[i : i + 1])[0]) ** 2
    assert found == pytest.approx(total / 90, rel=1e-6)
    assert found > model.loo_error_


def test_several_targets_share_one_metric():
    T = np.column_stack([Y, np.cos(Z[:, 3])])
    model = FeatureMachineRegressor("RBF()", metric="diagonal", n_updates=2).fit(X, T)
    assert model.predict(X[:4]).shape == (4, 2)
    assert set(np.argsort(-model.feature_importances_)[:3]) == {0, 1, 3}
    assert verify(model, X, T)


def test_a_metric_of_some_rank_is_a_factor():
    model = FeatureMachineRegressor("RBF()", rank=1, metric="full", n_updates=3).fit(X, Y)
    reading = model.kernel_.kernel.reading
    assert isinstance(reading, Metric) and np.array(reading.factor).shape == (5, 1)
    assert np.linalg.matrix_rank(model.metric_) == 1
    assert verify(model, X, Y)


def test_rows_of_a_search_are_drawn_and_the_function_is_of_all(tmp_path):
    model = FeatureMachineRegressor("RBF()", search_rows=60, random_state=0, n_updates=2).fit(X, Y)
    assert len(model.search_rows_) == 60 and len(model.dual_coef_) == 90
    assert "60 of 90 rows" in str(model.certificate_)
    assert verify(model, X, Y)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.directions()[0] == model.directions()[0]


def test_without_room_for_all_rows_the_function_is_built_on_landmarks():
    rows = np.vstack([X] * 4) + 0.05 * RNG.normal(size=(360, 5)) * X.std(axis=0)
    y = np.tile(Y, 4)
    model = FeatureMachineRegressor(
        "RBF()", memory=500_000, search_rows=100, n_landmarks=80, n_updates=1, random_state=0
    ).fit(rows, y)
    assert model.solver_ == "nystrom" and len(model.landmarks_) == 80
    whole = FeatureMachineRegressor("RBF()", search_rows=100, n_updates=1, random_state=0).fit(rows, y)
    assert whole.solver_ == "cholesky" and whole.kernel_ == model.kernel_
    assert np.sqrt(np.mean((model.predict(rows) - whole.predict(rows)) ** 2)) < 0.1 * y.std()


@pytest.mark.parametrize("labels", [LABELS, np.digitize(Z[:, 0], [-0.5, 0.5])], ids=["two", "three"])
def test_classes_are_told_apart_and_probabilities_agree(labels):
    model = FeatureMachineClassifier("RBF()", n_updates=2).fit(X, labels)
    p = model.predict_proba(X)
    assert p.shape == (90, len(np.unique(labels)))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.score(X, labels) > 0.85
    assert int(np.argmax(model.feature_importances_)) == 0
    assert verify(model, X, labels)


def test_more_seconds_than_none_are_a_limit_and_the_best_so_far_is_kept():
    with pytest.warns(UserWarning, match="the search for the metric ended after"):
        model = FeatureMachineRegressor("RBF()", max_seconds=1e-9).fit(X, Y)
    assert model.certificate_.status == "limit"
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "kernel", ["Linear()", "RBF([1.0, 2.0, 1.0, 1.0, 1.0])", "RBF() + Linear()", "precomputed"]
)
def test_a_kernel_without_one_radial_distance_is_refused(kernel):
    with pytest.raises(ParameterError, match="kernel must be one radial kernel"):
        FeatureMachineRegressor(kernel).fit(X, Y)


def test_names_of_another_number_are_refused(model):
    with pytest.raises(ParameterError, match="2 names were given, and there are 5 columns"):
        model.directions(["a", "b"])


def test_memory_that_is_too_small_for_any_search_is_named():
    with pytest.raises(MemoryBudgetError, match="memory=100"):
        FeatureMachineRegressor(memory=100).fit(X, Y)


def test_a_lengthscale_and_a_penalty_that_are_given_are_kept():
    model = FeatureMachineRegressor("Exponential(2.0)", 0.3, n_updates=2).fit(X, Y)
    assert set(model.path_.bandwidths) == {2.0} and set(model.path_.alphas) == {0.3}
    assert model.alpha_ == 0.3
    assert isinstance(model.kernel_.reading, Standardized)
    assert model.kernel_.kernel.kernel == Exponential(2.0)


# ── kernels to choose from, and mixed tables ────────────────────────────────────────────────────────────────


def test_of_several_kernels_the_one_of_least_leave_one_out_error_is_taken():
    kernels = ("Exponential()", "RBF()")
    model = FeatureMachineRegressor(kernels, n_updates=2).fit(X, Y)
    alone = [FeatureMachineRegressor(kernel, n_updates=2).fit(X, Y) for kernel in kernels]
    errors = [each.path_.errors.min() for each in alone]
    best = alone[int(np.argmin(errors))]
    assert model.path_.errors.min() == pytest.approx(min(errors), rel=1e-9)
    assert model.kernel_ == best.kernel_
    assert "of 2 kernels" in str(model.certificate_)
    assert verify(model, X, Y)


def test_kernels_that_read_other_columns_are_no_choice():
    with pytest.raises(ParameterError, match="must read the same columns in the same way"):
        FeatureMachineRegressor(("RBF()", "RBF().of(Coded())")).fit(X, Y)
    with pytest.raises(ParameterError, match="no kernel to choose from"):
        FeatureMachineRegressor(()).fit(X, Y)


def mixed():
    rng = np.random.default_rng(5)
    kind = rng.choice(["oak", "ash", "elm"], size=70)
    table = pd.DataFrame({"size": rng.normal(50.0, 9.0, size=70), "kind": kind, "other": rng.normal(size=70)})
    y = np.sin(table["size"] / 9.0) + 2.0 * (table["kind"] == "oak")
    return table, np.asarray(y)


def test_a_mixed_table_is_learned_as_its_numbers_are(tmp_path):
    table, y = mixed()
    model = FeatureMachineRegressor("RBF().of(Coded())", n_updates=2).fit(table, y)
    reading = model.kernel_.reading
    assert isinstance(reading, Coded)
    numbers = np.asarray(reading.read(Rows.of(table)).vectors)
    assert numbers.shape == (70, 5) and model.metric_.shape == (5, 5)
    twin = KernelRidge(model.kernel_.kernel, model.alpha_, fit_intercept=True).fit(numbers, y)
    np.testing.assert_allclose(model.predict(table[:9]), twin.predict(numbers[:9]), rtol=1e-7, atol=1e-9)
    own = np.diagonal(model.metric_) / np.trace(model.metric_)
    wanted = [own[0], own[1:4].sum(), own[4]]
    np.testing.assert_allclose(model.feature_importances_, wanted, rtol=1e-9)
    names = ["size", "kind = ash", "kind = elm", "kind = oak", "other"]
    assert set(model.directions()[0].weights) == set(names)
    assert verify(model, table, y)
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(table), model.predict(table))


def test_some_columns_of_a_table_in_any_order():
    table, y = mixed()
    kernel = 'RBF().of(Coded(["category", "number"])).on("kind", "size")'
    model = FeatureMachineRegressor(kernel, n_updates=1).fit(table, y)
    turned = table[["other", "kind", "size"]]
    np.testing.assert_array_equal(model.predict(turned), model.predict(table))
    shares = model.feature_importances_
    assert shares[2] == 0.0 and shares.sum() == pytest.approx(1.0)
    assert set(model.directions()[0].weights) == {"kind = ash", "kind = elm", "kind = oak", "size"}


def test_a_function_that_no_bandwidth_tells_of_at_first_is_found():
    """Two of 24 columns, and no slope of either: at first the least error is that of fitting nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 24))
    new = rng.uniform(-1, 1, size=(500, 24))
    truth = np.sin(4 * new[:, 0]) * new[:, 1]
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.02 * rng.normal(size=500)
    model = FeatureMachineRegressor("RBF()", n_updates=4).fit(X, y)
    first = model.path_.iterations == 0
    assert model.path_.errors[first].min() > 0.9 and first.sum() > 1
    assert np.sqrt(np.mean((model.predict(new) - truth) ** 2)) < 0.1 * truth.std()
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
