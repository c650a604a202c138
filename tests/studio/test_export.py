"""What is taken away from the studio gives the same numbers as what was seen there."""

from __future__ import annotations

import base64
import contextlib
import io
import shlex

import numpy as np
import pytest

import mercer
from mercer.studio import export
from mercer.studio.fitted import Fitted
from mercer.studio.presets import PRESETS
from mercer.studio.session import Session
from mercer.studio.state import State


def fitted_on(preset: str, **first: object) -> Fitted:
    offered = PRESETS[preset]
    usual = {"machine": offered.machine, "kernel": offered.kernel, "settings": dict(offered.settings)}
    state = State.read({"data": {"preset": preset}, "first": {**usual, **first}})
    return Fitted.of(state.points, state.first)


def run(program: str) -> dict[str, object]:
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "copied", "exec"), names)
    return names


CASES = [
    ("moons", {}),
    ("moons", {"approximation": "Nystroem", "rank": 15}),
    ("moons", {"machine": "GaussianProcessClassifier", "settings": {}}),
    ("moons", {"machine": "OneClassSVM", "settings": {"nu": 0.3}}),
    ("spiral", {}),
    ("sinc", {"kernel": "RBF(2.0) + 0.3*Linear()"}),
    ("sinc", {"machine": "SVR", "settings": {"C": 3.0, "epsilon": 0.05}}),
    ("strings", {}),
    ("graphs", {}),
]


@pytest.mark.parametrize(("preset", "first"), CASES, ids=lambda case: str(case)[:40])
def test_copied_python_reproduces_the_values(preset, first):
    fitted = fitted_on(preset, **first)
    names = run(export.python(fitted))
    model = names["model"]
    again = Fitted(fitted.points, fitted.choice, model, (), 0.0)
    points = fitted.points
    new = points.X if points.kind != "vectors" else points.X + 0.05
    expected = fitted.values(new)
    assert np.abs(again.values(new) - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max())


def test_the_model_file_is_the_fitted_machine(tmp_path):
    session = Session()
    session.reply({"state": {"data": {"preset": "moons"}, "first": {"kernel": "RBF(0.6)"}}})
    answer = session.reply({"take": "model"})
    place = tmp_path / answer["name"]
    place.write_bytes(base64.b64decode(answer["base64"]))
    X = PRESETS["moons"].make().X
    expected = fitted_on("moons").model.decision_function(X)
    np.testing.assert_array_equal(mercer.load(place).decision_function(X), expected)


def test_the_data_can_be_read_back_with_every_digit(tmp_path):
    points = PRESETS["moons"].make()
    place = tmp_path / "points.csv"
    place.write_text(export.table(points), encoding="utf-8")
    frame = mercer.read_table(place).frame
    np.testing.assert_array_equal(frame.select(points.columns).to_numpy(), points.X)
    assert [str(v) for v in frame[points.target].to_list()] == points.targets().tolist()


def test_the_command_is_one_that_mercer_fit_understands():
    words = shlex.split(export.command(fitted_on("moons", kernel="RBF(0.6) + Linear()")))
    assert words[:3] == ["mercer", "fit", "points.csv"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options == {"--target": "class", "--task": "classes", "--kernel": "RBF(0.6) + Linear()"}
    assert mercer.parse(options["--kernel"])


def test_the_report_is_one_page_with_certificate_proof_and_picture():
    page = export.report(fitted_on("moons"))
    assert page.lstrip().lower().startswith("<!doctype html>")
    for piece in ("working sets", "is a kernel", "<svg", "model.fit(X, y)"):
        assert piece in page
    assert "<script" not in page


def test_graphs_are_no_table_and_the_sentence_says_what_to_do():
    answer = Session().reply(
        {"take": "data", "state": {"data": {"preset": "graphs"}, "first": {"kernel": "WeisfeilerLehman(2)"}}}
    )
    assert "Copy the Python" in answer["problem"]["sentence"]
