"""The header of a stored log: what it says, and what is none."""

from __future__ import annotations

import pytest

from responsory import events as ev
from responsory.errors import LogError
from responsory.header import from_header, to_header, version_of
from responsory.upcasts import CURRENT, Version
from responsory.values import JSON, Logprob, Tokens, TopLogprob, Usage

VERSIONS = (Version(1, 1), Version(1, 2), Version(2, 2))


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_written_is_a_version(compacted: bool) -> None:
    assert to_header(compacted=compacted) == {**CURRENT._asdict(), "compacted": compacted}
    told = to_header(compacted=compacted, version=Version(2, 3))
    assert told == {"format": 2, "machine": 3, "compacted": compacted}


PLAIN, TOKENS = Logprob("a", -1.0, b"a", (TopLogprob("b", -2.0, b"b"),)), Tokens((), 1)
SECOND: list[ev.Event] = [
    ev.TextDelta(4, 0, 0, "a", (), TOKENS),
    ev.RefusalDelta(4, 0, 0, "a", TOKENS),
    ev.ReasoningDelta(4, 0, 0, "a", TOKENS),
    ev.InputDelta(4, 0, "a", TOKENS),
    ev.TextDone(4, 0, 0, "a", (), (1,)),
    ev.TextDone(4, 0, 0, "a", (), (), ((1, 0),)),
    ev.RefusalDone(4, 0, 0, "a", (1,)),
    ev.ReasoningDone(4, 0, 0, "a", (1,)),
    ev.InputDone(4, 0, "a", (1,)),
    ev.Completed(4, Usage(1, 1), None, None, (1,)),
    ev.Incomplete(4, Usage(1, 1), "content_filter", None, (1,)),
    *(
        event(4, 0, 0, "a", (PLAIN, entry))
        for event in (ev.TextDelta, ev.TextDone)
        for entry in (
            Logprob("a", None, b"a"),
            Logprob("a", -1.0, b"a", (), 0),
            Logprob("a", -1.0, b"a", (*PLAIN.top, TopLogprob("b", -2.0, b"b", 0))),
        )
    ),
]


@pytest.mark.parametrize("event", SECOND)
def test_a_log_that_tells_tokens_is_of_the_second_version(event: ev.Event) -> None:
    assert version_of([ev.Queued(1), event, ev.Queued(1)]) == Version(1, 2)


def test_a_log_that_does_not_is_of_the_first() -> None:
    events = [
        ev.Created(0, "r1", 5, False, {"tokens": 1, "ids": [1]}),
        ev.ItemAdded(2, 0, "message"),
        ev.TextDelta(4, 0, 0, "a", (PLAIN,)),
        ev.RefusalDelta(4, 0, 0, "a"),
        ev.ReasoningDelta(4, 0, 0, "a"),
        ev.InputDelta(4, 0, "a"),
        ev.TextDone(4, 0, 0, "a", (PLAIN,)),
        ev.RefusalDone(4, 0, 0, "a"),
        ev.ReasoningDone(4, 0, 0, "a"),
        ev.InputDone(4, 0, "a"),
        ev.Completed(4, Usage(1, 1), 5, 7),
        ev.Incomplete(4, Usage(1, 1), "content_filter", "END"),
    ]
    assert version_of(events) == version_of([]) == Version(1, 1)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_read_is_a_version_of_the_history(version: Version, compacted: bool) -> None:
    found = {"format": version.format, "machine": version.machine, "compacted": compacted}
    assert from_header(found, VERSIONS) == (version, compacted)


READ = "format 1, machine 1; format 1, machine 2; format 2, machine 2"
NEWER, NEVER = "is newer than this library, which reads", "never was, and this library reads"

BAD: list[tuple[JSON, str]] = [
    (None, "not the header of a log: None"),
    (["format", "machine", "compacted"], "not the header of a log: ['format', 'machine', 'compa"),
    ({}, "not the header of a log: {}"),
    ({"machine": 1, "compacted": False}, "not the header of a log: {"),
    ({"format": 1, "compacted": False}, "not the header of a log: {"),
    ({"format": 1, "machine": 1}, "not the header of a log: {'format': 1, 'machine': 1}"),
    ({"format": 1, "machine": 1, "compacted": 0}, "not the header of a log: {"),
    ({"format": 1, "machine": 1, "compacted": False, "x": 1}, "not the header of a log: {"),
    ({"format": "1", "machine": 1}, "the format of a log cannot be '1'"),
    ({"format": True, "machine": 1}, "the format of a log cannot be True"),
    ({"format": 1, "machine": 1.0}, "the machine of a log cannot be 1.0"),
    ({"format": 1, "machine": 0}, "the machine of a log cannot be 0"),
    # Whatever else a newer header says, or leaves out.
    ({"format": 3, "machine": 2}, f"format 3, machine 2 {NEWER} {READ}"),
    ({"format": 2, "machine": 3, "x": 1}, f"format 2, machine 3 {NEWER} {READ}"),
    ({"format": 1, "machine": 3}, f"format 1, machine 3 {NEWER} {READ}"),
    ({"format": 2, "machine": 1}, f"format 2, machine 1 {NEVER} {READ}"),
]


@pytest.mark.parametrize(("value", "message"), BAD)
def test_what_is_no_header(value: JSON, message: str) -> None:
    with pytest.raises(LogError) as caught:
        from_header(value, VERSIONS)
    assert str(caught.value).startswith(message)


def test_a_version_that_no_release_wrote_is_not_newer() -> None:
    with pytest.raises(LogError, match=r"^format 1, machine 2 never was, and this library reads"):
        from_header({"format": 1, "machine": 2}, (Version(1, 1), Version(2, 1), Version(2, 2)))
