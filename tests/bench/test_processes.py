"""Processes, and what they have used."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from benchmarks.serving import accounts
from benchmarks.serving.processes import Process, free_port
from benchmarks.serving.scripted_engine import ScriptedEngine
from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.word_prompter import WordPrompter

from antiphon.engines.port import EngineRequest, Finish, StepFrame

CPU = min(os.sched_getaffinity(0))
GUARD_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Wait for it, and not for ever."""
    deadline = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_ended(status: Path) -> bool:
    """Whether the process of a ``/proc/PID/stat`` has gone, or waits for nothing but its parent."""
    try:
        return status.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_cpu_time_is_that_of_the_process_clock() -> None:
    before = time.process_time_ns()
    counted = accounts.cpu_ns(os.getpid())
    assert (
        before
        <= counted
        <= time.process_time_ns()
        + sum(accounts.cpu_ns(pid) for pid in accounts.tree(os.getpid())[1:])
    )


def test_threads_that_have_ended_still_count() -> None:
    used = 0

    def work() -> None:
        nonlocal used
        while (used := time.thread_time_ns()) < 5_000_000:
            pass

    before = accounts.cpu_ns(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert accounts.cpu_ns(os.getpid()) - before >= used >= 5_000_000


def test_a_process_that_has_gone_counts_for_nothing() -> None:
    process = Process([sys.executable, "-c", "pass"], CPU)
    process.stop()
    assert accounts.cpu_ns(process.pid) == 0
    assert accounts.rss_bytes(process.pid) == 0


def test_a_process_is_pinned_and_ends_with_its_children() -> None:
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "time.sleep(600)"
    )
    process = Process([sys.executable, "-c", code], CPU)
    until(lambda: len(accounts.tree(process.pid)) == 2)
    pids = accounts.tree(process.pid)
    assert all(os.sched_getaffinity(pid) == {CPU} for pid in pids)
    assert accounts.rss_bytes(process.pid) > accounts.rss_bytes(pids[1]) > 0
    process.stop()
    process.stop()
    for pid in pids[1:]:  # it is no child of ours, so it is gone or about to be
        until(partial(has_ended, Path(f"/proc/{pid}/stat")))


def test_a_server_that_does_not_come_up_says_why() -> None:
    process = Process([sys.executable, "-c", "import sys; sys.exit('no such model')"], CPU)
    with pytest.raises(RuntimeError, match="ended at once: no such model"):
        process.wait_for_answer(free_port(), "/health")
    process.stop()


def test_the_table_of_times_is_one_for_all_who_map_it(tmp_path: Path) -> None:
    path = StepTimes.make(tmp_path / "times")
    with StepTimes(path) as written, StepTimes(path) as read:
        assert read[65535] == 0
        written[65535] = 2**63
        assert read[65535] == 2**63


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ScriptedEngine]:
    """The scripted engine, two streams at a time, a step every millisecond."""
    near, far = socket.socketpair()
    with far:
        process = Process(
            [
                sys.executable, "-m", "benchmarks.serving.engine_process",
                "--link", str(far.fileno()), "--times", str(StepTimes.make(tmp_path / "times")),
                "--step-us", "1000", "--together", "2",
            ],
            CPU,
            pass_fds=[far.fileno()],
        )  # fmt: skip
    yield ScriptedEngine(near)
    process.stop()


def request(key: int, tokens: int) -> EngineRequest:
    prompt = WordPrompter().text("")
    return EngineRequest(
        key=key, id=f"r{key}", group=key, model="tiny", prompt=prompt, max_tokens=tokens
    )


async def test_every_request_of_the_other_process_ends_once_and_its_tokens_are_in_order(
    engine: ScriptedEngine,
) -> None:
    info = await engine.start()
    tokens: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    three_ended = anyio.Event()

    def take(frame: StepFrame) -> None:
        first = 0
        for key, new, finish in zip(frame.key, frame.n_new, frame.finish, strict=True):
            assert key not in ends
            tokens.setdefault(key, []).extend(frame.token[first : first + new])
            first += new
            if finish != Finish.NONE:
                ends.setdefault(key, []).append(finish)
        if len(ends) == 3:
            three_ended.set()

    async def consume() -> None:
        async for frame in engine.frames():
            take(frame)
            if len(tokens.get(3, ())) == 2 and 3 not in ends:
                engine.abort([3])

    # Made before: those that come together must not be waited for.
    first = [request(key, count) for key, count in ((1, 5), (2, 7), (3, 1_000_000))]
    last = request(4, 1_000_000)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            for one in first:
                engine.submit(one)
            await three_ended.wait()
            engine.submit(last)
            await engine.stop(0)
    assert ends == {1: [Finish.LENGTH], 2: [Finish.LENGTH], 3: [Finish.ABORT], 4: [Finish.ABORT]}
    assert [len(tokens[key]) for key in (1, 2)] == [5, 7]
    for found in filter(None, tokens.values()):
        assert found == list(range(found[0], found[0] + len(found)))
    assert tokens[1][0] == tokens[2][0]  # they began together
    assert not info.healthy
