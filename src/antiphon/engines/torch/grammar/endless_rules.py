"""Grammars of Lark that no finite text can match: a rule that needs itself inside.

The compiler takes them, and a model would write until it is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_ROUNDS = 64
"""Rounds over all rules. Where they do not do, the grammar is let pass."""

_END = "end of the body"
_NAME = re.compile(r"\w*[A-Za-z]\w*")
_SIGN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\\n])*"i?|/(?:\\.|[^/\\\n])+/[a-z]*|<[^<>\n]*>)
    |(?P<rule>[?!_]*[a-z][A-Za-z0-9_]*)
    |(?P<terminal>_*[A-Z][A-Z0-9_]*)
    |(?P<sign>->|\.\.|[0-9]+|[(){}|:?*+~\[\]])""",
    re.VERBOSE,
)


def endless_rule(grammar: str) -> str | None:
    """The first rule that no text can end; None if the start can be met.

    A grammar that holds more than rules, texts and repetitions is let pass.
    """
    rules = _rules(grammar)
    if rules is None or "start" not in rules:
        return None
    ending: set[str] = set()
    for _ in range(MOST_ROUNDS):
        before = len(ending)
        for name, signs in reversed(rules.items()):
            if name not in ending and _ends(signs, rules, ending):
                ending.add(name)
        if "start" in ending:
            return None
        if len(ending) == before:
            return next(name for name in rules if name not in ending)
    return None


def _ends(signs: list[str], rules: Mapping[str, list[str]], ending: set[str]) -> bool:
    try:
        return _Reading(signs, rules, ending).ends()
    except RecursionError:  # the compiler will say so
        return True


def _rules(grammar: str) -> dict[str, list[str]] | None:
    """Name → the signs of its body, texts as an empty string."""
    grammar = grammar.replace("%llguidance {}", "", 1)  # what GBNF is turned into begins so
    signs, at = [""], 0
    while at < len(grammar):
        found = _SIGN.match(grammar, at)
        if found is None:
            return None
        at = found.end()
        kind, sign = found.lastgroup, found[0]
        if kind in ("text", "terminal"):
            signs.append("" if kind == "text" else sign)
        elif kind != "space":
            signs.append(sign.lstrip("?!") if kind == "rule" else sign)
    heads = [at - 1 for at, sign in enumerate(signs) if sign == ":"]
    if not all(_NAME.fullmatch(signs[head]) for head in heads):
        return None  # a rule with attributes
    rules: dict[str, list[str]] = {}
    for head, end in zip(heads, [*heads[1:], len(signs)], strict=True):
        if signs[head] in rules:
            return None
        rules[signs[head]] = signs[head + 2 : end]
    return rules


class _Reading:
    """Whether a body can end, read from left to right."""

    def __init__(self, signs: list[str], rules: Mapping[str, list[str]], ending: set[str]) -> None:
        self._signs = signs
        self._at = 0
        self._rules = rules
        self._ending = ending

    def ends(self) -> bool:
        """The whole body; true where it is not understood."""
        found = self._either()
        return found or self._at != len(self._signs)

    @property
    def _next(self) -> str:
        return self._signs[self._at] if self._at < len(self._signs) else _END

    def _either(self) -> bool:
        found = self._row()
        while self._next == "|":
            self._at += 1
            found = self._row() or found
        return found

    def _row(self) -> bool:
        found = True
        while (sign := self._next) not in ("|", ")", "]", _END):
            self._at += 1
            if sign == "->":
                self._at += 1
                continue
            if sign in ("(", "["):
                one = self._either() or sign == "["
                self._at += 1
            else:
                # What is no rule of this grammar is a text.
                one = sign not in self._rules or sign in self._ending or not sign[:1].islower()
            found = (one or self._may_be_left_out()) and found
        return found

    def _may_be_left_out(self) -> bool:
        rest = self._signs[self._at : self._at + 2]
        return rest[:1] in (["?"], ["*"]) or rest == ["~", "0"]
