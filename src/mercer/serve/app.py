"""The routes: `make_app(model)` is an ASGI application for uvicorn or any other server of Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic.json_schema import models_json_schema
from starlette.requests import ClientDisconnect

from mercer.serve.bodies import Bodies, read_json
from mercer.serve.columns import Model
from mercer.serve.limits import Limits, Refusal
from mercer.serve.page import page
from mercer.serve.schema import (
    ExplainAnswer,
    HealthAnswer,
    ModelAnswer,
    PredictAnswer,
    Problem,
    explain_body,
    predict_body,
    row_of,
)
from mercer.serve.served import Answer, Served

PROBLEMS: dict[int | str, dict[str, Any]] = {
    408: {"model": Problem, "description": "the body did not arrive in time"},
    413: {"model": Problem, "description": "the body is too large"},
    415: {"model": Problem, "description": "the body is not JSON, or packed"},
    422: {"model": Problem, "description": "what was sent cannot be answered, with row and column"},
    503: {"model": Problem, "description": "too many requests are in hand"},
}


def make_app(model: Model, limits: Limits | None = None) -> FastAPI:
    """An application that answers for a fitted model.

    >>> import mercer
    >>> from fastapi.testclient import TestClient
    >>> model = mercer.KernelRidge("RBF(1.0)", alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> asked = TestClient(make_app(model)).post("/predict", json={"rows": [[1.0]]})
    >>> asked.json()["predictions"] == model.predict([[1.0]]).tolist()
    True
    """
    limits = limits or Limits()
    served = Served(model)
    desk = Desk(limits)
    app = FastAPI(
        title=f"mercer: {served.name}",
        version=version("mercer"),
        description="Predictions of one fitted model.",
        lifespan=desk.lifespan,
    )
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(Exception, _failed)
    _add_pages(app, served)
    _add_questions(app, served, desk, limits)
    return app


class Desk:
    """Takes bodies in and hands them to a few threads; sends away what is too much."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.in_hand = 0
        self.pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="mercer-serve")

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """The threads end with the server."""
        yield
        self.pool.shutdown(cancel_futures=True)

    async def answer(self, request: Request, respond: Callable[[bytes], Answer]) -> Response:
        """The answer to the body of a request, computed in a thread."""
        if self.in_hand >= self.limits.waiting:
            raise Refusal(503, f"{self.in_hand} requests are in hand already. Try again in a second.")
        self.in_hand += 1
        try:
            data = await self._body(request)
            loop = asyncio.get_running_loop()
            content = await loop.run_in_executor(self.pool, _written, respond, data)
        finally:
            self.in_hand -= 1
        return Response(content, media_type="application/json")

    async def _body(self, request: Request) -> bytes:
        """The body, no longer than allowed and not slower."""
        _check_headers(request)
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.limits.bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._read(request)
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {self.limits.seconds:g} seconds.") from None
        except ClientDisconnect:
            raise Refusal(400, "the connection was closed before the body was there.") from None

    async def _read(self, request: Request) -> bytes:
        parts = bytearray()
        async for part in request.stream():
            parts += part
            if len(parts) > self.limits.bytes:
                raise self._too_large()
        return bytes(parts)

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            f"the body has more than the {self.limits.bytes} bytes that one request may have. Send several "
            "requests, or start the server with --max-bytes.",
        )


def _check_headers(request: Request) -> None:
    kind = request.headers.get("content-type", "nothing")
    if kind.split(";")[0].strip().lower() != "application/json":
        raise Refusal(415, f"the body must be application/json; its Content-Type says {kind!r:.80}.")
    packed = request.headers.get("content-encoding", "identity")
    if packed.strip().lower() != "identity":
        raise Refusal(415, f"the body must not be packed; its Content-Encoding says {packed!r:.80}.")


def _written(respond: Callable[[bytes], Answer], data: bytes) -> bytes:
    return json.dumps(respond(data), allow_nan=False).encode("ascii")


# ── routes ──────────────────────────────────────────────────────────────────────────────────────────────────


def _add_pages(app: FastAPI, served: Served) -> None:
    """What is the same for every request is made once."""
    front = page(served)
    about = served.described()
    health = served.health()

    @app.get("/", include_in_schema=False)
    async def root() -> HTMLResponse:
        return HTMLResponse(front)

    @app.get("/health", summary="That the server is there", response_model=HealthAnswer)
    async def health_of_server() -> JSONResponse:
        return JSONResponse(health)

    @app.get("/model", summary="What the model is", response_model=ModelAnswer)
    async def model_served() -> JSONResponse:
        return JSONResponse(about)


def _add_questions(app: FastAPI, served: Served, desk: Desk, limits: Limits) -> None:
    """POST /predict, and /explain where the model explains; their bodies are in the schema."""
    bodies = Bodies(served.columns, served.width, limits)
    row = row_of(served.columns, served.width, served.gaps, limits)
    to_predict = predict_body(row, limits)
    to_explain = explain_body(row)

    def predicted(data: bytes) -> Answer:
        rows, level = bodies.rows(read_json(data), to_predict)
        return served.predict(rows, level)

    def explained(data: bytes) -> Answer:
        return served.explain(bodies.row(read_json(data), to_explain))

    async def predict(request: Request) -> Response:
        return await desk.answer(request, predicted)

    async def explain(request: Request) -> Response:
        return await desk.answer(request, explained)

    app.post(
        "/predict",
        summary="Predictions for rows of the table",
        response_model=PredictAnswer,
        responses=PROBLEMS,
        openapi_extra=_takes("PredictBody"),
    )(predict)
    models = [to_predict]
    if served.explains:
        app.post(
            "/explain",
            summary="What the prediction for one row rests on",
            response_model=ExplainAnswer,
            responses=PROBLEMS,
            openapi_extra=_takes("ExplainBody"),
        )(explain)
        models.append(to_explain)
    _add_schemas(app, models)


def _takes(name: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {"requestBody": {"required": True, "content": content}}


def _add_schemas(app: FastAPI, models: list[Any]) -> None:
    """The bodies are read by our own reader, so FastAPI is told of their schemas."""
    _, found = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        document["components"]["schemas"].update(found["$defs"])
        return document

    app.openapi = openapi  # type: ignore[method-assign]


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    headers = {"Retry-After": "1"} if error.status == 503 else None
    content = json.dumps(error.as_json()).encode("ascii")
    return _Ascii(content, status_code=error.status, headers=headers)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    sentence = "the server failed to answer; its standard error says where."
    return JSONResponse({"detail": sentence}, status_code=500)


class _Ascii(JSONResponse):
    """JSON that is written already; ASCII can hold any text, half of a surrogate pair too."""

    def render(self, content: bytes) -> bytes:
        return content
