"""The merger of the choices of one call: what belongs to the call and not to a choice.

It owns the start of every chunk, the usage chunk, the error chunk and ``[DONE]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory import events as ev
from responsory.errors import LogError
from responsory.projections.text import DONE, dumps
from responsory.projections.usage import call_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from responsory.values import Usage


def finish_reason(event: ev.Completed | ev.Incomplete) -> str:
    """``stop``, ``length`` or ``content_filter``."""
    if isinstance(event, ev.Completed):
        return "stop"
    return "length" if event.reason == "max_output_tokens" else "content_filter"


def model_of(event: ev.Created) -> str:
    """The model that the request named. Raises ValueError when Accept's echo lacks it."""
    model = event.echo.get("model")
    if not isinstance(model, str):
        raise ValueError("Accept.echo must hold `model`")
    return model


def check_begin(events: Sequence[ev.Event]) -> None:
    """Raises LogError where a stream that has seen nothing yet is fed no start of a log."""
    if events and type(events[0]) is not ev.Created:
        raise LogError(f"a stream begins with Created, not with {type(events[0]).__name__}")


class Choices:
    """``count`` choices, ``per_prompt`` of them for each prompt, in prompt-major order."""

    def __init__(
        self,
        count: int,
        *,
        per_prompt: int,
        include_usage: bool,
        object_name: str,
        public_id: Callable[[str], str],
    ) -> None:
        if count < 1 or per_prompt < 1 or count % per_prompt:
            raise ValueError(f"{count} choices cannot be {per_prompt} for each prompt")
        self.count = count
        self.ended = False
        self._per_prompt = per_prompt
        self._include_usage = include_usage
        self._object = object_name
        self._public_id = public_id
        self._ended: dict[int, Usage] = {}
        self._head = ""
        self.chunk_end = ',"usage":null}\n\n' if include_usage else "}\n\n"
        """The end of every chunk, after the list of choices."""

    def check(self, choice: int) -> None:
        """Raises ValueError for a choice that the call does not have."""
        if not 0 <= choice < self.count:
            raise ValueError(f"a call of {self.count} choices has no choice {choice}")

    def head(self, event: ev.Created) -> str:
        """The start of a chunk, up to the list of choices, from the choice's own Created event.

        Raises ValueError, before anything changes, where the event's id or echo cannot be shown.
        """
        fields = {
            "id": self._public_id(event.id),
            "object": self._object,
            "created": event.created_at,
            "model": model_of(event),
        }
        head = f'data: {dumps(fields)[:-1]},"choices":['
        head.encode()  # a lone surrogate has no UTF-8: say so now, before the first frame
        self._head = head
        return head

    def end(self, choice: int, event: ev.Completed | ev.Incomplete | ev.Cancelled) -> list[bytes]:
        """Frames after a choice's last one: the call's own end, when it was the last choice."""
        self._ended[choice] = event.usage
        if len(self._ended) < self.count:
            return []
        self.ended = True
        if not self._include_usage:
            return [DONE]
        usage = dumps(call_usage(self._ended, self._per_prompt))
        return [f'{self._head}],"usage":{usage}}}\n\n'.encode(), DONE]

    def fail(self, event: ev.Failed) -> list[bytes]:
        """One choice failed: the call's one error chunk and its end."""
        self.ended = True
        return [f"data: {dumps(error_body(event))}\n\n".encode(), DONE]


def error_body(event: ev.Failed) -> Mapping[str, object]:
    """The error object of the public APIs: what a unary call that failed has instead of a body."""
    return {
        "error": {
            "message": event.message,
            "type": "server_error",
            "param": None,
            "code": event.code,
        }
    }
