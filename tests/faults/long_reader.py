"""Reads one chat stream to its end, as a client with httpx does, and writes its bytes down.

::

    python tests/faults/long_reader.py URL PROTOCOL > BODY

PROTOCOL is ``HTTP/1.1`` or ``HTTP/2``. Anything but an answer that ends well is an error.
"""

from __future__ import annotations

import sys

import httpx

ASKED = {"model": "long", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def read(url: str, protocol: str) -> None:
    http2 = protocol == "HTTP/2"
    with (
        httpx.Client(http1=not http2, http2=http2, timeout=60) as client,
        client.stream("POST", url, json=ASKED) as response,
    ):
        response.raise_for_status()
        assert response.http_version == protocol
        for data in response.iter_bytes():
            sys.stdout.buffer.write(data)


if __name__ == "__main__":
    read(sys.argv[1], sys.argv[2])
