"""The process of an engine without a model: it says ``a``, and dies in whatever way it is told.

A request's ``id`` names a fault; one for 1,000 tokens and more says three, and holds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antiphon.engines.child.main import run
from antiphon.engines.codec.frames import encode_frame
from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import (
    NOT_REPORTED,
    EngineError,
    EngineInfo,
    EngineRequest,
    EngineStartError,
    Finish,
    Gauges,
    PromptLogprobs,
    StepFrame,
)
from antiphon.engines.torch.inbox import Abort, AbortAll, Drain, Inbox, Submit

TOKEN = ord("a")
HELD_FROM, HELD_AT = 1_000, 3
BURST = 4_000
BIG = 110_000
"""Tokens of a prompt whose logprobs, with twenty alternatives each, are 18 MB."""
SOCKET = int(sys.argv[-1]) if __name__ == "__main__" else -1


def info(**changes: Any) -> EngineInfo:
    settings: dict[str, Any] = {
        "name": "fake",
        "model_id": "m",
        "vocab_size": 256,
        "context_length": 10**6,
        "eos_ids": frozenset(),
        "max_running": 64,
        "page_size": 16,
        "kv_pages": 64,
        "dtype": "none",
        "device": "none",
        "capabilities": frozenset(),
    }
    return EngineInfo(**settings | changes)


class FakeLoop:
    """As small as an engine can be."""

    def __init__(
        self, options: dict[str, Any], inbox: Inbox, emit: Callable[[StepFrame], None]
    ) -> None:
        self.info = info(**options.get("info", {}))
        self.failure: BaseException | None = None
        self._options = options
        self._inbox = inbox
        self._emit = emit
        self._open: dict[int, EngineRequest] = {}
        self._said: dict[int, int] = {}
        self._step = 0
        self._draining = False

    def run(self) -> None:
        try:
            while self._open or not self._draining:
                self.turn()
        except BaseException as failure:
            self.failure = failure
            frame = FrameBuilder(self._step)
            for key in self._open:
                error = EngineError(code="engine_failed", message=repr(failure))
                frame.row(key, finish=Finish.ERROR, error=error)
            self._send(frame)

    def turn(self) -> None:
        frame = FrameBuilder(self._step)
        for command in self._inbox.take(wait=not any(map(self._moves, self._open))):
            match command:
                case Submit(request) if self._draining:
                    error = EngineError(code="engine_overloaded", message="stopping")
                    frame.row(request.key, finish=Finish.ERROR, error=error)
                case Submit(request):
                    self._open[request.key] = request
                    self._said[request.key] = 0
                    frame.row(request.key)
                case Abort(keys):
                    self._abort(keys, frame)
                case AbortAll():
                    self._abort(tuple(self._open), frame)
                case Drain():
                    self._draining = True
                case _:
                    raise NotImplementedError(command)
        self._send(frame)
        for request in list(self._open.values()):
            if (fault := getattr(self, request.id.partition("-")[0], None)) is not None:
                fault(request)
        frame = FrameBuilder(self._step)
        for key in [key for key in self._open if self._moves(key)]:
            self._said[key] += 1
            done = self._said[key] == self._open[key].max_tokens
            end = Finish.LENGTH if done else Finish.NONE
            frame.row(key, (TOKEN,), finish=end, cached=_cached(self._said[key] == 1))
            if done:
                del self._open[key]
        self._send(frame)

    def _moves(self, key: int) -> bool:
        most = self._open[key].max_tokens
        return self._said[key] < (HELD_AT if most >= HELD_FROM else most)

    def _abort(self, keys: tuple[int, ...], frame: FrameBuilder) -> None:
        for key in keys:
            if self._open.pop(key, None) is not None:
                frame.row(key, finish=Finish.ABORT)

    def _send(self, frame: FrameBuilder) -> None:
        if len(frame):
            self._step += 1
            self._emit(frame.build(time.monotonic_ns(), Gauges(running=len(self._open))))

    # The ways to die, or to be a burden.

    def exit(self, _: EngineRequest) -> None:
        os._exit(7)

    def segfault(self, _: EngineRequest) -> None:
        ctypes.string_at(0)

    def memory(self, _: EngineRequest) -> None:
        """What the kernel does to a process when there is none left."""
        os.kill(os.getpid(), signal.SIGKILL)

    def garbage(self, _: EngineRequest) -> None:
        os.write(SOCKET, b"Traceback (most recent call last):\n")
        threading.Event().wait()

    def half(self, _: EngineRequest) -> None:
        """Half a frame, then the end."""
        frame = FrameBuilder(self._step)
        frame.row(1, (TOKEN,))
        os.write(SOCKET, encode_frame(frame.build(0, Gauges()))[:-16])
        os._exit(0)

    def close(self, _: EngineRequest) -> None:
        """The socket is closed, and the process stays."""
        socket.socket(fileno=os.dup(SOCKET)).shutdown(socket.SHUT_RDWR)
        threading.Event().wait()

    def again(self, _: EngineRequest) -> None:
        """A step that was there before."""
        self._step = 0
        frame = FrameBuilder(0)
        frame.row(1, (TOKEN,))
        self._send(frame)
        threading.Event().wait()

    def fault(self, _: EngineRequest) -> None:
        raise RuntimeError("the device is gone")

    def hang(self, _: EngineRequest) -> None:
        threading.Event().wait()

    def burst(self, request: EngineRequest) -> None:
        """More frames than a socket holds, then a word that they were made."""
        for number in range(BURST):
            frame = FrameBuilder(self._step)
            frame.row(request.key, (TOKEN,) * 20, cached=_cached(number == 0))
            self._send(frame)
        frame = FrameBuilder(self._step)
        frame.row(request.key, finish=Finish.STOP)
        del self._open[request.key]
        self._send(frame)
        Path(self._options["made"]).write_text("")

    def big(self, request: EngineRequest) -> None:
        """A frame of 18 MB, and one that ends."""
        scores = PromptLogprobs(
            logprob=array("f", [-1.0]) * BIG,
            top_n=20,
            top_id=array("I", [TOKEN]) * (20 * BIG),
            top_lp=array("f", [-1.0]) * (20 * BIG),
        )
        frame = FrameBuilder(self._step)
        frame.row(request.key, (TOKEN,), cached=0, prompt_lp=scores)
        self._send(frame)
        frame = FrameBuilder(self._step)
        frame.row(request.key, finish=Finish.STOP)
        del self._open[request.key]
        self._send(frame)


def _cached(first: bool) -> int:
    return 0 if first else NOT_REPORTED


def load(options: dict[str, Any], inbox: Inbox, emit: Callable[[StepFrame], None]) -> FakeLoop:
    match options.get("load"):
        case "refused":
            raise EngineStartError("model.gguf: no such file;\n give another")
        case "broken":
            raise ValueError
        case "exit":
            os._exit(9)
        case "never":
            Path(options["began"]).write_text("")  # a pipe: somebody waits for its end
            threading.Event().wait()
        case "slow":
            Path(options["began"]).write_text("")
            while not Path(options["enough"]).exists():
                pass
    return FakeLoop(options, inbox, emit)


if __name__ == "__main__":
    run(SOCKET, load)
