"""Two streams that last as long as all tests together, each read by a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from faults.recordings import write_recordings
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


@contextmanager
def long_streams_of(seconds: float, folder: Path) -> Iterator[LongStreams]:
    """Begin them. ``folder`` is for their recording and what they get."""
    silent = seconds > 2 * SILENCE_S
    tokens = int((seconds - SILENCE_S * silent) / STEP_MS * 1000)
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
