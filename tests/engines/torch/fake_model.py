"""A scheduler's surroundings without torch: sequences, a small pool, and a model that remembers."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence as Rows

import attrs
import numpy as np
from hypothesis import strategies as st

from antiphon.engines.port import EngineRequest, Finish
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk, Step

PAGES = 12
CONTEXT = PAGES * PAGE_SIZE
EOS, WORD = 0, 1
PROMPTS = st.integers(1, 40) | st.integers(1, CONTEXT - 1)
"""Mostly short ones, so that the pool runs out by what is said and not by what is asked."""
WORDS = 300
"""About one draw in so many is ``EOS``."""


def a_sequence(
    key: int,
    prompt: int | Rows[int],
    max_tokens: int,
    group: int | None = None,
    priority: int = 0,
    prompt_logprobs: int | None = None,
    salt: bytes = b"",
    seed: int | None = None,
) -> Sequence:
    """``prompt``: its ids, or how many words it has; then no other starts as it does."""
    ids = [2 + key] + [WORD] * (prompt - 1) if isinstance(prompt, int) else prompt
    request = EngineRequest(
        key=key,
        id=f"{key}-0",
        group=key if group is None else group,
        model="m",
        prompt=array("I", ids),
        max_tokens=max_tokens,
        priority=priority,
        prompt_logprobs=prompt_logprobs,
        cache_salt=salt,
        seed=key if seed is None else seed,
    )
    return Sequence.of(request, CONTEXT, frozenset({EOS}))


def a_scheduler(
    max_running: int = 4,
    max_waiting: int = 5,
    step_tokens: int = 24,
    pages: int = PAGES,
    *,
    prefix_cache: bool = True,
) -> Scheduler:
    return Scheduler(
        PagePool(pages),
        max_running=max_running,
        max_waiting=max_waiting,
        step_tokens=step_tokens,
        prefix_cache=prefix_cache,
    )


def read_on(state: int, token: int) -> int:
    """What a position holds: all that was read up to it, in a number."""
    return (state * 6_364_136_223_846_793_005 + token * 1_442_695_040_888_963_407 + 1) % 2**64


def draw(request: EngineRequest, position: int, seen: Rows[int], words: int) -> int:
    """A token by seed, position and all that attention sees; 1 and above are words."""
    mixed = request.seed * 7_919 + position * 104_729
    for state in seen:
        mixed = (mixed + (state >> 7)) * 2_654_435_761 % 2**61
    mixed >>= 20
    return EOS if mixed % words == 0 else 1 + mixed % 1_000


def alone(sequence: Sequence, words: int = WORDS) -> tuple[list[int], Finish]:
    """What a request says if nothing disturbs it, computed without pages or steps."""
    state, full = 0, list[int]()
    said: list[int] = []
    for at in range(CONTEXT):
        prompt = sequence.request.prompt
        if at >= len(prompt):
            if len(said) >= sequence.max_tokens:
                break
            token = draw(sequence.request, at, [*full, state], words)
            if token == EOS:
                return said, Finish.STOP
            said.append(token)
        state = read_on(state, prompt[at] if at < len(prompt) else said[-1])
        if at % PAGE_SIZE == PAGE_SIZE - 1:
            full.append(state)
    if len(said) < sequence.max_tokens:  # the context is full: one token more, which nobody reads
        token = draw(sequence.request, CONTEXT, [*full, state], words)
        return (said, Finish.STOP) if token == EOS else ([*said, token], Finish.LENGTH)
    return said, Finish.LENGTH


@attrs.define
class FakeLaunch:
    """Draws that are known once they are asked for."""

    device: FakeModel
    tokens: list[int]

    def drawn(self) -> Drawn:
        """The device has done the earliest of its steps."""
        self.device.in_flight.popleft()
        return Drawn(self.tokens)


@attrs.define
class FakeModel:
    """A device: what it draws depends on what is really in the pages and slots that it is given.

    It does its steps in the order of their launch. It fails on a step that writes to a page, or
    uses a slot, that an earlier one of another sequence may still be at work on.
    """

    words: int = WORDS
    states: dict[int, int] = attrs.field(factory=dict)
    """page * PAGE_SIZE + offset -> what was read up to there."""
    latest: dict[int, int] = attrs.field(factory=dict)
    """slot -> the id drawn last."""
    in_flight: deque[list[tuple[Sequence, int, set[int]]]] = attrs.field(factory=deque)
    """(sequence, slot, pages it touches) of every step that is not booked."""
    read: int = 0
    """Tokens read in all."""

    def launch(self, step: Step) -> FakeLaunch:
        """Run a step."""
        touched = []
        for chunk in step.chunks:
            self.check_nobody_is_there(chunk)
            pages = chunk.sequence.table.pages[: -(-chunk.end // PAGE_SIZE)]
            touched.append((chunk.sequence, chunk.sequence.slot, set(pages)))
        self.in_flight.append(touched)
        tokens = []
        for chunk in step.chunks:
            seen = self.read_chunk(chunk)
            if chunk.draws:
                token = draw(chunk.sequence.request, chunk.end, seen, self.words)
                self.latest[chunk.sequence.slot] = token
                tokens.append(token)
        assert len(tokens) == len(step.drawing)
        return FakeLaunch(self, tokens)

    def run(self, step: Step | None) -> list[int]:
        """Run a step that nothing else is launched beside."""
        return [] if step is None else self.launch(step).drawn().token

    def read_chunk(self, chunk: Chunk) -> list[int]:
        """Write its states, each on top of the one before it; what its last token attends to."""
        sequence, pages = chunk.sequence, chunk.sequence.table.pages
        ids = sequence.ids
        state = self.at(pages, chunk.start - 1) if chunk.start else 0
        for at in range(chunk.start, chunk.end):
            state = read_on(state, ids[at] if at < len(ids) else self.latest[sequence.slot])
            self.states[pages[at // PAGE_SIZE] * PAGE_SIZE + at % PAGE_SIZE] = state
        self.read += chunk.count
        if sequence.scores is not None:  # for a logprob the position it is from
            nothing = np.empty(0)
            positions = np.array(chunk.scored, dtype=np.float32)
            sequence.scores.add(positions, nothing.astype(np.int64), nothing.astype(np.float32))
        full = [self.at(pages, end - 1) for end in range(PAGE_SIZE, chunk.end + 1, PAGE_SIZE)]
        return [*full, state]

    def at(self, pages: Rows[int], position: int) -> int:
        """The state at a position, which must have been written."""
        return self.states[pages[position // PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE]

    def check_nobody_is_there(self, chunk: Chunk) -> None:
        """No step in flight, and no earlier chunk, of another sequence touches what it writes."""
        sequence = chunk.sequence
        written = set(sequence.table.pages[chunk.start // PAGE_SIZE : -(-chunk.end // PAGE_SIZE)])
        for step in self.in_flight:
            for other, slot, pages in step:
                if other is not sequence:
                    assert not written & pages, "a page is written that a step in flight touches"
                    assert slot != sequence.slot, "a slot is used that a step in flight uses"
