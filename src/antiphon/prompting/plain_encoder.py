"""Encoding text in which the spelling of a control token is text like any other."""

from __future__ import annotations

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
        marked = at_start or self._marks_every_section
        return self._encode(text, self._marking if marked else self._unmarked)

    def _encode(self, text: str, encoder: tokenizers.Tokenizer) -> list[int]:
        encoding = encoder.encode(text, add_special_tokens=False)
        ids: list[int] = encoding.ids
        if self._controls.ids.isdisjoint(ids):
            return ids
        # Some vocabularies hold a control token's text as an ordinary piece, have merges that lead
        # to it, or compose it from other characters: cut inside, the piece cannot form.
        start, end = next(
            span
            for token, span in zip(ids, encoding.offsets, strict=True)
            if token in self._controls.ids
        )
        if end - start < 2:
            raise InvalidRequest("The text cannot be told from one of the model's control tokens.")
        before, after = text[: start + 1], text[start + 1 :]
        return self._encode(before, encoder) + self._encode(after, self._unmarked)

    @cached_property
    def _marks_every_section(self) -> bool:
        return start_marks.marks_every_section(self._encoder.to_str())

    @cached_property
    def _marking(self) -> tokenizers.Tokenizer:
        return _ignoring_control_tokens(self._encoder.to_str())

    @cached_property
    def _unmarked(self) -> tokenizers.Tokenizer:
        return _ignoring_control_tokens(start_marks.without_marks(self._encoder.to_str()))


def _ignoring_control_tokens(tokenizer_json: str) -> tokenizers.Tokenizer:
    copy = tokenizers.Tokenizer.from_str(tokenizer_json)
    copy.encode_special_tokens = True
    return copy
