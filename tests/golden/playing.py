"""Recordings played through the library: an engine's lines become one event log per choice.

A step of a recording is one feed of the segmenter, as it is in a server. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from antiphon.engines.port import Finish as EngineFinish
from antiphon.engines.recording import RecordedChoice, Recording, load_recordings
from antiphon.errors import EngineFailed
from antiphon.prompting.detokenizer import Detokenizer
from golden.built import TOOLS
from golden.echo import CLOCK, TAIL, echo
from responsory import EventLog, Logprob, Response, TopLogprob, Usage
from responsory.commands import Accept, Cancel, Command, Fail, Finish
from responsory.segments import Piece, Segmenter, family

if TYPE_CHECKING:
    from antiphon.engines.port import TokenSpelling
    from antiphon.engines.recording_rows import StepRow
    from responsory.events import Event
    from responsory.values import JSON

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDINGS: Mapping[str, Recording] = load_recordings(FIXTURES)
"""Every recording of the repository by case name, ``<family>/<what>``."""

STOPS: Mapping[str, tuple[str, ...]] = {
    "hermes/stop-string": ("END",),
    "think/stop-string": ("END",),
}
"""The stop strings of a recording's request, where it had any: a recording is the engine's side,
and stop strings are the server's."""

BYTES = [bytes([value]) for value in range(256)]
REASONS: Mapping[EngineFinish, Literal["stop", "length", "content_filter"]] = {
    EngineFinish.STOP: "stop",
    EngineFinish.LENGTH: "length",
    EngineFinish.CONTENT_FILTER: "content_filter",
}

Step = Sequence[Piece]
"""What the detokenizer made of one engine step."""


def steps_of(recording: Recording, choice: RecordedChoice) -> list[Step]:
    """The pieces of each step. Of a ``bytes`` recording a piece is the text that one id made final,
    and what the end leaves of a character is a piece without ids."""
    if recording.tokenizer == "opaque":
        return [[_piece(step.text or "", step)] for step in choice.steps]
    detokenizer = Detokenizer(BYTES)
    steps: list[Step] = [list(_byte_pieces(detokenizer, step)) for step in choice.steps]
    rest = detokenizer.flush()
    return [*steps, [Piece(rest)]] if rest else steps


def _piece(text: str, step: StepRow) -> Piece:
    return Piece(text, tuple(step.ids), tuple(map(_logprob, step.spelling or ())))


def _byte_pieces(detokenizer: Detokenizer, step: StepRow) -> Iterator[Piece]:
    spelling = step.spelling or [None] * len(step.ids)
    for token, entry in zip(step.ids, spelling, strict=True):
        logprobs = () if entry is None else (_logprob(entry),)
        yield Piece(detokenizer.feed(token), (token,), logprobs)


def _logprob(token: TokenSpelling) -> Logprob:
    top = tuple(TopLogprob(*candidate) for candidate in token.top)
    return Logprob(token.text, token.logprob, token.data, top)


@attrs.define
class Played:
    """``log``: all events of one choice. ``feeds``: the same, as each step gave them."""

    log: EventLog = attrs.field(factory=EventLog)
    feeds: list[list[Event]] = attrs.field(factory=list)


def play(
    recording: Recording, choice: RecordedChoice, steps: Sequence[Step] | None = None
) -> Played:
    """One choice from acceptance to its end, with the recorded ``steps`` or others in their place.

    The end comes with the last step, unless it is a failure.
    """
    machine, played = Response(), Played()
    segmenter = Segmenter(family(recording.family), stop=STOPS.get(recording.name, ()))

    def receive(commands: Sequence[Command], *, on: bool = False) -> None:
        events = [event for command in commands for event in machine.receive(command)]
        played.log.extend(events)
        if on and played.feeds:
            played.feeds[-1] += events
        elif events:
            played.feeds.append(events)

    receive([Accept(TAIL, CLOCK, False, _echo(recording, choice))])
    for step in steps_of(recording, choice) if steps is None else steps:
        receive(segmenter.feed(step))
        if segmenter.stop is not None:
            break
    if choice.finish is not EngineFinish.ABORT:
        cut = choice.finish is not EngineFinish.STOP and not segmenter.ended
        receive(segmenter.finish(cut=cut), on=True)
    usage = Usage(
        recording.prompt_tokens,
        segmenter.output_tokens,
        reasoning_tokens=segmenter.reasoning_tokens,
    )
    end = _ending(choice, segmenter.stop, usage)
    receive([end], on=isinstance(end, Finish))
    return played


def _ending(choice: RecordedChoice, stop: str | None, usage: Usage) -> Finish | Fail | Cancel:
    """What a server tells the machine. The engine's own words about a failure are for its log."""
    if stop is not None:
        return Finish("stop", usage, CLOCK + 1, stop)
    if choice.finish in REASONS:
        return Finish(REASONS[choice.finish], usage, CLOCK + 1)
    if choice.finish is EngineFinish.ABORT:
        return Cancel(usage)
    return Fail("server_error", EngineFailed().message, usage)


def calls(recording: Recording) -> bool:
    """Whether its family has calls; then its request declared ``TOOLS``."""
    return any(mode.calls for mode in family(recording.family).modes.values())


def _echo(recording: Recording, choice: RecordedChoice) -> Mapping[str, JSON]:
    most = max(
        (len(token.top) for step in choice.steps for token in step.spelling or ()), default=0
    )
    return echo(top_logprobs=most, tools=TOOLS if calls(recording) else [])
