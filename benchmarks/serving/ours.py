"""Our own server with the scripted engine, as a contestant like any other."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers import Api, Proto, Server
from benchmarks.serving.processes import Process
from benchmarks.serving.word_prompter import MODEL

PATHS: Mapping[Api, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
}


def body(api: Api, tokens: int, model: str) -> bytes:
    """A streamed request for ``tokens`` tokens, of the kind that every server of the API takes."""
    asked: dict[str, object] = {"model": model, "stream": True, "temperature": 0}
    if api == "chat":
        asked["messages"] = [{"role": "user", "content": "Tell me a story."}]
        asked["max_tokens"] = tokens
    elif api == "completions":
        asked |= {"prompt": "Tell me a story.", "max_tokens": tokens}
    else:
        asked |= {"input": "Tell me a story.", "max_output_tokens": tokens}
    return json.dumps(asked, separators=(",", ":")).encode()


class Ours:
    """``antiphon serve`` on a loop; ``times`` is where its engine writes when a step left."""

    merges = False

    def __init__(
        self, loop: str, times: Path, *, api_key: str | None = None, options: Sequence[str] = ()
    ) -> None:
        self._loop = loop
        self._times = times
        self._api_key = api_key
        self._options = options

    def available(self) -> str | None:
        if self._loop == "uvloop" and find_spec("uvloop") is None:
            return "uvloop is not installed"
        return None

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        near, far = socket.socketpair()
        with near, far:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            python = [sys.executable, "-m"]
            engine = Process(
                [
                    *python, "benchmarks.serving.engine_process", "--link", str(far.fileno()),
                    "--times", str(self._times), "--step-us", str(step_us),
                    "--together", str(streams),
                ],
                engine_cpu,
                pass_fds=[far.fileno()],
            )  # fmt: skip
            key = [] if self._api_key is None else ["--api-key", self._api_key]
            front = Process(
                [
                    *python, "benchmarks.serving.front_end", "--link", str(near.fileno()),
                    "--port", str(port), "--loop", self._loop, *key, *self._options,
                ],
                server_cpu,
                pass_fds=[near.fileno()],
            )  # fmt: skip
        running = _Running(front, engine, self._api_key)
        try:
            front.wait_for_answer(port, "/health")
        except RuntimeError:
            running.stop()
            raise
        return running


class _Running:
    protocols: tuple[Proto, ...] = ("h1", "h2", "h2-single")

    def __init__(self, front: Process, engine: Process, api_key: str | None) -> None:
        self._front, self._engine = front, engine
        self._headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self.pid = front.pid

    def request(self, api: Api, tokens: int) -> tuple[str, Mapping[str, str], bytes]:
        return PATHS[api], self._headers, body(api, tokens, MODEL)

    def stop(self) -> None:
        self._front.stop()
        self._engine.stop()
