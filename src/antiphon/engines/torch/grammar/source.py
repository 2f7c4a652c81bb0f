"""A ``GrammarSpec`` as a grammar of llguidance, or why it cannot be one."""

from __future__ import annotations

import json
import re

from llguidance import LLMatcher, regex_to_lark
from llguidance.gbnf_to_lark import gbnf_to_lark

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.endless_rules import endless_rule
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.schema import check_schema, read_schema

LONGEST = {
    "json_schema": 256 * 1024,
    "choice": 256 * 1024,
    "lark": 64 * 1024,
    "gbnf": 64 * 1024,
    "regex": 16 * 1024,
    "calls": 1024 * 1024,
}
"""Bytes of a form: what the compiler is done with in a few seconds whatever it says. The time
grows with the square of a regular expression's length."""

ANY_OBJECT = '{"type":"object"}'

WHITE_SPACE = r"[\x20\x0A\x0D\x09]{1,32}"
"""Between the parts of a JSON text. Without a bound a model may write spaces for ever."""

ASCII = "dws"
"""The classes that mean ASCII alone, as in a JSON Schema's patterns: a digit is one of ten."""

_DIRECTIVE = re.compile(r"%(\w+)")
_LEFT = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_TAKEN = frozenset({"ignore", "import"})


def grammar_source(spec: GrammarSpec, *, lenient: bool) -> str:
    """The grammar's text for llguidance. Raises ``GrammarRefused``.

    ``lenient``: of a JSON Schema, keywords and formats that cannot be held to are passed over.
    """
    check_size(spec)
    match spec.kind:
        case "json_object":
            return _schema(ANY_OBJECT, lenient=False)
        case "json_schema":
            check_schema(read_schema(spec.text))
            return _schema(spec.text, lenient=lenient)
        case "regex":
            return LLMatcher.grammar_from_lark(f"start: /{regex_source(spec.text)}/")
        case "choice":
            return LLMatcher.grammar_from_lark(_choice(spec.text))
        case _:
            rules = from_gbnf(spec.text) if spec.kind == "gbnf" else spec.text
            return LLMatcher.grammar_from_lark(checked_lark(rules))


def regex_source(regex: str) -> str:
    """A regular expression as Lark has it between slashes. Raises ``GrammarRefused``."""
    if _LEFT.search(regex):
        raise GrammarRefused("it ends in a backslash that escapes nothing")
    return str(regex_to_lark(regex, ASCII))


def check_size(spec: GrammarSpec) -> None:
    """Raises ``GrammarRefused`` for a form that is too long, or no text."""
    try:
        size = len(spec.text.encode())
    except UnicodeEncodeError:
        raise GrammarRefused("it holds half a surrogate pair, which UTF-8 cannot spell") from None
    longest = LONGEST.get(spec.kind, 0)
    if spec.kind != "json_object" and size > longest:
        raise GrammarRefused(f"it has {size} bytes; at most {longest} are taken")


def _schema(text: str, *, lenient: bool) -> str:
    options = {"whitespace_pattern": WHITE_SPACE, "lenient": lenient}
    try:
        return LLMatcher.grammar_from_json_schema(text, overrides=options)  # type: ignore[arg-type]
    except ValueError as failure:
        raise GrammarRefused(str(failure)) from failure


def _choice(text: str) -> str:
    """A grammar of the strings in a JSON array."""
    choices = json.loads(text)
    if not choices or not all(isinstance(one, str) and one for one in choices):
        raise GrammarRefused("there must be choices, and none may be empty")
    # A string of Lark is written like one of JSON.
    return "start: CHOICE\nCHOICE: " + " | ".join(
        json.dumps(one, ensure_ascii=False) for one in choices
    )


def checked_lark(text: str) -> str:
    """The grammar without the directives that would bring in what is not checked here."""
    for line in text.splitlines():
        found = _DIRECTIVE.match(line.lstrip())
        if found and found[1] not in _TAKEN and line.strip() != "%llguidance {}":
            raise GrammarRefused(f"the directive %{found[1]} is not taken here")
    if (inline := re.search(r"%(json|regex)\s*\{", text)) is not None:
        raise GrammarRefused(f"%{inline[1]} is not taken inside a grammar; send it by itself")
    if (rule := endless_rule(text)) is not None:
        raise GrammarRefused(
            f"the rule {rule}: no text that holds to it ever ends, because it needs another of its "
            "own kind inside"
        )
    return text


def from_gbnf(text: str) -> str:
    try:
        return str(gbnf_to_lark(text))
    except Exception as failure:  # a parser of few words, which raises what it likes
        words = " ".join(str(failure).split()) or "it is nested too deeply"
        raise GrammarRefused(f"it is not GBNF: {words}") from failure
