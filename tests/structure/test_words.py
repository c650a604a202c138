"""A kernel in words: the sentences, and every number in them recomputed from the kernel and the data."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels_under_test import every_kernel
from mercer import (
    RBF,
    After,
    Before,
    Brownian,
    Categorical,
    Constant,
    Cosine,
    Date,
    Exponential,
    GaussianProcessRegressor,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Standardized,
    White,
)
from mercer.kernels.algebra import Read, Scaled
from mercer.structure import Axis, Said, Vocabulary, say, say_fit

YEARS = Vocabulary((Axis(unit="years", low=1950.0, high=2010.0),), target_unit="ppm")
TABLE = Vocabulary.of(["age", "weight", "dose"], units={"weight": "kg"}, ends=[(20, 80), (40, 120), (0, 5)])
LINE = Linear().of(Standardized([1980.0], [17.0]))


def the_one(kernel: Kernel, words: Vocabulary = YEARS) -> str:
    (said,) = say(kernel, words)
    return said.text


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(67.0), "a smooth trend over about 67 years"),
        (3.0 * RBF(2.04), "smooth ups and downs over about 2 years"),
        (RBF(1.0), "smooth ups and downs over about 1 year"),
        (RationalQuadratic(1.2, alpha=0.5), "ups and downs over about 1.2 years, of many lengths"),
        (RationalQuadratic(1.2, alpha=50.0), "smooth ups and downs over about 1.2 years"),
        (Exponential(1.5), "rough ups and downs over about 1.5 years"),
        (Matern(30.0, nu=1.5), "a trend over about 30 years"),
        (LINE, "a linear trend"),
        (Linear() ** 2, "a quadratic trend"),
        (Polynomial(5), "a polynomial trend of degree 5"),
        (Constant(2.0), "a constant level"),
        (Brownian(), "a random walk"),
        (4.0 * White(0.25), "noise with a deviation of 1 ppm"),
        (Periodic(1.004), "a yearly pattern"),
        (Periodic(11.07), "a pattern that repeats every 11 years"),
        (Cosine(1 / 12), "a monthly wave"),
        (2.0 * RBF(40.0) * Periodic(1.0), "a yearly pattern that changes shape over about 40 years"),
        (
            Periodic(11.0) * RBF(90.0),
            "a pattern that repeats every 11 years and changes shape over about 90 years",
        ),
        (Periodic(1.0) * LINE, "a yearly pattern whose size grows linearly away from 1980"),
        (
            Periodic(1.0) * Linear().of(Standardized([1940.0], [17.0])),
            "a yearly pattern whose size grows linearly",
        ),
        (
            Periodic(1.0) * Linear().of(Standardized([2011.0], [17.0])),
            "a yearly pattern whose size shrinks linearly",
        ),
        (
            RBF(2.0) * Linear().of(After(1975.2, 1.0)),
            "smooth ups and downs over about 2 years after about 1975",
        ),
        (LINE * Linear().of(Before(1975.2, 1.0)), "a linear trend before about 1975"),
        (
            RBF(30.0) * Linear().of(After(1960.0, 1.0)) * Linear().of(Before(1975.0, 1.0)),
            "a smooth trend over about 30 years between about 1960 and 1975",
        ),
        (Linear().of(After(1975.0, 0.1)), "a step at about 1975"),
        (White(0.1) * Linear().of(After(1975.0, 0.1)), "noise after about 1975"),
        (White(0.1) * LINE, "noise whose deviation grows linearly away from 1980"),
        (RBF(3.0).of(Standardized([1980.0], [17.0])), "a smooth trend over about 51 years"),
        (Periodic(1.0).of(Date("week")), "a weekly pattern"),
        (Periodic(1.0).of(Date("year")), "a yearly pattern"),
        (RBF() * Periodic(1.0), "a yearly pattern that changes shape over a length left to the data"),
    ],
    ids=str,
)
def test_a_term_of_one_axis_is_said_so(kernel, text):
    assert the_one(kernel) == text


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(30.0).on("age"), "a smooth trend in age over about 30"),
        (Linear().on(1), "a linear trend in weight"),
        (
            RBF(30.0).on("age") * Linear().on("weight"),
            "an interaction of age and weight: a smooth trend in age over about 30, "
            "times a linear trend in weight",
        ),
        (
            RBF([30.0, 25.0]).on("age", "weight"),
            "a smooth joint function of age (over about 30) and weight (over about 25 kg)",
        ),
        (
            RBF([1.0, 2.0, 3.0]),
            "a smooth joint function of age (over about 1), weight (over about 2 kg) and dose (over about 3)",
        ),
        (Categorical(1.0).on("dose"), "a level for each dose"),
        (Periodic(24.0).on("hour"), "a pattern in hour that repeats every 24"),
    ],
    ids=str,
)
def test_a_term_of_a_table_is_said_so(kernel, text):
    assert the_one(kernel, TABLE) == text


WIDE = Vocabulary.of([f"x{j}" for j in range(7)], ends=[(0.0, 10.0)] * 7)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Linear(), "a linear function of all 7 columns"),
        (Linear().on(0, 1, 2, 3, 4, 5), "a linear function of x0, x1, x2, x3, x4 and 1 more columns"),
        (Matern(2.0, nu=1.5), "a joint function of all 7 columns"),
        (
            RBF([20.0, 3.0, 80.0, 1.0, 8.0, 900.0, 2.0]),
            "a smooth joint function of 7 columns, most of all of x3 (over about 1), x6 (over about 2) and "
            "x1 (over about 3); 2 of the columns matter next to nothing",
        ),
        (
            RBF([90.0, 90.0, 1.0, 90.0]).on(0, 1, 2, 3),
            "a smooth joint function of 4 columns, most of all of x2 (over about 1); 3 of the columns matter "
            "next to nothing",
        ),
        (
            9.0 * RBF([90.0, 90.0, 1.0, 900.0]).on(0, 1, 2, 3),
            "a smooth joint function of 4 columns, most of all of x2 (over about 1), x0 (over about 90) and "
            "x1 (over about 90); 1 of the columns matters next to nothing",
        ),
        (RBF([90.0] * 7), "a smooth joint function of 7 columns; 7 of the columns matter next to nothing"),
    ],
    ids=str,
)
def test_a_term_of_many_columns_says_which_matter(kernel, text):
    (said,) = say(kernel, WIDE)
    assert said.text == text
    check_numbers(said, WIDE, {})


def test_a_column_that_matters_next_to_nothing_changes_the_kernel_by_two_per_cent():
    axis = Axis(low=-3.0, high=7.0)
    for length, height in [(50.0, 1.0), (49.0, 1.0), (60.0, 1.5), (60.0, 1.0), (300.0, 40.0), (90.0, 0.1)]:
        k = max(height, 1.0) * RBF(length)
        change = k([[-3.0]], [[-3.0]]).item() - k([[-3.0]], [[7.0]]).item()
        assert axis.is_flat(length, height) == (change <= 0.02)


def test_calendar_names_follow_the_unit():
    names = {"months": 12.0, "days": 365.25, "hours": 8766.0, "weeks": 52.18}
    for unit, period in names.items():
        assert the_one(Periodic(period), Vocabulary((Axis(unit=unit),))) == "a yearly pattern"
    assert the_one(Periodic(24.0), Vocabulary((Axis(unit="hours"),))) == "a daily pattern"
    assert the_one(Periodic(168.0), Vocabulary((Axis(unit="hours"),))) == "a weekly pattern"
    assert the_one(Periodic(7.0)) == "a pattern that repeats every 7 years"
    assert the_one(Periodic(12.0), Vocabulary()) == "a pattern that repeats every 12"


def test_places_can_be_spoken_as_dates():
    words = Vocabulary((Axis(unit="days", place=lambda day: f"day {day:.0f} of the war"),))
    assert the_one(Linear().of(After(3.2, 1.0)), words) == "a step at about day 3 of the war"


# ── every number is recomputed ──────────────────────────────────────────────────────────────────────────────


def digits_in(text: str, words: Vocabulary) -> list[str]:
    """The numbers of a text, those in the names of columns left out."""
    for axis in words.axes:
        if axis.name:
            text = text.replace(axis.name, "…")
    text = re.sub(r"column \d+", "…", text)
    return re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)


def candidates(term: Kernel, of: str) -> list[float]:
    """Every value that a term has of this sort, by a walk over its text-level parts."""
    found: list[float] = []
    unit, origin = 1.0, 0.0
    for part in term.walk():
        if isinstance(part, Read) and isinstance(part.reading, Standardized):
            unit, origin = part.reading.deviations[0], part.reading.means[0]
            found += [origin] if of == "place" else []
        if isinstance(part, Read) and isinstance(part.reading, After | Before) and of == "place":
            found.append(part.reading.place)
        if isinstance(part, Polynomial) and of == "degree":
            found.append(part.degree)
        if of in ("lengthscale", "period") and hasattr(part, of):
            value = getattr(part, of)
            for v in value if isinstance(value, tuple) else (value,):
                found += [v, v * unit]
    if of == "place":
        # a line that is read as it stands grows from 0
        found.append(0.0)
    if of == "deviation":
        scale = np.prod([p.scale for p in term.walk() if isinstance(p, Scaled)])
        noises = [p.noise for p in term.walk() if isinstance(p, White)]
        found.append(float(np.sqrt(scale * np.prod(noises))))
    return found


def check_numbers(said: Said, words: Vocabulary, known: dict[str, float]) -> None:
    """The digits of a sentence are its numbers in their order, and each is that of the kernel."""
    shown = [digits for number in said.numbers for digits in digits_in(number.shown, words)]
    assert digits_in(said.text, words) == shown
    for number in said.numbers:
        if number.of in known:
            assert number.value == pytest.approx(known[number.of], rel=1e-6, abs=1e-12)
        elif number.of not in ("columns", "degree"):
            assert any(number.value == pytest.approx(v, rel=1e-9) for v in candidates(said.term, number.of))
        stated = float(digits_in(number.shown, words)[0])
        if number.of == "share":
            assert abs(stated - 100 * number.value) <= 0.5 + 1e-9 or (stated == 1 and number.value < 0.005)
        else:
            assert stated == pytest.approx(number.value, rel=0.05)


@pytest.fixture(scope="module")
def fitted():
    t = np.linspace(1950.0, 2010.0, 150)[:, None]
    k = (
        4.0 * LINE
        + 2.0 * RBF(40.0) * Periodic(1.0)
        + 1.0 * RBF(1.5) * Linear().of(After(1980.0, 1.0))
        + White(0.04)
    )
    y = GaussianProcessRegressor(k, random_state=1).sample_y(t, random_state=3, noise=True).ravel()
    y = 315.0 + 7.0 * y
    model = GaussianProcessRegressor(k, optimizer=None, normalize_y=True).fit(t, y)
    return model, t, y


def test_every_number_of_a_fit_is_recomputed(fitted):
    model, t, y = fitted
    words = YEARS
    told = say_fit(model, t, y, words)
    assert len(told) == 4
    # shares by a slow loop over the formula: mean of a term is k_i(x, X) α
    K = {said.term: said.term for said in told}
    alpha, scale = model.alpha_, model.y_scale_.item()
    latent = [term for term in K if term.noise_variance() is None]
    means = {str(term): scale * term(t, t) @ alpha for term in latent}
    left = y - (model.y_mean_.item() + sum(means.values()))
    whole = sum(np.var(m) for m in means.values()) + np.var(left)
    A = sum(term(t, t) for term in latent) + 0.04 * np.eye(len(t))
    for said in told:
        known = {}
        if said.term in latent:
            C = said.term(t, t)
            variance = np.diag(C - C @ np.linalg.solve(A, C)) * scale**2
            known["band"] = 1.959963984540054 * np.sqrt(np.mean(variance))
            known["share"] = np.var(means[str(said.term)]) / whole
        else:
            known["share"] = np.var(left) / whole
            known["deviation"] = 0.2 * scale
        check_numbers(said, words, known)
    assert sum(said.share for said in told) == pytest.approx(1.0)
    shares = [said.share for said in told[:-1]]
    assert shares == sorted(shares, reverse=True)
    assert told[-1].text.startswith("noise with a deviation of")
    assert told[-1].text.endswith("% of the variance")


# ── any kernel ──────────────────────────────────────────────────────────────────────────────────────────────

_lengths = st.floats(0.01, 500.0)
_leaves = st.one_of(
    st.builds(RBF, _lengths),
    st.builds(RationalQuadratic, _lengths),
    st.builds(Periodic, _lengths),
    st.builds(Cosine, _lengths),
    st.builds(Matern, _lengths),
    st.builds(White, _lengths),
    st.just(Linear()),
    st.just(LINE),
    st.just(Brownian()),
    st.builds(Polynomial, st.integers(1, 6)),
    st.builds(lambda c: Linear().of(After(c, 1.0)), st.floats(1950.0, 2010.0)),
    st.builds(lambda c: Linear().of(Before(c, 1.0)), st.floats(1950.0, 2010.0)),
)
_placed = st.one_of(_leaves, st.builds(lambda k, c: k.on(c), _leaves, st.sampled_from(["age", 1, 2, 7])))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(_placed, min_size=1, max_size=4), min_size=1, max_size=4), st.booleans())
def test_random_kernels_get_sentences_whose_numbers_are_theirs(terms, table):
    words = TABLE if table else YEARS
    total = None
    for factors in terms:
        term = factors[0]
        for factor in factors[1:]:
            term = term * factor
        total = 2.5 * term if total is None else total + 2.5 * term
    told = say(total, words)
    assert len(told) == len(terms)
    for said in told:
        assert said.text and "  " not in said.text
        if "of the form" not in said.text:
            check_numbers(said, words, {})


@pytest.mark.parametrize("case", every_kernel(), ids=repr)
def test_every_kernel_of_the_language_gets_a_sentence(case):
    for said in say(case.kernel, TABLE):
        assert said.text
