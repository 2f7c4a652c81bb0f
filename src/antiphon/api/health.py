"""What a load balancer and an operator ask: alive, ready, healthy, which version. No key needed."""

from __future__ import annotations

from typing import Literal

from quart import Blueprint, Response

from antiphon import __version__
from antiphon.api.json_response import json_response
from antiphon.api.service import Service

Condition = Literal["ok", "draining", "engine_dead"]


def blueprint(service: Service) -> Blueprint:
    """The routes."""
    routes = Blueprint("health", __name__)

    @routes.get("/live")
    async def live() -> Response:
        return json_response({"status": "ok"})

    @routes.get("/health")
    @routes.get("/ready")
    async def health() -> Response:
        found = condition(service)
        return json_response({"status": found}, 200 if found == "ok" else 503)

    @routes.get("/version")
    async def version() -> Response:
        return json_response({"version": __version__})

    return routes


def condition(service: Service) -> Condition:
    """Why new requests are refused, or ``ok``."""
    if service.fanout.closed:
        return "draining"
    if service.fanout.engine_gone or not all(model.info.healthy for model in service.catalogue):
        return "engine_dead"
    return "ok"
