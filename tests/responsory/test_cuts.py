"""What a compacted log tells of how a text was cut: only what does not follow from the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from responsory import EventLog, Response
from responsory import events as ev
from responsory.commands import Text
from responsory.testing import a_response
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence


def token(text: str) -> Logprob:
    return Logprob(text, -0.5, text.encode())


@pytest.mark.parametrize(
    ("deltas", "cuts"),
    [
        ([("ab", ()), ("c", ())], ()),  # nobody asked
        ([("ab", ("ab",)), ("c", ("c",))], ()),  # they spell it
        ([("ab", ("ab",)), ("c", ("cd",))], ()),  # all but the cut end
        ([("é", ("é",)), ("c", ())], ((1, 1), (1, 0))),
        ([("ab", ("x",))], ()),  # all at once
        ([("ab", ("x", "y"))], ()),
        ([("ab", ("ab",)), ("c", ())], ((2, 1), (1, 0))),
        ([("ab", ()), ("c", ("c",))], ((2, 0), (1, 1))),
        ([("a", ()), ("b", ()), ("c", ("c",)), ("d", ()), ("ef", ())], ((2, 0), (1, 1), (3, 0))),
        ([("a", ("a",)), ("b", ("x",)), ("c", ("c", "d"))], ((1, 1), (1, 1), (1, 2))),
        ([("", ("",)), ("b", ()), ("c", ())], ((0, 1), (2, 0))),
    ],
)
def test_the_cuts_of_a_text(
    deltas: Sequence[tuple[str, Sequence[str]]], cuts: tuple[tuple[int, int], ...]
) -> None:
    made = a_response()
    for text, entries in deltas:
        made.send(Text(text, tuple(map(token, entries))))
    made.refusal("no").text("plain").finish()
    short = made.log.compact()
    told = [event for event in short if isinstance(event, ev.TextDone)]
    assert [done.cuts for done in told] == [cuts, ()]
    assert all(event.cuts == () for event in made.log if isinstance(event, ev.TextDone))
    assert short.compact() == short == EventLog.from_rows(short.rows())
    assert Response.replay(short).view() == made.machine.view()
    written = EventLog(compacted=True)
    for event in made.log:
        written.extend([event])
    assert written == short


def test_each_text_tells_its_own_cuts() -> None:
    made = a_response().send(Text("a", (token("x"),))).text("b").refusal("no")
    made.text("cd").send(Text("e", (token("x"),))).finish()
    told = [event.cuts for event in made.log.compact() if isinstance(event, ev.TextDone)]
    assert told == [((1, 1), (1, 0)), ((2, 0), (1, 1))]
