"""Laws of `mercer draw` and `mercer.plot.kernel`."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from mercer.cli.main import app
from mercer.errors import MercerError, ParameterError
from mercer.plot.prior import Prior, Spectrum, sample_prior
from mercer.plot.space import space_of
from mercer.plot.style import DIVERGING, SEQUENTIAL, colour_scale

runner = CliRunner()
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def draw(*arguments):
    return runner.invoke(app, ["draw", *map(str, arguments), "--dpi", "40"])


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
def test_the_suffix_decides_the_format_and_the_place_is_printed(tmp_path, suffix):
    place = tmp_path / f"k.{suffix}"
    result = draw("RBF(1.0)", "-o", place)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{place}\n", "")
    assert place.read_bytes().startswith(STARTS[suffix.lower()])
    assert [p.name for p in tmp_path.iterdir()] == [place.name]


@pytest.mark.parametrize(
    "text",
    [
        "Linear()",
        "Polynomial(2)",
        "RBF(2.0)*Periodic(1.0) + 0.1*White(1.0)",
        "White(1.0)",
        "Constant(2.0)",
        "Constant(0.0)",
        "Brownian()",
        "Sigmoid(1.0)",
        "(-Linear())",
        "Matern(1.0, nu=0.5)",
        "RBF([1.0, 0.3])",
        "RBF([1.0, 0.3]) - 0.5*RBF(1.0)",
        "RBF([1.0, 2.0, 3.0])",
        "RBF(1.0).on('year') * Periodic(1.0).on('day')",
        "Intersection()",
        "Linear()**0.5",
        "1e-200*RBF(1.0)",
    ],
)
def test_every_kind_of_kernel_can_be_drawn(tmp_path, text):
    result = draw(text, "-o", tmp_path / "k.png", "--seconds", "1")
    assert result.exit_code == 0, result.stderr


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    place = tmp_path / "k.png"
    place.write_text("mine")
    kept = draw("RBF(1.0)", "-o", place)
    assert kept.exit_code == 1
    assert "--force" in kept.stderr
    assert place.read_text() == "mine"
    assert draw("RBF(1.0)", "-o", place, "--force").exit_code == 0
    assert place.read_bytes().startswith(STARTS["png"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "k.gif"], ".png, .svg, .pdf"),
        (["-o", "k"], "no suffix"),
        (["-o", "nowhere/k.png"], "no directory"),
        (["-o", "."], "is a directory"),
        (["-o", "k.png", "--range", "3:-3"], "smaller one first"),
        (["-o", "k.png", "--range", "0:nan"], "finite"),
    ],
)
def test_what_cannot_be_done_leaves_with_1_and_the_reason(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    result = draw("RBF(1.0)", *arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_range_that_cannot_be_read_leaves_with_64(tmp_path):
    result = draw("RBF(1.0)", "-o", tmp_path / "k.png", "--range", "3")
    assert result.exit_code == 64
    assert "LOW:HIGH" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.cli.draw.os.access", lambda *_: False)  # root may write anywhere
    monkeypatch.setattr("mercer.plot.kernel", None)
    result = draw("RBF(1.0)", "-o", tmp_path / "k.png")
    assert result.exit_code == 1
    assert f"{tmp_path} may not be written to" in result.stderr


def test_a_write_that_fails_names_the_file_asked_for(tmp_path, monkeypatch):
    def fails(**_):
        raise OSError(28, "No space left on device", "something-else")

    monkeypatch.setattr("mercer.cli.draw.tempfile.mkstemp", fails)
    result = draw("RBF(1.0)", "-o", tmp_path / "k.png")
    assert result.exit_code == 1
    assert f"cannot write {tmp_path / 'k.png'}: No space left on device." in result.stderr


def test_a_parse_error_leaves_with_64_and_a_caret(tmp_path):
    result = draw("RBF(1.0", "-o", tmp_path / "k.png")
    assert result.exit_code == 64
    assert result.stderr.splitlines()[-1].strip() == "^"


def test_values_that_overflow_are_an_error_with_a_remedy(tmp_path):
    result = draw("ExpDot(1.0)", "-o", tmp_path / "k.png", "--range", "-100:100")
    assert result.exit_code == 1
    assert "smaller range" in result.stderr


def test_a_missing_matplotlib_is_told_with_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = draw("RBF(1.0)", "-o", tmp_path / "k.png")
    assert result.exit_code == 1
    assert "mercer[plot]" in result.stderr


def test_json_names_file_and_status(tmp_path):
    place = tmp_path / "k.png"
    found = json.loads(draw("Linear()", "-o", place, "--json").stdout)
    assert found == {
        "schema": "mercer.draw/1",
        "expression": "Linear()",
        "status": "proved",
        "file": str(place),
    }


def test_the_same_seed_gives_the_same_picture_and_another_seed_another(tmp_path):
    pictures = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert draw("RBF(1.0)", "-o", tmp_path / f"{name}.png", "--seed", seed).exit_code == 0
        pictures.append((tmp_path / f"{name}.png").read_bytes())
    assert pictures[0] == pictures[1] != pictures[2]


# ── the numbers behind the picture ──────────────────────────────────────────────────────────────────────────


def test_prior_samples_have_the_covariance_they_claim_even_when_it_is_singular():
    X = np.linspace(-1, 1, 5)[:, None]
    K = mercer.Polynomial(2)(X)
    prior = sample_prior(K, K, 40_000, seed=0)
    assert isinstance(prior, Prior)
    np.testing.assert_allclose(np.cov(prior.functions), K, atol=0.1)


def test_noise_is_kept_apart_from_the_function():
    X = np.linspace(-1, 1, 6)[:, None]
    k = mercer.Linear() + 0.25 * mercer.White(1.0)
    prior = sample_prior(k(X), k(X, X), 3, seed=0)
    np.testing.assert_allclose(prior.noise, 0.5)
    assert np.linalg.matrix_rank(prior.functions, tol=1e-6) == 1


def test_an_indefinite_matrix_gives_its_spectrum_and_no_samples():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    found = sample_prior(K, K, 3, seed=0)
    assert isinstance(found, Spectrum)
    assert found.negative == 1


def test_both_signs_get_a_diverging_scale_centred_at_zero():
    assert colour_scale(-1.0, 3.0) == {"cmap": DIVERGING, "vmin": -3.0, "vmax": 3.0}
    assert colour_scale(0.0, 3.0) == {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": 3.0}


def test_the_range_follows_lengthscales_and_periods():
    assert space_of(mercer.RBF(20.0), None).high == 60.0
    assert space_of(mercer.RBF(20.0) * mercer.Periodic(1.0), None).high == 10.0
    assert space_of(mercer.Intersection(), None).low == 0.0
    assert space_of(mercer.RBF(1.0), (-1, 4)).high == 4.0


def test_the_figure_stays_out_of_pyplot_and_shows_three_panels():
    figure = mercer.plot.kernel("RBF(1.0)", samples=2)
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [t for t in titles if t] == [
        "Profile k(x₀, x)",
        "Gram matrix on 80 points",
        "2 prior samples f ~ GP(0, k)",
    ]
    assert "proved: a kernel" in [t.get_text() for t in figure.axes[0].texts]


def test_a_long_expression_is_wrapped_not_cut_by_the_edge():
    figure = mercer.plot.kernel(" + ".join(["RBF(1.0)*Periodic(1.0)"] * 12))
    assert max(map(len, figure.axes[0].texts[0].get_text().splitlines())) <= 120


def test_what_is_not_a_kernel_shows_eigenvalues_and_the_reason():
    figure = mercer.plot.kernel("Sigmoid(1.0)")
    assert "Eigenvalues: there are no prior samples" in [axes.get_title(loc="left") for axes in figure.axes]
    assert any("No random function" in text.get_text() for axes in figure.axes for text in axes.texts)


def test_a_function_of_the_difference_has_a_space_to_be_drawn_in():
    mine = mercer.Stationary(lambda delta: np.exp(-np.abs(delta).sum(-1)))
    assert space_of(mine, None).columns == 1
    assert space_of(mine.on("dose") + mercer.RBF(1.0).on("age"), None).names == ("dose", "age")


def test_a_bad_number_of_samples_is_refused():
    with pytest.raises(ParameterError):
        mercer.plot.kernel("RBF(1.0)", samples=0)
    with pytest.raises(MercerError):
        mercer.plot.kernel("nonsense")
