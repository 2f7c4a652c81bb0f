"""``/metrics``: what the server did and does, in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from quart import Blueprint, Quart, Response, request

from antiphon.api.service import Service

UNKNOWN = "unknown"
"""The label of every path that is no route."""


def install(app: Quart, service: Service) -> None:
    """Count every answer of ``app``."""
    metrics = service.metrics

    @app.after_request
    async def count(response: Response) -> Response:
        rule = request.url_rule
        listed = response.headers.get("antiphon-ignored-fields")
        metrics.answered(
            UNKNOWN if rule is None else rule.rule,
            response.status_code,
            listed.count(",") + 1 if listed else 0,
        )
        return response


def blueprint(service: Service) -> Blueprint:
    """The route."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    async def metrics() -> Response:
        text = generate_latest(service.metrics.registry)
        return Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)

    return routes
