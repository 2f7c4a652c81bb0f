"""Hosts of prepared frames: what a transport costs before there is anything to send.

``fastapi`` is FastAPI on uvicorn with httptools and uvloop, the host of the large Python servers.
``hypercorn`` is Quart on Hypercorn as they come, ``antiphon-worker`` Quart on our worker and its
frame sinks, with uvloop. The engine of all three is a clock within the server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import attrs
from benchmarks.peers import Api, Peer, Proto, Server
from benchmarks.serving.processes import Process


@attrs.frozen
class Prepared:
    """A ``Peer``. It writes when its ticks were to the table in ``times``, where given."""

    host: str
    protocols: tuple[Proto, ...]
    needs: Sequence[str]
    times: Path | None = None
    merges = False

    def available(self) -> str | None:
        missing = [name for name in self.needs if find_spec(name) is None]
        return f"{', '.join(missing)} is not installed" if missing else None

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        del engine_cpu  # the clock ticks within the server
        command = [
            sys.executable, "-m", "benchmarks.peers.prepared_server", self.host,
            "--port", str(port), "--streams", str(streams), "--step-us", str(step_us),
        ]  # fmt: skip
        if self.times is not None:
            command += ["--times", str(self.times)]
        process = Process(command, server_cpu)
        try:
            process.wait_for_answer(port, "/health")
        except RuntimeError:
            process.stop()
            raise
        return _Running(process, self.protocols)


@attrs.frozen
class _Running:
    process: Process
    protocols: tuple[Proto, ...]

    @property
    def pid(self) -> int:
        return self.process.pid

    def request(self, api: Api, tokens: int) -> tuple[str, Mapping[str, str], bytes]:
        return f"/{api}", {}, json.dumps({"tokens": tokens}).encode()

    def stop(self) -> None:
        self.process.stop()


BOTH: tuple[Proto, ...] = ("h1", "h2", "h2-single")
PEERS: Mapping[str, Peer] = {
    "fastapi": Prepared("fastapi", ("h1",), ("fastapi", "uvicorn", "httptools", "uvloop")),
    "hypercorn": Prepared("hypercorn", BOTH, ("hypercorn", "quart")),
    "antiphon-worker": Prepared("worker", BOTH, ("uvloop",)),
}
