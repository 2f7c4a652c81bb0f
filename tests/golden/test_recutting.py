"""Recordings in other steps give the golden bodies all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden_files import rendered

from golden.folders import read
from golden.playing import RECORDINGS, Step, play, steps_of
from golden.recutting import JOINED, MERGED, Recut, finest

BODIES = ("responses.json", "chat.json", "completions.json")


def bodies(files: dict[str, bytes]) -> dict[str, Any]:
    return {name: json.loads(files[name]) for name in BODIES if name in files}


def replayed(name: str, recut: Recut) -> dict[str, Any]:
    recording = RECORDINGS[name]
    logs = [
        play(recording, choice, recut(steps_of(recording, choice))).log
        for choice in recording.choices
    ]
    return bodies(rendered(logs))


def shows_borders(name: str) -> bool:
    """Whether each id of the recording is known to begin at a place in the text."""
    pieces = (
        piece
        for choice in RECORDINGS[name].choices
        for step in steps_of(RECORDINGS[name], choice)
        for piece in step
    )
    return all(len(piece.ids) <= 1 or piece.logprobs for piece in pieces)


def without_usage(found: dict[str, Any]) -> dict[str, Any]:
    return {name: {**body, "usage": None} for name, body in found.items()}


@pytest.mark.parametrize("name", RECORDINGS)
def test_as_fine_as_can_be(name: str) -> None:
    made, golden = replayed(name, finest), bodies(read(name))
    if not shows_borders(name):  # which of a step's ids are reasoning is an estimate then
        made, golden = without_usage(made), without_usage(golden)
    assert made == golden


@pytest.mark.wire("S9", "S10")
@pytest.mark.parametrize("recut", MERGED.values(), ids=MERGED)
@pytest.mark.parametrize("name", RECORDINGS)
def test_several_tokens_a_step(name: str, recut: Recut) -> None:
    assert replayed(name, recut) == bodies(read(name))


@pytest.mark.parametrize("recut", JOINED.values(), ids=JOINED)
@pytest.mark.parametrize("name", RECORDINGS)
def test_several_tokens_in_one_text(name: str, recut: Recut) -> None:
    """Without borders the tokens up to a stop string or a marker are an estimate; the rest is as
    ever, and the tokens are all counted."""
    made, golden = replayed(name, recut), bodies(read(name))
    assert without_usage(made) == without_usage(golden)
    if "chat.json" in golden and not _stopped(golden):
        assert _total(made) == _total(golden)


def _stopped(found: dict[str, Any]) -> bool:
    return any(choice["stop_reason"] is not None for choice in found["chat.json"]["choices"])


def _total(found: dict[str, Any]) -> int:
    return int(found["chat.json"]["usage"]["completion_tokens"])


@pytest.mark.parametrize("name", RECORDINGS)
def test_recutting_loses_nothing(name: str) -> None:
    """The recuts themselves are right: same text, ids and logprobs, in other steps."""
    recording = RECORDINGS[name]
    for choice in recording.choices:
        steps = steps_of(recording, choice)
        for recut in (finest, *MERGED.values(), *JOINED.values()):
            assert _content(recut(steps)) == _content(steps)


def _content(steps: list[Step]) -> tuple[Any, ...]:
    pieces = [piece for step in steps for piece in step]
    return (
        "".join(piece.text for piece in pieces),
        [token for piece in pieces for token in piece.ids],
        [entry for piece in pieces for entry in piece.logprobs],
    )
