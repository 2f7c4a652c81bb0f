"""What a load balancer and an operator ask: alive, ready, healthy, which version. No key needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from quart import Blueprint, Response

from antiphon import __version__
from antiphon.api.json_response import json_response
from antiphon.api.service import Service
from antiphon.errors import Overloaded

Condition = Literal["ok", "starting", "draining", "engine_dead", "overloaded"]
PASSING = frozenset({"ok", "overloaded"})
"""What a healthy server may say: a full queue empties by itself, and is no reason to end it."""


def blueprint(condition: Callable[[], Condition]) -> Blueprint:
    """The routes; ``condition`` is why new requests are refused, or ``ok``."""
    routes = Blueprint("health", __name__)

    @routes.get("/live")
    async def live() -> Response:
        return json_response({"status": "ok"})

    @routes.get("/health")
    async def health() -> Response:
        found = condition()
        return _told("ok" if found in PASSING else found)

    @routes.get("/ready")
    async def ready() -> Response:
        return _told(condition())

    @routes.get("/version")
    async def version() -> Response:
        return json_response({"version": __version__})

    return routes


def _told(condition: Condition) -> Response:
    return json_response({"status": condition}, 200 if condition == "ok" else 503)


def condition_of(service: Service) -> Condition:
    """The condition of a service that has been started."""
    if service.fanout.closed:
        return "draining"
    if service.fanout.engine_gone or not all(model.info.healthy for model in service.catalogue):
        return "engine_dead"
    try:
        service.fanout.check_room()
    except Overloaded:
        return "overloaded"
    return "ok"
