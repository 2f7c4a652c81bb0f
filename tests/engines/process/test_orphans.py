"""A server that is killed leaves no engine behind."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from engines.frame_watch import HANG_GUARD_S

SERVER = """
import asyncio, json, sys
from antiphon.engines.child.engine import ChildEngine
async def main():
    engine = ChildEngine(sys.argv[2:], json.loads(sys.argv[1]))
    start = asyncio.ensure_future(engine.start())
    await asyncio.sleep(0)
    if "load" not in sys.argv[1]:
        await start
    print(engine.process.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
FAKE = Path(__file__).parent / "fake_child.py"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process that is no child is awaited")
@pytest.mark.parametrize("when", ["running", "loading"])
async def test_a_server_that_is_killed_leaves_no_engine(when: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "began")
    options = "{}" if when == "running" else f'{{"load": "never", "began": "{tmp_path}/began"}}'
    command = [sys.executable, "-c", SERVER, options, sys.executable, "-P", str(FAKE)]
    with anyio.fail_after(HANG_GUARD_S):
        async with await anyio.open_process(command, stderr=None) as server:
            assert server.stdout is not None
            lines = BufferedByteReceiveStream(server.stdout)
            pid = int(await lines.receive_until(b"\n", 100))
            watched = os.pidfd_open(pid)
            try:
                if when == "loading":
                    (tmp_path / "began").read_bytes()
                server.send_signal(signal.SIGKILL)
                ended, _, _ = select.select([watched], [], [], HANG_GUARD_S)
                assert ended
            finally:
                os.close(watched)
