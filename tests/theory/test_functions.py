"""One notion for all machines: f = Σ c_j k(x_j, ·) + b, its norm, its margins, its part in the span,
its multipliers.
"""

import contextlib
import warnings

import numpy as np
import pytest

import mercer
from estimators_under_test import LABELS, NEW, SUBJECTS, X
from mercer import SVC, Adatron, KernelMachine, KernelPerceptron, KernelRidge, Nystroem, Perceptron
from mercer.errors import MercerError, NoFiniteMapError, ParameterError, ShapeError
from mercer.theory import duality, essential, function_of, margins, representer

NAMES = [s.name for s in SUBJECTS]
NO_FUNCTION = {
    "KernelPerceptron, voted",
    "NadarayaWatson",
    "Nystroem",
    "RandomFeatures",
}


def fitted(subject, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return subject.fit(**changes)


def said(model, rows):
    """What the machine itself says of rows, as n × functions, by its public methods."""
    if hasattr(model, "latent"):
        values = model.latent(rows)[0]
    elif isinstance(model, mercer.RelevanceVectorClassifier):
        values = model._moments(rows, variance=False)[0]  # its decision values are moderated by the variance
    elif isinstance(model, mercer.KernelKMeans):
        centres = np.square(function_of(model).norms())
        values = 0.5 * (np.ones((len(rows), 1)) + centres - np.square(model.transform(rows)))
    elif isinstance(model, mercer.SVDD):
        ball = model.radius_**2 - 1.0 - model.center_norm_**2
        values = 0.5 * (model.decision_function(rows) - ball)
    elif isinstance(model, mercer.KernelMeanEmbedding):
        values = model.score_samples(rows)
    elif hasattr(model, "decision_function"):
        values = model.decision_function(rows)
    elif isinstance(model, KernelMachine) and model.loss == "poisson":
        values = np.log(model.predict(rows))
    elif hasattr(model, "transform"):
        values = model.transform(rows)
    else:
        values = model.predict(rows)
    return np.asarray(values).reshape(len(rows), -1)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_function_of_a_machine_is_what_the_machine_says(subject):
    model = fitted(subject)
    if subject.name in NO_FUNCTION:
        with pytest.raises(MercerError, match="no function"):
            function_of(model)
        return
    f = function_of(model)
    values = f.values(model.check_rows(NEW, reset=False))
    np.testing.assert_allclose(values, said(model, NEW), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_norm_is_the_double_sum_of_the_coefficients(subject):
    if subject.name in NO_FUNCTION:
        return
    f = function_of(fitted(subject))
    if subject.name == "Perceptron":
        np.testing.assert_allclose(f.norms() ** 2, (f.weights**2).sum(axis=1), rtol=1e-12)
        return
    other = f.on.rows.data.copy()
    K = f.kernel(f.on.rows.data) if f.observed else f.kernel(f.on.rows.data, other)
    for k in range(f.count):
        c = f.coefficients[:, k]
        slow = sum(c[i] * c[j] * K[i, j] for i in range(len(c)) for j in range(len(c)))
        assert f.norms()[k] ** 2 == pytest.approx(slow, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_every_question_of_theory_has_an_answer_or_a_sentence(subject):
    model = fitted(subject)
    y = LABELS if subject.y is None or subject.target == "view" else subject.y
    for ask in (
        lambda: representer(model, X),
        lambda: margins(model, X, y),
        lambda: duality(model, X, y),
        lambda: essential(model, X, y),
        lambda: str(duality(model, X, y)),
    ):
        with contextlib.suppress(MercerError):
            ask()


FINITE = "Polynomial(2)"


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_fitted_w_of_every_machine_lies_in_the_span(subject):
    if subject.name in NO_FUNCTION or "kernel" not in subject.settings:
        return
    if subject.name.startswith("FeatureMachine"):
        # its kernels are radial, and have no finite map
        return
    more = {"noise": 0.1} if "GaussianProcessRegressor" in subject.name else {}
    model = fitted(subject, kernel=FINITE, **more)
    found = representer(model, X)
    assert found.w.shape[0] == function_of(model).count
    assert found.in_span and found.training_change < 1e-9
    assert found.difference < 1e-7 and found.norm_difference < 1e-7
    assert found.ok, str(found)


def test_what_lies_outside_the_span_leaves_the_values_and_adds_to_the_norm():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(6, 3)), np.array([0, 1, 0, 1, 1, 0])
    model = KernelRidge("Polynomial(2)", alpha=0.1).fit(rows, y)
    phi = mercer.parse("Polynomial(2)").features(3)(rows)
    for _ in range(20):
        w = rng.normal(size=10) * 10.0 ** rng.integers(-3, 4)
        found = representer(model, rows, w=w)
        # the referee: least squares gives the same projection
        inside = phi.T @ np.linalg.lstsq(phi.T, w, rcond=None)[0]
        np.testing.assert_allclose(found.inside[0], inside, rtol=1e-8, atol=1e-9 * np.abs(w).max())
        np.testing.assert_allclose(phi @ found.inside[0], phi @ w, rtol=1e-9, atol=1e-9 * np.abs(w).max())
        assert found.norms[0] ** 2 == pytest.approx(found.inside_norms[0] ** 2 + found.outside_norms[0] ** 2)
        assert found.ok and not found.in_span and found.rank == 6


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_add_no_direction_do_not_raise_the_rank(seed):
    """Copies, multiples and sums of rows: to rounding they lie in the span of the others."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, 5))
    more = np.vstack([rows, rows[:2], 0.1 * rows[0], rows[0] / 3 + rows[1] / 7])
    model = mercer.KernelRidge("Linear()", 0.1).fit(more, more[:, 0])
    assert representer(model, more).rank == 3


def test_rows_that_are_not_those_of_fit_do_not_span_w():
    model = SVC("Linear()").fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert not representer(model, [[1.0, 0.0]]).ok


def test_a_w_of_the_wrong_length_is_refused():
    model = SVC("Linear()").fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(ShapeError, match="2 features"):
        representer(model, [[1.0, 0.0], [0.0, 1.0]], w=[1.0, 2.0, 3.0])
    with pytest.raises(NoFiniteMapError):
        representer(SVC("RBF(1.0)").fit([[1.0, 0.0], [0.0, 1.0]], [0, 1]), [[1.0, 0.0]])


@pytest.mark.parametrize(
    "model",
    [
        SVC("Polynomial(2)"),
        KernelPerceptron("Polynomial(2)"),
        Perceptron("Polynomial(2)"),
        Adatron("Polynomial(2)", C=1.0),
        KernelMachine("Polynomial(2)", "logistic"),
        KernelMachine("Polynomial(2)", "hinge", approximation=Nystroem(n_components=5, random_state=0)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_distances_are_those_of_the_plane_in_feature_space(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, LABELS)
    found = margins(model, X, LABELS)
    phi, w = function_of(model).explicit()
    b = function_of(model).offset
    # the referee: the distance of a point to a plane, from the nearest point of the plane
    for i in range(len(X)):
        point = phi(X[i : i + 1])[0]
        foot = point - (w[0] @ point + b[0]) / (w[0] @ w[0]) * w[0]
        assert w[0] @ foot + b[0] == pytest.approx(
            0.0, abs=1e-8 * np.abs(w[0]).sum() * max(1, np.abs(point).max())
        )
        side = 1 if (model.predict(X[i : i + 1])[0] == LABELS[i]) else -1
        assert found.distances[i, 0] == pytest.approx(side * np.linalg.norm(point - foot), rel=1e-6, abs=1e-8)
    assert found.smallest[0] == found.distances.min()
    assert bool(found.separates[0]) == bool((model.predict(X) == LABELS).all())


def test_the_margin_of_a_perceptron_is_never_larger_than_the_optimal_one():
    rng = np.random.default_rng(1)
    for seed in range(10):
        rows = np.random.default_rng(seed).normal(size=(12, 3))
        y = (rows @ rng.normal(size=3) > 0).astype(int)
        if len(np.unique(y)) < 2:
            continue
        best = margins(SVC("Linear()", np.inf, tol=1e-8).fit(rows, y), rows, y)
        found = margins(KernelPerceptron("Linear()", max_iter=10000).fit(rows, y), rows, y)
        assert found.separates[0] and found.smallest[0] <= best.delta[0] * (1 + 1e-6)
        assert found.delta[0] == found.smallest[0] and best.smallest[0] == pytest.approx(
            best.delta[0], rel=1e-5
        )


def test_the_smallest_distance_of_a_duel_is_that_of_its_two_classes():
    """Three classes that every plane separates: rows of the third class, on whichever side, do not count."""
    rows = np.array([[0.0, 0.0], [0.2, 0.1], [3.0, 0.0], [3.1, 0.3], [0.0, 3.0], [0.3, 3.2]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    found = margins(SVC("Linear()", C=1e4).fit(rows, labels), rows, labels)
    for k, outside in enumerate((2, 1, 0)):
        own = found.distances[labels != outside, k]
        assert np.isnan(found.distances[labels == outside, k]).all()
        assert found.smallest[k] == own.min() > 0
        assert found.separates[k]


def test_margins_of_a_machine_without_classes_say_why():
    with pytest.raises(ParameterError, match="classifier"):
        margins(KernelRidge("RBF(1.0)").fit(X, LABELS), X, LABELS)
    with pytest.raises(ParameterError, match="labels other than"):
        margins(SVC("RBF(1.0)").fit(X, LABELS), X, LABELS + 5)
    with pytest.raises(ParameterError, match="mercer's machines"):
        margins(object(), X, LABELS)
