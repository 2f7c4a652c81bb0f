"""What the diagram draws: composites, and as few edges as tell every move between two states.

States that share a status of the response make one composite. A command that leads from each of
them to one and the same state is one edge: from the composite where that state is outside it, and
where it is inside, from a choice that all states of the composite lead to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from responsory.draw.exploration import Row

Moves: TypeAlias = "Mapping[State, Mapping[str, set[State]]]"
"""State, command name, the states after it."""


class Composite(NamedTuple):
    """``entry``: the one member that all edges from outside lead to, None where they differ.
    ``common``: command names that lead from every member to one and the same state."""

    status: str
    members: Sequence[State]
    entry: State | None
    common: Mapping[str, State]

    @property
    def choice(self) -> bool:
        """Whether some command leads from every member to one and the same member."""
        return any(target in self.members for target in self.common.values())


class Choice(NamedTuple):
    """The place in a composite that all its states lead to."""

    status: str


class Edge(NamedTuple):
    """``scope`` and a place that is a string: a composite by its status. Without ``scope`` the edge
    runs outside of all composites."""

    scope: str | None
    source: State | Choice | str
    target: State | Choice | str


def moves_of(rows: Sequence[Row]) -> Moves:
    """Where each command that is taken leads from each state."""
    moves: dict[State, dict[str, set[State]]] = {}
    for row in rows:
        targets = moves.setdefault(row.state, {})
        for name, answer in row.answers.items():
            if answer.after is not None:
                targets.setdefault(name, set()).add(answer.after)
    return moves


def composites(moves: Moves) -> list[Composite]:
    """One for every status that several states share."""
    groups: dict[str, list[State]] = {}
    for state in moves:
        groups.setdefault(state.status or "", []).append(state)
    return [
        Composite(status, members, _entry(moves, members), _common(moves, members))
        for status, members in groups.items()
        if len(members) > 1
    ]


def _entry(moves: Moves, members: Sequence[State]) -> State | None:
    outside = [answers for state, answers in moves.items() if state not in members]
    ends = {end for answers in outside for targets in answers.values() for end in targets}
    entries = ends.intersection(members)
    return entries.pop() if len(entries) == 1 else None


def _common(moves: Moves, members: Sequence[State]) -> Mapping[str, State]:
    first, *others = (moves[state] for state in members)
    return {
        name: next(iter(targets))
        for name, targets in first.items()
        if len(targets) == 1 and all(answers.get(name) == targets for answers in others)
    }


def edges(moves: Moves) -> Mapping[Edge, Sequence[str]]:
    """The command names of every edge; none for an edge to a choice."""
    drawn: dict[Edge, list[str]] = {}
    groups = composites(moves)
    for group in groups:
        for edge, names in _common_edges(group):
            drawn.setdefault(edge, []).extend(names)
    for edge, name in _other_edges(moves, groups):
        drawn.setdefault(edge, []).append(name)
    return drawn


def _common_edges(group: Composite) -> Iterator[tuple[Edge, list[str]]]:
    if group.choice:
        for state in group.members:
            yield Edge(group.status, state, Choice(group.status)), []
    for name, target in group.common.items():
        if target in group.members:
            yield Edge(group.status, Choice(group.status), target), [name]
        else:
            yield Edge(None, group.status, target), [name]


def _other_edges(moves: Moves, groups: Sequence[Composite]) -> Iterator[tuple[Edge, str]]:
    home = {state: group for group in groups for state in group.members}
    for state, answers in moves.items():
        here = home.get(state)
        for name, targets in answers.items():
            if here is not None and name in here.common:
                continue
            for target in (end for end in State if end in targets and end is not state):
                there = home.get(target)
                if here is not None and here is there:
                    yield Edge(here.status, state, target), name
                elif there is not None and target is there.entry:
                    yield Edge(None, state, there.status), name
                else:
                    yield Edge(None, state, target), name
