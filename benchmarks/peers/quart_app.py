"""The same application in Quart, for stock Hypercorn and for our own worker."""

from __future__ import annotations

from typing import cast

from benchmarks.peers import Api
from benchmarks.peers.prepared_frames import PreparedStream, Ticker
from quart import Quart, Response, request

from antiphon.transport.quart_host import AntiphonHTTPConnection, EventStreamResponse

EVENTS = "text/event-stream"


def quart_app(ticker: Ticker, *, sinks: bool) -> Quart:
    """``POST /<api>`` with the number of ``tokens`` in its JSON body.

    ``sinks``: event streams are attached to the frame sinks of our worker, as those of our own
    server are; else they are Quart's own.
    """
    app = Quart("prepared", static_folder=None)
    if sinks:
        app.asgi_http_class = AntiphonHTTPConnection

    @app.get("/health")
    async def health() -> Response:
        return Response('{"status":"ok"}', mimetype="application/json")

    @app.post("/<api>")
    async def stream(api: str) -> Response:
        tokens = int((await request.get_json())["tokens"])
        frames = PreparedStream(ticker, cast("Api", api), tokens)
        if sinks:
            return EventStreamResponse(frames)
        response = Response(frames, mimetype=EVENTS)
        response.timeout = None
        return response

    return app
