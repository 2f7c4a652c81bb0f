"""One form, compiled on the calling thread."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs
from llguidance import LLMatcher, LLParserLimits

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.calls import calls_source
from antiphon.engines.torch.grammar.endless import endless
from antiphon.engines.torch.grammar.nodes import Node, placed_forms
from antiphon.engines.torch.grammar.place import place_of
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.schema import check_schema, read_schema
from antiphon.engines.torch.grammar.source import check_size, grammar_source
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary

LIMITS = LLParserLimits(max_lexer_states=50_000, verbose_errors=False)
"""llguidance's own, but for the memory of one form: a state takes one or two kilobytes."""

SCHEMA_LIMITS = LLParserLimits(
    max_lexer_states=50_000, verbose_errors=False, max_items_in_row=20_000, step_max_items=400_000
)
"""Where one of 150 objects may come, each of their properties may come next."""

NAMES = {
    "json_schema": "the schema",
    "json_object": "the form",
    "regex": "the regular expression",
    "choice": "the choice",
    "lark": "the grammar",
    "gbnf": "the grammar",
    "calls": "the form of the calls",
}

TOP = "at the top"
"""The place of what is wrong with a whole schema."""

WORDS = {
    "NoExtension": "no text holds to it",
    "ff_tokens": "no text that holds to it ever ends, or one must be written that is too long",
    "Unable to determine if regex is empty": "its patterns together are too much to be compared",
    "lexer error: too many": "it is too large",
    "lexer configuration": "it is too large",
    "items; max is": "at one place too many ways to go on are left",
    "Too many items": "at one place too many ways to go on are left",
    "Expecting object schema to apply": "no text holds to it",
    "Grammar too large": "it is too large",
    "number out of range": "a number in it is too large",
}
"""What the compiler's messages hold where it speaks of itself, and the same in words for whoever
writes forms."""

MOST_FOLLOWED = 24
"""Parts of a schema that are followed in search of the one to blame."""

LONGEST_REASON = 400
"""Characters of the compiler's words that a client is told."""

_UNREAD = re.compile(r"^(\d+\(\d+\)): lexer error")
_PICTURE = re.compile(r"\s*(\d+ \||\^)")


def compiled(
    spec: GrammarSpec,
    vocabulary: GrammarVocabulary,
    follow: Callable[[LLMatcher, GrammarVocabulary], None] | None = None,
) -> LLMatcher:
    """A matcher at the start of a text. Raises ``GrammarRefused``.

    Only with ``strict`` is a schema held to in all it says or refused. ``follow`` raises
    ``GrammarRefused`` for a form that compiles and cannot be followed.
    """
    if spec.kind == "calls":
        return _compiled_calls(spec, vocabulary, follow)
    try:
        matcher = _matcher(spec, vocabulary)
        if error := matcher.get_error():
            raise GrammarRefused(_placed(spec, error, _compiling(spec)))
        if spec.kind == "json_schema":
            _check_end(spec.text)
        if fault := _fault(matcher, vocabulary, follow):
            faults = _following(spec, vocabulary, follow)
            raise GrammarRefused(_placed(spec, fault, faults))
    except GrammarRefused as refusal:
        raise GrammarRefused(in_words(spec, str(refusal))) from None
    return matcher


def _compiled_calls(
    spec: GrammarSpec,
    vocabulary: GrammarVocabulary,
    follow: Callable[[LLMatcher, GrammarVocabulary], None] | None,
) -> LLMatcher:
    """The same of a whole answer with calls, which is refused behind the place of the schema or
    the grammar in it that is to blame."""
    try:
        check_size(spec)
    except GrammarRefused as refusal:
        raise GrammarRefused(in_words(spec, str(refusal))) from None
    try:
        matcher = _matcher(spec, vocabulary)
        if error := matcher.get_error() or _fault(matcher, vocabulary, follow):
            raise GrammarRefused(error)
    except GrammarRefused as refusal:
        reason = str(refusal)
    else:
        return matcher
    for place, form in placed_forms(json.loads(spec.text)):
        if reason.startswith(f"{place}: "):
            raise GrammarRefused(reason)
        try:
            compiled(form, vocabulary, follow)
        except GrammarRefused as refusal:
            raise GrammarRefused(f"{place}: {refusal}") from None
    raise GrammarRefused(in_words(spec, reason))


def _matcher(spec: GrammarSpec, vocabulary: GrammarVocabulary) -> LLMatcher:
    if spec.kind == "calls":
        form: Node = json.loads(spec.text)
        for _, part in placed_forms(form):
            if part.kind == "json_schema":
                check_schema(read_schema(part.text))
                _check_end(part.text)
        source = calls_source(form, vocabulary)
    else:
        source = grammar_source(spec, lenient=not spec.strict)
    limits = SCHEMA_LIMITS if spec.kind in ("json_schema", "calls") else LIMITS
    return LLMatcher(vocabulary.guide, source, log_level=0, limits=limits)


def _fault(
    matcher: LLMatcher,
    vocabulary: GrammarVocabulary,
    follow: Callable[[LLMatcher, GrammarVocabulary], None] | None,
) -> str:
    """Why a form that compiles cannot be followed; empty if nothing is known against it."""
    try:
        _check_start(matcher, vocabulary.eos_ids)
        if follow is not None:
            follow(matcher, vocabulary)
    except GrammarRefused as refusal:
        return str(refusal)
    return ""


def in_words(spec: GrammarSpec, reason: str) -> str:
    """What a client is told of a form that cannot be had."""
    return f"{NAMES[spec.kind]} does not compile: {in_one_line(reason)}"


def _check_end(schema: str) -> None:
    place = endless(read_schema(schema))
    if place is not None:
        raise GrammarRefused(
            f"{place or TOP}: no text that holds to it ever ends, because it needs another of its "
            "own kind inside"
        )


def _check_start(matcher: LLMatcher, eos_ids: frozenset[int]) -> None:
    """Raises ``GrammarRefused`` for a form that leaves no token, or none but the end.

    The first masks are also the dearest: whoever uses the form will find them half made.
    """
    trial = matcher.deep_copy()
    mask = int.from_bytes(trial.compute_bitmask(), "little")
    for token in eos_ids:
        mask &= ~(1 << token)
    if mask and not trial.is_error():
        # What is too much is often noticed only when it is read: a text that is long and forced.
        trial.consume_token((mask & -mask).bit_length() - 1)
        trial.compute_bitmask()
    if trial.is_error():
        raise GrammarRefused(trial.get_error())
    if not mask:
        raise GrammarRefused("no text but the empty one holds to it")


def _placed(spec: GrammarSpec, error: str, complaint: Callable[[Any], str]) -> str:
    """The compiler's words, of a schema behind the place they are about."""
    if spec.kind != "json_schema":
        return error
    place, told = place_of(json.loads(spec.text), error, complaint)
    return f"{place or TOP}: {error if error.startswith(told) else told}"


def _compiling(spec: GrammarSpec) -> Callable[[Any], str]:
    """Tells what is wrong with a part of a schema."""

    def complaint(part: Any) -> str:
        try:
            inner = attrs.evolve(spec, text=json.dumps(part))
            source = grammar_source(inner, lenient=not spec.strict)
        except (GrammarRefused, RecursionError):
            return ""
        return str(LLMatcher.validate_grammar(source, limits=SCHEMA_LIMITS))

    return complaint


def _following(
    spec: GrammarSpec,
    vocabulary: GrammarVocabulary,
    follow: Callable[[LLMatcher, GrammarVocabulary], None] | None,
) -> Callable[[Any], str]:
    """The same of a part that compiles. Each costs as much as the whole: few are looked at."""
    left = MOST_FOLLOWED

    def complaint(part: Any) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            return ""
        try:
            matcher = _matcher(attrs.evolve(spec, text=json.dumps(part)), vocabulary)
        except (GrammarRefused, RecursionError):
            return ""
        return "" if matcher.is_error() else _fault(matcher, vocabulary, follow)

    return complaint


def in_one_line(message: str) -> str:
    """The compiler's words without the pictures it draws, or ours where it speaks of itself."""
    for sign, said in WORDS.items():
        if sign in message:
            place = message.partition(": ")[0]
            return f"{place}: {said}" if place == TOP or place.startswith("/") else said
    message = _UNREAD.sub(r"at \1: what comes next cannot be read", message)
    _, pictured, reason = message.partition("\nerror: ")
    if pictured:  # of a regular expression: how it was read, and behind that what is wrong
        place, found, _ = message.partition(": regex parse error")
        placed = found and place.startswith("/")
        message = f"{place}: {reason}" if placed else reason
    lines = (line for line in message.splitlines() if not _PICTURE.match(line))
    words = " ".join(" ".join(lines).replace("<non-verbose/>", "").split())
    return words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]}…"
