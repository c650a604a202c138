"""Laws of `mercer check`: codes, streams, and a JSON whose keys do not change."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mercer.cli import main
from mercer.cli.check import run_check, size_words
from mercer.cli.main import app
from mercer.cli.talk import outliving_sockets
from mercer.kernels import Dot, Kernel, Polynomial, Undecided

runner = CliRunner()


def check(*arguments):
    return runner.invoke(app, ["check", *arguments])


def mercer(*arguments, **environment):
    command = [sys.executable, "-m", "mercer.cli.main", *arguments]
    env = {"PATH": "", "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=env, check=False)


def test_a_proved_kernel_leaves_with_0_and_shows_expression_rule_and_parameters():
    result = check("RBF(2.0)*Periodic(1.0) + 0.1*White(1.0)")
    assert result.exit_code == 0
    for words in (
        "RBF(2.0)*Periodic(1.0) + 0.1*White(1.0)",
        "sum of kernels",
        "∎",
        "k1__k2__period",
        "infinite",
    ):
        assert words in result.stdout


def test_a_refuted_kernel_leaves_with_1_and_shows_a_witness():
    result = check("Sigmoid(1.0)")
    assert result.exit_code == 1
    for words in ("x₁ =", "K =", "q =", "qᵀKq = -", "no feature map"):
        assert words in result.stdout


def test_a_kernel_that_rests_on_a_users_word_leaves_with_3(monkeypatch):
    """No text declares a series, but a leaf of one's own may."""
    declared = Dot(np.vectorize(math.sinh, otypes=[float]), taylor=lambda n: n % 2 / math.factorial(n))
    assert declared.validity().status == "declared"
    monkeypatch.setattr("mercer.cli.check.parse", lambda text: declared)
    result = check("Mine()", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["status"] == "declared"


def test_a_crash_leaves_with_70_and_never_with_the_code_of_an_answer(monkeypatch, capsys):
    def broken(*args, **options):
        raise RuntimeError("out of the blue")

    monkeypatch.setattr(main, "app", broken)
    with outliving_sockets(), pytest.raises(SystemExit) as left:
        main.run()
    assert left.value.code == 70
    assert "out of the blue" in capsys.readouterr().err


def test_an_undecided_kernel_leaves_with_2_and_says_what_was_tried(monkeypatch):
    undecided = lambda self, **_: Undecided(self, ("1000 random points",), math.inf)
    monkeypatch.setattr(Kernel, "validity", undecided)
    result = check("RBF(1.0)", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["search"] == {
        "tried": ["1000 random points"],
        "lowest": None,
        "missing": "",
    }
    assert "1000 random points" in check("RBF(1.0)").stdout


@pytest.mark.parametrize(
    ("text", "column"), [("RBF(2.0) + ", 12), ("RBF(-1.0)", 1), ("Linear() * Foo()", 12)]
)
def test_a_parse_error_leaves_with_64_and_a_caret_under_the_place(text, column):
    result = check(text)
    assert result.exit_code == 64
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[-2] == f"  {text}"
    assert lines[-1] == " " * (column + 1) + "^"


@pytest.mark.parametrize(
    "arguments", [["--nope"], [], ["RBF(1.0)", "--dimension", "0"], ["RBF(1.0)", "extra"]]
)
def test_wrong_options_leave_with_64_not_with_the_code_of_undecided(arguments):
    assert check(*arguments).exit_code == 64


def test_an_expression_that_begins_with_a_minus_comes_after_two_dashes():
    assert check("--", "-Linear()").exit_code == 1


def test_an_unknown_command_leaves_with_64():
    assert runner.invoke(app, ["chekc", "RBF(1.0)"]).exit_code == 64


def test_json_has_the_same_keys_for_every_answer():
    keys = [
        "schema",
        "expression",
        "latex",
        "status",
        "proof",
        "witness",
        "search",
        "parameters",
        "feature_dimension",
    ]
    for text in ("2.0*RBF([1.0, 2.0]).fix('lengthscale')", "Sigmoid(1.0)", "Linear()"):
        assert list(json.loads(check(text, "--json").stdout)) == keys


def test_the_witness_in_json_can_be_checked_by_hand():
    witness = json.loads(check("RBF(1.0) - 2.0*Constant(1.0)", "--json").stdout)["witness"]
    q, K = witness["q"], witness["K"]
    form = sum(a * b * k for a, row in zip(q, K, strict=True) for b, k in zip(q, row, strict=True))
    assert form == pytest.approx(witness["value"])
    assert form < 0
    assert len(witness["points"]) == len(q)


def test_the_proof_in_json_is_the_tree():
    proof = json.loads(check("Linear() + RBF(1.0)", "--json").stdout)["proof"]
    assert proof["rule"] == "sum of kernels"
    assert [p["kernel"] for p in proof["premises"]] == ["Linear()", "RBF(1.0)"]


def test_fixed_and_bounded_parameters_are_told_apart():
    found = json.loads(
        check("2.0*RBF(1.0).bounded(lengthscale=(0.1, 10)).fix('lengthscale')", "--json").stdout
    )
    scale, length = found["parameters"]
    assert (scale["free"], scale["bounds"]) == (True, None)
    assert (length["free"], length["fixed"], length["bounds"]) == (False, True, [0.1, 10.0])


def test_feature_dimensions_are_exact_for_the_columns_asked_for():
    found = json.loads(check("Polynomial(2)", "--dimension", "256", "--json").stdout)
    assert found["feature_dimension"] == [{"columns": 256, "dimension": math.comb(258, 2)}]
    assert json.loads(check("RBF([1.0, 2.0])", "--json").stdout)["feature_dimension"] == [
        {"columns": 2, "dimension": "infinite"}
    ]


def test_a_dimension_too_long_to_write_is_rounded_for_people_and_null_for_programs():
    assert size_words(2**100_000) == "about 9.99e30102"
    assert size_words(1_000_000) == "1 000 000"
    assert (
        json.loads(check("AllSubsets()", "-d", "100000", "--json").stdout)["feature_dimension"][0][
            "dimension"
        ]
        is None
    )


def test_latex_holds_the_formula_and_the_proof():
    text = check("2.0*Linear()", "--latex").stdout
    assert text.startswith("k(x, z) = ")
    assert r"\begin{enumerate}" in text


def test_help_shows_an_example_first():
    commands = typer.main.get_command(app).commands
    names = [[name] for name in commands if name != "test"]
    names += [["test", name] for name in commands["test"].commands]
    for arguments in ([], *names):
        text = runner.invoke(app, [*arguments, "--help"]).stdout
        example = " ".join(["Example: mercer", *arguments])
        assert example in text, arguments
        assert text.index(example) < text.index("Options")
        assert "<int range>" not in text and "<float" not in text, arguments


def test_results_and_talk_keep_to_their_streams_and_pipes_get_no_colour():
    good, bad, broken = (
        mercer("check", "Linear()"),
        mercer("check", "Sigmoid(1.0)"),
        mercer("check", "Linear("),
    )
    assert (good.returncode, bad.returncode, broken.returncode) == (0, 1, 64)
    assert good.stderr == bad.stderr == broken.stdout == ""
    assert "\x1b" not in good.stdout + bad.stdout + broken.stderr
    assert "^" in broken.stderr


def test_a_terminal_that_cannot_show_mathematics_is_no_reason_to_fail():
    assert mercer("check", "Sigmoid(1.0)", PYTHONIOENCODING="ascii").returncode == 1


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_neither_numpy_nor_sklearn(argument):
    code = (
        "import sys, mercer.cli.main as m\n"
        f"sys.argv = ['mercer', '{argument}']\n"
        "try: m.run()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert mercer("--version").stdout == f"mercer {version('mercer')}\n"


@pytest.mark.parametrize(
    "expression", ["Polynomial(1000000)", "Polynomial(1000000) + RBF(1.0)", "(Linear() + 1)**1000000"]
)
def test_a_high_degree_has_an_answer(expression, capsys):
    assert run_check(expression, None, 10.0, latex=False, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "proved"


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_the_closed_form_counts_the_features_of_the_map(offset):
    for degree in (1, 2, 5):
        for d in (1, 2, 4):
            k = Polynomial(degree, offset=offset)
            assert k.feature_dimension(d) == k.features(d).dimension
