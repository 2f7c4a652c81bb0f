"""Encoding text in which the spelling of a control token is text like any other."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

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
        found: list[int] = []
        sections = [(text, encoder)]  # the next one last
        while sections:
            section, encoder = sections.pop()
            encoding = encoder.encode(section, add_special_tokens=False)
            if self._controls.ids.isdisjoint(encoding.ids):
                found += encoding.ids
                continue
            # Some vocabularies hold a control token's text as an ordinary piece, have merges that
            # lead to it, or compose it from other characters: cut inside, the piece cannot form.
            cuts = [0, *self._cuts(encoding), len(section)]
            parts = [section[start:end] for start, end in pairwise(cuts)]
            sections += [(part, self._unmarked) for part in reversed(parts[1:])]
            sections.append((parts[0], encoder))
        return found

    def _cuts(self, encoding: tokenizers.Encoding) -> list[int]:
        """Where to cut: after the first character of each control token."""
        spans = [
            span
            for token, span in zip(encoding.ids, encoding.offsets, strict=True)
            if token in self._controls.ids
        ]
        if any(end - start < 2 for start, end in spans):
            raise InvalidRequest("The text cannot be told from one of the model's control tokens.")
        return [start + 1 for start, _ in spans]

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
