"""A plain FastAPI application that streams prepared frames, as the large Python servers host."""

from __future__ import annotations

from benchmarks.peers import Api
from benchmarks.peers.prepared_frames import PreparedStream, Ticker
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.responses import Response

EVENTS = "text/event-stream"


def fastapi_app(ticker: Ticker) -> FastAPI:
    """``POST /{api}`` with the number of ``tokens`` in its JSON body."""
    app = FastAPI()

    @app.get("/health")
    async def health() -> Response:
        return JSONResponse({"status": "ok"})

    @app.post("/{api}")
    async def stream(api: Api, request: Request) -> Response:
        tokens = int((await request.json())["tokens"])
        return StreamingResponse(PreparedStream(ticker, api, tokens), media_type=EVENTS)

    return app
