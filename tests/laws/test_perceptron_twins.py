"""The perceptron by kernel products and its twin in the feature space make the same mistakes,
in the same order.

The referee is the algorithm in whole numbers, where a tie is a tie.
"""

import numpy as np
import pytest

import mercer
from mercer import KernelPerceptron, Perceptron
from mercer.errors import ParameterError

MAPS = {
    "Linear()": lambda a, b: int(a @ b),
    "Polynomial(2)": lambda a, b: int(a @ b + 1) ** 2,
    "Polynomial(3)": lambda a, b: int(a @ b + 1) ** 3,
    "AllSubsets()": lambda a, b: int(np.prod([1 + int(p) * int(q) for p, q in zip(a, b, strict=True)])),
}


def mistakes_in_whole_numbers(k, X, signs, bias, passes):
    """Algorithm 30 with Python's integers: no rounding at all."""
    alpha = [0] * len(X)
    b = 0
    made = []
    for _ in range(passes):
        before = len(made)
        for n in range(len(X)):
            a = sum(alpha[m] * k(X[m], X[n]) for m in range(len(X)) if alpha[m]) + b
            if signs[n] * a <= 0:
                alpha[n] += signs[n]
                b += signs[n] if bias else 0
                made.append(n)
        if len(made) == before:
            break
    return made


def test_xor_is_learned_with_the_same_mistakes_by_both():
    X, y = [[0, 0], [1, 1], [1, 0], [0, 1]], [1, 1, -1, -1]
    a, b = KernelPerceptron("Polynomial(2)").fit(X, y), Perceptron("Polynomial(2)").fit(X, y)
    assert a.mistakes_.tolist() == b.mistakes_.tolist()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", MAPS)
def test_both_make_the_mistakes_that_whole_numbers_make(kernel, bias):
    rng = np.random.default_rng(0)
    for trial in range(12):
        X = rng.integers(-2, 3, size=(10, 1 + trial % 3))
        signs = rng.choice([-1, 1], 10)
        signs[:2] = [-1, 1]
        expected = mistakes_in_whole_numbers(MAPS[kernel], X, signs.tolist(), bias, 12)
        X = X.astype(float)
        dual = KernelPerceptron(kernel, fit_intercept=bias, max_iter=12).fit(X, signs)
        primal = Perceptron(kernel, fit_intercept=bias, max_iter=12).fit(X, signs)
        assert dual.mistakes_.tolist() == expected
        assert primal.mistakes_.tolist() == expected
        assert (dual.intercept_[0], primal.intercept_[0]) == (dual.b_, dual.b_)
        if not bias:
            assert dual.b_ == 0


@pytest.mark.parametrize("average", ["last", "averaged"])
@pytest.mark.parametrize("bias", [True, False])
def test_both_are_the_same_function_on_tenths(average, bias):
    """Tenths are no binary numbers: ties are broken by rounding unless rounding is told from a score."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        X = rng.integers(-10, 11, size=(15, 2)) / 10
        y = rng.choice([-1, 1], 15)
        y[:2] = [-1, 1]
        a = KernelPerceptron("Polynomial(2)", average=average, fit_intercept=bias, max_iter=20).fit(X, y)
        b = Perceptron("Polynomial(2)", average=average, fit_intercept=bias, max_iter=20).fit(X, y)
        assert a.mistakes_.tolist() == b.mistakes_.tolist()
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_every_step_has_one_vote(seed, bias):
    """In whole numbers, so that every sign is exact: after each row that is seen,
    the function of that moment votes.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(12, 2))
    y = rng.choice([-1, 1], 12)
    y[:2] = [-1, 1]
    new = rng.integers(-4, 5, size=(9, 2))
    passes = 5
    model = KernelPerceptron("Polynomial(2)", average="voted", fit_intercept=bias, max_iter=passes).fit(X, y)
    K, across = (1 + X @ X.T) ** 2, (1 + new @ X.T) ** 2
    alpha, b, votes = np.zeros(12, dtype=int), 0, []
    for _ in range(model.n_iter_):
        for i in range(12):
            if y[i] * (K[i] @ alpha + b) <= 0:
                alpha[i] += y[i]
                b += y[i] * bias
            votes.append(np.sign(across @ alpha + b))
    np.testing.assert_allclose(model.decision_function(new), np.mean(votes, axis=0), rtol=1e-12)


def test_votes_without_a_bias_pass_through_the_origin():
    X = np.array([[1.0], [2.0], [-1.0], [-3.0]])
    y = [1, 1, -1, -1]
    model = KernelPerceptron("Linear()", average="voted", fit_intercept=False).fit(X, y)
    assert model.decision_function([[0.0]])[0] == 0
    np.testing.assert_allclose(model.decision_function(-X), -model.decision_function(X))


def test_a_bias_that_is_no_truth_value_is_refused():
    for machine in (KernelPerceptron(fit_intercept="no"), Perceptron(fit_intercept=1.0)):
        with pytest.raises(ParameterError, match="fit_intercept must be True or False"):
            machine.fit([[0.0], [1.0]], [0, 1])
    assert mercer.Perceptron().get_params()["fit_intercept"] is True
