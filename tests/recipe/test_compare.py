"""Laws of `mercer.compare`: scores and intervals against slow loops, and what is refused."""

import math

import numpy as np
import polars
import pytest
from scipy.stats import t as student
from sklearn.model_selection import RepeatedKFold

from mercer import GaussianProcessRegressor, KernelRidge, compare
from mercer.errors import InputError, ParameterError
from mercer.recipe.compare import NOTHING, paired_interval


def slow_interval(differences, train, test, level):
    """Nadeau and Bengio's interval, written out."""
    count = len(differences)
    mean = sum(differences) / count
    squares = sum((d - mean) ** 2 for d in differences) / (count - 1)
    half = student.ppf(1 - (1 - level) / 2, count - 1) * math.sqrt((1 / count + test / train) * squares)
    return mean - half, mean + half


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_is_that_of_a_slow_loop(level):
    differences = np.random.default_rng(0).normal(size=12).tolist()
    np.testing.assert_allclose(
        paired_interval(differences, 80, 20, level), slow_interval(differences, 80, 20, level), rtol=1e-12
    )


def test_an_interval_of_one_split_is_refused():
    with pytest.raises(InputError, match="at least 2 splits"):
        paired_interval([0.1], 80, 20)


def numbers():
    x = np.linspace(-3, 3, 40)
    noise = 0.1 * np.random.default_rng(0).normal(size=40)
    return polars.DataFrame({"x": x, "y": np.sin(2 * x) + noise, "kind": ["a", "b"] * 20})


def r2(y, predicted):
    return 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)


def test_scores_and_differences_are_those_of_a_plain_loop():
    frame = numbers().drop("kind")
    machines = {"stiff": KernelRidge(alpha=1.0), "loose": KernelRidge(alpha=0.01)}
    found = compare(frame, "y", kernels=["RBF(0.7)"], machines=machines, folds=4, repeats=2, random_state=3)
    X = frame["x"].to_numpy()[:, None]
    y = frame["y"].to_numpy()
    scores = {"stiff": [], "loose": [], NOTHING: []}
    for train, test in RepeatedKFold(n_splits=4, n_repeats=2, random_state=3).split(X):
        for name, alpha in (("stiff", 1.0), ("loose", 0.01)):
            fitted = KernelRidge("RBF(0.7)", alpha=alpha).fit(X[train], y[train])
            scores[name].append(r2(y[test], fitted.predict(X[test])))
        scores[NOTHING].append(r2(y[test], y[train].mean()))
    assert [c.name for c in found.candidates] == sorted(scores, key=lambda name: -np.mean(scores[name]))
    best = scores[found.best.name]
    for c in found.candidates:
        np.testing.assert_allclose(c.scores, scores[c.name], rtol=1e-9)
        if c is not found.best:
            differences = [a - b for a, b in zip(scores[c.name], best, strict=True)]
            low, high = slow_interval(differences, 30, 10, 0.95)
            np.testing.assert_allclose(
                (c.difference, c.low, c.high), (np.mean(differences), low, high), rtol=1e-7
            )


def test_classes_are_compared_by_accuracy_and_a_failure_comes_last_with_its_reason():
    found = compare(numbers(), "kind", kernels=["RBF().on('x')", "RBF().on('nowhere')"], folds=3, repeats=1)
    assert (found.task, found.scoring) == ("classes", "accuracy")
    last = found.candidates[-1]
    assert last.kernel == 'RBF().on("nowhere")' and "nowhere" in last.failure and not len(last.scores)
    assert f"failed: {last.failure}" in str(found)


def test_the_printed_table_has_a_line_for_each_candidate():
    found = compare(numbers().drop("kind"), "y", kernels=["RBF()", "Linear()"], folds=3, repeats=1)
    lines = str(found).splitlines()
    assert len(lines) == 4 and "to the best" in lines[0]
    assert lines[1].startswith("ridge, RBF()") and lines[2].split()[0] in ("ridge,", "nothing")


@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        (None, {"target": "z"}, InputError, "no column 'z'"),
        (
            None,
            {"machines": ["svc"]},
            ParameterError,
            "for numbers the machines are ridge, svr, gp",
        ),
        (None, {"scoring": "beauty"}, ParameterError, "'beauty' is no score"),
        (lambda f: f.with_columns(y=polars.lit(1.5)), {}, InputError, "in every row"),
        (lambda f: f.head(6), {}, InputError, "6 rows are too few for 5 folds"),
        (lambda f: f.with_columns(y=polars.Series([None, *f["y"][1:]])), {}, InputError, "no value in row 1"),
        (
            lambda f: f.with_columns(y=polars.Series(["a"] * 38 + ["b"] * 2)),
            {},
            InputError,
            "class 'b' has 2 rows",
        ),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(change, options, error, words):
    frame = numbers()
    if change is not None:
        frame = change(frame)
    with pytest.raises(error, match=words):
        compare(frame, options.pop("target", "y"), **options)


def test_a_process_with_steps_of_ours_says_nothing_of_its_limit_and_one_of_yours_does():
    frame = numbers().drop("kind")
    named = compare(frame, "y", kernels=["RBF(1.0)"], machines=["gp"], folds=2, repeats=1)
    assert [c.notes for c in named.candidates] == [(), ()]
    mine = {"mine": GaussianProcessRegressor(max_iter=1)}
    found = compare(frame, "y", kernels=["RBF(1.0) + White(0.1)"], machines=mine, folds=2, repeats=1)
    assert found.best.notes[0].endswith("(2 such warnings)")
