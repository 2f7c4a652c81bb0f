"""Rules that no text can end are told from those that only may go on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.grammar.endless_rules import endless_rule
from antiphon.engines.torch.grammar.refused import GrammarRefused
from engines.torch.grammar.writing import a_grammar

ENDLESS = [
    ('start: "a" start', "start"),
    ('start: ("a" | "b") start', "start"),
    ('start: "x" list\nlist: item | item list\nitem: "(" list ")"', "start"),
    ('start: "x" [ "y" ] more+\nmore: "a" more | more "b"', "start"),
    ('?start: one ~ 2..3\none: "a" -> named\n  | two two\ntwo: "b" start', None),
    ('start: two ~ 1..3\ntwo: "b" start // "c"', "start"),
]
ENDING = [
    'start: "a" start | "b"',
    'start: "a" start?',
    'start: "a" [start]',
    'start: "a" start*',
    'start: "a" start~0..4',
    'start: "a" (start | B)\nB: /[b:]+/',
    'start: A\nA: /x/i | "start"\n%ignore /[ ]+/',
    'start: "a" ( "b" start | )',
    'start: start other | "a"\nother[lazy]: "b" /c+/ | "d"',
]


@pytest.mark.parametrize(("grammar", "rule"), ENDLESS)
def test_endless(grammar: str, rule: str | None) -> None:
    assert endless_rule(grammar) == rule


@pytest.mark.parametrize("grammar", ENDING)
def test_what_can_end_is_taken(grammar: str) -> None:
    assert endless_rule(grammar) is None
    assert not a_grammar("lark", grammar).error


@pytest.mark.parametrize(
    ("kind", "text"),
    [("lark", 'start: ("a" | "b") start'), ("gbnf", 'root ::= ("a" | "b") root')],
)
def test_they_are_refused_by_name(kind: str, text: str) -> None:
    with pytest.raises(GrammarRefused, match=r"the rule \w+: no text that holds to it ever ends"):
        a_grammar(kind, text)


@given(st.text(alphabet='ab:|()[]?*+~0"/\n ->%{}', max_size=60))
def test_anything_may_be_asked_about(grammar: str) -> None:
    endless_rule("start: " + grammar)
