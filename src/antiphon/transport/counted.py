"""What happened on the connections of one server, as plain numbers.

Who counts adds one to an attribute; what shows them (``antiphon.api.counters``) reads them when it
is asked. Every limit of ``antiphon.transport.limits`` has its number here.
"""

from __future__ import annotations

import attrs


def _number(meaning: str) -> int:
    number: int = attrs.field(default=0, metadata={"meaning": meaning})
    return number


@attrs.define(kw_only=True)
class Counted:
    """All numbers since the start of the server, but for ``connections``."""

    connections: int = _number("Open connections")
    accept_pauses: int = _number("Times that no connection was taken because too many were open")
    access_lines_lost: int = _number("Lines of the access log that could not be written")
    refused_streams: int = _number(
        "HTTP/2 streams refused: above the limit, or while the connection ends"
    )
    resets_too_many: int = _number("Connections ended for the streams that their clients reset")
    control_floods: int = _number("Connections ended for frames that carry nothing")
    continuation_floods: int = _number("Connections ended for a header block without an end")
    protocol_errors: int = _number("Connections ended for what is no valid HTTP")
    wrong_lengths: int = _number("HTTP/2 streams whose body was not as long as it said")
    large_headers: int = _number("Requests refused for their header block")
    slow_headers: int = _number("Header blocks that were not complete in time")
    slow_bodies: int = _number("Request bodies that did not arrive in time")
    unread_bodies: int = _number("Bodies of answered requests of which no more was taken")
    crowded_bodies: int = _number(
        "Request bodies refused since others of their connection held much"
    )
    idle_ends: int = _number("Connections ended because no request came")
    silent_peers: int = _number("Connections ended because their client did not answer any more")
    deaf_peers: int = _number("Connections ended because their client read none of what it asked")
    detached: int = _number("Times that an event stream was too slow for its events")
    stalled_readers: int = _number("Answers ended because their client took no more of them")


GAUGES = frozenset({"connections"})
"""The numbers that go down again."""


def meanings() -> dict[str, str]:
    """Attribute → what it counts."""
    return {field.name: field.metadata["meaning"] for field in attrs.fields(Counted)}
