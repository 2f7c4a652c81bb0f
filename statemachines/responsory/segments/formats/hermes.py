"""Hermes, Qwen 2.5 and 3, and those trained like them: a JSON envelope between two tags.

As the model writes it::

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>
"""

from __future__ import annotations

from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.spec import Spec, with_calls


def hermes_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_calls(spec, "<tool_call>", JsonEnvelope("</tool_call>"))
