"""The form of an answer with calls as a grammar of llguidance.

Texts become literals, but for the control tokens in them, of which each is its id: what is written
as text is not one. A free text goes on to a marker, so it is one lexeme with that, which ends at
the first of it (``lazy``). JSON is the compiler's own, and the grammar that a client wrote for a
custom tool is one of its own beside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from antiphon.engines.torch.grammar.closed import closed
from antiphon.engines.torch.grammar.escaped_lark import escaped_lark, escaped_regex
from antiphon.engines.torch.grammar.nodes import Node, flat
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.source import (
    ANY_OBJECT,
    checked_lark,
    from_gbnf,
    regex_source,
)
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary

ANY = "(?s:.*)"
WHITE_SPACE = r"(\x20|\x0A\x20{0,24})"
"""Between the parts of JSON: a space, or a line and its indentation, as models write arguments."""


def calls_source(node: Node, vocabulary: GrammarVocabulary) -> str:
    """The grammar's text for llguidance. Raises ``GrammarRefused``."""
    writer = _Writer(vocabulary)
    start = writer.expression(node)
    rules = [f"start: {start}", *writer.rules]
    grammars = [{"lark_grammar": "\n".join(rules)}]
    grammars += [{"name": f"own{at}", "lark_grammar": own} for at, own in enumerate(writer.own)]
    return json.dumps({"grammars": grammars})


class _Writer:
    """Rules that are written on the way, and what expressions refer to."""

    def __init__(self, vocabulary: GrammarVocabulary) -> None:
        self.rules: list[str] = []
        self.own: list[str] = []
        self._named: dict[str, str] = {}
        """Names of the client's rules → ours."""
        self._lexemes: dict[tuple[str, bool], str] = {}
        self._eos_ids = vocabulary.eos_ids
        self._control = {
            spelt.decode(errors="replace"): token
            for token in vocabulary.table.special
            if (spelt := vocabulary.spelt(token))
        }
        longest = sorted(self._control, key=len, reverse=True)
        self._markers = re.compile("|".join(map(re.escape, longest)) or r"(?!)")

    def expression(self, node: Node) -> str:
        """The right side of a rule for a node; never empty."""
        match node:
            case ["InOrder", parts]:
                return self._in_order([*flat(parts)])
            case ["OneOf", parts]:
                return "(" + " | ".join(map(self.expression, parts)) + ")"
            case ["Times", part, least, most]:
                times = f"{{{least},{'' if most is None else most}}}"
                return f"({self.expression(part)}){'*' if (least, most) == (0, None) else times}"
            case ["Rules", start, rules]:
                return self._rules(start, rules)
            case ["Rule", name]:
                return self._named[name]
            case ["Exactly", text]:
                return self._exactly(text)
            case ["JsonText", schema, strict, _]:
                return _json(schema, lenient=not strict)
            case ["Matching", regex]:
                return f"/{regex_source(regex)}/"
            case ["TextWithout", *_]:
                return self._text(node, None)
            case ["OwnGrammar", _, _, place] | ["InJsonString", ["OwnGrammar", _, _, place]]:
                try:
                    return self._own(node) if len(node) > 2 else self._in_string(node[1])
                except GrammarRefused as refusal:
                    raise GrammarRefused(
                        f"{place}: the grammar does not compile: {refusal}"
                    ) from None
            case ["InJsonString", part]:
                return self._in_string(part)
        raise GrammarRefused(f"the form holds {node[0]}, which is not known")

    def _in_order(self, parts: list[Node]) -> str:
        """One after another; a free text takes the marker behind it."""
        written, at = [], 0
        while at < len(parts):
            part, following = parts[at], parts[at + 1] if at + 1 < len(parts) else None
            at += 1
            stop = _stop(part, following)
            if stop is None or following is None:
                written.append(self.expression(part))
                continue
            written.append(self._text(part, stop))
            if rest := following[1][len(stop) :]:
                parts[at] = ["Exactly", rest]
            else:
                at += 1
        return " ".join(written) or '""'

    def _exactly(self, text: str) -> str:
        pieces, at = [], 0
        for found in self._markers.finditer(text):
            if plain := text[at : found.start()]:
                pieces.append(_literal(plain))
            token = self._control[found[0]]
            # Where a text may end by that token the engine ends it, and shows no token for that.
            if token not in self._eos_ids:
                pieces.append(f"<[{token}]>")
            at = found.end()
        if plain := text[at:]:
            pieces.append(_literal(plain))
        return " ".join(pieces) or '""'

    def _rules(self, start: Node, rules: Mapping[str, Node]) -> str:
        outer = self._named
        names = {name: f"r{len(self.rules)}_{name}" for name in rules}
        self._named = {**outer, **names}
        for name, rule in rules.items():
            # Its place is taken first, for the names of the rules in it.
            at = len(self.rules)
            self.rules.append("")
            self.rules[at] = f"{names[name]}: {self.expression(rule)}"
        written = self.expression(start)
        self._named = outer
        return written

    def _text(self, node: Node, stop: str | None) -> str:
        """A free text, and the stop that ends it if it has one."""
        _, stops, starts, marks, regexes, never, _ = node
        texts = [f"(?:{regex_source(one)})" for one in regexes] or [ANY]
        plain = [one for one in stops if not self._markers.match(one)]
        following = self._marks(stops) if marks else ""
        lexemes = [self._pieces(texts, never, plain, first, stop) for first in (starts, ())]
        if stop is not None and not self._markers.match(stop):
            first, later = (self._lexeme(ending, lazy=True) for _, ending in lexemes)
            if not following:
                return first
        (begun, _), (gone_on, _) = lexemes
        text = f"{self._lexeme(begun, lazy=False)}{'' if regexes else '?'}"
        inner = f"{self._lexeme(gone_on, lazy=False)}?"
        if stop is None or self._markers.match(stop):
            more = f" ({following} {inner})*" if following else ""
            return f"{text}{more} {self._exactly(stop or '')}"
        return f"({first} | {text} {following} ({inner} {following})* {later})"

    def _pieces(
        self,
        texts: Sequence[str],
        excluded: str,
        stops: Sequence[str],
        starts: Sequence[str],
        stop: str | None,
    ) -> tuple[str, str]:
        """Terminals: text without any of the stops, and text up to and with the one stop."""
        never = [f"~/{_any_of(starts)}{ANY}/"] if starts else []
        without = [*(f"/{one}/" for one in texts), *never]
        without += [f"~/{excluded}/"] if excluded else []
        without += [f"~/{ANY}{_any_of(stops)}{ANY}/"] if stops else []
        end = _any_of([stop or ""])
        ending = [*(f"/{one}{end}/" for one in texts), *never, f"~/{ANY}{end}(?s:.+)/"]
        ending += [f"~/{excluded}{end}/"] if excluded else []
        others = [one for one in stops if one != stop]
        ending += [f"~/{ANY}{_any_of(others)}{ANY}/"] if others else []
        return " & ".join(without), " & ".join(ending)

    def _lexeme(self, terminal: str, *, lazy: bool) -> str:
        """The rule of a terminal, written once."""
        name = self._lexemes.get((terminal, lazy))
        if name is None:
            name = self._lexemes[terminal, lazy] = f"t{len(self._lexemes)}"
            self.rules += [
                f"{name}{'[lazy]' if lazy else ''}: {name.upper()}",
                f"{name.upper()}: {terminal}",
            ]
        return name

    def _marks(self, stops: Sequence[str]) -> str:
        """The control tokens that may stand in a text, each as it may go on."""
        led: dict[int, list[str]] = {}
        for stop in stops:
            if (found := self._markers.match(stop)) is not None:
                led.setdefault(self._control[found[0]], []).append(stop[found.end() :])
        free = set(self._control.values()) - set(led) - self._eos_ids
        ways = [f"<[{_ranges(free)}]>"] if free else []
        for token, rests in led.items():
            if "" in rests:
                continue  # the token alone is the stop
            other = self._lexeme(f"/(?s:.+)/ & ~/{_any_of(rests)}{ANY}/", lazy=False)
            ways.append(f"<[{token}]> {other}")
        return f"({' | '.join(ways)})" if ways else ""

    def _own(self, node: Node) -> str:
        _, syntax, text, _ = node
        if syntax == "regex":
            return f"/{regex_source(text)}/"
        return self._beside(checked_lark(from_gbnf(text) if syntax == "gbnf" else text))

    def _in_string(self, part: Node) -> str:
        match part:
            case ["Matching", regex] | ["OwnGrammar", "regex", regex, _]:
                inside = f"/{escaped_regex(regex_source(regex))}/"
            case ["OwnGrammar", _, text, _]:
                inside = self._beside(escaped_lark(checked_lark(text)))
            case _:
                raise GrammarRefused(f"the form holds {part[0]} in a string")
        return f'"\\"" {inside} "\\""'

    def _beside(self, lark: str) -> str:
        self.own.append(lark)
        return f"@own{len(self.own) - 1}"


def _stop(part: Node, following: Node | None) -> str | None:
    """The stop with which the text behind a free text begins."""
    if part[0] != "TextWithout" or following is None or following[0] != "Exactly":
        return None
    return next((stop for stop in part[1] if following[1].startswith(stop)), None)


def _json(schema: dict[str, Any] | None, *, lenient: bool) -> str:
    if schema is None:
        schema = json.loads(ANY_OBJECT)
    elif lenient:
        schema = closed(schema)
    guided = {**schema, "x-guidance": {"whitespace_pattern": WHITE_SPACE, "lenient": lenient}}
    return f"%json {json.dumps(guided)}"


def _literal(text: str) -> str:
    # A string of Lark is written like one of JSON.
    return json.dumps(text, ensure_ascii=False)


def _any_of(texts: Collection[str]) -> str:
    return "(" + "|".join(map(_verbatim, texts)) + ")"


def _verbatim(text: str) -> str:
    return "".join(
        char if char.isalnum() or ord(char) > 0x7F else f"\\x{ord(char):02x}" for char in text
    )


def _ranges(ids: Collection[int]) -> str:
    return ",".join(map(str, sorted(ids)))
