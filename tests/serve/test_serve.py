"""Laws of the server: it answers what the model answers, and refuses everything else with a sentence."""

from __future__ import annotations

import json
import threading

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

import mercer
from mercer.errors import InputError
from mercer.machines.shared.kept import READ
from mercer.serve.app import Desk, make_app
from mercer.serve.limits import Limits
from mercer.serve.served import Served
from serve.bad_bodies import BODIES, GOOD
from serve.models import fitted, table

LIMITS = Limits(rows=10_000, bytes=2_000_000)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def price():
    return fitted("price")


@pytest.fixture(scope="module")
def mossy():
    return fitted("mossy")


@pytest.fixture(scope="module")
def client(price):
    return TestClient(make_app(price, LIMITS))


@pytest.fixture(scope="module")
def classes(mossy):
    return TestClient(make_app(mossy, LIMITS))


def rows(count=5):
    """Rows of the table as JSON has them."""
    frame = table().drop(columns=["price", "mossy", "const"]).head(count)
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_and_intervals_are_those_of_the_model(client, price):
    answer = client.post("/predict", json={"rows": rows(), "level": 0.8}).json()
    frame = table().head(5)
    assert answer["predictions"] == price.predict(frame).tolist()
    low, high = price.predict_interval(frame, level=0.8)
    assert answer["intervals"] == np.stack([low, high], axis=1).tolist()
    assert answer["level"] == 0.8


def test_without_a_level_there_are_no_intervals(client, price):
    answer = client.post("/predict", json={"rows": rows(2), "level": None}).json()
    assert answer == {"predictions": price.predict(table().head(2)).tolist()}


def test_classes_and_probabilities_are_those_of_the_model(classes, mossy):
    answer = classes.post("/predict", json={"rows": rows()}).json()
    frame = table().head(5)
    assert answer["classes"] == ["bare", "mossy"]
    assert answer["predictions"] == mossy.predict(frame).tolist()
    assert answer["probabilities"] == mossy.predict_proba(frame).tolist()


def test_columns_come_in_any_order_and_those_not_read_may_come_too(client):
    row = rows(1)[0]
    turned = dict(reversed(row.items()))
    first = client.post("/predict", json={"rows": [row]}).json()
    assert client.post("/predict", json={"rows": [turned]}).json() == first
    assert client.post("/predict", json={"rows": [{**row, "const": ["anything"]}]}).json() == first


def test_what_is_missing_is_filled_as_the_model_fills_it(client, price):
    row = {"size": None, "kind": None, "when": None, "note": None, "flag": None}
    frame = pd.DataFrame([{**row, "size": np.nan, "flag": np.nan, "const": 3}])
    answer = client.post("/predict", json={"rows": [row]})
    assert answer.status_code == 200
    assert answer.json()["predictions"] == price.predict(frame).tolist()


def test_an_explanation_is_that_of_the_model(client, price):
    answer = client.post("/explain", json={"row": rows(1)[0]}).json()
    found = price.explain(table().head(1))
    assert answer["said"] == found.said
    assert [e["column"] for e in answer["effects"]] == [e.column for e in found.effects]
    assert [e["effect"] for e in answer["effects"]] == [e.effect for e in found.effects]
    assert [a["row"] for a in answer["alike"]] == [a.row + 1 for a in found.alike]


def test_health_and_model_say_what_is_served(client, price):
    health = client.get("/health").json()
    assert health == {"status": "ok", "model": "TableRegressor", "version": mercer.__version__}
    about = client.get("/model").json()
    assert (about["task"], about["target"]) == ("numbers", "price")
    assert about["kernel"] == str(price.kernel_) and about["steps"] == price.steps_
    assert about["estimate"]["measures"] == price.estimate_.measures
    columns = {column["name"]: column for column in about["columns"]}
    assert columns["size"]["types"] == ["number"] and columns["kind"]["types"] == ["string"]
    assert columns["flag"]["types"] == ["number", "boolean"]
    assert columns["kind"]["null"] and not columns["const"]["used"]
    # no text of the training data is shown
    assert columns["note"]["example"] is None


def test_the_page_shows_the_columns_escaped():
    name = "<script>alert('x')</script> & co"
    frame = pd.DataFrame({name: np.linspace(0.5, 3, 12), "b": np.arange(12) % 3 * 1.5})
    model = mercer.fit(frame, np.sin(frame["b"]), kernel='RBF(1.0).on("b")', verbose=0)
    page = TestClient(make_app(model)).get("/").text
    assert "<script>" not in page and "&lt;script&gt;" in page


NAMES = [
    "class",
    "model_x",
    "a b",
    "größe",
    "",
    "rows",
    "schema",
    "__init__",
    "column_0",
    "$ref",
    "x.y",
    "'\"\\",
]


def test_any_name_of_a_column_works():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=30) for name in NAMES})
    model = mercer.fit(frame, frame["a b"] + frame["class"], kernel="RBF(3.0) + Linear()", verbose=0)
    client = TestClient(make_app(model))
    records = frame.head(4).to_dict("records")
    answer = client.post("/predict", json={"rows": records})
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == model.predict(frame.head(4)).tolist()
    shown = client.get("/openapi.json").json()["components"]["schemas"]["Row"]
    assert sorted(shown["properties"]) == sorted(NAMES) == sorted(shown["required"])
    lacking = [{name: 1.0 for name in NAMES if name != "größe"}]
    refused = client.post("/predict", json={"rows": lacking})
    assert (refused.status_code, refused.json()["column"]) == (422, "größe")


def test_the_schema_has_the_columns_and_agrees_with_what_is_answered(client):
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    row = schemas["Row"]
    assert row["required"] == ["size", "kind", "when", "note", "flag"]
    assert row["additionalProperties"] is False
    assert {kind["type"] for kind in row["properties"]["kind"]["anyOf"]} == {"string", "null"}
    assert row["properties"]["size"]["description"].startswith("number: numbers from")
    assert schemas["PredictBody"]["properties"]["rows"]["maxItems"] == LIMITS.rows
    # every reference of the document leads somewhere
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    answer = client.post("/predict", json={"rows": rows(1)}).json()
    assert answer.keys() <= schemas["PredictAnswer"]["properties"].keys()


def _references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


# ── machines without a table ────────────────────────────────────────────────────────────────────────────────

R = np.random.default_rng(1)
X = R.normal(size=(40, 3))
LABELS = np.where(X[:, 0] > 0, "up", "down")


@pytest.mark.parametrize(
    "model",
    [
        mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit(X, X[:, 0]),
        mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit(X, X[:, :2]),
        mercer.SVC("RBF(1.0)").fit(X, LABELS),
        mercer.GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None).fit(X, X[:, 0]),
        mercer.GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None).fit(X, X[:, :2]),
        mercer.GaussianProcessClassifier("RBF(1.0)", optimizer=None).fit(X, LABELS),
        mercer.FalkonRegressor("RBF(1.0)", 10, 0.1).fit(X, X[:, 0]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_machines_of_numbers_take_lists(model):
    client = TestClient(make_app(model))
    answer = client.post("/predict", json={"rows": X[:4].tolist()})
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"] == model.predict(X[:4]).tolist()
    assert client.get("/model").json()["width"] == 3
    for bad in ([[1, 2]], [[1, 2, 3, 4]], [[1, 2, "3"]], [[1, 2, None]], [[1, 2, True]], [{"x1": 1}]):
        refused = client.post("/predict", json={"rows": bad})
        assert refused.status_code == 422 and refused.json()["row"] == 1
    assert client.post("/explain", json={"row": [1, 2, 3]}).status_code == 404


def test_the_bands_of_a_process_are_its_own():
    model = mercer.GaussianProcessRegressor("RBF(1.0) + White(0.1)", optimizer=None).fit(X, X[:, 0])
    answer = TestClient(make_app(model)).post("/predict", json={"rows": X[:4].tolist()}).json()
    mean, std = model.predict(X[:4], return_std=True, noise=True)
    np.testing.assert_allclose(np.diff(answer["intervals"]).ravel(), 2 * 1.959963984540054 * std, rtol=1e-12)
    np.testing.assert_allclose(np.mean(answer["intervals"], axis=1), mean, rtol=1e-9)


def test_a_machine_fitted_to_a_frame_takes_names_and_refuses_gaps():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit(frame, X[:, 0])
    client = TestClient(make_app(model))
    answer = client.post("/predict", json={"rows": frame.head(3).to_dict("records")})
    assert answer.json()["predictions"] == model.predict(frame.head(3)).tolist()
    refused = client.post("/predict", json={"rows": [{"a": 1, "b": None, "c": 2}]})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "row 1, column 'b': a number was needed; got null."


def test_what_cannot_be_served_is_refused_at_the_start():
    words = mercer.KernelRidge("Spectrum(2)", alpha=0.1).fit(["moss", "stone", "moor"], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="fitted to things such as 'moss'"):
        make_app(words)
    with pytest.raises(InputError, match="does not predict"):
        make_app(mercer.KernelPCA("RBF(1.0)", n_components=2).fit(X))


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["/predict", "/explain"])
def test_a_bad_body_is_refused_with_a_sentence(client, path, name):
    body = BODIES[name]
    answer = client.post(path, content=body, headers=JSON)
    assert answer.status_code == 422, answer.text
    told = answer.json()
    assert isinstance(told["detail"], str) and len(told["detail"]) < 700
    assert "Error" not in told["detail"] and "Traceback" not in told["detail"]


def _first_rows():
    """The first rows of those bodies that have any."""
    for name, body in BODIES.items():
        try:
            yield name, json.loads(body)["rows"][0]
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            continue


@pytest.mark.parametrize(
    ("name", "row"), [*_first_rows()], ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_bad_row_is_not_explained_either(classes, name, row):
    content = json.dumps({"row": row}).encode()
    answer = classes.post("/explain", content=content, headers=JSON)
    # of some bodies the first row is good, or it is the level that is bad
    assert answer.status_code == (200 if row == GOOD else 422), answer.text


@pytest.mark.parametrize(
    ("cells", "row", "column", "words"),
    [
        ({"size": "large"}, 2, "size", "a number or null was needed; got 'large'"),
        ({"size": True}, 2, "size", "a number or null was needed; got true"),
        ({"kind": 3}, 2, "kind", "text or null was needed; got 3"),
        ({"when": "yesterday"}, 2, "when", "cannot read 'yesterday': year-month-day"),
        ({"colour": "red"}, 2, "colour", "which the model does not know. Its columns are 'size', 'kind'"),
        ({"flag": 10**400}, 2, "flag", "row 2, column 'flag'"),
    ],
)
def test_the_sentence_names_row_and_column(client, cells, row, column, words):
    answer = client.post("/predict", json={"rows": [GOOD, {**GOOD, **cells}, GOOD]})
    told = answer.json()
    assert (answer.status_code, told["row"], told["column"]) == (422, row, column)
    assert words in told["detail"]


def test_a_row_that_only_the_model_refuses_is_found_among_many(client):
    many = [dict(GOOD) for _ in range(77)]
    many[41]["when"] = "2021-02-30"
    told = client.post("/predict", json={"rows": many}).json()
    assert (told["row"], told["column"]) == (42, "when")
    assert "row 0" not in told["detail"]


def test_a_missing_column_says_whether_null_would_do(client):
    row = {name: value for name, value in GOOD.items() if name != "kind"}
    told = client.post("/predict", json={"rows": [row]}).json()
    assert told["detail"] == "row 1 has no column 'kind', which the model uses. Give null if it is not known."


def test_a_body_too_large_is_refused_before_it_is_read(price):
    small = TestClient(make_app(price, Limits(bytes=1000, rows=3)))
    answer = small.post("/predict", content=b" " * 1001, headers=JSON)
    assert answer.status_code == 413 and "--max-bytes" in answer.json()["detail"]
    streamed = small.post("/predict", content=iter([b" " * 600] * 3), headers=JSON)
    assert streamed.status_code == 413
    four = small.post("/predict", json={"rows": [GOOD] * 4})
    assert four.status_code == 422 and "4 rows are more than the 3" in four.json()["detail"]
    assert small.post("/predict", json={"rows": [GOOD] * 3}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_other_types_of_bodies_are_refused(client, headers):
    answer = client.post("/predict", content=json.dumps({"rows": [GOOD]}).encode(), headers=headers)
    assert answer.status_code == 415 and isinstance(answer.json()["detail"], str)


def test_other_paths_and_methods_are_refused(client):
    assert client.get("/predict").status_code == 405
    assert client.post("/nowhere").status_code == 404
    assert client.delete("/model").status_code == 405


def test_what_is_too_much_at_once_is_sent_away(price):
    """One worker, two in hand: of the others each is answered or asked to come again."""
    app = make_app(price, Limits(workers=1, waiting=2))
    held = threading.Event()
    codes = []
    with TestClient(app) as client:

        def slow():
            yield b'{"rows": '
            held.wait(20)
            yield b"[]}"

        def ask():
            codes.append(client.post("/predict", content=slow(), headers=JSON).status_code)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        held.set()
        for thread in threads:
            thread.join()
    assert codes == [422, 422]
    desk = Desk(Limits(waiting=0))
    assert desk.in_hand == desk.limits.waiting
    full = TestClient(make_app(price, Limits(waiting=0)))
    answer = full.post("/predict", json={"rows": [GOOD]})
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
    assert full.get("/health").status_code == 200


def test_answers_of_many_threads_are_those_of_one(client, price):
    expected = price.predict(table()).tolist()
    found: dict[int, object] = {}

    def ask(k):
        answer = client.post("/predict", json={"rows": rows(N)[k : k + 1]})
        found[k] = answer.json()["predictions"][0]

    N = len(expected)
    threads = [threading.Thread(target=ask, args=(k,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(12)] == pytest.approx(expected[:12], rel=1e-12)


def test_rows_that_are_kept_are_read_once_for_all_requests(price):
    served = Served(price)
    read = vars(price.machine_)[READ].known(price.machine_.X_fit_)
    asked = [[GOOD.get(name) for name in price.feature_names_in_]]
    first = served.predict(asked, 0.9)
    known = [len(rows._remembered) for rows in (read, *read._taken.values())]
    assert sum(known) > 0
    for _ in range(3):
        assert served.predict(asked, 0.9) == first
    assert [len(rows._remembered) for rows in (read, *read._taken.values())] == known
    assert price.predict(pd.DataFrame([GOOD | {"const": 3}])).tolist() == first["predictions"]


def test_answers_have_declared_shapes():
    from mercer.serve import schema

    declared = [
        kind for kind in vars(schema).values() if isinstance(kind, type) and issubclass(kind, BaseModel)
    ]
    assert {kind.__name__ for kind in declared} >= {
        "PredictAnswer",
        "ExplainAnswer",
        "ModelAnswer",
        "Problem",
    }
