"""Proofs and refutations: every example of the seeds, every rule, and the honesty of the rest."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from mercer import (
    RBF,
    AllSubsets,
    ArcCosine,
    Bilinear,
    Brownian,
    Chi2,
    Constant,
    Cosine,
    CosineSimilarity,
    Custom,
    Dot,
    ExpDot,
    Exponential,
    Intersection,
    Laplacian,
    Linear,
    Logistic,
    Matern,
    Periodic,
    Polynomial,
    Proved,
    ProvedAsDeclared,
    RationalQuadratic,
    Refuted,
    Sigmoid,
    SpectralMixture,
    Stationary,
    Undecided,
    White,
)


def h(t):
    return np.sinh(t) - 0.3 * t**2


def exercise_3_4_a(X):
    """f(x) = Π h((x_α - c) / a), so that k = f(x) f(z) is the exercise's kernel."""
    return np.prod(h((X - 0.7) / 1.9), axis=1)


def l1_matern(x, z):
    r = np.sqrt(3) * np.abs(x - z).sum()
    return (1 + r) * np.exp(-r)


PROVED = {
    "inner product": Linear(),
    "non-negative Taylor series": ExpDot(0.5),
    "Schoenberg's theorem": RationalQuadratic(2.0, alpha=0.3),
    "Bochner's theorem": SpectralMixture([1.0, 2.0], [0.1, 0.7], [0.2, 0.1]),
    "identity matrix": White(0.1),
    "constant": Constant(0.0),
    "positive semi-definite form": Bilinear([[2, -1], [-1, 2]]),
    "positive multiple": 3.0 * Matern(1.0, nu=0.8),
    "sum of kernels": RBF(1.0) + Linear() + White(0.1),
    "product of kernels": RBF(2.0) * Periodic(1.0),
    "whole power": (RBF(1.0) + 1.0) ** 3,
    "exponential": (2.0 * Linear()).exp(),
    "polynomial": Cosine(2.0).polynomial([0.0, 1.0, 0.5]),
    "rule f(x) k(x, z) f(z)": Constant(1.0).times(exercise_3_4_a),
    "composition with a map": RBF(1.0).of(np.sin),
    "normalisation": Polynomial(3).normalized(),
    "infinite divisibility": (RBF(1.0) * Laplacian(2.0)) ** 0.37,
    "expansion": Polynomial(2, offset=0.5) - 0.25,
}


@pytest.mark.parametrize("rule", PROVED)
def test_the_rule_that_makes_a_kernel_is_named(rule):
    answer = PROVED[rule].validity(seconds=120)
    assert isinstance(answer, Proved)
    assert answer.proof.rule == rule
    assert answer.assumptions == ()


@pytest.mark.parametrize(
    "k",
    [
        *(RBF(1.0), Exponential(2.0), Matern(1.0, nu=3.3), RationalQuadratic(1.0), Laplacian([1.0, 2.0])),
        *(Periodic(1.0), Chi2(0.3), ExpDot(2.0), Constant(2.0), White(0.2), (Linear() + 1.0).exp()),
        *((2.0 * RBF(1.0)).normalized(), RBF(1.0).on(0), RBF(1.0).of([[1.0, 1.0]]), RBF(1.0) ** 2.5),
    ],
    ids=str,
)
def test_powers_of_infinitely_divisible_kernels_are_proved_and_are_psd(k):
    root = k**0.41
    assert root.validity(seconds=120).status == "proved"
    assert root.validity(seconds=120).proof.rule == "infinite divisibility"
    X = np.abs(np.random.default_rng(0).normal(size=(60, 2)))
    assert np.linalg.eigvalsh(root(X))[0] > -1e-8 * np.linalg.norm(root(X))


def test_every_node_of_the_expression_has_its_node_in_the_proof():
    k = RBF(2.0) * Periodic(1.0) + 0.1 * White(1.0)
    nodes = [str(node.kernel) for node in k.validity(seconds=120).proof.walk()]
    assert nodes == [
        str(k),
        "RBF(2.0)*Periodic(1.0)",
        "RBF(2.0)",
        "Periodic(1.0)",
        "0.1*White(1.0)",
        "White(1.0)",
    ]


def test_the_printed_proof_is_indented_and_ends():
    text = str((RBF(2.0) + 3.0 * Linear()).validity(seconds=120))
    lines = text.splitlines()
    assert lines[0] == "RBF(2.0) + 3.0*Linear() is a kernel."
    assert lines[-1] == "∎"
    assert any(re.match(r"^      1\.2\.1\. Linear\(\)  \[inner product\]$", line) for line in lines)
    assert any("c = 3.0 ≥ 0" in line for line in lines)


def test_the_latex_of_a_proof_nests_one_list_per_level():
    latex = (RBF(2.0) + 3.0 * Linear()).validity(seconds=120).latex()
    assert latex.count(r"\begin{enumerate}") == latex.count(r"\end{enumerate}") == 3
    assert latex.count(r"\item") == 4


@pytest.mark.parametrize("k", PROVED.values(), ids=PROVED)
def test_the_latex_of_a_proof_needs_no_special_engine(k):
    latex = k.validity(seconds=120).latex()
    assert latex.isascii(), [c for c in latex if not c.isascii()]


REFUTED = {
    "tanh": Sigmoid(1.0),
    "tanh with an offset": Sigmoid(1.0, offset=1.0),
    "tanh with a negative offset": Sigmoid(0.3, offset=-0.5),
    "logistic": Logistic(1.0),
    "logistic with an offset": Logistic(2.0, offset=-1.0),
    "exercise 3.4 b, minus the cosine": -CosineSimilarity(),
    "a difference of Gaussians": RBF(1.0) - RBF(2.0),
    "a difference that fails only in the plane": RBF(1.0) - 0.9 * RBF(1.1),
    "a rough kernel taken from a smooth one": RBF(1.0) - Matern(1.0),
    "degree two taken from degree one": Linear() - Polynomial(2),
    "a negative constant": Constant(-0.25),
    "root of the linear kernel": Linear() ** 0.5,
    "power 1.5 of the linear kernel": Linear() ** 1.5,
    "power 2.5 of the linear kernel": Linear() ** 2.5,
    "root of a polynomial kernel": Polynomial(3) ** 0.5,
    "L1-Matérn-3/2 of a user": Custom(l1_matern),
    "an indefinite form": Bilinear([[1, 2], [2, 1]]),
    "minus the distance of numbers": Custom(lambda a, b: -abs(a - b)),
    "a box window": Stationary(lambda d: (np.abs(d).max(-1) < 1).astype(float)),
    "a super-Gaussian": Stationary(lambda d: np.exp(-(np.linalg.norm(d, axis=-1) ** 3))),
    "cosine of the norm in the plane": Stationary(lambda d: np.cos(np.linalg.norm(d, axis=-1))),
    "cosine of the dot product": Dot(np.cos),
    "histograms": Intersection() - 2.0 * Chi2(1.0),
    "inside other rules": RBF(1.0) * (Linear() - 3.0),
    "by column name": (Linear() - RBF(1.0)).on("age", "height"),
}


@pytest.mark.parametrize("name", REFUTED)
def test_an_invalid_kernel_carries_a_witness_that_can_be_checked_by_hand(name):
    answer = REFUTED[name].validity(seconds=120)
    assert isinstance(answer, Refuted)
    assert answer.check()
    K = answer.gram()
    by_hand = sum(answer.q[i] * K[i, j] * answer.q[j] for i in range(len(K)) for j in range(len(K)))
    assert by_hand < 0
    assert answer.value == pytest.approx(by_hand, rel=1e-6)
    assert "is not a kernel" in str(answer)


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("tanh", 2),
        ("logistic", 2),
        ("exercise 3.4 b, minus the cosine", 1),
        ("a negative constant", 1),
        ("root of the linear kernel", 3),  # FitzGerald and Horn: two points never do
        ("power 1.5 of the linear kernel", 4),
        ("power 2.5 of the linear kernel", 5),
        ("an indefinite form", 1),
        ("a box window", 3),
    ],
)
def test_the_witness_is_as_small_as_theory_allows(name, points):
    assert len(REFUTED[name].validity(seconds=120).q) == points


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("offset", [-1.0, 0.0, 2.0])
def test_tanh_is_refuted_at_every_scale(scale, offset):
    assert Sigmoid(scale, offset=offset).validity(seconds=120).check()


@pytest.mark.parametrize("lengthscale", [1e-4, 1.0, 1e5])
def test_a_difference_is_refuted_at_its_own_scale(lengthscale):
    assert (RBF(lengthscale) - RBF(2 * lengthscale)).validity(seconds=120).check()


def test_an_asymmetric_function_is_refuted_by_two_points():
    answer = Custom(lambda x, z: float(x[0])).validity(seconds=120)
    assert isinstance(answer, Refuted)
    assert answer.asymmetric
    assert answer.check()
    assert "not symmetric" in str(answer)
    assert Bilinear([[0, 1], [0, 0]]).validity(seconds=120).asymmetric


@pytest.mark.parametrize(
    "k",
    [
        Polynomial(2, offset=0.5) - 0.25,
        RBF(1.0) - 0.5 * RBF(1.0),
        RBF(1.0) - RBF(1.0),
        ExpDot(1.0) - 1.0 - Linear(),
        Linear().exp() - Linear(),
        (Linear() + 1.0) ** 2 - 2.0 * Linear(),
        (Linear() - 1.0).exp(),
        RBF(1.0) * (Polynomial(2) - 1.0),
        Dot(taylor=[0.0, 1.0, 3.0]) - 2.0 * Linear() ** 2,
        RBF(1.0).fix("lengthscale") - 0.5 * RBF(1.0),
    ],
    ids=str,
)
def test_a_negative_term_that_cancels_does_no_harm(k):
    answer = k.validity(seconds=120)
    assert isinstance(answer, Proved)
    X = np.random.default_rng(1).normal(size=(50, 3))
    K = k(X)
    assert np.linalg.eigvalsh(K)[0] > -1e-9 * (1 + np.linalg.norm(K))


def test_a_negative_term_that_does_not_cancel_is_refuted():
    for k in (Polynomial(2, offset=0.5) - 0.26, ExpDot(1.0) - 1.1, RBF(1.0) - 1.1 * RBF(1.0)):
        assert k.validity(seconds=120).check()


def test_sampling_never_proves():
    smooth = Stationary(lambda d: np.exp(-0.5 * (d**2).sum(-1)))  # in truth a kernel, but nobody said so
    answer = smooth.validity(seconds=120)
    assert isinstance(answer, Undecided)
    assert len(answer.tried) >= 4
    assert "not known" in str(answer)
    assert abs(answer.lowest) < 1e-9
    assert (smooth + RBF(1.0)).validity(seconds=1).status == "undecided"


sinh = np.vectorize(math.sinh, otypes=[float])  # a function that is no formula


def odd(n):
    return n % 2 / math.factorial(n)


def test_a_declared_infinite_series_is_taken_on_the_users_word_and_said():
    answer = Dot(sinh, taylor=odd).validity(seconds=120)
    assert isinstance(answer, ProvedAsDeclared)
    assert not isinstance(answer, Proved)
    assert answer.status == "declared"
    assert len(answer.assumptions) == 1
    assert "given what you declared" in str(answer)
    assert Dot(np.sin, taylor=lambda n: [0, 1, 0, -1][n % 4] * 1.0).validity(seconds=120).status == "refuted"


def test_what_was_declared_of_one_part_is_said_of_the_whole():
    answer = (RBF(1.0) * Dot(sinh, taylor=odd) + Linear()).validity(seconds=120)
    assert isinstance(answer, ProvedAsDeclared)
    assert len(answer.assumptions) == 1
    assert answer.proof.declared() == answer.assumptions


def test_things_that_are_not_vectors_are_judged_on_samples():
    shared = Custom(lambda a, b: len(set(a) & set(b)))
    longest = Custom(lambda a, b: float(max(len(a), len(b))))
    words = ["kernel", "nerve", "a", "abc", "cab", "zebra"]
    assert shared.validity(samples=words).status == "undecided"
    answer = longest.validity(samples=words)
    assert answer.check()
    assert all(isinstance(x, str) for x in answer.X)
    picky = Custom(lambda a, b: a.startswith(b) * 1.0)
    assert "samples=" in str(picky.validity(seconds=2))


def test_the_search_keeps_to_its_time_and_its_seed():
    slow = Stationary(lambda d: np.exp(-0.5 * (d**2).sum(-1)))
    assert "time ran out" in str(slow.validity(seconds=0.0))
    first, second = (Custom(l1_matern).validity(seconds=120, random_state=3) for _ in range(2))
    assert np.array_equal(first.X, second.X)
    assert np.array_equal(first.q, second.q)


def test_the_search_can_be_kept_to_one_dimension():
    k = RBF(1.0) - 0.5 * RBF(2.0)  # a kernel on the line, not in the plane
    assert k.validity(columns=1, seconds=2).status == "undecided"
    assert k.validity(columns=2, seconds=120).check()


def test_every_leaf_says_why_it_is_a_kernel_or_is_known_not_to_be():
    from mercer.kernels.leaves.leaf import LEAVES

    users = {"Custom", "Stationary", "Dot"}
    invalid = {"EditDistance", "Sigmoid", "Logistic"}
    needed = {"SpectralMixture": ([1.0], [1.0], [1.0]), "Bilinear": ([[1.0]],)}
    needed |= dict.fromkeys(["Diffusion", "RegularizedLaplacian"], ([(0, 1)],))
    named = {n: c for n, c in LEAVES.items() if c.__module__.startswith("mercer.") and n not in users}
    for name, cls in named.items():
        k = cls(*needed.get(name, ()))
        assert k.validity(seconds=120).status == ("refuted" if name in invalid else "proved"), name
    assert {"AllSubsets", "ArcCosine", "Brownian"} <= set(named)
    assert AllSubsets().validity(seconds=120).proof.conditions == ()
    assert "order = 2" in str(ArcCosine(2).validity(seconds=120))
    assert Brownian().validity(seconds=120).proof.rule == "inner product of functions"
