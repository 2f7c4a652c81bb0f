"""The merger of the choices of one call: what belongs to the call and not to a choice.

It owns the start and the end of every chunk, the usage chunk, the error chunk and ``[DONE]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory import checks
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections.padding import padding
from responsory.projections.text import DONE, dumps
from responsory.projections.usage import RunningUsage, call_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from responsory.projections.padding import Draw
    from responsory.values import Tokens, Usage


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


def prompt_ids(event: ev.Created) -> list[int]:
    """The token ids of the prompt. Raises ValueError when Accept's echo lacks them."""
    found = event.echo.get("prompt_token_ids")
    if not isinstance(found, list):
        raise ValueError("Accept.echo must hold `prompt_token_ids`")
    return [checks.count(token) for token in found]


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
        continuous_usage: Sequence[int] | None,
        token_ids: bool,
        obfuscation: Draw | None,
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
        self.token_ids = token_ids
        self._running = None if continuous_usage is None else RunningUsage(continuous_usage)
        self._draw = obfuscation
        self._null = ',"usage":null' if self._include_usage else ""
        self.plain = self._running is None and obfuscation is None and not token_ids
        """Nothing was asked for that a delta tells beside its text: every chunk ends with
        ``plain_end``, after the list of choices."""
        self.plain_end = f"{self._null}}}\n\n"

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
        if self.token_ids:
            prompt_ids(event)
        head = f'data: {dumps(fields)[:-1]},"choices":['
        head.encode()  # a lone surrogate has no UTF-8: say so now, before the first frame
        self._head = head
        return head

    def ids(self, ids: Sequence[int]) -> str:
        """The last key of a choice, where it was asked for."""
        return f',"token_ids":{dumps(ids)}' if self.token_ids else ""

    def take(self, choice: int, tokens: Tokens | None) -> None:
        """What a delta tells of the tokens of its choice so far."""
        if self._running is not None and tokens is not None:
            self._running.take(choice, tokens.output)

    def chunk_end(self, varying: str, *more: str) -> str:
        """The end of a chunk, after the list of choices: the usage, ``more`` keys of the call,
        and padding. ``varying``: what the chunk has that others have not."""
        if self.plain:
            return self.plain_end
        usage = self._null
        if self._running is not None:
            usage = f',"usage":{dumps(self._running.shown())}'
        keys = "".join((usage, *more))
        padded = "" if self._draw is None else padding(varying + keys, self._draw)
        return f"{keys}{padded}}}\n\n"

    def finished(self, choice: int, event: ev.Completed | ev.Incomplete) -> None:
        """Before the finish chunk of a choice, which has the count of all its tokens."""
        if self._running is not None:
            self._running.take(choice, event.usage.output_tokens)

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
