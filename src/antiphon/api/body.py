"""The JSON body of the current request: media type, then size (by the host), then syntax."""

from __future__ import annotations

from typing import Any

from quart import request

from antiphon.errors import UnsupportedMedia
from antiphon.requests.json_body import parse_object


async def json_body() -> dict[str, Any]:
    """Raises ``UnsupportedMedia``, ``PayloadTooLarge``, ``RequestTimeout``, ``InvalidRequest``."""
    if request.mimetype != "application/json":
        raise UnsupportedMedia("The content type must be application/json.")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("Encoded request bodies are not supported.")
    return parse_object(await request.get_data(cache=False, as_text=False, parse_form_data=False))
