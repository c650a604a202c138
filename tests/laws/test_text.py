"""The text of a kernel is the kernel: it can be read back, and what cannot be read says where."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernels_under_test import every_kernel, expressions
from mercer.errors import ParseError
from mercer.kernels import RBF, Constant, Kernel, Linear, Periodic, White, parse

NAMED = [case for case in every_kernel() if case.named]


@pytest.mark.parametrize("case", NAMED, ids=repr)
def test_reading_the_text_gives_the_kernel_back(case):
    assert parse(str(case.kernel)) == case.kernel
    assert hash(parse(str(case.kernel))) == hash(case.kernel)


@given(k=expressions())
def test_reading_the_text_of_any_expression_gives_it_back(k):
    read = parse(str(k))
    assert read == k
    assert str(read) == str(k)
    assert [p.value for p in read.parameters] == [p.value for p in k.parameters]


@given(k=expressions())
def test_spaces_and_brackets_around_an_expression_do_not_matter(k):
    assert parse(f"  ( {k} )\n") == k


@pytest.mark.parametrize("case", [c for c in every_kernel() if not c.named], ids=repr)
def test_a_kernel_with_a_function_inside_prints_but_is_not_read(case):
    with pytest.raises(ParseError, match="build this kernel in Python"):
        parse(str(case.kernel))


A, B, C = RBF(1.0), Linear(), Periodic(2.0)


@pytest.mark.parametrize(
    "text, kernel",
    [
        ("RBF(1) + Linear() * Periodic(2)", A + B * C),
        ("(RBF(1) + Linear()) * Periodic(2)", (A + B) * C),
        ("RBF(1) * Linear() ** 2", A * B**2),
        ("(RBF(1) * Linear()) ** 2", (A * B) ** 2),
        ("-RBF(1) ** 2", -(A**2)),
        ("(-RBF(1)) ** 2", (-A) ** 2),
        ("2 * RBF(1) ** 2", 2 * A**2),
        ("2 ** 3 * RBF(1)", 8.0 * A),
        ("2 ** 3 ** 2 * RBF(1)", 512.0 * A),
        ("-2 ** 2 * RBF(1)", -4.0 * A),
        ("RBF(1) - Linear() - Periodic(2)", (A - B) - C),
        ("RBF(1) - (Linear() - Periodic(2))", A - (B - C)),
        ("RBF(1) / 4 * Linear()", (A / 4) * B),
        ("1 - RBF(1)", 1 - A),
        ("RBF(1) + 1", A + Constant(1)),
        ("RBF(1).exp() ** 2", A.exp() ** 2),
        ("RBF(1) ** 2 . exp()", None),
        ("2 * RBF(1).exp()", 2 * A.exp()),
        ("(2 * RBF(1)).exp()", (2 * A).exp()),
        ("--RBF(1)", 1.0 * A),
        ("1e3*White(1.5e-2)", 1000.0 * White(0.015)),
        ("RBF(gamma=0.5)", RBF(1.0)),
        ("RBF(lengthscale=[1, 2,])", RBF([1, 2])),
        (
            'Linear().on("a \\"quoted\\" name", -1, slice(None, 3))',
            B.on('a "quoted" name', -1, slice(None, 3)),
        ),
        ("Linear().on('single')", B.on("single")),
        ("(2 - 1) * RBF((3 + 1) / 2)", 1.0 * RBF(2.0)),
        (
            "RBF(1).bounded(lengthscale=(0.1, 10)).fix('lengthscale')",
            A.bounded(lengthscale=(0.1, 10)).fix("lengthscale"),
        ),
        ("(3*RBF(1)).fix('scale') * Linear()", (3 * A).fix("scale") * B),
    ],
)
def test_operators_bind_as_in_python(text, kernel):
    if kernel is None:
        with pytest.raises(ParseError):
            parse(text)
    else:
        assert parse(text) == kernel
        assert parse(str(kernel)) == kernel


MALFORMED = [
    # text, column, words
    ("", 1, "expected a kernel"),
    ("   ", 4, "expected a kernel"),
    ("RBF(2.0) + ", 12, "expected a kernel"),
    ("RBF(2.0) +", 11, "expected a kernel"),
    ("RBF(2.0) Linear()", 10, "operator or the end"),
    ("RBF(2.0", 8, "close the bracket of column 4"),
    ("RBF 2.0", 5, "expected '('"),
    ("RBF", 4, "expected '('"),
    ("RBF(2.0))", 9, "operator or the end"),
    ("(RBF(2.0)", 10, "to close the bracket of column 1"),
    ("RBf(2.0)", 1, "did you mean RBF?"),
    ("Foo(2.0)", 1, "known kernels"),
    ("2.0", 1, "Constant(2.0)"),
    ("1 + 2", 1, "a number alone is no kernel"),
    ("RBF(-1)", 1, "lengthscale must be a positive number"),
    ("Linear() * RBF(0)", 12, "positive"),
    ("RBF(1, 2)", 1, "got 2 values"),
    ("RBF(width=2)", 1, "no 'width'"),
    ("Bilinear()", 1, "needs A"),
    ("Linear(3)", 1, "nothing in its brackets"),
    ("RBF(1, lengthscale=2)", 1, "lengthscale twice"),
    ("RBF(gamma=1, gamma=2)", 14, "given twice"),
    ("RBF(gamma=1, 2)", 14, "cannot follow"),
    ('RBF("a")', 1, "not text"),
    ("RBF(gamma='a')", 1, "not text"),
    ("RBF(gamma=-1)", 1, "gamma must be a positive number"),
    ("RBF(Linear())", 1, "not kernels"),
    ("Custom(RBF(1))", 1, "not kernels"),
    ("RBF([1, Linear()])", 1, "not kernels"),
    ("Linear().of(RBF(1))", 10, "needs a function of distances"),
    ("RBF([1, 2]).of(RBF(1))", 13, "takes one lengthscale"),
    ("RBF(1) ** Linear()", 10, "an exponent is a number"),
    ("RBF(1) ** -1", 8, "exponent must be a number >= 0"),
    ("RBF(1) / Linear()", 8, "only a number can divide"),
    ("RBF(1) / 0", 8, "divided by zero"),
    ("1/0 * RBF(1)", 2, "division by zero"),
    ("(-8)**0.5 * RBF(1)", 5, "no real number"),
    ("10**400 * RBF(1)", 3, "too large"),
    ("1e999 * RBF(1)", 1, "too large"),
    ("RBF(1e308 * 10)", 11, "too large"),
    ("RBF(1e308*10 - 1e308*10)", 10, "too large"),
    ("RBF(1).foo()", 8, "expected a method"),
    ("RBF(1).__class__", 8, "expected a method"),
    ("RBF(1).exp", 11, "expected '('"),
    ("RBF(1).exp(2)", 8, "exp got 1 values"),
    ("RBF(1).fix()", 8, "name at least one parameter"),
    ("RBF(1).fix('nu')", 8, "no tunable parameter 'nu'"),
    ("RBF(1).fix([1])", 8, "named by text"),
    ("RBF(1).bounded(lengthscale=(2, 3))", 8, "outside its bounds"),
    ("RBF(1).bounded(lengthscale=3)", 8, "(low, high)"),
    ("RBF(1).on()", 8, "at least one column"),
    ("RBF(1).on(1.5)", 8, "a name, a number or a slice"),
    ("RBF(1).on(slice(0, 3, 0))", 8, "slice"),
    ("RBF(1).on(slice(1.5))", 11, "whole numbers"),
    ("RBF(1).polynomial([])", 8, "at least one number"),
    ("(2).exp() * RBF(1)", 5, "a number has no methods"),
    ("RBF(1) @ Linear()", 8, "unexpected '@'"),
    ("RBF(1) + 'a'", 10, "expected a kernel"),
    ('RBF(1).on("a)', 11, "unexpected"),
    ("Custom(<f>)", 8, "build this kernel in Python"),
    ("Dot(taylor='1.5')", 1, "taylor must be a list of numbers"),
    ("Dot(taylor=[1, 'x'])", 1, "taylor[1]"),
    ("Dot()", 1, "give a function"),
    ("SpectralMixture([1], [[]], [[]])", 1, "at least one number"),
    ("RBF([])", 1, "at least one number"),
    ("RBF(())", 6, "expected a kernel"),
    ("RBF([1, 2)", 10, "to close the bracket of column 5"),
    ("RBF(,)", 5, "expected a kernel"),
    ("RBF(True)", 1, "positive number"),
    ("RBF(None)", 1, "positive number"),
    ("None", 1, "expected a kernel"),
    ("import os", 1, "expected a kernel"),
    ("__import__('os')", 1, "expected a kernel"),
]


@pytest.mark.parametrize("text, column, words", MALFORMED)
def test_what_cannot_be_read_says_what_and_where(text, column, words):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert caught.value.column == column
    line, caret = caught.value.pointer.split("\n")
    assert caret.index("^") == 2 + column - 1
    assert line[2:] == text


@pytest.mark.parametrize("thing", [None, 3, b"RBF(1)", RBF(1.0), ["RBF(1)"]])
def test_only_text_is_read(thing):
    with pytest.raises(ParseError, match="is text, not"):
        parse(thing)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "RBF(1)" + ")" * 3000,
        "RBF(" * 3000,
        "RBF([" * 3000,
        "[" * 3000,
        "RBF(" + "(" * 3000 + "1",
        "-" * 3000 + "RBF(1)",
        "2" + "**2" * 3000 + "*RBF(1)",
        "RBF(1)" + ".exp()" * 3000 + ".fix('lengthscale')",
        "(" * 50 + "RBF(1)" + (".exp()" * 50 + ")") * 50 + ".fix('lengthscale')",
        "Custom((" * 40 + "RBF(1)" + "))" * 40,
        "RBF(1).of((" * 40 + "1" + "))" * 40,
        "RBF" * 20000,
        '"' * 20001,
        "\\" * 5000,
        "RBF(" + "9" * 20000 + ")",
    ],
    ids=lambda text: text[:12],
)
def test_deep_and_long_nonsense_is_refused_and_neither_hangs_nor_overflows_the_stack(text):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert 1 <= caught.value.column <= len(text) + 1


def test_long_sums_are_read():
    k = parse(" + ".join(["RBF(1.0)"] * 2000))
    assert len(k.parts) == 2000
    assert parse(str(k)) == k


_PIECES = st.sampled_from(
    [
        *(
            "RBF",
            "Linear",
            "Matern",
            "Custom",
            "Dot",
            "White",
            "slice",
            "True",
            "None",
            "lambda",
            "__import__",
            "eval",
        ),
        *(
            "(",
            ")",
            "[",
            "]",
            ",",
            ".",
            "=",
            "+",
            "-",
            "*",
            "**",
            "/",
            "<",
            ">",
            "@",
            "'",
            '"',
            "\\",
            "\n",
            " ",
            "#",
        ),
        *(
            "1",
            "0",
            "2.5",
            "1e308",
            "1e-308",
            ".5",
            "nu",
            "lengthscale",
            "gamma",
            "taylor",
            "value",
            "A",
            "x",
        ),
        *(
            ".exp()",
            ".fix(",
            ".bounded(",
            ".on(",
            ".of(",
            ".polynomial(",
            ".normalized()",
            "RBF(1.0)",
            "Linear()",
        ),
    ]
)


def read_or_refuse(text):
    try:
        read: object = parse(text)
    except ParseError as error:
        read = error
    if isinstance(read, ParseError):
        assert 1 <= read.column <= len(text) + 1
        assert read.text == text
    else:
        assert isinstance(read, Kernel)


@given(text=st.lists(_PIECES, max_size=25).map("".join))
@example("RBF(1e308*10)")
@example("RBF(gamma='1')")
@example("Dot(taylor='a')")
def test_any_sequence_of_pieces_is_read_or_refused_with_its_place(text):
    read_or_refuse(text)


@given(text=st.text(alphabet=[*map(chr, range(256)), *"λ∞²٣½𝟙\u2028\u200b\ud800"], max_size=40))
def test_any_text_is_read_or_refused_with_its_place(text):
    read_or_refuse(text)


@given(k=expressions(), at=st.integers(0, 10**6), piece=_PIECES, cut=st.integers(0, 3))
def test_any_slip_in_a_true_expression_is_read_or_refused_with_its_place(k, at, piece, cut):
    text = str(k)
    at %= len(text) + 1
    read_or_refuse(text[:at] + piece + text[at + cut :])


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "RBF(__import__('os').getpid())",
        "RBF(1).__init__(2)",
        "RBF(1).set_params(lengthscale=2)",
        "RBF(1).times(eval)",
        "RBF(1).of('os.getpid')",
        "[x for x in (1,)]",
        "(lambda: RBF(1))()",
        "open('/etc/passwd')",
    ],
)
def test_text_is_never_run_as_code(text):
    ran = []

    def watch(event, _):
        if event in {"exec", "compile", "open", "os.system", "subprocess.Popen", "import"}:
            ran.append(event)

    _watch.append(watch)
    try:
        with pytest.raises(ParseError):
            parse(text)
    finally:
        _watch.pop()
    assert ran == []


_watch: list = []
sys.addaudithook(lambda event, args: _watch[-1](event, args) if _watch else None)


@pytest.mark.parametrize("case", every_kernel(), ids=repr)
def test_the_formula_is_latex_with_its_brackets_closed(case):
    latex = case.kernel._repr_latex_()
    assert latex.startswith("$") and latex.endswith("$")
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")
    assert "<" not in latex.replace(r"\left<", "")


def test_an_anonymous_function_prints_without_doubled_brackets():
    assert str(Linear().of(lambda X: X)) == "Linear().of(<lambda>)"


def test_a_factor_set_on_a_factor_is_gathered_as_in_a_product():
    k = (3.0 * Linear()).set_params(kernel=2.0 * RBF(1.0))
    assert k == 6.0 * RBF(1.0)
    assert parse(str(k)) == k
