"""`mercer serve`: a model behind HTTP, until Ctrl-C.

The object that --json prints in one line as soon as the server listens, schema "mercer.serve/1":

    model, machine    the file, and what it holds
    url, host, port   where it listens; the port is the one taken, also where 0 was asked for
    max_rows          rows of one request
    max_bytes         bytes of one request
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.codes import FAILED, INTERRUPTED, USAGE
from mercer.cli.talk import complain, outliving_sockets
from mercer.errors import MercerError, ParameterError
from mercer.hosts import is_loopback

if TYPE_CHECKING:
    from fastapi import FastAPI
    from sklearn.base import BaseEstimator

# Seconds for requests in hand to be answered after Ctrl-C.
GRACE = 10


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    model: Path
    host: str
    port: int
    max_rows: int
    max_bytes: str
    as_json: bool = False


def run_serve(asked: Request) -> int:
    """Load, listen, answer until Ctrl-C; return the exit code."""
    from mercer.memory import memory_limit

    try:
        most_bytes = memory_limit(asked.max_bytes)
    except ParameterError:
        complain(f"--max-bytes must be an amount such as 10MB or 64KiB; got {asked.max_bytes!r}.")
        return USAGE
    try:
        model, app = _application(asked, most_bytes)
        listening = listen(asked.host, asked.port)
    except ModuleNotFoundError as error:
        complain(f"serving needs {error.name}, which is not installed: pip install 'mercer[serve]'.")
        return FAILED
    except MercerError as error:
        complain(f"{asked.model}: {error}")
        return FAILED
    except OSError as error:
        complain(str(error))
        return FAILED
    if not is_loopback(asked.host):
        complain(
            f"listening on {asked.host}: everybody who reaches this address can ask the model. There is no "
            "password and no TLS; put a proxy in front that has both."
        )
    complain(f"serving {asked.model} at {url_of(listening)} until Ctrl-C.")
    if asked.as_json:
        host, port = listening.getsockname()[:2]
        facts = {
            "schema": "mercer.serve/1",
            "model": str(asked.model),
            "machine": type(model).__name__,
            "url": url_of(listening),
            "host": host,
            "port": port,
            "max_rows": asked.max_rows,
            "max_bytes": most_bytes,
        }
        # in one line, and at once: who reads it goes on while the server runs
        print(json.dumps(facts), flush=True)
    return answer(app, listening)


def _application(asked: Request, most_bytes: int) -> tuple[BaseEstimator, FastAPI]:
    import uvicorn  # noqa: F401

    from mercer import load
    from mercer.serve.app import make_app
    from mercer.serve.limits import Limits

    model = load(asked.model)
    return model, make_app(model, Limits(rows=asked.max_rows, bytes=most_bytes))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, or a sentence that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"cannot listen on {host} port {port}: {reason}. Try another --port.") from error
    # A socket that says that it is TCP is told by asyncio not to hold small answers back for 40 ms.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listening.detach())


def url_of(listening: socket.socket) -> str:
    """The address of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def answer(app: FastAPI, listening: socket.socket, *, socket_bytes: int = 0) -> int:
    """Answer until a signal comes; requests in hand are finished first.

    WebSockets are opened only if a message of them may have some bytes.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="auto" if socket_bytes else "none",
        ws_max_size=socket_bytes or 1,
        timeout_graceful_shutdown=1 if socket_bytes else GRACE,
    )
    try:
        with outliving_sockets():
            uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        # uvicorn finishes what is in hand, and then hands the signal on
        complain("stopped.")
        return INTERRUPTED
    return 0
