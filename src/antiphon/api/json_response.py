"""Compact UTF-8 JSON answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quart import Response


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """``body`` in its key order, without spaces, characters as themselves."""
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(
        data.encode(), status, headers=dict(headers or {}), content_type="application/json"
    )
