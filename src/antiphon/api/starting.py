"""The server before its model is there: it says so, instead of letting its clients wait."""

from __future__ import annotations

from quart import Quart, request

from antiphon.api import health
from antiphon.errors import Unavailable


def install(app: Quart) -> None:
    """Answer the probes, and everything else with a refusal that may be retried."""
    app.register_blueprint(health.blueprint(lambda: "starting"))

    @app.before_request
    async def refuse() -> None:
        if request.url_rule is None:
            raise Unavailable("The model is still being loaded.", code="engine_unavailable")
