"""``/metrics``: what the server did and does, in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from quart import Blueprint, Quart, Response, g, request

from antiphon.api.counters import Metrics

UNKNOWN = "unknown"
"""The label of every path that is no route."""


def install(app: Quart, metrics: Metrics) -> None:
    """Count every answer of ``app``, and the fields that it says had no effect.

    ``g.ignored`` is how many those are: the header does not name them all. ``g.refused`` is the
    code of a refusal that may be tried again.
    """

    @app.after_request
    async def count(response: Response) -> Response:
        if code := g.get("refused"):
            metrics.refused(code)
        rule = request.url_rule
        metrics.answered(
            UNKNOWN if rule is None else rule.rule,
            response.status_code,
            g.get("ignored", 0) if "antiphon-ignored-fields" in response.headers else 0,
        )
        return response


def blueprint(metrics: Metrics) -> Blueprint:
    """The route."""
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    async def show() -> Response:
        text = generate_latest(metrics.registry)
        return Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)

    return routes
