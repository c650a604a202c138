"""What a page sends is checked: nonsense and excess get a sentence, and never an exception."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InputError
from mercer.studio import limits
from mercer.studio.door import points_of
from mercer.studio.points import Points
from mercer.studio.presets import PRESETS, preset
from mercer.studio.session import Session, written
from mercer.studio.state import State

SQUARE = {
    "kind": "vectors",
    "task": "classes",
    "columns": ["a", "b"],
    "labels": ["no", "yes"],
    "X": [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
    "y": [0, 0, 1, 1],
}


def said(state: object, want: str = "main", **more: object) -> str:
    """What the page is told is wrong."""
    answer = Session().reply({"seq": 7, "state": state, "want": [want], **more})
    assert answer["seq"] == 7
    written(answer)
    problem = answer["problem"]
    if problem is not None:
        return str(problem["sentence"])
    return str(answer["views"][want].get("problem", ""))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_points_come_back_from_json_as_they_were(name):
    points = preset(name)
    again = Points.read(points.as_json())
    assert again.as_json() == points.as_json()
    assert len(again) == len(points) > 0


def test_a_good_state_has_nothing_wrong():
    assert said({"data": SQUARE, "first": {"kernel": "Polynomial(2)", "settings": {"C": 100.0}}}) == ""


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"data": {**SQUARE, "X": [], "y": []}}, "There are no points yet"),
        ({"data": {**SQUARE, "y": [0, 0, 0, 0]}}, "All points are of class no"),
        ({"data": SQUARE, "first": {"kernel": ""}}, "There is no kernel yet"),
        ({"data": SQUARE, "first": {"kernel": "RBF(1.0) + "}}, "expected a kernel"),
        ({"data": SQUARE, "first": {"kernel": "RBF(-1.0)"}}, "lengthscale"),
        ({"data": SQUARE, "first": {"kernel": "__import__('os')"}}, "unknown|expected"),
        ({"data": SQUARE, "first": {"kernel": "x" * 3000}}, "at most 2000"),
        ({"data": SQUARE, "first": {"machine": "os.system"}}, "must be one of SVC"),
        ({"data": SQUARE, "first": {"settings": {"C": -1.0}}}, "C must be between"),
        ({"data": SQUARE, "first": {"settings": {"C": "1"}}}, "C must be a number"),
        ({"data": SQUARE, "first": {"rank": 0}}, "rank"),
        ({"data": {**SQUARE, "X": [[0.0]] * 4}}, "row 1 has 1 numbers"),
        ({"data": {**SQUARE, "X": [[0.0, None]] * 4}}, "row 1 must be a number"),
        ({"data": {**SQUARE, "X": [[0.0, 1e300]] * 4}}, "must be between"),
        ({"data": {**SQUARE, "y": [0, 0, 1, 2]}}, "the class of row 4"),
        ({"data": {**SQUARE, "y": [0]}}, "4 rows and 1 targets"),
        ({"data": {**SQUARE, "X": [[0.0, 0.0]] * 2001, "y": [0] * 2001}}, "at most 2000"),
        ({"data": {**SQUARE, "columns": []}}, "at least one column"),
        ({"data": {**SQUARE, "code": "rm"}}, "unknown entry 'code'"),
        ({"data": {"preset": "../../etc/passwd"}}, "the preset must be one of"),
        ({"data": SQUARE, "view": {"box": [1, 0, 0, 1]}}, "the box must be"),
        ({"data": SQUARE, "view": {"axes": [0, 5]}}, "an axis must be between"),
        ({"data": SQUARE, "view": {"chosen": 4}}, "the chosen row"),
        ({"data": {"kind": "graphs", "X": [{"nodes": 1e9}], "y": [0], "labels": ["a"]}}, "number of nodes"),
        ([], "must be an object"),
        (None, "must be an object"),
    ],
)
def test_a_bad_state_is_answered_by_a_sentence(state, sentence):
    found = said(state)
    assert re.search(sentence, found), found
    assert "\n" not in found and "Traceback" not in found


def test_a_machine_for_two_classes_says_so_where_there_are_more():
    state = {"data": {"preset": "spiral"}, "first": {"machine": "KernelPerceptron", "kernel": "RBF(0.3)"}}
    assert "at most 2 classes" in said(state)


def test_a_singular_gram_matrix_is_told_and_not_hidden():
    data = {**SQUARE, "task": "numbers", "labels": [], "X": [[0.0, 0.0]] * 4, "y": [0.0, 1.0, 2.0, 3.0]}
    first = {"machine": "GaussianProcessRegressor", "kernel": "RBF(1.0)", "settings": {"noise": 1e-8}}
    answer = Session().reply({"state": {"data": data, "first": first}, "want": ["gram"]})
    gram = answer["views"]["gram"]
    assert gram["duplicates"] == 6 and gram["rank"] == 1


def test_points_that_are_the_same_to_the_kernel_have_no_plane():
    data = {"kind": "strings", "labels": ["a", "b"], "columns": [], "X": ["A", "A"], "y": [0, 1]}
    assert "same to this kernel" in said({"data": data, "first": {"kernel": "Spectrum(1)"}})


@settings(max_examples=25, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["seq", "state", "data", "first", "view", "move", "want", "take", "X", "y", "kernel"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_message_whatever_is_an_exception(message):
    session = Session()
    written(session.reply(message))
    written(session.reply({"state": message}))
    written(session.reply({"look": {"data": message}, "want": ["kernel"]}))


# ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_move_gives_the_picture_of_the_state_with_the_point_moved():
    state = {"data": SQUARE, "first": {"kernel": "RBF(1.0)"}, "view": {"box": [-1, 2, -1, 2]}}
    session = Session()
    session.reply({"state": state})
    moved = session.reply({"move": [2, [0.25, 1.5]], "want": ["main"]})
    other = {**SQUARE, "X": [[0.0, 0.0], [1.0, 1.0], [0.25, 1.5], [1.0, 0.0]]}
    whole = Session().reply({"state": {**state, "data": other}, "want": ["main"]})
    assert moved["views"]["main"]["field"] == whole["views"]["main"]["field"]


def test_a_move_of_a_curve_moves_the_target_too():
    session = Session()
    session.reply({"state": {"data": {"preset": "sinc"}, "first": {"kernel": "RBF(2.0)"}}})
    session.reply({"move": [4, [1.5, 0.25]]})
    assert session.state.points.X[4].tolist() == [1.5] and session.state.points.y[4] == 0.25


@pytest.mark.parametrize("move", [[0], [99, [0, 0]], [0, [0]], [0, ["a", 0]], ["x", [0, 0]], [1.5, [0, 0]]])
def test_a_move_to_nowhere_is_refused(move):
    session = Session()
    session.reply({"state": {"data": SQUARE}})
    before = session.state
    assert session.reply({"move": move})["problem"]["sentence"]
    assert session.state is before


def test_a_look_leaves_the_state_of_the_page_alone():
    session = Session()
    session.reply({"state": {"data": SQUARE}})
    before = session.state
    session.reply({"look": {"data": {"preset": "xor"}}, "want": ["gram"]})
    assert session.state is before


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────


def dropped(text: str | bytes, name: str = "table.csv") -> dict:
    content = text.encode() if isinstance(text, str) else text
    code = base64.b64encode(content).decode()
    return Session().reply({"table": {"name": name, "base64": code}})


def test_a_table_becomes_points_by_its_columns():
    answer = dropped("size,age,kind\n1,2,oak\n3,4,elm\n5,,oak\n7,8,elm\n")
    points = answer["points"]
    assert points["columns"] == ["size", "age"] and points["labels"] == ["elm", "oak"]
    assert points["X"] == [[1.0, 2.0], [3.0, 4.0], [7.0, 8.0]] and points["y"] == [1, 0, 0]
    assert any("1 rows have a gap" in note for note in points["notes"])


def test_the_roles_of_columns_can_be_changed():
    session = Session()
    code = base64.b64encode(b"a,b,kind\n1,2.5,x\n3,4.25,y\n5,6.5,x\n").decode()
    session.reply({"table": {"name": "t.csv", "base64": code}})
    points = session.reply({"roles": {"target": "b", "inputs": ["a"]}})["points"]
    assert points["task"] == "numbers" and points["columns"] == ["a"] and points["y"] == [2.5, 4.25, 6.5]
    assert "no column" in session.reply({"roles": {"target": "zzz", "inputs": []}})["problem"]["sentence"]


def test_a_long_table_is_drawn_from_and_says_so():
    rows = "\n".join(f"{i},{i % 7},{i % 2}" for i in range(3000))
    points = dropped(f"a,b,c\n{rows}\n")["points"]
    assert len(points["X"]) == limits.MOST_ROWS
    assert any("2000 of 3000 rows" in note for note in points["notes"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty"),
        ("a,b\n", "."),
        ("name\noak\nelm\n", "no column of numbers"),
        (bytes(range(256)) * 4, "."),
        ("a,b\n" + "1,2\n" * 1_300_000, "takes at most 5 MB"),
        ("a,b,c\n1,,x\n,2,y\n", "No row has a value"),
    ],
)
def test_a_bad_table_is_answered_by_a_sentence_that_names_the_file(text, sentence):
    found = dropped(text)["problem"]["sentence"]
    assert re.search(sentence, found), found
    assert "/tmp" not in found


def test_a_table_that_did_not_arrive_whole_is_refused():
    answer = Session().reply({"table": {"name": "t.csv", "base64": "!!!"}})
    assert "did not arrive whole" in answer["problem"]["sentence"]


# ── notebooks ───────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_of_a_notebook_become_points():
    numbers = points_of(np.linspace(0, 1, 30), np.linspace(0, 2, 30))
    assert numbers.task == "numbers" and numbers.columns == ("x1",)
    words = points_of(["AB", "BA", "AA"], ["x", "y", "x"])
    assert words.kind == "strings" and words.y.tolist() == [0, 1, 0]
    State.read({"data": numbers.as_json()})


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.zeros((2001, 2)), None, "at most 2000"),
        ([[0.0], [1.0]], [1], "one target for each row"),
        ([[np.nan]], None, "NaN"),
        ([["a"], ["b"]], None, "rows of numbers"),
        (np.zeros((40, 2)), [str(i // 2) for i in range(40)], "20 classes"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(X, y, sentence):
    with pytest.raises(InputError, match=sentence):
        points_of(X, y)
