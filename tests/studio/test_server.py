"""Who may talk to the studio, and what happens to messages that no page sends."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from mercer.studio import limits
from mercer.studio.app import STATIC, make_app, new_token
from mercer.studio.lanes import Lane
from mercer.studio.session import Session

TOKEN = "right-token"
BASE = "http://127.0.0.1:8765"
OWN = {"origin": BASE, "host": "127.0.0.1:8765"}
SOURCES = Path(__file__).parents[2] / "studio"


@pytest.fixture(scope="module")
def client():
    with TestClient(make_app(TOKEN), base_url=BASE) as found:
        yield found


def test_the_page_and_its_two_files_are_there_and_nothing_else(client):
    assert "mercer-studio" in client.get(f"/{TOKEN}/").text
    assert client.get(f"/{TOKEN}/studio.js").headers["content-type"].startswith("text/javascript")
    assert client.get(f"/{TOKEN}/studio.css").status_code == 200
    for name in ("manifest.json", "../app.py", "..%2fapp.py", "docs", "openapi.json", "ws"):
        assert client.get(f"/{TOKEN}/{name}").status_code == 404


def test_without_the_token_there_is_nothing(client):
    for path in ("/", "/wrong/", "/wrong/studio.js", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "192.168.1.5", ""]
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(client, host):
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


def test_the_page_may_load_nothing_from_elsewhere(client):
    policy = client.get(f"/{TOKEN}/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert client.get(f"/{TOKEN}/").headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/wrong/ws", OWN),
        (f"/{TOKEN}/ws", {**OWN, "origin": "http://evil.example"}),
        (f"/{TOKEN}/ws", {**OWN, "origin": "http://127.0.0.1:9999"}),
        (f"/{TOKEN}/ws", {**OWN, "origin": "null"}),
        (f"/{TOKEN}/ws", {"host": "127.0.0.1:8765"}),
        (f"/{TOKEN}/ws", {"host": "evil.example", "origin": "http://evil.example"}),
    ],
)
def test_a_socket_of_another_page_is_closed(client, path, headers):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(path, headers=headers) as socket:
        socket.receive_text()


def test_questions_are_answered_with_their_number(client):
    with client.websocket_connect(f"/{TOKEN}/ws", headers=OWN) as socket:
        socket.send_text(json.dumps({"seq": 1, "hello": True}))
        hello = json.loads(socket.receive_text())
        assert hello["seq"] == 1 and "moons" in hello["presets"]
        socket.send_text(json.dumps({"seq": 2, "state": {"data": {"preset": "xor"}}}))
        assert json.loads(socket.receive_text())["seq"] == 2
        socket.send_text(json.dumps({"seq": 3, "look": {"data": {"preset": "xor"}}, "want": ["gram"]}))
        assert "matrix" in json.loads(socket.receive_text())["views"]["gram"]


GARBAGE = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[1, 2]",
    "NaN": '{"seq": NaN}',
    "a key twice": '{"seq": 1, "seq": 2}',
    "deep": "[" * 100_000,
    "an unknown entry": '{"seq": 1, "eval": "1"}',
    "a move that is none": '{"seq": 1, "move": 3}',
    "too long": json.dumps({"seq": 1, "take": "x" * limits.MOST_BYTES}),
}


@pytest.mark.parametrize("name", sorted(GARBAGE))
def test_garbage_is_answered_by_a_sentence_and_the_page_goes_on(client, name):
    with client.websocket_connect(f"/{TOKEN}/ws", headers=OWN) as socket:
        socket.send_text(GARBAGE[name])
        answer = json.loads(socket.receive_text())
        assert answer["problem"]["sentence"].strip()
        socket.send_text(json.dumps({"seq": 5, "hello": True}))
        assert json.loads(socket.receive_text())["seq"] == 5


def test_bytes_are_no_message(client):
    with client.websocket_connect(f"/{TOKEN}/ws", headers=OWN) as socket:
        socket.send_bytes(b"\x00\xff")
        assert "problem" in json.loads(socket.receive_text())


def test_tokens_are_long_and_never_the_same():
    found = {new_token() for _ in range(100)}
    assert len(found) == 100 and min(map(len, found)) >= 32


def test_what_a_newer_question_makes_pointless_is_not_computed():
    """While one question is in hand, of ten moves of a row only the last is answered."""
    asked: list[object] = []
    told: list[dict] = []

    def reply(message):
        asked.append(message["seq"])
        return {"seq": message["seq"]}

    async def send(answer):
        told.append(answer)

    async def play():
        with ThreadPoolExecutor(1) as pool:
            lane = Lane(reply, send, pool)
            await lane.put({"seq": 0, "state": {}})
            for seq in range(1, 11):
                await lane.put({"seq": seq, "move": [3, [0.0, float(seq)]]})
            await lane.put({"seq": 11, "move": [4, [0.0, 0.0]]})
            await lane.put({"seq": 12, "take": "python"})
            running = asyncio.create_task(lane.run())
            while len(told) < 13:
                await asyncio.sleep(0.001)
            running.cancel()

    asyncio.run(asyncio.wait_for(play(), 30))
    assert asked == [0, 10, 11, 12]
    assert [answer["seq"] for answer in told if answer.get("stale")] == list(range(1, 10))


def test_too_many_questions_are_sent_away():
    told: list[dict] = []

    async def send(answer):
        told.append(answer)

    async def play():
        with ThreadPoolExecutor(1) as pool:
            lane = Lane(lambda message: {}, send, pool)
            for seq in range(limits.MOST_WAITING + 1):
                await lane.put({"seq": seq, "take": "python"})

    asyncio.run(play())
    assert [answer["seq"] for answer in told] == [limits.MOST_WAITING]
    assert "waiting already" in told[0]["problem"]["sentence"]


# ── the bundle ──────────────────────────────────────────────────────────────────────────────────────────────


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_bundle_was_built_from_these_sources():
    """Where this fails: `make studio`, and commit what it builds."""
    manifest = json.loads((STATIC / "manifest.json").read_text(encoding="utf-8"))
    assert {name: digest(STATIC / name) for name in manifest["built"]} == manifest["built"]
    assert {name: digest(SOURCES / name) for name in manifest["sources"]} == manifest["sources"]
    there = {
        path.relative_to(SOURCES).as_posix()
        for folder in ("src", "public")
        for path in (SOURCES / folder).rglob("*")
        if path.is_file()
    }
    assert there <= set(manifest["sources"])


def test_the_bundle_asks_nobody_for_fonts_or_scripts():
    for name in ("index.html", "studio.css", "studio.js"):
        text = (STATIC / name).read_text(encoding="utf-8")
        known = ("http://www.w3.org/", "https://katex.org/")
        for address in re.findall(r"https?://[\w./-]+", text):
            assert address.startswith(known), address
    assert "eval(" not in (STATIC / "studio.js").read_text(encoding="utf-8")


# ── the widget ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_widget_answers_as_the_page_does_and_gives_back_what_is_drawn():
    import numpy as np

    import mercer

    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    widget = mercer.studio(X, ["a", "a", "b", "b"])
    heard: list[object] = []
    widget.send = lambda content, buffers=None: heard.append(content)
    with pytest.raises(mercer.errors.InputError, match="has not been shown"):
        _ = widget.model
    points = Session(widget.session.given).reply({"hello": True})["points"]
    state = {"data": points, "first": {"kernel": "Polynomial(2)", "settings": {"C": 100.0}}}
    widget._heard(widget, {"seq": 1, "state": state}, [])
    assert heard[0]["seq"] == 1 and heard[0]["problem"] is None
    assert widget.model.predict(X).tolist() == ["a", "a", "b", "b"]
    assert "mercer.SVC" in widget.python and len(widget.points) == 4
    assert "render" in str(widget._esm)
