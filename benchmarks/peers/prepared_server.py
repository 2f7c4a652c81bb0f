"""A host of prepared frames: ``python -m benchmarks.peers.prepared_server HOST [options]``."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from benchmarks.peers.prepared_frames import Ticker
from benchmarks.serving.step_times import StepTimes

BACKLOG = 2048


def _uvicorn(ticker: Ticker, port: int) -> None:
    import uvicorn
    from benchmarks.peers.fastapi_app import fastapi_app

    uvicorn.run(
        fastapi_app(ticker),
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="error",
        access_log=False,
        backlog=BACKLOG,
    )


def _hypercorn(ticker: Ticker, port: int) -> None:
    from benchmarks.peers.quart_app import quart_app
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.errorlog = config.accesslog = None
    config.backlog = BACKLOG
    # Its limits of streams and of requests on a connection would end the measurement.
    config.h2_max_concurrent_streams = 1024
    config.keep_alive_max_requests = 10**9
    asyncio.run(serve(quart_app(ticker, sinks=False), config))


def _worker(ticker: Ticker, port: int) -> None:
    import uvloop
    from benchmarks.peers.quart_app import quart_app
    from hypercorn.config import Config

    from antiphon.transport.worker import serve

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.h2_max_concurrent_streams = 1024
    uvloop.run(serve(quart_app(ticker, sinks=True), config))


HOSTS = {"fastapi": _uvicorn, "hypercorn": _hypercorn, "worker": _worker}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("host", choices=HOSTS)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--streams", type=int, required=True)
    options.add_argument("--step-us", type=int, required=True)
    options.add_argument("--times", type=Path)
    asked = options.parse_args()
    times = None if asked.times is None else StepTimes(asked.times)
    HOSTS[asked.host](Ticker(asked.streams, asked.step_us, times), asked.port)


if __name__ == "__main__":
    main()
