"""A scheduler's surroundings without torch: sequences, a small pool, and a model that remembers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Rows

import attrs
from hypothesis import strategies as st

from antiphon.engines.port import EngineRequest, Finish
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool
from antiphon.engines.torch.scheduler import Chunk, Scheduler
from antiphon.engines.torch.sequence import Sequence

PAGES = 12
CONTEXT = PAGES * PAGE_SIZE
EOS, WORD = 0, 1
PROMPTS = st.integers(1, 40) | st.integers(1, CONTEXT - 1)
"""Mostly short ones, so that the pool runs out by what is said and not by what is asked."""


def a_sequence(
    key: int,
    prompt: int,
    max_tokens: int,
    group: int | None = None,
    priority: int = 0,
    prompt_logprobs: int | None = None,
) -> Sequence:
    request = EngineRequest(
        key=key,
        id=f"{key}-0",
        group=key if group is None else group,
        model="m",
        prompt=array("I", [WORD] * prompt),
        max_tokens=max_tokens,
        priority=priority,
        prompt_logprobs=prompt_logprobs,
    )
    return Sequence.of(request, CONTEXT, frozenset({EOS}))


def a_scheduler(
    max_running: int = 4, max_waiting: int = 5, step_tokens: int = 24, pages: int = PAGES
) -> Scheduler:
    return Scheduler(
        PagePool(pages), max_running=max_running, max_waiting=max_waiting, step_tokens=step_tokens
    )


@attrs.define
class FakeModel:
    """Draws by key and position alone, as a seed does, and remembers what is in every page.

    It fails on a step that would read another sequence's tokens, or any that were never written.
    """

    written: dict[int, tuple[int, int, int]] = attrs.field(factory=dict)
    """slot -> (key, position, id)"""
    words: int = 300
    """About one draw in so many is ``EOS``."""

    def token(self, key: int, position: int) -> int:
        """1 and above are words, different ones at different places."""
        mixed = (key * 7_919 + position * 104_729 + 12_345) * 2_654_435_761 % 2**32
        return EOS if mixed % self.words == 0 else 1 + mixed % 1_000

    def run(self, chunks: Rows[Chunk]) -> dict[int, int]:
        """The token of every chunk that draws."""
        for chunk in chunks:
            sequence, end = chunk.sequence, chunk.start + chunk.count
            for at in range(end):
                slot = sequence.table.pages[at // PAGE_SIZE] * PAGE_SIZE + at % PAGE_SIZE
                entry = (sequence.key, at, sequence.ids[at])
                if at >= chunk.start:
                    self.written[slot] = entry
                assert self.written[slot] == entry, "every key that attention reads is its own"
            if sequence.scores is not None:
                sequence.scores.add(chunk.scored, (), ())  # for a logprob the position it is from
        return {
            chunk.sequence.key: self.token(chunk.sequence.key, len(chunk.sequence.ids))
            for chunk in chunks
            if chunk.draws
        }

    def output(self, sequence: Sequence) -> tuple[list[int], Finish]:
        """What a sequence of this key says if nothing disturbs it."""
        said: list[int] = []
        while len(said) < sequence.max_tokens:
            token = self.token(sequence.key, len(sequence.request.prompt) + len(said))
            if token == EOS:
                return said, Finish.STOP
            said.append(token)
        return said, Finish.LENGTH
