"""The state diagram, in the language of Mermaid (``stateDiagram-v2``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.draw.alphabet import alphabet, class_name, variant
from responsory.draw.edges import Choice, Composite, Edge, composites, edges, moves_of
from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from responsory.draw.exploration import Row


def diagram(rows: Sequence[Row]) -> str:
    """The text of the diagram, without a fence around it."""
    moves = moves_of(rows)
    drawn = edges(moves)
    groups = composites(moves)
    outside = [state for state in moves if not any(state in group.members for group in groups)]
    lines = [f"[*] --> {_id(rows[0].state)}", *_names(outside), *_edges(drawn, None)]
    for group in groups:
        lines += [f"state {group.status} {{", *_indented(_inside(group, drawn)), "}"]
    lines += [f"{_id(state)} --> [*]" for state in moves if state.terminal]
    return "\n".join(["stateDiagram-v2", *_indented(lines)])


def _inside(group: Composite, drawn: Mapping[Edge, Sequence[str]]) -> list[str]:
    lines = [] if group.entry is None else [f"[*] --> {_id(group.entry)}"]
    lines += _names(group.members)
    if group.choice:
        lines.append(f"state {_id(Choice(group.status))} <<choice>>")
    return lines + _edges(drawn, group.status)


def _names(states: Sequence[State]) -> list[str]:
    """The names of those that need another id."""
    return [f'state "{state.value}" as {_id(state)}' for state in states if "." in state.value]


def _edges(drawn: Mapping[Edge, Sequence[str]], scope: str | None) -> list[str]:
    return [
        f"{_id(edge.source)} --> {_id(edge.target)}" + (f" : {_label(names)}" if names else "")
        for edge, names in drawn.items()
        if edge.scope == scope
    ]


def _label(names: Sequence[str]) -> str:
    """The commands of one edge; a command all of whose variants are there is named alone."""
    labels: list[str] = []
    for command in dict.fromkeys(map(class_name, names)):
        mine = [name for name in names if class_name(name) == command]
        every = [name for name in alphabet() if class_name(name) == command]
        variants = ", ".join(variant(name) for name in mine if variant(name))
        labels.append(f"{command} ({variants})" if variants and mine != every else command)
    return ", ".join(labels)


def _id(place: State | Choice | str) -> str:
    """A name without dots, which Mermaid does not take in one."""
    if isinstance(place, State):
        return str(place.value).replace(".", "_")
    return f"{place.status}_choice" if isinstance(place, Choice) else place


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
