"""The frames of the Responses stream in which each event is shown, learned by rendering them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from responsory.draw.alphabet import alphabet
from responsory.draw.errors import DrawError
from responsory.errors import IllegalTransition
from responsory.events import EVENTS, Event
from responsory.projections.responses import Profile, ResponsesStream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from responsory.draw.exploration import Reached, Situation

PROFILES: tuple[Profile, ...] = get_args(Profile)


def frame_names(
    found: Mapping[Situation, Reached],
) -> Mapping[type[Event], Mapping[Profile, list[str]]]:
    """For each event and wire profile the names of its frames, each once, in the order found; none
    for an event that has no frame. Raises DrawError for an event that no command gives."""
    names: dict[type[Event], dict[Profile, list[str]]] = {}
    for at, reached in found.items():
        for group in _groups(at, reached):
            for profile in PROFILES:
                stream = ResponsesStream(profile=profile)
                stream.feed(0, reached.log)
                for event in group:
                    known = names.setdefault(type(event), {}).setdefault(profile, [])
                    known += [name for name in _names(stream, event) if name not in known]
    for kind in EVENTS:
        if kind not in names:
            raise DrawError(f"no commands give {kind.__name__}")
    return {kind: names[kind] for kind in EVENTS}


def _groups(at: Situation, reached: Reached) -> Iterator[list[Event]]:
    for commands in alphabet(at.phase).values():
        for command in commands:
            try:
                yield reached.machine.decide(command)
            except IllegalTransition:
                continue


def _names(stream: ResponsesStream, event: Event) -> Iterator[str]:
    for frame in stream.feed(0, [event]):
        head = frame.decode().partition("\n")[0]
        if head.startswith("event: "):
            yield head.removeprefix("event: ")
