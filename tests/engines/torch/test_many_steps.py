"""A hundred thousand steps of a busy engine: everybody gets what it would get alone.

The same traffic goes through the loop at both depths, with pages shared and not, in pools of
different sizes; what is drawn depends on what is really in the pages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import pytest

from antiphon.engines.port import EngineInfo, EngineRequest, Finish, StepFrame
from antiphon.engines.torch.admission import CAPABILITIES
from antiphon.engines.torch.inbox import Abort, Drain, Inbox, Submit
from antiphon.engines.torch.loop import EngineLoop
from antiphon.engines.torch.pages import PAGE_SIZE
from engines.torch.fake_model import CONTEXT, EOS, FakeModel, a_scheduler, a_sequence, alone

STEPS = 25_000
"""In each of four runs."""
RUNNING = 4
WORDS = 60
TEXTS = [[7 * at % 50 + 2 for at in range(CONTEXT)]]
TEXTS += [[*TEXTS[0][:keep], *[9] * (CONTEXT - keep)] for keep in (0, 33, 80)]


@attrs.define
class Traffic:
    """Calls that come and go by the dice; the same ones whatever the engine does with them."""

    dice: random.Random = attrs.field(factory=lambda: random.Random(11))
    keys: int = 0

    def calls(self) -> Iterator[list[EngineRequest]]:
        """The siblings of one call after the other."""
        while True:
            group, dice = self.keys, self.dice
            text = dice.choice(TEXTS)[: dice.choice([dice.randint(1, 30), dice.randint(1, 150)])]
            salt, priority = dice.choice([b"", b"", b"x"]), dice.choice([0, 0, 0, -1, 1])
            limit, scores = dice.choice([0, 1, 5, 30, 60]), dice.choice([None] * 9 + [0])
            call = []
            for _ in range(dice.choice([1, 1, 1, 2, 4])):
                sibling = a_sequence(self.keys, text, limit, group, priority, scores, salt)
                call.append(sibling.request)
                self.keys += 1
            yield call


@attrs.define
class Ledger:
    """What the frames said of every key, held against what it would say alone."""

    open: dict[int, EngineRequest] = attrs.field(factory=dict)
    said: dict[int, list[int]] = attrs.field(factory=dict)
    ended: int = 0
    aborted: int = 0
    tokens: int = 0

    def take(self, frame: StepFrame) -> None:
        first = 0
        for key, n_new, finish in zip(frame.key, frame.n_new, frame.finish, strict=True):
            assert key in self.open, "no row follows the end"
            self.said.setdefault(key, []).extend(frame.token[first : first + n_new])
            first += n_new
            self.tokens += n_new
            if finish:
                self.end(key, Finish(finish))

    def end(self, key: int, finish: Finish) -> None:
        request, said = self.open.pop(key), self.said.pop(key)
        self.ended += 1
        expected, ends = alone(a_sequence(key, request.prompt, request.max_tokens), WORDS)
        if finish is Finish.ABORT:
            self.aborted += 1
            assert said == expected[: len(said)]
        else:
            assert (said, finish) == (expected, ends)


@pytest.mark.parametrize(
    ("depth", "pages", "prefix_cache"),
    [(1, 14, True), (1, 18, False), (2, 13, True), (2, 20, False)],
)
def test_everybody_says_what_it_would_say_alone(depth: int, pages: int, prefix_cache: bool) -> None:
    info = EngineInfo(
        name="torch",
        model_id="m",
        vocab_size=2_000,
        context_length=CONTEXT,
        eos_ids=frozenset({EOS}),
        max_running=RUNNING,
        page_size=PAGE_SIZE,
        kv_pages=pages,
        dtype="none",
        device="none",
        capabilities=CAPABILITIES,
    )
    scheduler = a_scheduler(RUNNING, 1_000, 32, pages, prefix_cache=prefix_cache)
    inbox, ledger, traffic = Inbox(), Ledger(), Traffic()
    loop = EngineLoop(info, scheduler, FakeModel(WORDS), inbox, ledger.take, depth)
    calls, dice = traffic.calls(), random.Random(5)
    while scheduler.launched < STEPS:
        while len(ledger.open) < 2 * RUNNING:
            for request in next(calls):
                ledger.open[request.key] = request
                inbox.put(Submit(request))
        if dice.random() < 0.01:
            inbox.put(Abort((dice.choice([*ledger.open]), traffic.keys + 9)))
        loop.turn()
    inbox.put(Drain())
    loop.run()
    assert loop.failure is None
    assert not ledger.open
    assert ledger.ended == traffic.keys
    assert ledger.aborted > 100
    assert scheduler.preemptions > 50
    assert scheduler.pool.free == pages
    assert (scheduler.pool.kept > 0) == prefix_cache
    assert scheduler.holdings.free_slots == RUNNING
