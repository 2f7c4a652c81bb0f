"""The request's settings as every golden response shows them."""

from __future__ import annotations

from responsory.values import JSON

CLOCK = 1764500000
"""Unix seconds at which every golden response was accepted; it completes a second later."""
TAIL = "r1"
"""The end of every public id."""


def echo(**changes: JSON) -> dict[str, JSON]:
    """The end of a Responses snapshot, key order kept: of a request with only model and input,
    but for ``changes``."""
    return {
        "model": "tiny",
        "previous_response_id": None,
        "instructions": None,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "reasoning": None,
        "truncation": "disabled",
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": {},
        "user": None,
        "safety_identifier": None,
        "prompt_cache_key": None,
        "prompt_cache_retention": None,
    } | changes
