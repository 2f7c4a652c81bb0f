"""Whether a generation request is taken at all: asked once its key is known, before its body is.

So a refusal costs next to nothing, and an upload that would be in vain is not even begun by
clients that ask first (``Expect: 100-continue``).
"""

from __future__ import annotations

from quart import Quart, request
from quart.wrappers.request import Body

from antiphon.api.service import Service
from antiphon.errors import ShuttingDown
from antiphon.transport.quart_host import refuse_body

GENERATION = frozenset({"/v1/completions", "/v1/chat/completions", "/v1/responses"})
"""Routes whose POST makes an engine work."""


def install(app: Quart, service: Service) -> None:
    """Refuse what there is no room for, and everything that generates while the server ends.

    When it begins to end, those whose body is still on its way are refused without waiting for it:
    a client that is slow would hold the end.
    """
    coming: set[Body] = set()

    @app.before_request
    async def check_room() -> None:
        if asks_to_generate():
            service.fanout.check_room()
            coming.add(request.body)

    @app.teardown_request
    async def forget(_: BaseException | None) -> None:
        coming.discard(request.body)

    def refuse() -> None:
        for body in coming:
            refuse_body(body, ShuttingDown())

    service.fanout.on_closed = refuse


def asks_to_generate() -> bool:
    """Whether the current request makes an engine work."""
    rule = request.url_rule
    return rule is not None and rule.rule in GENERATION and request.method == "POST"
