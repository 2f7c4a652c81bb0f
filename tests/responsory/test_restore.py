"""Deltas that compaction dropped are put back as they may have been, and rows keep their places."""

from __future__ import annotations

import pytest

from responsory import EventLog, Response
from responsory import events as ev
from responsory.commands import Text
from responsory.compaction import dropped, restore
from responsory.errors import LogError
from responsory.testing import a_response
from responsory.values import Logprob

A, B = Logprob("a", -1.0, b"\xc3"), Logprob("b", -2.0, b"\xa9")
DONE = ev.TextDone(9, 0, 0, "xyz", (A, B))


def test_a_whole_log_stands_for_itself() -> None:
    log = a_response().text("a", "b").finish().log
    restored = restore(log)
    assert restored.events == log[:]
    assert [*restored.rows] == [row + 2 for row in range(len(log) + 1)]
    assert restored.fault is None
    assert [*restore([]).rows] == [2]


def test_the_deltas_of_a_row_are_in_its_place() -> None:
    log = a_response().reasoning("a", "b").text("c").finish().log
    short = log.compact()[:]
    restored = restore(short)
    assert restored.fault is None
    assert restored.events == log[:]
    rows = [2 + short.index(event) if event in short else None for event in log]
    after = [row for row in rows if row is not None]
    expected = [row or next(later for later in after if later not in rows[:at])
                for at, row in enumerate(rows)]  # fmt: skip
    assert [*restored.rows] == [*expected, len(short) + 2]


@pytest.mark.parametrize("deltas", [["", "", "é"], ["é", "", ""], ["", "é", ""]])
def test_a_delta_of_logprobs_alone_is_a_unit_too(deltas: list[str]) -> None:
    builder = a_response()
    for text, entry in zip(deltas, (A, B, A), strict=True):
        builder.send(Text(text, (entry,)))
    log = builder.finish().log
    assert Response.replay(log.compact()).view() == Response.replay(log).view()
    done = next(event for event in log if isinstance(event, ev.TextDone))
    assert (done.text, done.logprobs) == ("é", (A, B, A))


def test_what_can_be_missing_before_an_event() -> None:
    assert [dropped(DONE, due) for due in range(4, 10)] == [5, 4, 3, 2, 1, 0]
    for event, due, words in [
        (DONE, 3, "TextDone with seq 9 sums up 5 units, and 6 deltas are missing"),
        (ev.RefusalDone(9, 0, 0, "xyz"), 5, "RefusalDone with seq 9 sums up 3 units, and 4"),
        (DONE, 10, "TextDone with seq 9 where 10 is due"),
        (DONE, 11, "TextDone with seq 9 where 11 is due"),
        (ev.PartDone(9, 0, 0), 8, "PartDone with seq 9 where 8 is due"),
        (ev.PartDone(9, 0, 0), 10, "PartDone with seq 9 where 10 is due"),
        (ev.TextDelta(9, 0, 0, "x"), 9, "TextDelta with seq 9 is a delta in a compacted log"),
    ]:
        with pytest.raises(LogError) as caught:
            dropped(event, due)
        assert str(caught.value).startswith(words)


def test_a_compacted_log_that_has_not_ended() -> None:
    short = a_response().text("a").finish().log.compact()[:-1]
    with pytest.raises(LogError) as caught:
        Response.replay(short)
    assert str(caught.value) == "row 9: deltas were dropped, and the log has not ended"
    assert EventLog(short[:4])[:] == short[:4]
