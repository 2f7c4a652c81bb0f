"""The diagram, read back from its text, says what the transition table says."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from responsory.draw.alphabet import alphabet
from responsory.draw.diagram import diagram
from responsory.draw.exploration import Answer, Row, explore, rows
from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = tuple(alphabet())
STATES = {state.value.replace(".", "_"): state for state in State}
EDGE = re.compile(r"(?P<source>\S+) --> (?P<target>\S+?)(?: : (?P<label>.+))?")


class Reader:
    """The lines of a diagram: which states are in which composite, where each begins, and edges.

    The outermost scope is the composite with an empty name.
    """

    def __init__(self, text: str) -> None:
        self.inside: dict[str, set[State]] = defaultdict(set)
        self.start: dict[str, State] = {}
        self.edges: list[tuple[str, str, list[str]]] = []
        head, *lines = text.splitlines()
        assert head == "stateDiagram-v2"
        scope = ""
        for line in map(str.strip, lines):
            if opened := re.fullmatch(r"state (\w+) \{", line):
                scope = opened[1]
            elif line == "}":
                scope = ""
            elif named := re.fullmatch(r'state "(\S+)" as (\w+)', line):
                assert STATES[named[2]].value == named[1]
            elif not re.fullmatch(r"state \w+_choice <<choice>>", line):
                self.edge(scope, line)

    def edge(self, scope: str, line: str) -> None:
        edge = EDGE.fullmatch(line)
        assert edge is not None, line
        source, target = edge["source"], edge["target"]
        if source == "[*]":
            self.start[scope] = STATES[target]
        elif target == "[*]":
            assert STATES[source].terminal
        else:
            self.inside[scope] |= {STATES[end] for end in (source, target) if end in STATES}
            self.edges.append((source, target, spelled(edge["label"] or "")))


def read(text: str) -> dict[State, dict[str, set[State]]]:
    """The moves that a reader sees in the diagram."""
    diagram = Reader(text)
    seen: dict[State, list[tuple[str, State]]] = defaultdict(list)
    for source, target, names in diagram.edges:
        if target.endswith("_choice"):
            continue
        composite = source.removesuffix("_choice")
        sources = diagram.inside[composite] if composite in diagram.inside else {STATES[source]}
        end = STATES[target] if target in STATES else diagram.start[target]
        for state in sources:
            seen[state] += [(name, end) for name in names]
    for composite, members in diagram.inside.items():
        met = {STATES[start] for start, end, _ in diagram.edges if end == f"{composite}_choice"}
        assert met in (set(), members), "all states of a composite lead to its choice"
    return {state: resolved(pairs) for state, pairs in seen.items()}


def spelled(label: str) -> list[str]:
    """``Finish (length, content_filter), Fail`` as names."""
    names: list[str] = []
    for command, variants in re.findall(r"(\w+)(?: \(([^)]*)\))?", label):
        names += (
            [f"{command} ({variant})" for variant in variants.split(", ")]
            if variants
            else [command]
        )
    return names


def resolved(pairs: Iterable[tuple[str, State]]) -> dict[str, set[State]]:
    """A class named alone stands for all its commands that the state's other edges do not name."""
    moves: dict[str, set[State]] = defaultdict(set)
    exact = {name for name, _ in pairs if "(" in name}
    for name, target in pairs:
        for known in NAMES:
            alone = known.split(" (")[0] == name and known not in exact
            if known == name or alone:
                moves[known].add(target)
    return moves


def told(table: Iterable[Row]) -> dict[State, dict[str, set[State]]]:
    """The moves of the table."""
    moves: dict[State, dict[str, set[State]]] = defaultdict(lambda: defaultdict(set))
    for row in table:
        for name, answer in row.answers.items():
            if answer.after is not None:
                moves[row.state][name].add(answer.after)
    return moves


def without_loops(moves: dict[State, dict[str, set[State]]]) -> set[tuple[State, str, State]]:
    return {
        (state, name, target)
        for state, answers in moves.items()
        for name, targets in answers.items()
        for target in targets
        if target is not state
    }


def test_the_diagram_says_what_the_table_says() -> None:
    table = rows(explore())
    assert without_loops(read(diagram(table))) == without_loops(told(table))


def test_the_diagram_has_one_edge_from_a_place_to_another() -> None:
    lines = [line for line in diagram(rows(explore())).splitlines() if " --> " in line]
    ends = [line.strip().split(" : ")[0] for line in lines]
    assert len(set(ends)) == len(ends)
    assert len(ends) < 35


def test_a_composite_without_anything_in_common() -> None:
    """Two ways in, and no command that all states of the composite take alike."""
    table = [
        Row(
            "new",
            State.NEW,
            {"Accept": Answer((), State.IDLE), "Start": Answer((), State.MESSAGE_TEXT)},
        ),
        Row("idle", State.IDLE, {"Text": Answer((), State.MESSAGE_TEXT)}),
        Row("message.text", State.MESSAGE_TEXT, {"Fail": Answer((), State.FAILED)}),
        Row("failed", State.FAILED, {"Cancel": Answer((), None, 400)}),
    ]
    assert diagram(table).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> new",
        "    new --> idle : Accept",
        "    new --> message_text : Start",
        "    message_text --> failed : Fail",
        "    state in_progress {",
        '        state "message.text" as message_text',
        "        idle --> message_text : Text",
        "    }",
        "    failed --> [*]",
    ]
