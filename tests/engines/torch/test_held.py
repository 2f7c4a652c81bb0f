"""Requests whose form is being compiled, as the loop sees them: held, counted, and ended."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from antiphon.engines.port import EngineRequest, Finish, GrammarSpec
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.inbox import Abort, AbortAll, Drain, Formed
from engines.torch.requests import a_request
from engines.torch.test_loop import CountingRunner, Stage, a_stage, ends

FORM, OTHER = (GrammarSpec(kind="regex", text=text) for text in ("a+", "b+"))


@attrs.define
class Compiling:
    """A compiler that has not come to the end of any form."""

    wanted: list[GrammarSpec] = attrs.field(factory=list)

    def want(self, form: GrammarSpec) -> None:
        if form not in self.wanted:
            self.wanted.append(form)

    def leave(self, form: GrammarSpec) -> None:
        if form in self.wanted:
            self.wanted.remove(form)


def a_slow_stage() -> Stage:
    compiler: Any = Compiling()
    return a_stage(CountingRunner(), compiler=compiler)


def formed(key: int, form: GrammarSpec = FORM, **changes: Any) -> EngineRequest:
    return a_request(key, grammar=form, **changes)


def load(stage: Stage) -> list[tuple[int, int]]:
    """(running, waiting) of every frame."""
    return [(frame.gauges.running, frame.gauges.waiting) for frame in stage.watch.log]


def test_the_last_word_ends_what_is_held_as_well() -> None:
    stage = a_slow_stage()
    stage.submit(formed(1), a_request(2), formed(3, OTHER), formed(4))
    stage.loop.turn()
    assert ends(stage) == {2: (Finish.NONE, None)}
    stage.loop.inbox.put(Drain())
    stage.loop.inbox.put(AbortAll())
    stage.loop.turn()
    assert ends(stage) == dict.fromkeys((1, 2, 3, 4), (Finish.ABORT, None))
    stage.loop.run()  # there is nothing left that it would wait for
    assert stage.loop.failure is None


def test_what_is_held_waits() -> None:
    stage = a_slow_stage()
    stage.submit(formed(1), a_request(2, max_tokens=100), formed(3, OTHER))
    stage.loop.turn()
    stage.submit(*(a_request(key, max_tokens=100) for key in range(4, 8)))
    stage.loop.turn()
    stage.loop.inbox.put(Abort((1,)))
    stage.loop.turn()
    stage.loop.inbox.put(Formed(OTHER, GrammarRefused("nothing fits")))
    stage.loop.turn()
    assert list(dict.fromkeys(load(stage))) == [(1, 2), (4, 3), (4, 2), (4, 1)]
    assert ends(stage)[3] == (Finish.ERROR, "grammar_invalid")


@pytest.mark.parametrize("refused", [False, True])
def test_a_drain_waits_for_what_is_held(refused: bool) -> None:
    """Its news comes after the order to leave, and the key has its end before the loop does."""
    stage = a_slow_stage()
    stage.submit(formed(1))
    stage.loop.inbox.put(Drain())
    stage.loop.turn()
    assert ends(stage) == {}
    news = Formed(FORM, GrammarRefused("nothing fits")) if refused else Abort((1,))
    stage.loop.inbox.put(news)
    stage.loop.run()
    assert stage.watch[1].finish is (Finish.ERROR if refused else Finish.ABORT)
