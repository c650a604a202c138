"""The LaTeX of a kernel means the kernel: read by a small grammar of its own, it has the same values."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import AllSubsets, Bilinear, Constant, Dot, ExpDot, Linear, Polynomial, Sigmoid
from mercer.kernels.latex import binding

L = Linear()
X, Z = 0.7, -1.3  # one column, where all formulas below can be evaluated
FORMS = {r"x^\top z": X * Z, r"x^\top A z": 2 * X * Z}  # of Linear() and Bilinear([[2.0]])


class Reader:
    """sum := product (± product)*;   product := power ((\\cdot | \\, | nothing) power)*;
    power := thing [^{number}].
    """

    def __init__(self, text):
        for form, value in FORMS.items():
            # side by side is a product: what is not in brackets is powered letter by letter,
            # which no value survives
            text = text.replace(form, f"§{value!r}§\\,1.0")
        self.tokens = re.findall(r"§[^§]*§|\\left|\\right|\\[a-zA-Z]+|\\,|\d+\.?\d*|\S", text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        assert wanted in (None, token), (wanted, token, self.tokens)
        self.at += 1
        return token

    def sum(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        total = sign * self.product()
        while self.peek() in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            total += sign * self.product()
        return total

    def product(self):
        out = self.power()
        while self.peek() and self.peek() not in ("+", "-", ")", "}", r"\right"):
            if self.peek() in (r"\cdot", r"\,"):
                self.take()
            out *= self.power()
        return out

    def power(self):
        base = self.thing()
        if self.peek() != "^":
            return base
        self.take("^")
        self.take("{")
        exponent = self.sum()
        self.take("}")
        return base**exponent

    def thing(self):
        token = self.take()
        if token == r"\left":
            self.take("(")
            inside = self.sum()
            self.take(r"\right")
            self.take(")")
            return inside
        if token in "({":
            inside = self.braced() if token == "{" else self.sum()
            self.take(")" if token == "(" else "}")
            return inside
        if token == r"\tfrac":
            self.take("{")
            above = float(self.take())
            self.take("}")
            self.take("{")
            below = float(self.take())
            self.take("}")
            return above / below
        if token in (r"\exp", r"\tanh"):
            return {r"\exp": math.exp, r"\tanh": math.tanh}[token](self.thing())
        if token.startswith("§"):
            return float(token.strip("§"))
        return float(token)

    def braced(self):
        """TeX's braces are invisible: what is inside them must be one thing to the eye
        before it is powered.
        """
        start = self.at
        inside = self.product()
        alone = Reader("")
        alone.tokens, alone.at = self.tokens[start : self.at], 0
        alone.thing()
        assert alone.at == len(alone.tokens), f"a power of several things: {self.tokens[start : self.at]}"
        return inside


def read(text):
    reader = Reader(text)
    out = reader.sum()
    assert reader.peek() == "", reader.tokens[reader.at :]
    return out


NUMBERS = st.sampled_from([-2.0, -1.0, -0.5, 0.25, 1.0, 3.0, 1e-7])
LEAVES = st.one_of(
    st.just(L),
    st.just(Bilinear([[2.0]])),
    st.builds(Constant, NUMBERS),
    st.just(Polynomial(2, offset=0.5)),
    st.just(ExpDot(0.5)),
    st.just(Sigmoid(0.5, offset=-0.25)),
    st.just(Dot(taylor=[1.0, -0.5, 2.0])),
)


def grown(kernels):
    return st.one_of(
        st.tuples(kernels, kernels).map(lambda p: p[0] + p[1]),
        st.tuples(kernels, kernels).map(lambda p: p[0] - p[1]),
        st.tuples(kernels, kernels).map(lambda p: p[0] * p[1]),
        st.tuples(NUMBERS, kernels).map(lambda p: p[0] * p[1]),
        st.tuples(kernels, st.integers(0, 3)).map(lambda p: p[0] ** p[1]),
        st.tuples(kernels, st.lists(NUMBERS, min_size=1, max_size=3)).map(lambda p: p[0].polynomial(p[1])),
        kernels.map(lambda k: (0.01 * k).exp()),
    )


@settings(max_examples=max(200, settings.default.max_examples))
@given(st.recursive(LEAVES, grown, max_leaves=5))
def test_the_formula_read_by_its_own_grammar_is_the_kernel(k):
    try:
        with np.errstate(all="ignore"):
            value = float(k([[X]], [[Z]])[0, 0])
    except ArithmeticError:
        return
    if not 1e-30 < abs(value) < 1e12:
        return
    # numbers are written with six digits
    assert read(k.latex()) == pytest.approx(value, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("k", "formula"),
    [
        (L**2, r"{\left(x^\top z\right)}^{2}"),
        ((L**2) ** 3, r"{\left({\left(x^\top z\right)}^{2}\right)}^{3}"),
        (Constant(-2.0) ** 2, r"{\left(-2\right)}^{2}"),
        (L * Constant(-2.0), r"x^\top z\cdot \left(-2\right)"),
        (AllSubsets() * L, r"\left(\prod_d (1 + x_d z_d)\right)\cdot x^\top z"),
        (AllSubsets() + L, r"\prod_d (1 + x_d z_d) + x^\top z"),
        (L - L.polynomial([1, 2]), r"x^\top z - \left(1 + 2\,x^\top z\right)"),
        ((2 * L) ** 2, r"{\left(2\,x^\top z\right)}^{2}"),
        (
            Dot(taylor=[1.0, 0.0, 2.0]) * L,
            r"\left(1 + 2\,\left(x^\top z\right)^{2}\right)\cdot x^\top z",
        ),
        (ExpDot(1.0) ** 2, r"{\exp\left(1\,x^\top z\right)}^{2}"),
        (2 * Constant(3.0), r"2\cdot 3"),
    ],
    ids=str,
)
def test_brackets_stand_where_they_are_needed(k, formula):
    assert k.latex() == formula


@pytest.mark.parametrize(
    ("formula", "level"),
    [
        (r"a - b", 1),
        (r"\sum_d \min(x_d, z_d)", 1),
        (r"\tfrac{1}{\pi}\lVert x\rVert^{1}\lVert z\rVert^{1} J_{1}(\theta)", 2),
        (r"1\,\delta_{xz}", 2),
        (r"\frac{1}{1 + a}", 3),
        (r"\left(1 + a\right)^{2}", 3),
        (r"\left[a + b\right]_{\mathrm{0, 1}}", 4),
        (r"\overline{a + b}", 4),
        (r"\mathrm{f}(x, z)", 4),
        (r"2.5", 4),
    ],
)
def test_how_tightly_a_formula_binds(formula, level):
    assert binding(formula) == level
