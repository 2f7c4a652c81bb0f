"""Requests for tests of the torch engine and its parts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from antiphon.engines.port import EngineRequest


def a_request(key: int, prompt: Sequence[int] = (5, 7, 11), **changes: Any) -> EngineRequest:
    """A request of 8 tokens that only its length ends."""
    settings: dict[str, Any] = {
        "id": f"{key}-0",
        "group": key,
        "model": "tiny",
        "max_tokens": 8,
        "ignore_eos": True,
    }
    return EngineRequest(key=key, prompt=array("I", prompt), **(settings | changes))
