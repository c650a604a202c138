"""The server of the page: loopback, a token in the path, Host and Origin checked, messages of bounded size.

    GET /TOKEN/            the page; GET /TOKEN/studio.js and studio.css, its two files
    WebSocket /TOKEN/ws    questions and answers (`session`)

A page of another site cannot reach it: it does not know the token, its Origin is refused, and a name of its
own that leads to 127.0.0.1 is refused by the Host. The page itself may load nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect

from mercer.serve.bodies import read_json
from mercer.serve.limits import Refusal
from mercer.studio import limits
from mercer.studio.dropped import Dropped
from mercer.studio.lanes import Lane
from mercer.studio.points import Points
from mercer.studio.readers import Json
from mercer.studio.session import Session, written

STATIC = Path(__file__).parent / "static"
FILES = {"": ("index.html", "text/html"), "studio.js": ("studio.js", "text/javascript")}
FILES["studio.css"] = ("studio.css", "text/css")
LOCAL = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:*; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def new_token() -> str:
    """What the address holds and nobody can guess."""
    return secrets.token_urlsafe(24)


def make_app(token: str, points: Points | None = None, table: Dropped | None = None) -> FastAPI:
    """The application; every page that opens begins with the same data."""
    pool = ThreadPoolExecutor(4, thread_name_prefix="mercer-studio")
    pages: set[WebSocket] = set()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        pool.shutdown(cancel_futures=True)

    app = FastAPI(title="mercer studio", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.middleware("http")
    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if not is_local(request.headers.get("host", "")):
            return Response("This server answers on this machine only.\n", 403, HEADERS)
        response = await go_on(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    @app.get("/{given}/{name:path}")
    async def file(given: str, name: str) -> Response:
        if not same(given, token) or name not in FILES:
            return Response(
                "There is nothing here. Use the whole address that `mercer studio` printed.\n", 404
            )
        place, kind = FILES[name]
        return Response((STATIC / place).read_bytes(), media_type=kind)

    @app.websocket("/{given}/ws")
    async def socket(ws: WebSocket, given: str) -> None:
        allowed = is_local(ws.headers.get("host", "")) and is_own(ws.headers)
        if not allowed or not same(given, token) or len(pages) >= limits.MOST_PAGES:
            await ws.close(1008)
            return
        await ws.accept()
        pages.add(ws)
        try:
            await _talk(ws, Session(points, table), pool)
        finally:
            pages.discard(ws)

    return app


async def _talk(ws: WebSocket, session: Session, pool: ThreadPoolExecutor) -> None:
    """Read until the page is gone. Quick questions and slow ones wait in two lanes."""

    async def send(answer: Json) -> None:
        await ws.send_text(written(answer))

    quick = Lane(session.reply, send, pool)
    slow = Lane(session.reply, send, pool)
    running = [asyncio.create_task(lane.run()) for lane in (quick, slow)]
    try:
        while True:
            message = await _message(ws, send)
            if message is not None:
                await (slow if "look" in message else quick).put(message)
    except (WebSocketDisconnect, RuntimeError):
        # the page was closed, perhaps while an answer was on its way
        return
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _message(ws: WebSocket, send: Callable[[Json], Awaitable[None]]) -> Json | None:
    """The next message, or None after a refusal of it."""
    received = await ws.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    data = (received.get("text") or "").encode("utf-8", "replace")
    try:
        if len(data) > limits.MOST_BYTES:
            raise Refusal(413, f"the message has more than {limits.MOST_BYTES} bytes.")
        message = read_json(data)
        if "move" in message and not isinstance(message["move"], list):
            raise Refusal(422, "a move is a list of a row and a place.")
        return message
    except Refusal as error:
        await send({"seq": None, "problem": {"where": "message", "sentence": error.sentence}})
        return None


def same(given: str, token: str) -> bool:
    """Whether the token is the right one, in a time that says nothing of it."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), token.encode())


def is_local(host: str) -> bool:
    """Whether a Host header names this machine.

    >>> is_local("127.0.0.1:8000"), is_local("localhost"), is_local("[::1]:80"), is_local("evil.example:8000")
    (True, True, True, False)
    """
    try:
        return urlsplit(f"//{host}").hostname in LOCAL
    except ValueError:
        return False


def is_own(headers: Mapping[str, str]) -> bool:
    """Whether a WebSocket was opened by the page of this very server: Origin and Host are the same.

    >>> is_own({"origin": "http://127.0.0.1:80", "host": "127.0.0.1:80"}), is_own({"host": "127.0.0.1:80"})
    (True, False)
    """
    host = headers.get("host", "")
    return bool(host) and headers.get("origin", "") == f"http://{host}"
