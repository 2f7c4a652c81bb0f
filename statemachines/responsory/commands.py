"""Commands: what a server tells the machine. The machine answers with events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from responsory import checks
from responsory.checks import valid
from responsory.errors import shown
from responsory.immutable import immutable
from responsory.values import Usage

if TYPE_CHECKING:
    from responsory.values import JSON, Logprob, Phase, Tokens


RESERVED = frozenset({
    "id", "object", "created_at", "completed_at", "status", "error", "incomplete_details", "output",
    "usage",
})  # fmt: skip
"""The keys of a Responses resource that are the response's own: no echo can hold them."""


def own_echo(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """The echo as a copy that nothing else holds. Raises ValueError for what is no JSON object or
    has a reserved key."""
    try:
        copied = checks.echo(value)
    except ValueError as error:
        raise ValueError(f"echo {error}") from None
    taken = sorted(RESERVED & copied.keys())
    if taken:
        raise ValueError(f"an echo cannot hold the response's own keys: {', '.join(taken)}")
    return copied


def _usage(value: object) -> None:
    if not isinstance(value, Usage):
        raise ValueError(f"must be a Usage, not {shown(value)}")


class Command:
    """The base of all commands. Making one raises ValueError for a value that it cannot carry."""

    __slots__ = ()


@immutable
class Accept(Command):
    """The engine took the request.

    ``id`` is the tail T of every public id (``resp_T``, ``msg_T_0``, ``chatcmpl-T``);
    ``created_at`` is in Unix seconds. ``echo`` holds the request's own settings as they are shown:
    for the Responses API the constant end of every snapshot, from ``model`` on, key order kept;
    for chat and completions at least ``model``. It is copied, and cannot hold a key of the
    response's own (``RESERVED``).
    """

    id: str = attrs.field(validator=valid(checks.name))
    created_at: int = attrs.field(validator=valid(checks.count))
    background: bool = attrs.field(default=False, validator=valid(checks.flag))
    echo: Mapping[str, JSON] = attrs.field(factory=dict, converter=own_echo)


@immutable
class Start(Command):
    """A queued (background) response begins to run."""


@immutable
class Text(Command):
    """Text of the answer. Text of another ``phase`` is another message.

    The texts of this and the next commands are looked at by the machine, which raises ValueError
    for half a surrogate pair. ``tokens`` only where the request asked for ids or running counts.
    """

    text: str
    logprobs: tuple[Logprob, ...] = ()
    phase: Phase | None = None
    tokens: Tokens | None = None


@immutable
class Refusal(Command):
    """Text in which the model declines, from engines that mark it."""

    text: str
    tokens: Tokens | None = None


@immutable
class Reasoning(Command):
    """Text of the model's reasoning."""

    text: str
    tokens: Tokens | None = None


@immutable
class CallOpened(Command):
    """A tool call begins. ``call_id`` only where the model family itself supplies one; one that an
    earlier call of the response has already is not used, and the id is derived."""

    kind: Literal["function", "custom"] = attrs.field(
        validator=valid(checks.one_of("function", "custom"))
    )
    name: str = attrs.field(validator=valid(checks.name))
    call_id: str | None = attrs.field(default=None, validator=valid(checks.optional(checks.text)))


@immutable
class CallInput(Command):
    """A piece of the open call's arguments (function) or input (custom)."""

    text: str
    tokens: Tokens | None = None


@immutable
class CallClosed(Command):
    """The open call is complete."""


@immutable
class Finish(Command):
    """The engine ended by itself.

    ``stop`` is what stopped it: a stop string, a token id, or None. ``completed_at`` (Unix
    seconds) is shown for a completed response only: for ``length`` and ``content_filter`` the
    public resource has no such time, and it is not kept. ``ids`` are those that no delta told:
    closing markers, the end of the sequence.
    """

    reason: Literal["stop", "length", "content_filter"] = attrs.field(
        validator=valid(checks.one_of("stop", "length", "content_filter"))
    )
    usage: Usage = attrs.field(validator=valid(_usage))
    completed_at: int | None = attrs.field(
        default=None, validator=valid(checks.optional(checks.count))
    )
    stop: str | int | None = attrs.field(
        default=None, validator=valid(checks.optional(checks.stop))
    )
    ids: tuple[int, ...] = attrs.field(default=(), validator=valid(checks.counts))


@immutable
class Fail(Command):
    """The engine or the server broke; ``message`` is for the client. Half a surrogate pair in it
    becomes U+FFFD: a failure is told, whatever it says."""

    code: str = attrs.field(converter=checks.printable)
    message: str = attrs.field(converter=checks.printable)
    usage: Usage = attrs.field(validator=valid(_usage))


@immutable
class Cancel(Command):
    """The client cancelled, or went away."""

    usage: Usage = attrs.field(validator=valid(_usage))


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
