"""Machines at the end of a Pipeline, behind transformers that never see a row that is left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, GaussianProcessRegressor, KernelRidge
from mercer.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * [1.0, 100.0, 1e-2] + [0.0, 50.0, 1.0]
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)
LABELS = np.where(X[:, 0] * (X[:, 1] - 50.0) > 0, "same", "other")


class Recording(TransformerMixin, BaseEstimator):
    """Passes rows on, and writes down which ones it was fitted on; the first column is the row's number."""

    fitted: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        self.fitted.append(frozenset(X[:, 0].astype(int).tolist()))
        return self

    def transform(self, X):
        return X[:, 1:]


@pytest.mark.parametrize("by", ["auto", "cv"])
@pytest.mark.parametrize("machine, y", [(SVC(), LABELS), (SVR(), NUMBERS), (KernelRidge(), NUMBERS)])
def test_transformers_are_fitted_on_the_rows_of_each_fold_alone(machine, y, by):
    numbered = np.column_stack([np.arange(60), X])
    folds = KFold(3, shuffle=True, random_state=1)
    Recording.fitted.clear()
    found = mercer.choose(make_pipeline(Recording(), machine), numbered, y, by=by, cv=folds, n_trials=3)
    everything = frozenset(range(60))
    trained = {frozenset(train.tolist()) for train, _ in folds.split(numbered)}
    assert found.by == "cv"
    assert {*Recording.fitted} == trained | {everything}
    # once for the evidence, and once for the last fit
    assert Recording.fitted.count(everything) == 2
    assert Recording.fitted[-1] == everything


def test_the_score_is_that_of_the_whole_pipeline():
    """With a transformer that looks at the labels, and would tell what it must not know."""
    noise = RNG.normal(size=(60, 200))
    labels = RNG.permutation(np.repeat([0, 1], 30))
    folds = StratifiedKFold(4)
    pipeline = make_pipeline(SelectKBest(f_classif, k=5), StandardScaler(), SVC("RBF()"))
    found = mercer.choose(pipeline, noise, labels, cv=folds, n_trials=5)
    best = clone(pipeline).set_params(svc__kernel=found.kernel, svc__C=found.parameters["C"])
    assert found.score == pytest.approx(cross_val_score(best, noise, labels, cv=folds).mean(), rel=1e-9)
    assert found.score < 0.8


def test_the_machine_that_comes_back_is_the_fitted_pipeline():
    pipeline = Pipeline([("scale", StandardScaler()), ("machine", SVC("RBF()"))])
    found = mercer.choose(pipeline, X, LABELS, cv=3)
    assert isinstance(found.machine, Pipeline) and found.machine.score(X, LABELS) > 0.8
    assert found.machine.named_steps["machine"].kernel_ == found.kernel
    assert not hasattr(pipeline, "classes_") and pipeline.named_steps["machine"].kernel == "RBF()"
    scaled = mercer.choose(SVC("RBF()"), StandardScaler().fit_transform(X), LABELS, by="alignment")
    behind = mercer.choose(pipeline, X, LABELS, by="alignment")
    assert behind.score == pytest.approx(scaled.score, rel=1e-9)


def test_a_process_behind_transformers_is_tuned_on_transformed_rows():
    found = mercer.choose(make_pipeline(StandardScaler(), GaussianProcessRegressor("RBF()")), X, NUMBERS)
    alone = mercer.choose(GaussianProcessRegressor("RBF()"), StandardScaler().fit_transform(X), NUMBERS)
    assert found.by == "evidence" and found.score == pytest.approx(alone.score, rel=1e-9)
    assert found.machine.predict(X) == pytest.approx(alone.machine.predict(StandardScaler().fit_transform(X)))
    loo = mercer.choose(make_pipeline(StandardScaler(), KernelRidge()), X, NUMBERS, by="loo", n_trials=1)
    assert "fitted once" in loo.why


def test_a_pipeline_of_text_and_one_of_a_single_step():
    words = ["red apple", "green apple", "red car", "green car", "blue car", "ripe apple"] * 4
    labels = ["fruit", "fruit", "thing", "thing", "thing", "fruit"] * 4
    found = mercer.choose(make_pipeline(CountVectorizer(), SVC("Linear()")), words, labels, cv=3, n_trials=3)
    assert found.machine.predict(["a ripe apple"]).tolist() == ["fruit"]
    one = mercer.choose(Pipeline([("svc", SVC())]), X, LABELS, cv=3, n_trials=2)
    assert isinstance(one.machine, Pipeline) and one.machine.predict(X).shape == (60,)


def test_a_pipeline_without_a_kernel_is_refused():
    with pytest.raises(ParameterError, match="last step of a Pipeline"):
        mercer.choose(make_pipeline(StandardScaler(), StandardScaler()), X, LABELS)
