"""A builder of logs: ``a_response().text("Hi", " there").finish().log``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from responsory.commands import (
    Accept,
    CallClosed,
    CallInput,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Start,
    Text,
)
from responsory.log import EventLog
from responsory.response import Response
from responsory.values import JSON, Logprob, Phase, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.events import Event

CLOCK = 1764500000
"""Unix seconds at which every built response was accepted; it completes a second later."""


class Builder:
    """Sends commands to a machine and keeps what came out: ``log`` all of it, ``groups`` the events
    of each command. Each method takes the text of one item as any number of deltas."""

    def __init__(self) -> None:
        self.machine = Response()
        self.log = EventLog()
        self.groups: list[list[Event]] = []

    def send(self, command: Command) -> Builder:
        """Any command. Raises IllegalTransition."""
        group = self.machine.receive(command)
        self.groups.append(group)
        self.log.extend(group)
        return self

    def start(self) -> Builder:
        return self.send(Start())

    def text(self, *deltas: str, phase: Phase | None = None) -> Builder:
        for delta in deltas:
            self.send(Text(delta, (), phase))
        return self

    def tokens(self, *logprobs: Logprob) -> Builder:
        """Each token as one delta of text, with its logprob."""
        for logprob in logprobs:
            self.send(Text(logprob.token, (logprob,)))
        return self

    def refusal(self, *deltas: str) -> Builder:
        for delta in deltas:
            self.send(Refusal(delta))
        return self

    def reasoning(self, *deltas: str) -> Builder:
        for delta in deltas:
            self.send(Reasoning(delta))
        return self

    def call(
        self,
        name: str,
        *deltas: str,
        kind: Literal["function", "custom"] = "function",
        call_id: str | None = None,
        closed: bool = True,
    ) -> Builder:
        self.send(CallOpened(kind, name, call_id))
        for delta in deltas:
            self.send(CallInput(delta))
        return self.send(CallClosed()) if closed else self

    def finish(
        self,
        reason: Literal["stop", "length", "content_filter"] = "stop",
        *,
        usage: Usage | None = None,
        stop: str | int | None = None,
        ids: tuple[int, ...] = (),
    ) -> Builder:
        return self.send(Finish(reason, usage or Usage(11, 3), CLOCK + 1, stop, ids))

    def fail(
        self, message: str = "The engine stopped unexpectedly.", *, usage: Usage | None = None
    ) -> Builder:
        return self.send(Fail("server_error", message, usage or Usage(11, 1)))

    def cancel(self, *, usage: Usage | None = None) -> Builder:
        return self.send(Cancel(usage or Usage(11, 1)))


def a_response(
    tail: str = "r1", *, background: bool = False, echo: Mapping[str, JSON] | None = None
) -> Builder:
    """An accepted response with id ``resp_<tail>``, of model ``tiny`` unless ``echo`` is given."""
    return Builder().send(
        Accept(tail, CLOCK, background, {"model": "tiny"} if echo is None else echo)
    )
