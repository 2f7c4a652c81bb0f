"""Forms, compiled once each, off the engine's thread."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.endless import endless
from antiphon.engines.torch.grammar.place import place_of
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.schema import read_schema
from antiphon.engines.torch.grammar.source import grammar_source
from antiphon.engines.torch.grammar.workers import Workers

MOST_KEPT = 64
LIMITS = LLParserLimits(max_lexer_states=50_000, verbose_errors=False)
"""llguidance's own, but for the memory of one form: a state takes one or two kilobytes."""

NAMES = {
    "json_schema": "the schema",
    "json_object": "the form",
    "regex": "the regular expression",
    "choice": "the choice",
    "lark": "the grammar",
    "gbnf": "the grammar",
}

Compiled: TypeAlias = LLMatcher | GrammarRefused
"""A matcher at the start of a text, to be copied; or why there is none."""

_Key: TypeAlias = tuple[str, str, bool]


class Compiler:
    """Compiles each form once, and keeps the last of them. Any thread may call it."""

    def __init__(self, vocabulary: LLTokenizer, workers: Workers | None = None) -> None:
        self._vocabulary = vocabulary
        self._workers = workers or Workers()
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, Compiled] = OrderedDict()
        self._awaited: dict[_Key, list[Callable[[Compiled], None]]] = {}

    def want(self, spec: GrammarSpec, then: Callable[[Compiled], None]) -> Compiled | None:
        """The form, if it is there; else None, and ``then`` is called with it by another thread."""
        key = (spec.kind, spec.text, spec.strict)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
            if (others := self._awaited.get(key)) is not None:
                others.append(then)
                return None
            self._awaited[key] = [then]
        self._workers.put(lambda: self._make(key, spec))
        return None

    def _make(self, key: _Key, spec: GrammarSpec) -> None:
        try:
            made: Compiled = compiled(spec, self._vocabulary)
        except GrammarRefused as refusal:
            made = refusal
        except Exception as failure:  # whatever it is, somebody waits for an answer
            made = GrammarRefused(f"{NAMES[spec.kind]} cannot be compiled: {failure!r}")
        with self._lock:
            self._kept[key] = made
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            waiting = self._awaited.pop(key)
        for then in waiting:
            then(made)


def compiled(spec: GrammarSpec, vocabulary: LLTokenizer) -> LLMatcher:
    """A matcher at the start of a text. Raises ``GrammarRefused``.

    Only with ``strict`` is a schema held to in all it says or refused.
    """
    try:
        matcher = _matcher(grammar_source(spec, lenient=not spec.strict), vocabulary)
        error = matcher.get_error()
        if error and spec.kind == "json_schema":
            raise GrammarRefused(_placed(spec, error))
        if error:
            raise GrammarRefused(error)
        if spec.kind == "json_schema":
            place = endless(read_schema(spec.text))
            if place is not None:
                raise GrammarRefused(
                    f"{place or '/'}: no text ever ends that holds to it, because it needs "
                    "another of its own kind inside"
                )
        _check_start(matcher, vocabulary)
    except GrammarRefused as refusal:
        raise GrammarRefused(f"{NAMES[spec.kind]} does not compile: {refusal}") from None
    return matcher


def _matcher(source: str, vocabulary: LLTokenizer) -> LLMatcher:
    return LLMatcher(vocabulary, source, log_level=0, limits=LIMITS)


def _check_start(matcher: LLMatcher, vocabulary: LLTokenizer) -> None:
    """Raises ``GrammarRefused`` for a form that leaves no token, or none but the end.

    The first mask is also the dearest: whoever uses the form will find it half made.
    """
    trial = matcher.deep_copy()
    mask = int.from_bytes(trial.compute_bitmask(), "little")
    if trial.is_error():
        raise GrammarRefused(trial.get_error())
    for token in vocabulary.eos_tokens:
        mask &= ~(1 << token)
    if not mask:
        raise GrammarRefused("no text but the empty one holds to it")


def _placed(spec: GrammarSpec, error: str) -> str:
    """The compiler's words behind the place they are about."""
    schema = json.loads(spec.text)

    def complaint(part: Any) -> str:
        try:
            text = json.dumps(part)
            source = grammar_source(
                GrammarSpec(kind="json_schema", text=text), lenient=not spec.strict
            )
        except (GrammarRefused, RecursionError):
            return ""
        return str(LLMatcher.validate_grammar(source, limits=LIMITS))

    place = place_of(schema, error, complaint)
    return f"{place or '/'}: {' '.join(error.split())}"
