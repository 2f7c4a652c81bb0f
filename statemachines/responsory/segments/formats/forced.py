"""A JSON list of calls as the whole answer: what a model is held to that has no form of its own.

As the model writes it::

    [{"name": "get_weather", "parameters": {"city": "Oslo"}}, {"name": "ping", "parameters": {}}]

One envelope without the list is read as well.
"""

from __future__ import annotations

from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.json_list import json_list, with_bare_calls
from responsory.segments.formats.section import add_section
from responsory.segments.formats.spec import Spec

ENVELOPE = JsonEnvelope(
    "", names=("name",), arguments=("parameters", "arguments"), lead="", between=""
)
LIST = json_list(ENVELOPE, begun=True)


def forced_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    alone = ENVELOPE.after_bracket()
    return with_bare_calls(add_section(spec, LIST), {"[": LIST, "{": alone}, after="section")
