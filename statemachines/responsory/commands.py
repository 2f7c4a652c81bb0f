"""Commands: what a server tells the machine. The machine answers with events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.values import JSON, Logprob, Phase, Usage


class Command:
    """The base of all commands."""

    __slots__ = ()


@immutable
class Accept(Command):
    """The engine took the request.

    ``id`` is the tail T of every public id (``resp_T``, ``msg_T_0``, ``chatcmpl-T``);
    ``created_at`` is in Unix seconds. ``echo`` holds the request's own settings as they are shown:
    for the Responses API the constant end of every snapshot, from ``model`` on, key order kept;
    for chat and completions at least ``model``.
    """

    id: str
    created_at: int
    background: bool = False
    echo: Mapping[str, JSON] = attrs.field(factory=dict)


@immutable
class Start(Command):
    """A queued (background) response begins to run."""


@immutable
class Text(Command):
    """Text of the answer. Text of another ``phase`` is another message."""

    text: str
    logprobs: tuple[Logprob, ...] = ()
    phase: Phase | None = None


@immutable
class Refusal(Command):
    """Text in which the model declines, from engines that mark it."""

    text: str


@immutable
class Reasoning(Command):
    """Text of the model's reasoning."""

    text: str


@immutable
class CallOpened(Command):
    """A tool call begins. ``call_id`` only where the model family itself supplies one; one that an
    earlier call of the response has already is not used, and the id is derived."""

    kind: Literal["function", "custom"] = attrs.field(
        validator=attrs.validators.in_(("function", "custom"))
    )
    name: str
    call_id: str | None = None


@immutable
class CallInput(Command):
    """A piece of the open call's arguments (function) or input (custom)."""

    text: str


@immutable
class CallClosed(Command):
    """The open call is complete."""


@immutable
class Finish(Command):
    """The engine ended by itself.

    ``stop`` is what stopped it: a stop string, a token id, or None. ``completed_at`` (Unix
    seconds) is shown for a completed response only: for ``length`` and ``content_filter`` the
    public resource has no such time, and it is not kept.
    """

    reason: Literal["stop", "length", "content_filter"] = attrs.field(
        validator=attrs.validators.in_(("stop", "length", "content_filter"))
    )
    usage: Usage
    completed_at: int | None = None
    stop: str | int | None = None


@immutable
class Fail(Command):
    """The engine or the server broke; ``message`` is for the client."""

    code: str
    message: str
    usage: Usage


@immutable
class Cancel(Command):
    """The client cancelled, or went away."""

    usage: Usage


COMMANDS: tuple[type[Command], ...] = (
    Accept,
    Start,
    Text,
    Refusal,
    Reasoning,
    CallOpened,
    CallInput,
    CallClosed,
    Finish,
    Fail,
    Cancel,
)

CLIENT_COMMANDS: frozenset[type[Command]] = frozenset({Accept, Cancel})
"""What a client asks for. An illegal one is the client's fault; any other is the server's."""
