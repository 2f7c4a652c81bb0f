"""One request as bytes, for a client that sends the same one many times."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from benchmarks.peers import Proto
from hpack import Encoder, HeaderTuple, NeverIndexedHeaderTuple

AUTHORITY = "127.0.0.1"


@attrs.frozen
class RequestBytes:
    """A POST. ``head`` is an HTTP/1.1 head, or a header block that changes no dynamic table."""

    head: bytes
    body: bytes


def request_bytes(proto: Proto, path: str, headers: Mapping[str, str], body: bytes) -> RequestBytes:
    """The request in the form that the protocol wants it in."""
    fields = {
        "accept": "text/event-stream",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **headers,
    }
    if proto == "h1":
        lines = [f"POST {path} HTTP/1.1", f"host: {AUTHORITY}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        return RequestBytes("\r\n".join([*lines, "", ""]).encode(), body)
    pseudo = {":method": "POST", ":path": path, ":scheme": "http", ":authority": AUTHORITY}
    block: list[HeaderTuple] = [
        NeverIndexedHeaderTuple(name, value) for name, value in {**pseudo, **fields}.items()
    ]
    return RequestBytes(Encoder().encode(block, huffman=False), body)
