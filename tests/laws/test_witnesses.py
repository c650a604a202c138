"""Proofs and witnesses that rounding, names or declarations could have made false:
one test for each symptom.
"""

from __future__ import annotations

import math
import signal
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest

from mercer import (
    RBF,
    AllSubsets,
    Bilinear,
    Brownian,
    Constant,
    Cosine,
    Custom,
    Dot,
    ExpDot,
    Fact,
    Linear,
    Polynomial,
    Proved,
    ProvedAsDeclared,
    Radial,
    Refuted,
    Sigmoid,
    Stationary,
    Undecided,
    leaf,
)
from mercer.cli.check import run_check
from mercer.errors import DomainError, ParameterError
from mercer.kernels.leaves.dot import DotProduct
from mercer.kernels.proofs import validity
from mercer.kernels.proofs.expansion import ONE, Term, _least_coefficient, expand, proof_by_expansion
from mercer.kernels.proofs.forms import exact_form, judge_form
from mercer.kernels.proofs.intervals import Interval, pi
from reference import proofs as referee

# ── declared series ─────────────────────────────────────────────────────────────────────────────────────────


def inverse_factorial(n):
    return 1 / math.factorial(n)


def geometric(t):
    return 1 / (1 - t)


@pytest.mark.parametrize("f", [np.sin, np.cos, np.tanh, lambda t: np.exp(t) + 1e-3, lambda t: t / 0.0])
def test_a_function_that_is_not_its_declared_series_is_never_proved(f):
    with np.errstate(all="ignore"):
        answer = Dot(f, taylor=inverse_factorial).validity(columns=1)
    assert isinstance(answer, Refuted | Undecided)
    if isinstance(answer, Undecided):
        assert "f is not the function of the declared Taylor series: at t =" in answer.missing


def alternating(n):
    return (-1) ** n / math.factorial(n)


def of_sine(n):
    return 0.0 if n % 2 == 0 else (-1) ** (n // 2) / math.factorial(n)


def of_cosine(n):
    return 0.0 if n % 2 else (-1) ** (n // 2) / math.factorial(n)


def less_one_square(n):
    return 1 / math.factorial(n) - (n == 2)


@pytest.mark.parametrize(
    ("f", "taylor"),
    [
        (lambda t: np.exp(-t), alternating),
        (lambda t: np.sin(t), of_sine),
        (lambda t: np.cos(t), of_cosine),
        (lambda t: np.exp(t) - t**2, less_one_square),
    ],
)
def test_a_true_series_with_a_negative_coefficient_proves_nothing(f, taylor):
    k = Dot(f, taylor=taylor)
    assert k.proof() is None
    assert "negative coefficient" in k.wanting()


def test_a_series_outside_its_radius_is_not_proved():
    assert not isinstance(Dot(geometric, taylor=lambda n: 1.0).validity(), Proved | ProvedAsDeclared)
    answer = Dot(lambda t: 1 / (2 - t), taylor=lambda n: 0.5 ** (n + 1), radius=3.0).validity()
    assert not isinstance(answer, Proved | ProvedAsDeclared)


def test_a_declared_radius_is_a_condition_of_the_proof_and_of_the_rows():
    k = Dot(geometric, taylor=lambda n: 1.0, radius=1.0)
    answer = k.validity()
    assert isinstance(answer, ProvedAsDeclared)
    assert answer.proof.conditions == ("it is defined for |x·z| < 1 only",)
    assert k([[0.5]], [[0.5]])[0, 0] == pytest.approx(4 / 3)
    for rows in ([[0.5], [2.0]], [[1.0]], [[1.1], [-1.1]]):
        with pytest.raises(DomainError, match="only converges for"):
            k(rows)


@pytest.mark.parametrize("product", [-3.0, -1.0, -0.999, 0.0, 0.999, 1.0, 3.0])
def test_products_beyond_the_radius_are_refused_on_both_sides(product):
    k = Dot(geometric, taylor=lambda n: 1.0, radius=1.0)
    if abs(product) < 1:
        assert k([[1.0]], [[product]])[0, 0] == pytest.approx(1 / (1 - product))
        return
    with pytest.raises(DomainError, match="only converges"):
        k([[1.0]], [[product]])


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, "1"])
def test_a_radius_is_a_positive_number(radius):
    with pytest.raises(ParameterError, match="radius must be"):
        Dot(geometric, taylor=lambda n: 1.0, radius=radius)


def test_a_radius_needs_an_infinite_series():
    with pytest.raises(ParameterError, match="infinite series"):
        Dot(geometric, taylor=[1.0, 1.0], radius=1.0)


@pytest.mark.parametrize(
    ("f", "taylor", "radius"),
    [
        (lambda t: np.exp(t), inverse_factorial, None),
        (lambda t: np.exp(t), inverse_factorial, math.inf),
        (lambda t: np.cosh(t), lambda n: (n % 2 == 0) / math.factorial(n), None),
        (lambda t: -np.log1p(-t), lambda n: 1 / n if n else 0.0, 1.0),
        (lambda t: 1 / (1 - t / 3) ** 2, lambda n: (n + 1) / 3.0**n, 3.0),
        (lambda t: np.arcsin(t), lambda n: _arcsine(n), 1.0),
    ],
)
def test_a_true_series_is_believed(f, taylor, radius):
    by_its_word = np.vectorize(f, otypes=[float])  # no formula that rules could look at
    assert isinstance(Dot(by_its_word, taylor=taylor, radius=radius).validity(), ProvedAsDeclared)
    assert isinstance(Dot(f, taylor=taylor, radius=radius).validity(), Proved | ProvedAsDeclared)


def _arcsine(n):
    if n % 2 == 0:
        return 0.0
    m = n // 2
    return float(Fraction(math.comb(2 * m, m), 4**m * n))


# ── forms ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_form_with_a_tiny_negative_entry_is_refuted():
    answer = Bilinear([[1e10, 0], [0, -1e-7]]).validity()
    assert isinstance(answer, Refuted)
    assert answer.check()


@pytest.mark.parametrize("seed", range(30))
def test_a_form_is_judged_as_its_exact_eigenvalues_say(seed):
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 5))
    B = r.integers(-3, 4, size=(int(r.integers(1, n + 1)), n)).astype(float)
    A = B.T @ B * float(r.choice([1.0, 1e-200, 1e200]))
    A[-1, -1] += float(r.choice([0.0, 1.0, -1.0])) * float(r.choice([1e-12, 1e-3])) * np.abs(A).max()
    entries = tuple(map(tuple, A.tolist()))
    with mpmath.workdps(60):
        values = mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True)
        truly = min(values) >= -mpmath.mpf("1e-40") * max(abs(v) for v in values)
    form = judge_form(entries)
    assert form.semidefinite == truly
    if not truly:
        assert form.direction is not None
        assert exact_form(entries, np.array(form.direction)) < 0


def is_semidefinite(A):
    """By the definition of minors: no principal minor is negative, in fractions."""
    n = len(A)

    def det(index):
        M = [[Fraction(A[i][j]) for j in index] for i in index]
        out = Fraction(1)
        for p in range(len(M)):
            pivot = next((i for i in range(p, len(M)) if M[i][p]), None)
            if pivot is None:
                return Fraction(0)
            if pivot != p:
                M[p], M[pivot] = M[pivot], M[p]
                out = -out
            out *= M[p][p]
            for i in range(p + 1, len(M)):
                factor = M[i][p] / M[p][p]
                M[i] = [a - factor * b for a, b in zip(M[i], M[p], strict=True)]
        return out

    return all(det(c) >= 0 for k in range(1, n + 1) for c in combinations(range(n), k))


@pytest.mark.parametrize("seed", range(80))
def test_rescaled_coordinates_do_not_change_the_verdict_on_a_form(seed):
    """BᵀB with one small change on or off the diagonal, its columns multiplied by powers of two:
    floats see rounding only.
    """
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 5))
    B = r.integers(-3, 4, size=(int(r.integers(1, n)), n)).astype(float)
    A = B.T @ B
    i, j = r.integers(0, n, size=2)
    change = float(r.choice([0.0, 2.0**-20, -(2.0**-20), 2.0**-40]))
    A[i, j] += change
    A[j, i] = A[i, j]
    D = 2.0 ** r.choice([0, -30, -45, 30], size=n)
    entries = tuple(map(tuple, (A * np.outer(D, D)).tolist()))
    form = judge_form(entries)
    assert form.semidefinite == is_semidefinite(A.tolist())
    if form.direction is not None:
        assert exact_form(entries, np.array(form.direction)) < 0


# ── equality ────────────────────────────────────────────────────────────────────────────────────────────────


def mine(value):
    @leaf
    class Mine(DotProduct):
        because = Fact("inner product", "says its author")

        def value(self, t):
            return value(t)

        def slope(self, t):
            return np.ones_like(t)

    return Mine()


def test_two_kernels_with_the_same_name_do_not_cancel():
    a, b = mine(lambda t: t), mine(lambda t: 2 * t)
    assert str(a) == str(b)
    assert a != b
    assert (a - b).validity(columns=1).status != "proved"
    assert (a - a).validity(columns=1).status == "proved"


def test_two_functions_with_the_same_name_do_not_cancel():
    a, b = (Custom(lambda x, z, c=c: c * float(x[0] * z[0])) for c in (1.0, 2.0))
    assert str(a) == str(b)
    assert not isinstance((a - b).validity(columns=1), Proved)
    assert isinstance((a - a).validity(columns=1), Proved)


def test_what_a_class_says_of_itself_is_its_authors_word():
    @leaf
    class Own(Radial):
        because = Fact("Schoenberg's theorem", "a mixture of Gaussians")

        def value(self, s):
            return np.where(s < 0, 1.0, 1 / (1 + s))

    answer = (Own(1.0) + RBF(1.0)).validity()
    assert isinstance(answer, ProvedAsDeclared)
    assert "Own says of itself" in answer.assumptions[0]


# ── rounding ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "k",
    [
        Dot(taylor=[-1.0, -1.0, 0.5]) + AllSubsets(),
        (1e-9 * RBF(1.0)).exp() - 1,
        (1e-12 * Linear()).exp() - 1,
        (1e-7 * Cosine(2.0)).exp() - (1e-7 * Cosine(2.0)) - 1,
        AllSubsets() - 0.25 * Linear(),
        0.5 * Linear().exp() + 0.5 * (-Linear()).exp(),
        Linear().exp() - (-Linear()).exp() - 2.0 * Linear(),
        Dot(np.cosh),
        Dot(np.sinh),
        Constant(-1).exp(),
        (RBF(1.0) - 3.0).exp() ** 0.5,
        Brownian() ** 0.5,
        -(Linear() - Polynomial(2)),
    ],
    ids=str,
)
def test_a_kernel_is_not_refuted_by_rounding_but_proved(k):
    assert isinstance(k.validity(), Proved)
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert referee.lowest_eigenvalue(referee.gram(k, X)) > mpmath.mpf("-1e-35")


def test_a_function_with_noise_in_its_last_digits_is_not_refuted():
    noisy = Custom(lambda x, z: 1.0 - 1e-13 * float(x[0] != z[0] and (x[0] * z[0] * 7) % 2 > 1))
    noisy_rank_one = Custom(lambda x, z: 1.0 + 1e-13 * math.sin(1e3 * float(x[0] * z[0])))
    assert isinstance(noisy.validity(columns=1), Undecided)
    assert isinstance(noisy_rank_one.validity(columns=1), Undecided)


# ── the search ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_search_is_done_once_for_a_kernel():
    calls = []

    def product(x, z):
        calls.append(1)
        return float(x @ z)

    k = Custom(product)
    first = k.validity(columns=2)
    done = len(calls)
    assert isinstance(first, Undecided)
    assert k.validity(columns=2, seconds=1.0) is first
    assert len(calls) == done <= 2 * validity._WORK_PAIR_BY_PAIR


def test_an_answer_that_the_clock_cut_short_says_so_and_is_not_kept():
    k = Custom(lambda x, z: float(x @ z))
    assert "time ran out" in str(k.validity(columns=1, seconds=0.0))
    assert "time ran out" not in str(k.validity(columns=1))


def test_an_interrupt_leaves_the_search():
    def interrupted(x, z):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Custom(interrupted).validity()


@pytest.mark.parametrize("where", ["f", "density", "pairs", "term"])
def test_control_c_leaves_the_search_at_the_call_in_which_it_came(where):
    calls = []

    def press(*args):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    def gauss(delta):
        if where == "f":
            press()
        return np.exp(-0.5 * (delta**2).sum(-1))

    def density(w):
        press()
        return np.exp(-0.5 * w**2) / math.sqrt(2 * math.pi)

    def pairs(x, z):
        press()
        return float(x @ z)

    kernels = {
        "f": Stationary(gauss),
        "density": Stationary(gauss, density=density),
        "pairs": Custom(pairs),
        "term": RBF(1.0) - 0.5 * Custom(pairs),
    }
    with pytest.raises(KeyboardInterrupt):
        kernels[where].validity()
    assert len(calls) == 3


# ── large expressions ───────────────────────────────────────────────────────────────────────────────────────


def many_terms(n):
    return sum((RBF(0.5 + 0.01 * i) for i in range(n)), Linear())


def many_factors(n):
    return math.prod((RBF(5.0 + 0.1 * i) for i in range(n)), start=Linear())


def nested(n):
    k = RBF(1.0)
    for i in range(n):
        k = (0.9 * k + Linear()) if i % 2 else k**2
    return k


@pytest.mark.parametrize(
    "k", [many_terms(300), many_factors(300), nested(60)], ids=["terms", "factors", "nested"]
)
def test_a_large_expression_is_judged_written_and_checked(k, capsys):
    answer = k.validity()
    assert isinstance(answer, Proved)
    parts = list(answer.proof.walk())
    assert len(parts) > 60
    assert len(str(answer).splitlines()) >= 2 * len(parts)
    assert answer.latex().count("\\item") == len(parts)
    assert k.latex()
    assert run_check(str(k), None, 10.0, latex=False, as_json=False) == 0
    assert "∎" in capsys.readouterr().out


def test_a_large_expression_that_is_none_is_refuted():
    answer = (many_terms(60) - Polynomial(2, offset=0.0, scale=3.0)).validity()
    assert isinstance(answer, Refuted)
    assert answer.check()


# ── series of shifted expansions ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(12))
def test_the_coefficients_of_shifted_exponentials_are_those_of_the_taylor_series(seed):
    """Σ b (x·z)^i e^(c x·z + d): the coefficient of (x·z)^n against mpmath's derivatives at 0."""
    r = np.random.default_rng(seed)
    terms = [
        (
            float(r.uniform(-1, 1)),
            int(r.integers(0, 4)),
            float(r.uniform(-2, 2)),
            float(r.choice([0.0, 0.0, -1.0])),
        )
        for _ in range(3)
    ]
    k = sum(b * Linear() ** i * (c * Linear() + d).exp() for b, i, c, d in terms) + 0.5 * ExpDot(1.5)
    expanded = expand(k)

    def f(t):
        total = mpmath.exp(mpmath.mpf(1.5) * t) / 2
        return total + mpmath.fsum(mpmath.mpf(b) * t**i * mpmath.exp(c * t + d) for b, i, c, d in terms)

    with mpmath.workdps(90):
        truth = mpmath.taylor(f, 0, 7)
        for n, expected in enumerate(truth):
            target = frozenset({(Linear(), n)}) if n else ONE
            found = _least_coefficient(expanded, target)
            value = mpmath.mpf(found.numerator) / found.denominator
            assert abs(value - expected) < mpmath.mpf("1e-25") * (1 + abs(expected))
            # never above it, not by a rounding of its own forty digits
            assert value <= expected + mpmath.mpf("1e-60")


def random_exponentials(r):
    """{(rate, shift): weight} with one or two that may pay and some that must be paid for,
    often all but used up.
    """
    payers = {
        (int(r.integers(1, 4)), int(r.choice([0, 0, 1]))): Fraction(int(r.integers(1, 4))) for _ in range(2)
    }
    out = dict(payers)
    for _ in range(int(r.integers(1, 5))):
        key = (int(r.integers(-3, 4)) or 1, int(r.choice([0, 0, -1])))
        if key not in payers:
            out[key] = Fraction(int(r.integers(-8, 3)), 4)
    return {key: b for key, b in out.items() if b}


@pytest.mark.parametrize("part", range(4))
def test_exponentials_that_are_proved_have_no_negative_coefficient(part):
    """Σ b e^(c x·z + d): a debt is paid once, by what is left of an exponential that grows as fast."""
    seen = {True: 0, False: 0}
    for index in range(60):
        terms = random_exponentials(np.random.default_rng([part, index]))
        k = sum(
            (float(b) * (float(c) * Linear() + float(d)).exp() for (c, d), b in terms.items()),
            start=Constant(0.0),
        )
        with mpmath.workdps(50):
            total = [
                mpmath.fsum(
                    mpmath.mpf(b.numerator) / b.denominator * mpmath.exp(d) * c**n
                    for (c, d), b in terms.items()
                )
                for n in range(60)
            ]
        proved = proof_by_expansion(k) is not None
        assert not proved or min(total) >= -mpmath.mpf("1e-35"), terms
        seen[proved] += 1
    assert min(seen.values()) > 5


def test_an_exponent_of_two_kernels_is_expanded_in_both():
    a, b = RBF(1.0), Linear()
    terms = expand((2.0 * a + 3.0 * b).exp())
    target = frozenset({(a, 2), (b, 1)})
    assert _least_coefficient(terms, target) == Fraction(2) ** 2 / 2 * 3
    assert set(terms) == {
        Term(ONE, frozenset({(frozenset({(a, 1)}), Fraction(2)), (frozenset({(b, 1)}), Fraction(3))}))
    }


# ── intervals ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(40))
def test_an_interval_holds_the_true_value_and_little_else(seed):
    r = np.random.default_rng(seed)
    x = float(r.choice([-1, 1]) * 10.0 ** r.uniform(-8, 4))
    u = float(np.tanh(x))
    with mpmath.workdps(90):
        cases = [
            (Interval.exact(x).cos(), mpmath.cos(mpmath.mpf(x))),
            (Interval.exact(x / 1e3).exp(), mpmath.exp(mpmath.mpf(x / 1e3))),
            (Interval.exact(abs(x)).sqrt(), mpmath.sqrt(mpmath.mpf(abs(x)))),
            (Interval.exact(abs(x)).log(), mpmath.log(mpmath.mpf(abs(x)))),
            (Interval.exact(u).arccos(), mpmath.acos(mpmath.mpf(u))),
            (Interval.exact(abs(x)).power(0.37), mpmath.mpf(abs(x)) ** mpmath.mpf(0.37)),
            (Interval.exact(x).whole_power(5), mpmath.mpf(x) ** 5),
            (Interval.exact(x) / Interval.exact(3), mpmath.mpf(x) / 3),
            (pi(), +mpmath.pi),
        ]
        for interval, truth in cases:
            low, high = mpmath.mpf(str(interval.low)), mpmath.mpf(str(interval.high))
            assert low <= truth <= high
            assert high - low <= mpmath.mpf("1e-55") * (1 + abs(truth))


def random_interval(r):
    """An interval that may hold 0, and its ends and points between them, all exact in binary."""
    middle = float(r.choice([-1, 1]) * 10.0 ** r.uniform(-30, 3))
    width = float(r.choice([0.0, 0.1, 1.0, 3.0])) * abs(middle)
    low, high = sorted((middle - width, middle + width * float(r.choice([0.5, 1.0]))))
    points = [low, high, *np.clip(r.uniform(low, high, size=3), low, high).tolist()]
    return Interval(Decimal(low), Decimal(high)), points


OF_ONE = {
    "minus": (lambda a: -a, lambda x: -x),
    "square": (Interval.square, lambda x: x * x),
    "third power": (lambda a: a.whole_power(3), lambda x: x**3),
    "fourth power": (lambda a: a.whole_power(4), lambda x: x**4),
    "size": (Interval.absolute, abs),
    "exponential": (lambda a: a.exp(), mpmath.exp),
    "cosine": (lambda a: a.cos(), mpmath.cos),
}
OF_TWO = {
    "sum": (lambda a, b: a + b, lambda x, y: x + y),
    "difference": (lambda a, b: a - b, lambda x, y: x - y),
    "product": (lambda a, b: a * b, lambda x, y: x * y),
    "smaller": (Interval.smaller, min),
}


@pytest.mark.parametrize("seed", range(40))
def test_an_operation_on_intervals_loses_no_point_of_them(seed):
    r = np.random.default_rng(seed)
    (a, xs), (b, ys) = random_interval(r), random_interval(r)
    with mpmath.workdps(150):
        found = [(name, f(a), [g(mpmath.mpf(x)) for x in xs]) for name, (f, g) in OF_ONE.items()]
        for name, (f, g) in OF_TWO.items():
            found.append((name, f(a, b), [g(mpmath.mpf(x), mpmath.mpf(y)) for x in xs for y in ys]))
        for name, interval, values in found:
            low, high = mpmath.mpf(str(interval.low)), mpmath.mpf(str(interval.high))
            assert low <= min(values) and max(values) <= high, name
            near, far = (mpmath.mpf(v) for v in interval.outward())
            assert near <= low and high <= far, name


# ── what an expansion stands on ─────────────────────────────────────────────────────────────────────────────

UNPROVED = [
    Sigmoid(1.0),
    Sigmoid(0.3, offset=-1.0),
    Bilinear([[1.0, 0.0], [0.0, -1.0]]),
    Custom(lambda a, b: -abs(float(a[0]) - float(b[0]))),
]
AROUND = {
    "square": lambda k: (k + 1.0) ** 2 - 1.0,
    "cube": lambda k: (k + 2.0) ** 3 - 8.0,
    "mixed square": lambda k: (k + RBF(1.0)) ** 2 - RBF(1.0) ** 2,
    "product": lambda k: (k + Linear()) * (k + 1.0) - k,
    "times a kernel": lambda k: (k + 1.0) ** 2 * RBF(1.0) - RBF(1.0),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("kernel", UNPROVED, ids=["sigmoid", "low sigmoid", "form", "user's"])
def test_atoms_of_an_expansion_must_be_proved_themselves(kernel, around):
    assert proof_by_expansion(around(kernel)) is None
    assert proof_by_expansion(around(RBF(0.7))) is not None
