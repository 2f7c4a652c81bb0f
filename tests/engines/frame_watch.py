"""Reads an engine's frames and holds every one of them against the port's contract."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable, Iterable

import anyio
import attrs

from antiphon.engines.port import (
    NO_STOP_ID,
    NOT_REPORTED,
    EngineError,
    Finish,
    PromptLogprobs,
    StepFrame,
)

HANG_GUARD_S = 60.0


@attrs.define
class Story:
    """All that the frames said about one key."""

    accepted: bool = False
    rows: int = 0
    tokens: list[int] = attrs.field(factory=list)
    logprobs: list[float] = attrs.field(factory=list)
    tops: list[list[tuple[int, float]]] = attrs.field(factory=list)
    prompt_lp: PromptLogprobs | None = None
    cached: int = NOT_REPORTED
    finish: Finish = Finish.NONE
    stop_id: int = NO_STOP_ID
    error: EngineError | None = None


@attrs.define
class FrameWatch:
    """The one consumer of an engine's frames; ``until`` reads on while a condition is false."""

    frames: AsyncIterator[StepFrame]
    stories: dict[int, Story] = attrs.field(factory=dict)
    log: list[StepFrame] = attrs.field(factory=list)
    """Every frame read."""
    ended: bool = False

    def __getitem__(self, key: int) -> Story:
        return self.stories.setdefault(key, Story())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read frames until ``condition()``; a stream that ends before is a failure."""
        with anyio.fail_after(HANG_GUARD_S):
            while not condition():
                try:
                    frame = await anext(self.frames)
                except StopAsyncIteration:
                    self.ended = True
                    break
                self.read(frame)
        assert condition(), f"the frames ended too early: {self.stories}"

    async def finished(self, *keys: int) -> None:
        """Read until every one of ``keys`` has its terminal row."""
        await self.until(lambda: all(self[key].finish for key in keys))

    async def grown(self, key: int, tokens: int) -> None:
        """Read until ``key`` has at least ``tokens`` tokens or is over."""
        await self.until(lambda: len(self[key].tokens) >= tokens or bool(self[key].finish))

    async def end(self) -> None:
        """Read until the frames end."""
        with anyio.fail_after(HANG_GUARD_S):
            async for frame in self.frames:
                self.read(frame)
        self.ended = True

    def read(self, frame: StepFrame) -> None:
        """Check the columns and book every row."""
        assert not self.log or frame.step > self.log[-1].step, "frames are in step order"
        self.log.append(frame)
        check_columns(frame)
        offset = 0
        for row, key in enumerate(frame.key):
            count = frame.n_new[row]
            self.book(frame, row, key, offset, count)
            offset += count

    def book(self, frame: StepFrame, row: int, key: int, offset: int, count: int) -> None:
        """One row: nothing follows a terminal row, and the accept row comes first and once."""
        story = self[key]
        finish = Finish(frame.finish[row])
        assert not story.finish, f"a row follows the terminal row of key {key}"
        if count == 0 and finish is Finish.NONE:
            assert story.rows == 0, f"the accept row of key {key} is its first row"
            story.accepted = True
        if count:
            assert story.accepted, f"key {key} has tokens without an accept row"
        self.book_cached(story, frame.cached[row], count, finish)
        if (prompt_lp := frame.prompt_lp.get(row)) is not None:
            assert story.prompt_lp is None, f"key {key} gets the logprobs of its prompt twice"
            assert not story.tokens, (
                f"the prompt's logprobs come after the first token of key {key}"
            )
            assert count or finish, "they come with a token or an end"
            story.prompt_lp = prompt_lp
        story.rows += 1
        story.tokens.extend(frame.token[offset : offset + count])
        if frame.logprob is not None:
            story.logprobs.extend(frame.logprob[offset : offset + count])
        story.tops.extend(tops(frame, range(offset, offset + count)))
        story.finish, story.stop_id = finish, frame.stop_id[row]
        story.error = frame.error.get(row)
        assert (finish is Finish.ERROR) == (story.error is not None)
        assert story.stop_id == NO_STOP_ID or finish is Finish.STOP

    def book_cached(self, story: Story, cached: int, count: int, finish: Finish) -> None:
        """It is told once: with the first token, or with the end if there is none."""
        if story.tokens or not (count or finish):
            assert cached == NOT_REPORTED, "cached is on the first row with a token only"
        elif finish not in (Finish.ERROR, Finish.ABORT):
            assert cached >= 0, "cached is on the first row with a token"
        if cached != NOT_REPORTED:
            story.cached = cached


def check_columns(frame: StepFrame) -> None:
    """Lengths and typecodes of every column agree."""
    rows, new = len(frame.key), sum(frame.n_new)
    columns = (frame.n_new, frame.finish, frame.stop_id, frame.cached)
    assert [len(column) for column in columns] == [rows] * 4
    assert len(frame.token) == new
    typecodes = [column.typecode for column in (frame.key, frame.token, *columns)]
    assert typecodes == ["I", "I", "H", "B", "i", "i"]
    assert frame.logprob is None or len(frame.logprob) == new
    for column in (frame.top_id, frame.top_lp):
        assert (len(column) if column is not None else 0) == new * frame.top_n
    sparse = (frame.error, frame.text, frame.spelling, frame.prompt_lp)
    assert set().union(*sparse) <= set(range(rows))
    for block in frame.prompt_lp.values():
        blocks = (block.logprob, block.top_id, block.top_lp)
        assert [column.typecode for column in blocks] == ["f", "I", "f"]
        alternatives = len(block.logprob) * block.top_n
        assert (len(block.top_id), len(block.top_lp)) == (alternatives, alternatives)


def tops(frame: StepFrame, tokens: Iterable[int]) -> list[list[tuple[int, float]]]:
    """The alternatives of each of ``tokens`` (indices into the frame), best first."""
    ids = frame.top_id if frame.top_id is not None else array("I")
    values = frame.top_lp if frame.top_lp is not None else array("f")
    width = frame.top_n
    return [
        list(
            zip(ids[t * width : (t + 1) * width], values[t * width : (t + 1) * width], strict=True)
        )
        for t in tokens
    ]
