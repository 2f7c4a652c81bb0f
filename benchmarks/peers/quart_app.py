"""The same application in Quart, for stock Hypercorn and for our own worker."""

from __future__ import annotations

from typing import cast

from benchmarks.peers import Api
from benchmarks.peers.prepared_frames import Ticker
from quart import Quart, Response, request

EVENTS = "text/event-stream"


def quart_app(ticker: Ticker) -> Quart:
    """``POST /<api>`` with the number of ``tokens`` in its JSON body."""
    app = Quart("prepared", static_folder=None)

    @app.get("/health")
    async def health() -> Response:
        return Response('{"status":"ok"}', mimetype="application/json")

    @app.post("/<api>")
    async def stream(api: str) -> Response:
        tokens = int((await request.get_json())["tokens"])
        response = Response(ticker.frames(cast("Api", api), tokens), mimetype=EVENTS)
        response.timeout = None
        return response

    return app
