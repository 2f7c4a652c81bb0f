"""Encoding text in which the spelling of a control token is text like any other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import tokenizers

from antiphon.errors import InvalidRequest
from antiphon.prompting import start_marks
from antiphon.prompting.control_tokens import ControlTokens


class PlainEncoder:
    """An encoder that never gives a control token, whatever the text spells.

    Its copies of the vocabulary are made on first use, for few texts spell a control token.
    """

    def __init__(self, encoder: tokenizers.Tokenizer, controls: ControlTokens) -> None:
        self._encoder = encoder
        self._controls = controls

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """The ids of ``text``; ``at_start`` False says that more text stands before it.

        Raises ``InvalidRequest`` if the vocabulary has no other way to spell the text.
        """
        encoder = self._marking if at_start or self._marks_every_section else self._unmarked
        ids = _ids(encoder, text)
        if self._controls.ids.isdisjoint(ids):
            return ids
        # Some vocabularies hold a control token's text as an ordinary piece, or have merges that
        # lead to it. Cut behind its first character, the piece cannot form.
        first, *others = self._cut(text)
        ids = _ids(encoder, first)
        for piece in others:
            ids += _ids(self._unmarked, piece)
        if self._controls.ids.isdisjoint(ids):
            return ids
        raise InvalidRequest("The text cannot be told from one of the model's control tokens.")

    @cached_property
    def _marks_every_section(self) -> bool:
        return start_marks.marks_every_section(self._encoder.to_str())

    @cached_property
    def _marking(self) -> tokenizers.Tokenizer:
        return _ignoring_control_tokens(self._encoder.to_str())

    @cached_property
    def _unmarked(self) -> tokenizers.Tokenizer:
        return _ignoring_control_tokens(start_marks.without_marks(self._encoder.to_str()))

    def _cut(self, text: str) -> Iterator[str]:
        start = 0
        for match in self._controls.pattern.finditer(text):
            yield text[start : match.start() + 1]
            start = match.start() + 1
        yield text[start:]


def _ids(encoder: tokenizers.Tokenizer, text: str) -> list[int]:
    ids: list[int] = encoder.encode(text, add_special_tokens=False).ids
    return ids


def _ignoring_control_tokens(tokenizer_json: str) -> tokenizers.Tokenizer:
    copy = tokenizers.Tokenizer.from_str(tokenizer_json)
    copy.encode_special_tokens = True
    return copy
