"""What holds for every log, said once and without the machine."""
# ruff: noqa: S101  # to assert is what this module is for

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE_OF: dict[type[ev.Event], type[ev.Event]] = {
    ev.TextDelta: ev.TextDone,
    ev.RefusalDelta: ev.RefusalDone,
    ev.ReasoningDelta: ev.ReasoningDone,
    ev.InputDelta: ev.InputDone,
}


def check_log(log: Sequence[ev.Event]) -> None:
    """Raises AssertionError, with the rule, when ``log`` breaks one. The log may be unfinished,
    but it ends at the border of a command's group."""
    assert [event.seq for event in log] == list(range(len(log))), "seq is dense from 0"
    kinds = [type(event) for event in log]
    if kinds:
        assert kinds[0] is ev.Created, "created is first"
    assert kinds.count(ev.Created) <= 1, "created is there once"
    endings = [index for index, kind in enumerate(kinds) if kind in ev.ENDINGS]
    assert len(endings) <= 1, "one terminal event"
    assert not endings or endings == [len(log) - 1], "nothing after the terminal event"
    for index, kind in enumerate(kinds):
        if kind is ev.Failed:
            assert kinds[index - 1] is ev.Errored, "errored precedes failed"
    statuses = _check_items(log)
    cut = [status for status in statuses if status == "incomplete"]
    assert len(cut) <= 1, "one incomplete item at most"
    assert not cut or statuses[-1] == "incomplete", "an incomplete item is the last"
    if cut or (kinds and kinds[-1] is ev.Incomplete):
        assert kinds[-1] is not ev.Completed, "a completed response has no incomplete item"
    if kinds and kinds[-1] in (ev.Completed, ev.Incomplete):
        assert statuses, "a finished response has an item"


def _check_items(log: Sequence[ev.Event]) -> list[str]:
    """The statuses of the closed items, in order."""
    statuses: list[str] = []
    item: ev.ItemAdded | None = None
    part: int | None = None
    parts = 0
    closed_text = False
    deltas: list[str] = []
    for event in log:
        if isinstance(event, ev.ItemAdded):
            assert item is None, "items are serial"
            assert event.item == len(statuses), "an item's index is the count of items before it"
            item, part, parts, deltas, closed_text = event, None, 0, [], False
            continue
        place = getattr(event, "item", None)
        if place is None:
            assert type(event) not in ev.ENDINGS or item is None, "no item is open at the end"
            continue
        assert item is not None, "nothing of an item outside it"
        assert place == item.item, "events belong to the open item"
        if isinstance(event, ev.PartAdded):
            assert part is None, "parts are serial"
            assert event.part == parts, "a part's index is the count of parts before it"
            part, deltas, closed_text = event.part, [], False
            parts += 1
        elif isinstance(event, ev.PartDone):
            assert event.part == part, "a part is closed once"
            assert closed_text, "a part's Done event precedes PartDone"
            part = None
        elif isinstance(event, ev.ItemDone):
            assert part is None, "a part is closed before its item"
            assert parts or closed_text, "an item has a part, or is a call with its input"
            statuses.append(event.status)
            item = None
        elif type(event) in DONE_OF:
            assert not closed_text, "no delta after the Done event"
            assert getattr(event, "part", None) == part, "a delta belongs to the open part"
            deltas.append(event.text)  # type: ignore[attr-defined]  # every delta has a text
        else:
            assert event.text == "".join(deltas), "the Done event is the sum of the deltas"  # type: ignore[attr-defined]  # every Done event has a text
            closed_text = True
    return statuses
