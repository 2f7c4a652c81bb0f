"""``/health``: whether the server can answer; needs no key."""

from __future__ import annotations

from quart import Blueprint, Response

from antiphon.api.json_response import json_response
from antiphon.api.service import Service


def blueprint(service: Service) -> Blueprint:
    """The route."""
    routes = Blueprint("health", __name__)

    @routes.get("/health")
    async def health() -> Response:
        if service.fanout.closed:
            return json_response({"status": "draining"}, 503)
        healthy = all(model.info.healthy for model in service.catalogue)
        if service.fanout.engine_gone or not healthy:
            return json_response({"status": "engine_dead"}, 503)
        return json_response({"status": "ok"})

    return routes
