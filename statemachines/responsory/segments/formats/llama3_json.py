"""Llama 3.1 to 3.3: a JSON envelope as the whole answer, or behind a tag.

As the model writes them::

    {"name": "get_weather", "parameters": {"city": "Oslo"}}
    <|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": "ping"}

A bare object is a call only where the answer begins with it, and only if its first key is one that
such an envelope has.
"""

from __future__ import annotations

from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.json_list import with_bare_calls
from responsory.segments.formats.phrase import SPACE, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec

ENVELOPE = JsonEnvelope(
    "", names=("name", "function"), arguments=("parameters", "arguments"), lead="", between=""
)
BARE = JsonEnvelope(
    "",
    names=("name", "function"),
    arguments=("parameters", "arguments"),
    begun=True,
    first=frozenset({"name", "parameters", "arguments", "type", "function", "id"}),
    lead="",
    between="; ",
)
SECTION = Section(
    lead=Phrase(SPACE),
    form=ENVELOPE,
    write=("", "; ", ""),
    again={";": ENVELOPE, ",": ENVELOPE, "{": BARE},
)


def llama3_json_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    tagged = with_section(spec, "<|python_tag|>", SECTION)
    return with_bare_calls(tagged, {"{": BARE}, after="section")
