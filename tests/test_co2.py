"""The CO₂ study: its data, its numbers, its files, and the reference log marginal likelihood."""

import csv
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mercer import GaussianProcessRegressor, plot
from mercer.applications.co2 import Series, co2_kernel, fit_co2, load_co2, study
from mercer.cli.main import app
from mercer.errors import ParameterError
from mercer.plot.style import PlotError

REFERENCE = Path(__file__).parents[2] / "shared/data/co2/monthly_1958_2003.csv"


@pytest.fixture(scope="module")
def found():
    return study(1985, 10, verbose=0)


def test_the_series_is_the_published_one():
    series = load_co2()
    assert len(series) == 659 and np.all(np.diff(series.time) > 0)
    assert (series.ppm.min(), series.ppm.max()) == (313.2, 399.76)
    assert (len(series.until(2003)), len(series.after(2003))) == (543, 116)


def test_the_study_says_what_its_parts_say(found):
    assert len(found.train) + len(found.later) == len(load_co2().until(1995))
    at_later = found.found.at(found.later.months)
    lower, upper = at_later.interval(0.95)
    inside = (found.later.ppm >= lower) & (found.later.ppm <= upper)
    assert found.coverage == inside.mean()
    assert found.coverage >= 0.85
    assert found.error == pytest.approx(np.sqrt(np.mean((found.later.ppm - at_later.mean) ** 2)))
    assert np.all(np.diff((upper - lower)[::12]) > 0), "the band widens"
    assert [r["year"] for r in found.by_year()] == list(range(1986, 1996))
    first = found.by_year()[0]
    assert first["forecast"] == pytest.approx(found.found.mean[:12].mean())
    assert first["measured"] == pytest.approx(found.later.ppm[:12].mean())
    assert any("yearly pattern" in line for line in found.found.words)
    assert json.loads(json.dumps(found.summary()))["train"]["months"] == len(found.train)


def test_months_are_those_of_the_file():
    months = load_co2().months
    assert (str(months[0]), str(months[-1])) == ("1958-03", "2013-08")
    assert np.all(np.diff(months.astype(int)) >= 1)


def test_ends_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="between 1963 and 2013"):
        study(1950)
    with pytest.raises(ParameterError, match="1 to 100"):
        study(2003, 0)


def test_a_forecast_beyond_the_data_has_no_coverage():
    late = study(2013, 2, max_seconds=1e-3, verbose=0)
    assert late.coverage is None and late.error is None and len(late.later) == 0


def test_the_command_writes_pictures_and_a_page_that_fetches_nothing(tmp_path):
    out = tmp_path / "new" / "out"
    arguments = ["co2", "--output", str(out), "--train-to", "1970", "--years", "5", "--dpi", "40"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "lie in the 95 % band" in result.stdout
    assert sorted(p.name for p in out.iterdir()) == ["co2.html", "co2_forecast.png", "co2_terms.png"]
    assert (out / "co2_forecast.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "co2.html").read_text(encoding="utf-8")
    assert page.count("<svg") == page.count("</svg>") == 2
    assert not re.search(r"<script|<link|<img|@import|src=", page)
    links = set(re.findall(r"(?:href|url)\s*[=(]\s*[\"']?([^\"')\s]+)", page))
    assert all(link.startswith("#") for link in links), links
    assert "NOAA" in page and "{" not in re.sub(r"<style.*?</style>|<svg.*?</svg>", "", page, flags=re.S)
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1 and "--force" in again.stderr
    forced = CliRunner().invoke(app, [*arguments, "--force", "--json"])
    told = json.loads(forced.stdout)
    assert told["schema"] == "mercer.co2/2" and set(told["files"]) == {"forecast", "terms", "report"}


def test_the_output_must_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["co2", "--output", str(tmp_path / "file")])
    assert result.exit_code == 1 and "is a file" in result.stderr


def test_an_output_that_cannot_be_made_is_told_before_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.applications.co2.study", None)
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["co2", "--output", str(tmp_path / "file" / "out")])
    assert result.exit_code == 1
    assert "is a file" in result.stderr
    monkeypatch.setattr("mercer.cli.draw.os.access", lambda *_: False)  # root may write anywhere
    result = CliRunner().invoke(app, ["co2", "--output", str(tmp_path / "a" / "b")])
    assert result.exit_code == 1
    assert f"{tmp_path} may not be written to" in result.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference series is not here")
def test_the_reference_series_reaches_the_reference_likelihood():
    rows = list(csv.DictReader(REFERENCE.read_text().splitlines()))
    time = np.array([int(r["year"]) + (int(r["month"]) - 1) / 12 for r in rows])
    series = Series(time, np.array([float(r["co2_ppm"]) for r in rows]))
    assert len(series) == 545 and series.ppm.mean() == pytest.approx(341.39, abs=0.005)
    at = [66.0**2, 67.0, 2.4**2, 90.0, 1.3, 0.66**2, 1.2, 0.78, 0.18**2, 1.6 / 12, 0.19**2]
    book = GaussianProcessRegressor(co2_kernel().with_theta(np.log(at)), optimizer=None, normalize_y="mean")
    book.fit(series.time[:, None], series.ppm)
    assert book.log_evidence_ == pytest.approx(-108.63, abs=0.01)
    model = fit_co2(series)
    assert model.certificate_.converged
    assert model.log_evidence_ >= -108.54


# ── plot.regression ──


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(30, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=30)
    kernel = "1.0*RBF(1.0).on(0) + 0.1*Linear() + White(0.02)"
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, y), X, y


def test_the_curve_shows_mean_bands_samples_terms_and_what_came_later(curve):
    model, X, y = curve
    later = (X[:4] + 0.01, y[:4])
    figure = plot.regression(
        model, X, y, samples=2, terms=True, later=later, names=("wave", "line"), resolution=50
    )
    main, *panels = figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["wave", "line"]
    # below all panels, where it covers no band
    texts = [t.get_text() for t in panels[-1].get_legend().get_texts()]
    assert texts[:3] == ["95% of new observations", "95% band of the function", "mean"]
    assert texts[-1] == "4 not seen by the model, 100% of them inside"
    grid = np.tile(np.median(X, axis=0), (50, 1))
    mean = next(line for line in main.lines if line.get_label() == "mean")
    grid[:, 0] = mean.get_xdata()
    np.testing.assert_allclose(mean.get_ydata(), model.predict(grid), rtol=1e-12)


def test_a_machine_without_bands_is_drawn_by_its_mean_alone(curve):
    from mercer import SVR

    _, X, y = curve
    figure = plot.regression(SVR("RBF(1.0)").fit(X, y), X, y, column=1)
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["mean", "observations"]


def test_what_cannot_be_drawn_is_refused(curve):
    model, X, y = curve
    with pytest.raises(PlotError, match="one target"):
        plot.regression(model, X, np.column_stack([y, y]))
    with pytest.raises(PlotError, match="column 5"):
        plot.regression(model, X, y, column=5)
    for wrong in ({"level": 1.0}, {"span": (3.0, 1.0)}):
        with pytest.raises(ParameterError):
            plot.regression(model, X, y, **wrong)


def test_a_series_in_other_units_does_not_end_where_all_is_noise():
    """Growing season about a growing trend, hundreds of units high: the kernel's numbers are those of ppm."""
    rng = np.random.default_rng(0)
    t = 1949 + (np.arange(132) + 0.5) / 12
    y = (100 + 30 * (t - 1949)) * (1 + 0.2 * np.sin(2 * np.pi * t)) + 5 * rng.normal(size=132)
    for unit in (1.0, 1000.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit_co2(Series(t[:108], unit * y[:108]))
        ahead = model.predict(t[108:, None])
        assert np.mean((unit * y[108:] - ahead) ** 2) < 0.1 * np.var(unit * y[108:])
