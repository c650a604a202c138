"""`mercer serve` as a process of its own: it starts, answers, warns, and stops on Ctrl-C."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from mercer.cli.main import app
from mercer.cli.serve import listen

runner = CliRunner()
X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.fixture
def model(tmp_path):
    ridge = mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit(X, X[:, 0])
    mercer.save(ridge, tmp_path / "ridge.mercer")
    return ridge


def can_listen():
    try:
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError:
        return False
    return True


def started(path, *options):
    """The process, the port on which it listens, and what it said until then."""
    command = [sys.executable, "-m", "mercer", "serve", str(path), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        found = re.search(r"http://.*:(\d+) until", line)
        if found:
            return process, int(found[1]), "".join(said)
    process.wait()
    raise AssertionError("".join(said))


def asked(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


@pytest.mark.skipif(not can_listen(), reason="no port of this machine can be listened on")
def test_small_answers_are_not_held_back():
    """Without TCP_NODELAY a body waits some 40 ms for the other side to acknowledge the headers."""

    async def nodelay():
        seen = asyncio.get_running_loop().create_future()

        def connected(_, writer):
            own = writer.get_extra_info("socket")
            seen.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(connected, sock=listen("127.0.0.1", 0))
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            found = await seen
            writer.close()
            await writer.wait_closed()
        return found

    assert asyncio.run(nodelay()) != 0


@pytest.mark.skipif(not can_listen(), reason="no port of this machine can be listened on")
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_it_answers_until_ctrl_c_and_leaves_with_130(tmp_path, model):
    process, port, said = started(tmp_path / "ridge.mercer", "--host", "0.0.0.0", "--max-bytes", "2KB")
    try:
        assert "There is no password and no TLS" in " ".join(said.split())
        assert asked(port, "GET", "/health")[1]["status"] == "ok"
        status, told = asked(port, "POST", "/predict", json.dumps({"rows": X[:3].tolist()}))
        assert (status, told["predictions"]) == (200, model.predict(X[:3]).tolist())
        assert asked(port, "POST", "/predict", " " * 2001)[0] == 413
        assert asked(port, "POST", "/predict", b"\xff" * 20)[0] == 422
        # a request that is no HTTP harms nobody, nor does a client that hangs up before the answer
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(b"\x16\x03\x01 what is this\r\n\r\n")
        assert asked(port, "GET", "/health")[0] == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "stopped." in err and "Traceback" not in err


@pytest.mark.skipif(not can_listen(), reason="no port of this machine can be listened on")
def test_a_port_that_is_taken_is_a_sentence(tmp_path, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = runner.invoke(app, ["serve", str(tmp_path / "ridge.mercer"), "--port", str(port)])
    assert result.exit_code == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.mercer"], 1, "nowhere.mercer"),
        (["words.txt"], 1, "words.txt: This is no model file"),
        (["ridge.mercer", "--max-bytes", "much"], 64, "--max-bytes must be an amount such as 10MB"),
        (["ridge.mercer", "--max-rows", "0"], 64, "max-rows"),
        (["ridge.mercer", "--port", "70000"], 64, "port"),
        ([], 64, "Missing argument"),
    ],
)
def test_what_cannot_be_served_gets_a_sentence_and_a_code(
    tmp_path, model, monkeypatch, arguments, code, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("this is no model")
    result = runner.invoke(app, ["serve", *arguments])
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_help_does_not_wait_for_the_server_to_be_imported():
    script = (
        "import sys, mercer.cli.main; print([m for m in ('fastapi', 'uvicorn', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
