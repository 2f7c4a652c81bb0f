"""What a load balancer and an operator ask: alive, ready, healthy, which version. No key needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from quart import Blueprint, Response

from antiphon import __version__
from antiphon.api.json_response import json_response
from antiphon.api.service import Service

Condition = Literal["ok", "starting", "draining", "engine_dead"]


def blueprint(condition: Callable[[], Condition]) -> Blueprint:
    """The routes; ``condition`` is why new requests are refused, or ``ok``."""
    routes = Blueprint("health", __name__)

    @routes.get("/live")
    async def live() -> Response:
        return json_response({"status": "ok"})

    @routes.get("/health")
    @routes.get("/ready")
    async def health() -> Response:
        found = condition()
        return json_response({"status": found}, 200 if found == "ok" else 503)

    @routes.get("/version")
    async def version() -> Response:
        return json_response({"version": __version__})

    return routes


def condition_of(service: Service) -> Condition:
    """The condition of a service that has been started."""
    if service.fanout.closed:
        return "draining"
    if service.fanout.engine_gone or not all(model.info.healthy for model in service.catalogue):
        return "engine_dead"
    return "ok"
