"""A kernel on the rows of fit is one object for all machines: what the rows are is the same to them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.estimators_under_test import LABELS, NEW, NUMBERS, SUBJECTS, X, outputs

from mercer import (
    RBF,
    SVC,
    Custom,
    FalkonRegressor,
    GaussianProcessRegressor,
    KernelRidge,
    Nystroem,
    White,
    verify,
)
from mercer.errors import MercerError
from mercer.gram.on_rows import Approximated, Evaluated, Given

WORDS = [
    "kernel",
    "nerve",
    "karma",
    "ferret",
    "marker",
    "letter",
    "tern",
    "lark",
    "mantle",
    "rental",
    "name",
    "tale",
] * 2
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def counts(words):
    """How often each letter occurs: the map of the kernel below, so that strings and vectors must agree."""
    return np.array([[word.count(letter) for letter in ALPHABET] for word in words], dtype=float)


def letters_in_common(a, b):
    return float(sum(a.count(letter) * b.count(letter) for letter in set(a))) / 4.0


def same_on_vectors(a, b):
    return float(np.dot(a, b)) / 4.0


NO_THINGS = {
    "Perceptron": "it works in an explicit map, which a function of two things does not have",
    "RandomFeatures": "its features are functions of numbers",
    "FeatureMachineRegressor": "it learns distances of rows of numbers",
    "FeatureMachineClassifier": "it learns distances of rows of numbers",
}


def with_kernel(subject, kernel):
    """The machine with this kernel: a set of kernels twice, a process with noise, the first of two views."""
    parameters = subject.make().get_params(deep=False)
    if "kernels" in parameters:
        return subject.make(kernels=[kernel, 2.0 * kernel])
    if "kernel_y" in parameters:
        return subject.make(kernel=kernel, kernel_y="RBF(1.0)")
    if "normalize_y" in parameters:
        return subject.make(kernel=kernel + White(0.1))
    return subject.make(kernel=kernel)


def quietly(act, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return act(*args)


@pytest.mark.parametrize("s", [s for s in SUBJECTS if s.name not in NO_THINGS], ids=lambda s: s.name)
def test_strings_give_what_their_vectors_of_counts_give(s):
    words, new = WORDS, ["mortar", "anchor", "zebra"]
    text = quietly(with_kernel(s, Custom(letters_in_common)).fit, words, s.y)
    numbers = quietly(with_kernel(s, Custom(same_on_vectors)).fit, counts(words), s.y)
    ours, theirs = quietly(outputs, text, new), quietly(outputs, numbers, counts(new))
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("s", [s for s in SUBJECTS if s.name in NO_THINGS], ids=lambda s: s.name)
def test_a_machine_that_takes_numbers_only_says_so(s):
    with pytest.raises((MercerError, ValueError, TypeError)) as refused:
        quietly(with_kernel(s, Custom(letters_in_common)).fit, WORDS, s.y)
    assert len(str(refused.value)) > 20


def test_a_fit_on_strings_is_verified_and_pickled():
    y = np.array([len(word) for word in WORDS], dtype=float)
    model = quietly(KernelRidge(Custom(letters_in_common), 0.1).fit, WORDS, y)
    assert verify(model, WORDS, y).ok
    vectors = quietly(SVC(Custom(letters_in_common)).fit, WORDS, y > 5)
    assert verify(vectors, WORDS, y > 5).ok
    few = quietly(FalkonRegressor(Custom(letters_in_common), 8, 0.1, random_state=0).fit, WORDS, y)
    assert verify(few, WORDS, y).ok
    again = pickle.loads(pickle.dumps(KernelRidge(RBF(1.0).of(counts), 0.1).fit(WORDS, y)))
    np.testing.assert_array_equal(
        again.predict(["mortar"]), KernelRidge(RBF(1.0).of(counts), 0.1).fit(WORDS, y).predict(["mortar"])
    )


def table(n=24):
    return pd.DataFrame({"a": X[:n, 0], "word": WORDS[:n], "b": X[:n, 1]})


def test_a_column_of_text_does_not_block_a_kernel_on_other_columns():
    model = KernelRidge(RBF(1.0).on("a", "b"), 0.1).fit(table(), NUMBERS)
    plain = KernelRidge(RBF(1.0), 0.1).fit(X[:, :2], NUMBERS)
    np.testing.assert_allclose(model.predict(table(5)), plain.predict(X[:5, :2]), rtol=1e-10)


@pytest.mark.parametrize(
    "s", [s for s in SUBJECTS if s.name not in NO_THINGS and "kernel" in s.make().get_params(deep=False)],
    ids=lambda s: s.name,
)  # fmt: skip
def test_every_machine_takes_a_table_of_several_types_column_by_column(s):
    kernel = RBF(1.0).on("a", "b") + Custom(letters_in_common).on("word")
    model = quietly(with_kernel(s, kernel).fit, table(), s.y)
    for name, values in quietly(outputs, model, table(7)).items():
        assert np.all(np.isfinite(values)) or s.excused("finite"), name


def test_a_number_that_is_text_in_a_chosen_column_is_named():
    broken = table()
    broken["b"] = broken["b"].astype(object)
    broken.loc[3, "b"] = "many"
    with pytest.raises(MercerError, match="'many' at row 3"):
        KernelRidge(RBF(1.0).on("a", "b"), 0.1).fit(broken, NUMBERS)


APPROXIMATE = [s for s in SUBJECTS if "approximation" in s.make().get_params(deep=False)]


@pytest.mark.parametrize("s", APPROXIMATE, ids=lambda s: s.name)
def test_with_all_rows_as_landmarks_an_approximation_is_the_kernel_itself(s):
    landmarks = Nystroem(n_components=len(X), landmarks=np.arange(len(X)))
    if "tuned" in s.name:
        with pytest.raises(MercerError, match="not searched through an approximation"):
            s.make(approximation=landmarks).fit(X, s.y)
        return
    # At other rows a feature misses what no landmark explains; on the landmarks nothing is missed.
    ours = outputs(quietly(s.make(approximation=landmarks).fit, X, s.y), X)
    theirs = outputs(quietly(s.fit), X)
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_an_approximation_is_offered_by_all_machines_but_those_that_say_why():
    without = {s.name for s in SUBJECTS} - {s.name for s in APPROXIMATE}
    reasons = {
        "Perceptron": "its features are explicit",
        "NadarayaWatson": "a window of weights is nowhere negative, which features do not promise",
        "MultipleKernelClassifier": "an approximation is of one kernel",
        "MultipleKernelOneClass": "an approximation is of one kernel",
        "MultipleKernelRegressor": "an approximation is of one kernel",
        "FalkonRegressor": "it is one",
        "FalkonRegressor, few landmarks": "it is one",
        "FalkonClassifier": "it is one",
        "Nystroem": "it is one",
        "RandomFeatures": "it is one",
        "FeatureMachineRegressor": "its kernel is learned, and features would be those of the kernel before",
        "FeatureMachineClassifier": "its kernel is learned, and features would be those of the kernel before",
    }
    assert without == reasons.keys()


@pytest.mark.parametrize("s", SUBJECTS, ids=lambda s: s.name)
@pytest.mark.parametrize("fitted", ["sparse", "dense"])
def test_sparse_and_dense_rows_may_meet(s, fitted):
    rows, new = (sparse.csr_array(X), NEW) if fitted == "sparse" else (X, sparse.csr_array(NEW))
    ours = outputs(quietly(s.make().fit, rows, s.y), new)
    theirs = outputs(quietly(s.fit))
    for name in theirs:
        np.testing.assert_allclose(
            ours[name], theirs[name], rtol=1e-4, atol=max(1e-7, s.tolerance), err_msg=name
        )


def test_noise_inside_a_bracket_is_noise_for_falkon_too():
    split = FalkonRegressor(2.0 * RBF(1.0) + 2.0 * White(0.1), 24, 0.1, random_state=0).fit(X, NUMBERS)
    bracket = FalkonRegressor(2.0 * (RBF(1.0) + White(0.1)), 24, 0.1, random_state=0).fit(X, NUMBERS)
    np.testing.assert_allclose(bracket.predict(NEW), split.predict(NEW), rtol=1e-9)
    assert bracket.noise_ == pytest.approx(0.2)


def test_each_kind_answers_all_questions_alike():
    kernel = RBF(1.5)
    K = kernel(X)
    landmarks = Nystroem(n_components=len(X), landmarks=np.arange(len(X)))
    model = KernelRidge(kernel, 0.1, approximation=landmarks).fit(X, NUMBERS)
    some = np.array([3, 0, 7])
    for on, new in (
        (KernelRidge(kernel).fit(X, NUMBERS)._fitted_on(X), NEW),
        (Given.of(K), kernel(NEW, X)),
        (model._fitted_on(X), NEW),
    ):
        assert isinstance(on, Evaluated | Given | Approximated)
        np.testing.assert_allclose(on.gram().dense(), K, atol=1e-8)
        np.testing.assert_allclose(on.products(new, NUMBERS), kernel(NEW, X) @ NUMBERS, atol=1e-7)
        np.testing.assert_allclose(on.part(some).gram().dense(), kernel(X[some]), atol=1e-8)
        part = on.part(some)
        np.testing.assert_allclose(
            part.products(new, np.ones(3)), kernel(NEW, X[some]).sum(axis=1), atol=1e-7
        )
        np.testing.assert_array_equal(part.index, some)
        if not isinstance(on, Given):
            np.testing.assert_allclose(on.diagonal(X), np.ones(len(X)), atol=1e-8)


def test_a_posterior_is_a_value_that_says_what_predict_says():
    model = GaussianProcessRegressor(RBF(1.5) + White(0.1), optimizer=None).fit(X, NUMBERS)
    posterior = model.posterior_
    rows = model.as_rows(NEW)
    mean = posterior.units.values(posterior.times_alpha(posterior.kernel, rows)) + posterior.units.offset
    np.testing.assert_allclose(mean, model.predict(NEW), rtol=1e-12)
    assert posterior.n == len(X) and LABELS.shape == (len(X),)


def test_text_for_a_kernel_of_numbers_is_answered_by_what_to_use():
    with pytest.raises(MercerError, match=r"list of text.*Custom\(function\).*kernel.of\(map\)"):
        SVC("RBF(1.0)").fit(WORDS, LABELS)
    with pytest.raises(MercerError, match="Reshape your data"):
        SVC("RBF(1.0)").fit(NUMBERS, LABELS)


def test_things_without_columns_have_no_number_of_features_as_text_in_scikit_learn():
    """A fit on columns before it is forgotten: the strings of `predict` were refused for having none."""
    from sklearn.feature_extraction.text import CountVectorizer

    assert not hasattr(CountVectorizer().fit(WORDS), "n_features_in_")
    y = np.arange(len(WORDS)) % 2
    model = SVC(Custom(lambda a, b: float(len({*map(str, a)} & {*map(str, b)})) / 4.0))
    quietly(model.fit, counts(WORDS), y)
    assert model.n_features_in_ == len(ALPHABET)
    quietly(model.fit, WORDS, y)
    assert not hasattr(model, "n_features_in_")
    assert model.predict(["mortar"]).shape == (1,)
    quietly(model.fit, counts(WORDS), y)
    assert model.n_features_in_ == len(ALPHABET)
