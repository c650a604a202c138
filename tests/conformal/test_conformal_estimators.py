"""The two estimators: scikit-learn's contract, quantiles of few rows, groups, odd rows, files and claims."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import (
    SVC,
    SVR,
    ConformalClassifier,
    ConformalRegressor,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelRidge,
    conformal,
    quantiles,
)
from mercer.conformal.labels import cumulated
from mercer.errors import InputError, NotFiniteError, ParameterError, ShapeError

rng = np.random.default_rng(11)
N = 60
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N)
NEW = rng.normal(size=(8, 2))
LABELS = np.array(["ash", "elm", "oak"])[np.digitize(X[:, 0] + 0.4 * rng.normal(size=N), [-0.5, 0.5])]
RIDGE = KernelRidge("RBF(1.0)", alpha=0.1)
PROCESS = GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None)


# ── the contract ────────────────────────────────────────────────────────────────────────────────────────────


@parametrize_with_checks(
    [
        ConformalRegressor(KernelRidge("RBF(1.0)", alpha=0.1)),
        ConformalRegressor(LinearRegression(), method="split"),
        ConformalClassifier(LogisticRegression(), folds=3),
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": "rows that come twice are kept out twice",
            "check_sample_weight_equivalence_on_sparse_data": "rows that come twice are kept out twice",
        }
        if estimator.method == "split"
        else {}
    ),
)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("model", ["ridge", KernelRidge, StandardScaler(), None])
def test_what_is_no_model_is_refused_in_a_sentence(model):
    with pytest.raises(ParameterError, match="model must be a regressor or a classifier"):
        conformal(model, X, Y)


def test_classes_and_groups_with_too_few_rows_are_named():
    rare = LABELS.astype("<U8")
    rare[:3] = "sequoia"
    by_class = ConformalClassifier(SVC("RBF(1.0)"), by="class", folds=3).fit(X, rare)
    with pytest.warns(UserWarning, match="^class 'sequoia': 3 rows cannot promise 90 %"):
        assert by_class.predict_set(NEW)[:, by_class.classes_ == "sequoia"].all()
    assert "Calibrated on 3 rows in the smallest of them." in str(by_class.guarantee_)
    groups = np.where(np.arange(N) < 4, "few", "many")
    grouped = ConformalClassifier(SVC("RBF(1.0)"), folds=3).fit(X, LABELS, groups=groups)
    with pytest.warns(UserWarning, match="^group 'few': 4 rows cannot promise 90 %"):
        assert grouped.predict_set(NEW[:2], groups=["few", "many"])[0].all()


def test_they_are_cloned_searched_and_put_into_pipelines():
    model = ConformalRegressor(RIDGE, level=0.8, method="cv+", folds=3)
    assert clone(model).get_params()["estimator__alpha"] == 0.1
    model.set_params(estimator__alpha=0.2)
    assert model.estimator.alpha == 0.2
    model.set_params(estimator__alpha=0.1)
    assert np.isfinite(cross_val_score(make_pipeline(StandardScaler(), model), X, Y, cv=3)).all()
    inside = ConformalRegressor(make_pipeline(StandardScaler(), SVR()), level=0.8, folds=3).fit(X, Y)
    assert inside.method_ == "cv+" and np.isfinite(inside.predict_interval(NEW)).all()


# ── quantiles ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["0.5", "0.8", "0.9", "0.95", "0.99"])
def test_the_rank_is_the_smallest_that_promises_the_level(text):
    level = float(text)
    for n in range(1, 130):
        rank = quantiles.rank(n, level)
        assert Fraction(rank, n + 1) >= Fraction(text) > Fraction(rank - 1, n + 1)
        values = rng.permutation(n).astype(float)
        found = quantiles.upper(values, level)
        assert found == (np.inf if rank > n else rank - 1)
        assert quantiles.lower(-values, level) == -found
    assert quantiles.rank(quantiles.least_rows(level), level) == quantiles.least_rows(level)
    assert quantiles.rank(quantiles.least_rows(level) - 1, level) == quantiles.least_rows(level)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, "0.9", True, None, float("nan")])
def test_levels_outside_of_0_and_1_are_refused(level):
    with pytest.raises(ParameterError, match="level must be"):
        ConformalRegressor(RIDGE, level=level).fit(X, Y)
    if level is not None:
        with pytest.raises(ParameterError, match="level must be"):
            ConformalRegressor(RIDGE).fit(X, Y).predict_interval(NEW, level)


@pytest.mark.parametrize(
    "change",
    [
        {"method": "bagging"},
        {"folds": 1},
        {"calibration_size": 1.0},
        {"by": 1.5},
        {"residual": "odd"},
        {"residual": "deleted"},
        {"normalize": 2},
    ],
)
def test_other_parameters_are_refused(change):
    with pytest.raises(ParameterError):
        ConformalRegressor(RIDGE, **change).fit(X, Y)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", ["jackknife+", "full", "split", "cv+"])
@pytest.mark.parametrize("model", [RIDGE, KernelRidge("RBF(1.0)", fit_intercept=True), PROCESS])
def test_few_rows_give_infinite_intervals_and_say_so(n, method, model):
    wrapped = ConformalRegressor(model, method=method, level=0.9)
    if n == 1 and method in ("split", "cv+"):
        with pytest.raises(InputError, match="2 rows"):
            wrapped.fit(X[:n], Y[:n])
        return
    wrapped.fit(X[:n], Y[:n])
    assert "cannot promise 90 %: at least 9" in str(wrapped.guarantee_)
    with pytest.warns(UserWarning, match="cannot promise"):
        low, high = wrapped.predict_interval(NEW)
    assert np.all(low == -np.inf) and np.all(high == np.inf)
    assert np.isfinite(wrapped.predict(NEW)).all()


# ── intervals ───────────────────────────────────────────────────────────────────────────────────────────────


def test_split_is_the_quantile_of_rows_kept_out():
    model = ConformalRegressor(SVR("RBF(1.0)"), method="split", level=0.8, calibration_size=0.5).fit(X, Y)
    assert len(model.rows_) == 30 and not np.intersect1d(model.rows_, model.learned_).size
    other = SVR("RBF(1.0)").fit(X[model.learned_], Y[model.learned_])
    errors = np.sort(np.abs(Y[model.rows_] - other.predict(X[model.rows_])))
    reach = errors[math.ceil(31 * 0.8) - 1]
    low, high = model.predict_interval(NEW)
    np.testing.assert_allclose(high - low, 2 * reach)
    np.testing.assert_allclose((high + low) / 2, other.predict(NEW))
    prefit = ConformalRegressor(other, method="prefit", level=0.8).fit(X[model.rows_], Y[model.rows_])
    np.testing.assert_array_equal(prefit.predict_interval(NEW), (low, high))
    assert prefit.estimator_ is other and "none of the rows given" in str(prefit.guarantee_)


def test_cv_plus_is_the_slow_loop():
    model = ConformalRegressor(SVR("RBF(1.0)"), method="cv+", level=0.8, folds=4).fit(X, Y)
    ends = []
    for k in range(4):
        out = model.fold_ == k
        other = SVR("RBF(1.0)").fit(X[~out], Y[~out])
        for i in np.flatnonzero(out):
            residual = abs(Y[i] - other.predict(X[i : i + 1])[0])
            ends.append((other.predict(NEW) - residual, other.predict(NEW) + residual))
    lows, highs = np.sort([a for a, _ in ends], axis=0), np.sort([b for _, b in ends], axis=0)
    low, high = model.predict_interval(NEW)
    np.testing.assert_allclose(high, highs[math.ceil(61 * 0.8) - 1])
    np.testing.assert_allclose(low, lows[math.floor(61 * 0.2 + 1e-9) - 1])
    assert model.guarantee_.at_least == pytest.approx(0.6 - 2 * (1 - 1 / 4) / (60 / 4 + 1))


def test_a_machine_that_is_refitted_and_the_closed_form_agree():
    closed = ConformalRegressor(RIDGE, method="jackknife+", level=0.8).fit(X[:25], Y[:25])
    slow = ConformalRegressor(make_pipeline(RIDGE), method="jackknife+", level=0.8).fit(X[:25], Y[:25])
    assert closed.closed_form_ and not slow.closed_form_ and len(slow.estimators_) == 25
    np.testing.assert_allclose(closed.predict_interval(NEW), slow.predict_interval(NEW), atol=1e-10)


def test_equal_to_mapie_on_200_rows():
    regression = pytest.importorskip("mapie.regression")
    many = np.random.default_rng(0).normal(size=(200, 3))
    y = np.sin(many[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=200)
    new = np.random.default_rng(2).normal(size=(50, 3))
    for model in (
        KernelRidge("RBF(1.5)", alpha=0.1),
        GaussianProcessRegressor("RBF(1.5)+White(0.1)", optimizer=None),
    ):
        theirs = regression.CrossConformalRegressor(
            model, confidence_level=0.9, method="plus", cv=KFold(200)
        ).fit_conformalize(many, y)
        _, ends = theirs.predict_interval(new)
        mine = ConformalRegressor(model, method="jackknife+", level=0.9).fit(many, y).predict_interval(new)
        np.testing.assert_allclose(mine, ends[:, :, 0].T, atol=1e-9)


@pytest.mark.parametrize("method", ["jackknife+", "full", "split", "cv+"])
@pytest.mark.parametrize("normalize", [False, True])
def test_the_level_is_kept_on_average(method, normalize):
    if method in ("split", "cv+") and normalize:
        pytest.skip("the same quantiles as without")
    draw = np.random.default_rng(5)
    inside = []
    for _ in range(60):
        A = draw.uniform(-2, 2, (41, 1))
        y = np.sin(2 * A[:, 0]) + 0.2 * (1 + np.abs(A[:, 0])) * draw.normal(size=41)
        model = ConformalRegressor(RIDGE, method=method, normalize=normalize, level=0.8, folds=4)
        model.set_params(calibration_size=0.45)
        low, high = model.fit(A[:31], y[:31]).predict_interval(A[31:])
        inside.append(np.mean((low <= y[31:]) & (y[31:] <= high)))
    # 600 rows, ten of them at a time with one fit: the mean has a standard error of some 0.015
    assert abs(np.mean(inside) - 0.8) < 0.06


def test_each_group_keeps_its_own_level():
    draw = np.random.default_rng(6)
    groups = np.repeat(["calm", "wild"], 150)
    A = draw.uniform(-2, 2, (300, 1))
    y = np.sin(A[:, 0]) + np.where(groups == "calm", 0.05, 1.0) * draw.normal(size=300)
    order = draw.permutation(300)
    A, y, groups = A[order], y[order], groups[order]
    for method in ("jackknife+", "split", "full", "cv+"):
        model = ConformalRegressor(KernelRidge("RBF(1.0)", alpha=1.0), method=method, level=0.8)
        model.fit(A[:200], y[:200], groups=groups[:200])
        low, high = model.predict_interval(A[200:], groups=groups[200:])
        width = high - low
        assert np.median(width[groups[200:] == "wild"]) > 3 * np.median(width[groups[200:] == "calm"])
        assert model.guarantee_.kind == "within each group"
    with pytest.warns(UserWarning, match="group 'unheard of': 0 rows cannot promise"):
        low, high = model.predict_interval(A[:1], groups=["unheard of"])
    assert low[0] == -np.inf and high[0] == np.inf
    with pytest.raises(ParameterError, match="pass the groups"):
        model.predict_interval(A[:1])
    with pytest.raises(ShapeError, match="one label for each"):
        model.predict_interval(A[:2], groups=["calm"])
    # a column has the same groups
    table = np.column_stack([A[:, 0], groups == "wild"])
    by_column = ConformalRegressor(LinearRegression(), by=1, method="split", level=0.8).fit(table, y)
    given = ConformalRegressor(LinearRegression(), method="split", level=0.8).fit(table, y, groups=groups)
    np.testing.assert_array_equal(
        by_column.predict_interval(table[:9]), given.predict_interval(table[:9], groups=groups[:9])
    )
    with pytest.raises(ParameterError, match="no column"):
        ConformalRegressor(LinearRegression(), by=7).fit(table, y)


# ── odd rows ────────────────────────────────────────────────────────────────────────────────────────────────


def test_equal_rows_constant_targets_and_no_noise():
    twice = np.repeat(X[:15], 2, axis=0)
    y = np.repeat(Y[:15], 2)
    for model in (RIDGE, PROCESS):
        for method in ("jackknife+", "full"):
            low, high = (
                ConformalRegressor(model, method=method, level=0.8).fit(twice, y).predict_interval(NEW)
            )
            assert np.isfinite([low, high]).all() and np.all(low <= high)
            low, high = (
                ConformalRegressor(model, method=method, level=0.8).fit(X, np.ones(N)).predict_interval(NEW)
            )
            assert np.all(low <= high)
    exact = ConformalRegressor(
        KernelRidge("RBF(0.5)", alpha=0.0), method="full", residual="deleted", level=0.8
    )
    low, high = exact.fit(X[:20], Y[:20]).predict_interval(X[:1])
    # without noise nothing can be said of a row that the fit has already
    assert low[0] == -np.inf and high[0] == np.inf
    inside = ConformalRegressor(KernelRidge("RBF(0.5)", alpha=0.0), method="full", level=0.8)
    low, high = inside.fit(X[:20], Y[:20]).predict_interval(NEW)
    # all residuals of an interpolation are 0: none is stranger than another
    assert np.all(low == -np.inf) and np.all(high == np.inf)


def test_rows_of_any_kind():
    dense = ConformalRegressor(RIDGE, level=0.8).fit(X, Y).predict_interval(NEW)
    thin = (
        ConformalRegressor(RIDGE, level=0.8)
        .fit(sparse.csr_array(X), Y)
        .predict_interval(sparse.csr_array(NEW))
    )
    np.testing.assert_allclose(dense, thin, atol=1e-9)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    for method in ("jackknife+", "split", "cv+"):
        model = ConformalRegressor(RIDGE, method=method, level=0.8).fit(frame, Y)
        plain = ConformalRegressor(RIDGE, method=method, level=0.8).fit(X, Y)
        np.testing.assert_allclose(model.predict_interval(frame), plain.predict_interval(X), atol=1e-12)
    words = ["a" * (i % 5) + "b" * (i % 3) + "c" for i in range(30)]
    counts = np.array([len(word) for word in words]) + 0.1 * rng.normal(size=30)
    for method in ("jackknife+", "full", "split", "cv+"):
        model = ConformalRegressor(KernelRidge("Spectrum(2)", alpha=0.1), method=method, level=0.8, folds=3)
        low, high = model.fit(words, counts).predict_interval(["abc", "aac"])
        assert np.all(low < high)


def test_missing_numbers_are_refused():
    for where in range(0, N, 7):
        bad = Y.copy()
        bad[where] = np.nan
        for method in ("split", "jackknife+"):
            with pytest.raises(NotFiniteError, match=f"row {where}"):
                ConformalRegressor(RIDGE, method=method).fit(X, bad)
    with pytest.raises(InputError):
        ConformalRegressor(RIDGE).fit(np.full((5, 2), np.nan), Y[:5])
    with pytest.raises(InputError, match="no group"):
        ConformalRegressor(RIDGE).fit(X[:3], Y[:3], groups=[1.0, np.nan, 2.0])


def test_rows_of_weight_zero_are_none():
    weight = np.ones(N)
    weight[40:] = 0.0
    for method in ("jackknife+", "split", "cv+", "full"):
        some = ConformalRegressor(RIDGE, method=method, level=0.8).fit(X, Y, weight)
        less = ConformalRegressor(RIDGE, method=method, level=0.8).fit(X[:40], Y[:40], weight[:40])
        np.testing.assert_allclose(some.predict_interval(NEW), less.predict_interval(NEW), atol=1e-12)
    with pytest.raises(ParameterError, match="sample_weight"):
        ConformalRegressor(PROCESS).fit(X, Y, weight)


# ── sets of labels ──────────────────────────────────────────────────────────────────────────────────────────

CHANCES = LogisticRegression()


def slow_sets(model, level):
    """Labels for new rows by the definition, one comparison at a time."""
    out = np.zeros((len(NEW), 3), dtype=bool)
    for row in range(len(NEW)):
        for j in range(3):
            count = n = 0
            for place, i in enumerate(model.rows_):
                if model.by == "class" and LABELS[i] != model.classes_[j]:
                    continue
                part = model.estimator_ if model.method_ == "split" else model.estimators_[model.fold_[place]]
                new, own = part.predict_proba(NEW[row : row + 1])[0], part.predict_proba(X[i : i + 1])[0]
                if model.conformity_ == "aps":
                    new, own = (
                        -new[new >= new[j]].sum(),
                        -own[own >= own[list(model.classes_).index(LABELS[i])]].sum(),
                    )
                else:
                    new, own = new[j], own[list(model.classes_).index(LABELS[i])]
                count += own <= new + 1e-12
                n += 1
            out[row, j] = count >= n + 1 - math.ceil(round((n + 1) * level, 9))
    return out


@pytest.mark.parametrize("by", [None, "class"])
@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_sets_of_labels_are_those_of_the_slow_loop(method, score, by):
    options = {
        "method": method,
        "conformity": score,
        "by": by,
        "folds": 3,
        "calibration_size": 0.5,
        "level": 0.7,
    }
    model = ConformalClassifier(CHANCES, **options).fit(X, LABELS)
    found = model.predict_set(NEW)
    np.testing.assert_array_equal(found, slow_sets(model, 0.7))
    np.testing.assert_array_equal(found, model.p_values(NEW) > 0.3 + 1e-12)
    assert bool(mercer.verify(model, X, LABELS))


def test_cumulated_probabilities_count_equal_ones_together():
    p = rng.integers(1, 4, (50, 5)) / 7.0
    slow = np.array([[row[row >= value].sum() for value in row] for row in p])
    np.testing.assert_allclose(cumulated(p), slow)


def test_a_classifier_without_probabilities_is_judged_by_its_margins():
    model = ConformalClassifier(SVC("RBF(1.0)"), level=0.8, folds=4).fit(X, LABELS)
    assert model.conformity_ == "margin" and model.predict_set(NEW).shape == (8, 3)
    split = ConformalClassifier(SVC("RBF(1.0)"), method="split", level=0.8, calibration_size=0.5).fit(
        X, LABELS
    )
    own = SVC("RBF(1.0)").fit(X[split.learned_], LABELS[split.learned_])
    own.conformalize(X[split.rows_], LABELS[split.rows_])
    np.testing.assert_array_equal(split.predict_set(NEW), own.predict_set(NEW, 0.8))
    with pytest.raises(ParameterError, match="predict_proba"):
        ConformalClassifier(SVC(), conformity="lac").fit(X, LABELS)


def test_twenty_classes_a_class_of_one_row_and_empty_sets():
    draw = np.random.default_rng(2)
    y = np.arange(200) % 20
    A = np.column_stack([np.cos(y), np.sin(y)]) + 0.05 * draw.normal(size=(200, 2))
    model = ConformalClassifier(LogisticRegression(C=100.0), level=0.9, folds=4).fit(A, y)
    sets = model.predict_set(A)
    assert np.mean(sets[np.arange(200), y]) > 0.85 and sets.shape == (200, 20)
    few = LABELS.copy()
    few[:] = np.where(LABELS == "oak", "elm", LABELS)
    few[0] = "yew"
    for method in ("split", "cv+"):
        single = ConformalClassifier(CHANCES, method=method, level=0.8, folds=3).fit(X, few)
        assert list(single.classes_) == ["ash", "elm", "yew"]
        by = ConformalClassifier(CHANCES, method=method, level=0.8, folds=3, by="class").fit(X, few)
        with pytest.warns(UserWarning, match="cannot promise"):
            assert by.predict_set(NEW)[:, 2].all()
    sure = np.where(X[:, 0] > 0, "right", "left")
    far = X + np.where(X[:, :1] > 0, 3.0, -3.0)
    tight = ConformalClassifier(CHANCES, method="split", level=0.5).fit(far, sure)
    none = ~tight.predict_set([[0.0, 0.0]]).any(axis=1)
    assert none.all()
    tight.set_params(empty=False)
    assert tight.predict_set([[0.01, 0.0]]).sum() >= 1
    with pytest.raises(InputError, match="one class"):
        ConformalClassifier(CHANCES).fit(X[:4], ["a", "a", "a", "b"])


# ── files and claims ────────────────────────────────────────────────────────────────────────────────────────

KEPT = {
    "jackknife+": (ConformalRegressor(RIDGE, level=0.8), Y),
    "ridge, full": (ConformalRegressor(KernelRidge("Linear()", fit_intercept=True), method="full"), Y),
    "process": (ConformalRegressor(PROCESS, normalize=True, method="full", by=None), Y),
    "split": (ConformalRegressor(SVR(), method="split", level=0.8), Y),
    "cv+": (ConformalRegressor(SVR(), method="cv+", folds=3), Y),
    "labels": (ConformalClassifier(GaussianProcessClassifier(optimizer=None), folds=3, by="class"), LABELS),
    "labels, split": (ConformalClassifier(SVC(), method="split"), LABELS),
}


def answers(model):
    if isinstance(model, ConformalClassifier):
        return [model.predict_set(NEW), model.p_values(NEW), model.predict(NEW)]
    return [*model.predict_interval(NEW), *model.predict_union(NEW), model.predict(NEW)]


@pytest.mark.parametrize("name", KEPT)
def test_files_and_pickles_give_the_same_bits(name, tmp_path):
    model, y = KEPT[name]
    model = clone(model).fit(X, y)
    before = answers(model)
    mercer.save(model, tmp_path / "model.mercer")
    for again in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
        for mine, other in zip(answers(again), before, strict=True):
            np.testing.assert_array_equal(mine, other)
        assert str(again.guarantee_) == str(model.guarantee_)


@pytest.mark.parametrize("name", KEPT)
def test_every_number_that_is_published_is_a_claim(name):
    model, y = KEPT[name]
    model = clone(model).fit(X, y)
    assert bool(mercer.verify(model, X, y)), str(mercer.verify(model, X, y))
    for attribute in ("scores_", "left_out_", "diagonal_", "rows_", "fold_", "codes_"):
        values = getattr(model, attribute, None)
        if values is None:
            continue
        changed = values.copy()
        place = int(np.argmax(np.abs(values)))
        changed[place] = values[place] * 1.01 if values.dtype.kind == "f" else values[place] - 1
        setattr(model, attribute, changed)
        assert not mercer.verify(model, X, y), attribute
        setattr(model, attribute, values)
    inner = getattr(model.estimator_, "dual_coef_", None)
    if inner is not None:
        inner.flat[0] *= 1.01
        assert not mercer.verify(model, X, y)


def test_the_guarantee_says_what_is_proved_and_when():
    model = ConformalRegressor(RIDGE, level=0.95).fit(X, Y)
    found = model.guarantee_
    assert found.at_least == pytest.approx(0.9) and found.strict and found.rows == N
    assert "exchangeable" in found.condition and "90 % at least" in str(found)
    assert ConformalRegressor(RIDGE, method="split").fit(X, Y).guarantee_.at_least == 0.9
    assert ConformalRegressor(RIDGE, method="full").fit(X, Y).guarantee_.at_least == 0.9
    assert ConformalRegressor(RIDGE, normalize=True).fit(X, Y).guarantee_.at_least == 0.9
    tuned = ConformalRegressor(GaussianProcessRegressor("RBF(1.0) + White(0.1)")).fit(X, Y).guarantee_
    assert not tuned.strict and "held fixed" in str(tuned)
    assert model.guarantee(0.4).at_least == 0.0 and "nothing is proved" in str(model.guarantee(0.4))
