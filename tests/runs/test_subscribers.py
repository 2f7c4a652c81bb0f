"""Reading a run's frames: whole, in one piece when late, with comments when silent."""

from __future__ import annotations

import pytest

from antiphon.engines.port import Finish
from antiphon.runs.subscribers import PING, Subscription
from runs.scripted import Stage

STOP = Finish.STOP


async def test_a_subscription_reads_all_frames_in_whole_and_leaves_once() -> None:
    stage = Stage()
    run = stage.open()
    stage.accept(run)
    left: list[None] = []
    reader = Subscription(run, ping_s=0, leave=lambda: left.append(None))
    first = await anext(reader)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"a"))
    stage.step(lambda frame: frame.row(key, b"b", finish=STOP))
    rest = await anext(reader)  # a reader that lagged gets all it missed in one piece
    assert first + rest == b"".join(run.frames)
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    await reader.aclose()
    assert left == [None]


@pytest.mark.wire("F6", "K20")
async def test_a_silent_stream_carries_comments() -> None:
    stage = Stage()
    run = stage.open()
    stage.accept(run)
    reader = Subscription(run, ping_s=1e-6, leave=lambda: None)
    await anext(reader)
    assert await anext(reader) == PING
    assert PING not in run.frames
