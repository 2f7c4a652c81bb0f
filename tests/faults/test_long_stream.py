"""A stream of ten minutes on each protocol, begun before all other tests and judged after them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from faults.readers import text_of
from faults.recordings import text, write_recordings
from faults.servers import Server, antiphon

STEP_MS = 100.0
SILENCE_S = 40.0
"""In the middle: longer than two pings of the server's own accord, and than its other patience."""
READER = Path(__file__).parent / "long_reader.py"


@attrs.frozen
class LongStreams:
    """A reader of each protocol, in a process of its own, and where it puts what it gets."""

    server: Server
    tokens: int
    seconds: float
    silent: bool
    readers: dict[str, tuple[subprocess.Popen[bytes], Path]]


@pytest.fixture(scope="session")
def long_streams(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LongStreams]:
    seconds = request.config.getoption("--minutes") * 60
    silent = seconds > 2 * SILENCE_S
    tokens = int((seconds - SILENCE_S * silent) / STEP_MS * 1000)
    folder = tmp_path_factory.mktemp("long")
    write_recordings(folder, {"long": tokens}, STEP_MS, SILENCE_S * 1000 * silent)
    with ExitStack() as stack:
        server = stack.enter_context(antiphon(folder, pace="recorded"))
        readers = {}
        for protocol in ("HTTP/1.1", "HTTP/2"):
            got = folder / protocol.replace("/", "")
            out = stack.enter_context(got.open("wb"))
            command = [sys.executable, str(READER), f"{server.url}/v1/chat/completions", protocol]
            process = stack.enter_context(subprocess.Popen(command, stdout=out))
            stack.callback(process.kill)
            readers[protocol] = process, got
        yield LongStreams(server, tokens, seconds, silent, readers)


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_a_stream_of_ten_minutes(long_streams: LongStreams, protocol: str) -> None:
    process, got = long_streams.readers[protocol]
    assert process.wait(long_streams.seconds + 60) == 0
    body = got.read_bytes()
    assert text_of(body) == text(long_streams.tokens)
    if long_streams.silent:
        assert body.count(b": ping\n\n") == int(SILENCE_S // 15)
    assert long_streams.server.logged() == []
