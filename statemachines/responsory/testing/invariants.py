"""What holds for every log, said once more and without the machine.

The machine's own check (``Response.replay``) decides every command again. This one knows no
command: the order of events is one regular expression over a letter for each, and the rest (indexes
and sums) is counted. The two accept the same logs.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from responsory import events as ev
from responsory.testing.expect import expect

if TYPE_CHECKING:
    from collections.abc import Sequence

LETTERS: dict[tuple[type[ev.Event], str], str] = {
    (ev.Created, ""): "c",
    (ev.Queued, ""): "q",
    (ev.InProgress, ""): "p",
    (ev.ItemAdded, "message"): "M",
    (ev.ItemAdded, "reasoning"): "R",
    (ev.ItemAdded, "function_call"): "C",
    (ev.ItemAdded, "custom_tool_call"): "C",
    (ev.PartAdded, "output_text"): "T",
    (ev.PartAdded, "refusal"): "U",
    (ev.PartAdded, "reasoning_text"): "V",
    (ev.TextDelta, ""): "t",
    (ev.RefusalDelta, ""): "u",
    (ev.ReasoningDelta, ""): "v",
    (ev.InputDelta, ""): "i",
    (ev.TextDone, ""): "1",
    (ev.RefusalDone, ""): "2",
    (ev.ReasoningDone, ""): "3",
    (ev.InputDone, ""): "4",
    (ev.PartDone, ""): "/",
    (ev.ItemDone, "completed"): ")",
    (ev.ItemDone, "incomplete"): "!",
    (ev.Completed, ""): ".",
    (ev.Incomplete, ""): "~",
    (ev.Errored, ""): "E",
    (ev.Failed, ""): "F",
    (ev.Cancelled, ""): "X",
}

PARTS = "(?: T t+ 1 / (?!T) | U u+ 2 / (?!U) )"
ORDER = re.compile(
    rf"""
    (?: c q (?: E F | X )?                       # queued: it waits, or never ran
      | c q? p M T 1 / (?: \) \. | ! ~ )         # an answer of no tokens
      | c q? p
        (?P<whole> M {PARTS}+ \) (?=[MRC.])      # closed by the next item, or by Finish (stop)
                 | R V v+ 3 / \) (?=[MC.])
                 | C i* 4 \)                     # closed by a command of its own, too
        )*
        (?: M {PARTS}* (?: T t+ | U u+ )         # an item is open
          | R V v+
          | C i*
          | (?: M {PARTS}+ | R V v+ 3 / | C i* 4 ) ! (?: ~ | E F | X )
          | (?: E F | X )
          | (?(whole) [.~] )
        )?
    )?
    """,
    re.VERBOSE,
)


def check_log(log: Sequence[ev.Event]) -> None:
    """Raises InvariantError, with the rule, when ``log`` breaks one. The log may be unfinished,
    but it ends at the border of a command's group; a compacted log is not taken."""
    expect([event.seq for event in log] == list(range(len(log))), "seq is dense from 0")
    order = "".join(map(_letter, log))
    expect(ORDER.fullmatch(order) is not None, f"the order of events: {order}")
    for event, after in itertools.pairwise(log):
        if isinstance(event, ev.Created):
            expect(event.background == isinstance(after, ev.Queued), "only the background queues")
        if isinstance(event, ev.Errored) and isinstance(after, ev.Failed):
            told = (event.code, event.message) == (after.code, after.message)
            expect(told, "errored and failed tell the same")
    _check_items(log)


def _letter(event: ev.Event) -> str:
    which = ""
    if isinstance(event, ev.ItemAdded | ev.PartAdded):
        which = event.type
    elif isinstance(event, ev.ItemDone):
        which = event.status
    letter = LETTERS.get((type(event), which))
    expect(letter is not None, f"no event is a {type(event).__name__} of {which}")
    return letter or ""


def _check_items(log: Sequence[ev.Event]) -> None:
    """Indexes, sums, and what an item may carry."""
    item = part = -1
    call_ids = [event.call_id for event in log if isinstance(event, ev.ItemAdded) and event.call_id]
    expect(len(set(call_ids)) == len(call_ids), "no two calls have one call_id")
    deltas: list[ev.Event] = []
    added: ev.ItemAdded | None = None
    last: ev.Event | None = None
    for event in log:
        if isinstance(event, ev.ItemAdded):
            _check_added(event, added if isinstance(last, ev.ItemDone) else None)
            item, part, added, deltas = item + 1, -1, event, []
        elif isinstance(event, ev.PartAdded):
            part, deltas = part + 1, []
            marked = added is not None and added.phase is not None
            expect(not marked or event.part > 0 or event.type == "output_text",
                   "a message with a phase begins with text")  # fmt: skip
        elif isinstance(event, ev.Delta):
            expect(bool(event.text or _logprobs(event) or _ids(event)), "no delta is empty")
            deltas.append(event)
        elif isinstance(event, ev.Done):
            text = "".join(delta.text for delta in deltas if isinstance(delta, ev.Delta))
            logprobs = tuple(entry for delta in deltas for entry in _logprobs(delta))
            expect(event.text == text, "a Done event has the text of its deltas")
            expect(_logprobs(event) == logprobs, "a Done event has the logprobs of its deltas")
            told = tuple(token for delta in deltas for token in _ids(delta))
            expect(event.ids == told, "a Done event has the token ids of its deltas")
            cut = isinstance(event, ev.TextDone) and event.cuts
            expect(not cut, "a text tells its cuts in a compacted log alone")
        expect(getattr(event, "item", item) == item, "an item's index is the count before it")
        expect(getattr(event, "part", part) == part, "a part's index is the count before it")
        last = event


def _check_added(event: ev.ItemAdded, before: ev.ItemAdded | None) -> None:
    """``before``: the item that was closed to open this one."""
    call = event.type in ("function_call", "custom_tool_call")
    expect((event.name is not None) == call, "calls have a name, and nothing else has")
    expect(event.call_id is None or call, "only calls have a call_id")
    expect(event.phase is None or event.type == "message", "only messages have a phase")
    if before is not None and before.type == event.type == "message":
        expect(before.phase != event.phase, "a message follows another for its phase alone")


def _ids(event: ev.Event) -> tuple[int, ...]:
    told = event.tokens if isinstance(event, ev.Delta) else None
    return () if told is None else told.ids


def _logprobs(event: ev.Event) -> tuple[object, ...]:
    return event.logprobs if isinstance(event, ev.TextDelta | ev.TextDone) else ()
