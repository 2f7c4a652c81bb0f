"""A stream of ten minutes on each protocol, begun before all other tests and judged after them."""

from __future__ import annotations

import pytest

from faults.long_streams import SILENCE_S, LongStreams
from faults.readers import text_of
from faults.recordings import text


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_a_stream_of_ten_minutes(long_streams: LongStreams, protocol: str) -> None:
    process, got = long_streams.readers[protocol]
    assert process.wait(long_streams.seconds + 60) == 0
    body = got.read_bytes()
    assert text_of(body) == text(long_streams.tokens)
    if long_streams.silent:
        assert body.count(b": ping\n\n") == int(SILENCE_S // 15)
    assert long_streams.server.logged() == []
