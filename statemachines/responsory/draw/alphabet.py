"""The input alphabet: every command, as the tables name it, with examples of it.

A name stands for commands that a machine must answer alike, whatever its state. ``Text`` is text of
the phase of the open message; text of any other phase has a name of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from responsory.commands import (
    COMMANDS,
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
from responsory.draw.errors import DrawError
from responsory.values import Phase, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PHASES: tuple[Phase | None, ...] = (None, *get_args(Phase))
USAGE = Usage(0, 0)


def alphabet(phase: Phase | None = None) -> Mapping[str, Sequence[Command]]:
    """Examples by name, where ``phase`` is that of the open message.

    Raises DrawError for a command class without an example.
    """
    examples: Mapping[str, Sequence[Command]] = {
        "Accept": [Accept("t", 0)],
        "Accept (background)": [Accept("t", 0, background=True)],
        "Start": [Start()],
        "Text": [Text("a", (), phase)],
        "Text (other phase)": [Text("a", (), other) for other in PHASES if other != phase],
        "Refusal": [Refusal("a")],
        "Reasoning": [Reasoning("a")],
        "CallOpened": [CallOpened("function", "f"), CallOpened("custom", "f")],
        "CallInput": [CallInput("a")],
        "CallClosed": [CallClosed()],
        "Finish (stop)": [Finish("stop", USAGE)],
        "Finish (length)": [Finish("length", USAGE)],
        "Finish (content_filter)": [Finish("content_filter", USAGE)],
        "Fail": [Fail("server_error", "broken", USAGE)],
        "Cancel": [Cancel(USAGE)],
    }
    known = {type(command) for commands in examples.values() for command in commands}
    for command in COMMANDS:
        if command not in known:
            raise DrawError(f"the alphabet has no example of {command.__name__}")
    return examples


def class_name(name: str) -> str:
    """The name of the command's class: ``Finish`` for ``Finish (stop)``."""
    return name.partition(" (")[0]


def variant(name: str) -> str:
    """What a name says beside the class: ``stop`` for ``Finish (stop)``, or nothing."""
    return name.partition(" (")[2].removesuffix(")")
