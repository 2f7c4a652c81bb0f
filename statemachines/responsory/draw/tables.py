"""The Markdown tables: states, transitions, events, commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from responsory.commands import COMMANDS, Command
from responsory.draw.alphabet import class_name
from responsory.draw.frames import PROFILES, frame_names
from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from responsory.draw.exploration import Reached, Row, Situation
    from responsory.events import Event

REFUSED = "✗"
FAULT = {400: "client (400)", 500: "server (500)"}


def states_table() -> str:
    """One line per state; status, item and part are read off it."""
    return _table(
        ["state", "status of the response", "open item", "open part"],
        ([state.value, state.status, state.item, state.part] for state in State),
    )


def transition_table(rows: Sequence[Row]) -> str:
    """One line per state and command that is taken, and one for all that are refused."""
    lines: list[list[str]] = []
    for row in rows:
        for name, answer in row.answers.items():
            if answer.after is not None:
                events = " ".join(event.__name__ for event in answer.events) or "nothing"
                lines.append([row.label, name, events, answer.after.value])
        if any(answer.after is None for answer in row.answers.values()):
            lines.append([row.label, "every other", REFUSED, ""])
    return _table(["state", "command", "events", "next state"], lines)


def events_table(found: Mapping[Situation, Reached]) -> str:
    """One line per event: its kind in a stored row, its fields, and its frames by wire profile."""
    lines: list[list[str]] = []
    for event, frames in frame_names(found).items():
        shown = [", ".join(_code(name) for name in frames[profile]) for profile in PROFILES]
        shown[1:] = ["the same" if text and text == shown[0] else text for text in shown[1:]]
        fields = _fields(event, but="seq")
        lines.append(
            [event.__name__, _code(event.kind), fields, *(text or "none" for text in shown)]
        )
    heads = [f"frame, profile `{profile}`" for profile in PROFILES]
    return _table(["event", "kind", "fields after `seq`", *heads], lines)


def commands_table(rows: Sequence[Row]) -> str:
    """One line per command: its fields, where it is taken, and whose fault it is elsewhere."""
    return _table(
        ["command", "fields", "taken in", "elsewhere the fault of"],
        (
            [command.__name__, _fields(command), _places(rows, command), _fault(rows, command)]
            for command in COMMANDS
        ),
    )


def _places(rows: Sequence[Row], command: type[Command]) -> str:
    """The states that take the command, and those in which it changes nothing."""
    takes: set[State] = set()
    ignores: set[State] = set()
    for row in rows:
        for name, answer in row.answers.items():
            if class_name(name) == command.__name__ and answer.after is not None:
                (takes if answer.events else ignores).add(row.state)
    taken = _states(takes)
    return f"{taken}; no effect in {_states(ignores - takes)}" if ignores - takes else taken


def _states(states: set[State]) -> str:
    """The names of states, or of a status where all its states are among them."""
    names: list[str] = []
    for state in (state for state in State if state in states):
        alike = {other for other in State if other.status == state.status}
        name = state.status if state.status and alike <= states else state.value
        if name not in names:
            names.append(name)
    return ", ".join(names)


def _fault(rows: Sequence[Row], command: type[Command]) -> str:
    statuses = {
        answer.status
        for row in rows
        for name, answer in row.answers.items()
        if class_name(name) == command.__name__ and answer.status is not None
    }
    return ", ".join(FAULT[status] for status in sorted(statuses))


def _fields(cls: type[Event] | type[Command], but: str = "") -> str:
    """The fields of a class as its signature has them."""
    fields: Sequence[attrs.Attribute[Any]] = getattr(cls, "__attrs_attrs__", ())
    return ", ".join(_code(_field(field)) for field in fields if field.name != but)


def _field(field: attrs.Attribute[Any]) -> str:
    text = f"{field.name}: {field.type}"
    if field.default is attrs.NOTHING:
        return text
    factory = getattr(field.default, "factory", None)
    return f"{text} = {field.default if factory is None else factory()!r}"


def _code(text: str) -> str:
    return f"`{text}`"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str | None]]) -> str:
    """A table of GitHub Flavored Markdown, where a pipe inside a cell is escaped."""
    cells = [[(cell or "").replace("|", r"\|") for cell in line] for line in lines]
    table = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in cells]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *table])
