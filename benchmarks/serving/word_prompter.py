"""Prompts and text of the scripted engine's model: its vocabulary, and no template."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from benchmarks.serving.words import SIZE, vocabulary

from antiphon.prompting.detokenizer import Detokenizer
from antiphon.prompting.prompter import checked_ids, spelled, spelled_apart
from antiphon.prompting.template import Message

MODEL = "tiny"
"""The name it is served under."""
PROMPT_TOKENS = 16


class WordPrompter:
    """Every prompt is as short as any other, as reading prompts is not what is measured.

    Output goes through the detokenizer that every model has, over a table of ``SIZE`` words. As
    with every model, what is known of a token is shared by all sequences.
    """

    def __init__(self) -> None:
        self._table = vocabulary()
        self._detokenizer = Detokenizer(self._table)

    longest_token = 2**20
    takes_chats = True
    writes_prompts = False
    takes_tools = False
    takes_system = True
    shows_calls = False
    takes_documents = False
    variables = frozenset[str]()

    def chat(self, messages: Sequence[Message], **_options: Any) -> array[int]:
        del messages
        return self._prompt()

    def text(self, *_prompt: Any, **_options: Any) -> array[int]:
        return self._prompt()

    encode = text

    def ids(self, tokens: Sequence[int]) -> array[int]:
        return checked_ids(tokens, SIZE)

    def decode(self, tokens: Sequence[int]) -> str:
        return spelled(self.ids(tokens), self._table)

    def spell(self, tokens: Sequence[int]) -> list[str]:
        return spelled_apart(self.ids(tokens), self._table)

    def detokenizer(self, *, skip_special: bool = True, markup: str = "") -> Detokenizer:
        del skip_special, markup  # there are none
        return self._detokenizer.fresh()

    def _prompt(self) -> array[int]:
        return array("I", range(PROMPT_TOKENS))
