"""A load that does not end, or ends in a failure: a signal ends the server all the same."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest
from anyio import from_thread
from anyio.streams.buffered import BufferedByteReceiveStream
from quart import Quart

from antiphon import loading, serving
from antiphon.config import Config
from antiphon.engines.replay import ReplayEngine
from antiphon.errors import StartupError
from antiphon.loading import Loaded
from antiphon.models.files import ModelFiles
from antiphon.prompting.prompter import TextPrompter
from antiphon.runs import stopping
from antiphon.serving import serve_forever

FIXTURES = Path(__file__).parents[2] / "fixtures"
REPLAY = Config(engine="replay", fixtures=FIXTURES, pace="full", port=0)
TORCH = Config(port=0)
FILES = ModelFiles("m", "gguf", Path("m.gguf"))
GUARD_S = 20


class Stuck:
    """A step of a load that keeps its thread until ``go_on`` is set."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go_on = threading.Event()

    def __call__(self, *_: object) -> None:
        from_thread.run_sync(self.begun.set)
        self.go_on.wait()


def say(line: str) -> None:
    """Nobody reads what is said."""


@pytest.mark.parametrize("step", ["resolve", "tokenizer"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_no_thread_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, step: str
) -> None:
    stuck = Stuck()
    monkeypatch.setattr(loading, "resolve", stuck if step == "resolve" else lambda model: FILES)
    monkeypatch.setattr(TextPrompter, "load", stuck)
    loaded: list[bool] = []
    ended = anyio.Event()

    async def run() -> None:
        loaded.append(await serve_forever(TORCH, say))
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await stuck.begun.wait()
        signal.raise_signal(number)
        with anyio.move_on_after(GUARD_S):
            await ended.wait()
        ended_by_itself = ended.is_set()
        stuck.go_on.set()
    assert ended_by_itself
    assert loaded == [False]


async def test_a_load_that_is_cancelled_leaves_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Stuck()
    monkeypatch.setattr(loading, "resolve", stuck)
    ended, scope = anyio.Event(), anyio.CancelScope()

    async def run() -> None:
        with scope:
            await loading.load(TORCH)
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await stuck.begun.wait()
        scope.cancel()
        with anyio.move_on_after(GUARD_S):
            await ended.wait()
        ended_by_itself = ended.is_set()
        stuck.go_on.set()
    assert ended_by_itself


SCRIPT = """
import sys
from antiphon import loading
from antiphon.__main__ import main

def resolve(model):
    print("stuck", flush=True)
    sys.stdin.read()

loading.resolve = resolve
main(["serve", "--port", "0"])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_nor_does_the_process_wait_for_it(number: signal.Signals) -> None:
    async with await anyio.open_process([sys.executable, "-c", SCRIPT], stdin=PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(GUARD_S):
            assert await said.receive_until(b"stuck\n", 1000) == "Loading …\n".encode()
            process.send_signal(number)
            # Its standard input, for which the thread waits, is open all the time.
            assert await process.wait() == 0
            with pytest.raises(anyio.EndOfStream):
                await process.stderr.receive()


async def test_a_failure_arrives_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: str | None) -> ModelFiles:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(loading, "resolve", fail)
    with anyio.fail_after(GUARD_S), pytest.raises(ZeroDivisionError, match="odd"):
        await serve_forever(TORCH, say)


async def test_so_does_one_after_the_load() -> None:
    def break_off(line: str) -> None:
        if line.startswith("Serving"):
            raise BrokenPipeError("nobody listens")

    with anyio.fail_after(GUARD_S), pytest.raises(BrokenPipeError, match="nobody listens"):
        await serve_forever(REPLAY, break_off)


async def test_so_does_that_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*_: object) -> Quart:
        made = Quart("broken")

        @made.before_serving
        async def fail() -> None:
            raise ValueError("no disk left")

        return made

    monkeypatch.setattr(serving, "make_starting_app", app)
    with anyio.fail_after(GUARD_S), pytest.raises(StartupError, match="no disk left"):
        await serve_forever(REPLAY, say)


async def test_a_load_that_fails_after_the_signal_is_no_failure_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def load(config: Config, restarted: object) -> Loaded:
        try:
            signal.raise_signal(signal.SIGTERM)
            await anyio.sleep_forever()
        finally:
            raise StartupError("too late")

    monkeypatch.setattr(serving, "load", load)
    with anyio.fail_after(GUARD_S):
        assert await serve_forever(REPLAY, say) is False


class Unstoppable(ReplayEngine):
    """An engine in the midst of a step that takes for ever."""

    async def stop(self, grace_s: float) -> None:
        await anyio.sleep_forever()


async def test_an_engine_that_does_not_stop_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loading, "ReplayEngine", Unstoppable)
    monkeypatch.setattr(stopping, "STOP_S", 0.01)
    at_rest: list[bool] = []
    opened = anyio.Event()

    def hear(line: str) -> None:
        if line.startswith("Address"):
            opened.set()

    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                at_rest.append(await serve_forever(REPLAY, hear))

            tasks.start_soon(run)
            await opened.wait()
            signal.raise_signal(signal.SIGTERM)
    assert at_rest == [False]
    assert {record.message for record in caplog.records} == {"the engine does not stop"}
