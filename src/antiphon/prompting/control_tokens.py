"""The control tokens of a vocabulary, and where their spelling stands in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tokenizers import AddedToken


class Span(NamedTuple):
    """One control token in a text, the white space it swallows included."""

    start: int
    end: int
    token: int


class ControlTokens:
    """The special entries of a vocabulary: turn markers and the like, never a user's to write."""

    def __init__(self, added: Mapping[int, AddedToken]) -> None:
        self._entries = {
            entry.content: (token, entry)
            for token, entry in added.items()
            if entry.special and entry.content
        }
        self.ids = frozenset(token for token, _ in self._entries.values())
        self.texts = frozenset(self._entries)
        longest_first = sorted(self._entries, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(self._spelling, longest_first)) or r"(?!)")
        """Finds the spellings as the encoder does: leftmost, then longest."""

    def find(self, text: str) -> Iterator[Span]:
        """The control tokens of a text, in order."""
        before = 0
        for match in self.pattern.finditer(text):
            token, entry = self._entries[match[0]]
            start, end = match.span()
            while entry.lstrip and start > before and text[start - 1].isspace():
                start -= 1
            while entry.rstrip and end < len(text) and text[end].isspace():
                end += 1
            yield Span(start, end, token)
            before = end

    def _spelling(self, text: str) -> str:
        alone = self._entries[text][1].single_word
        return rf"(?<!\w){re.escape(text)}(?!\w)" if alone else re.escape(text)
