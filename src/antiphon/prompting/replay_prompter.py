"""Prompts of a recording."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Literal

from antiphon.errors import InvalidRequest
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.prompting.prompter import checked_ids, spelled, spelled_apart
from antiphon.prompting.template import Message

_BYTES = tuple(bytes([byte]) for byte in range(256))
_SHOWING = Detokenizer(_BYTES)


class ReplayPrompter:
    """Prompts of a recording: whatever is asked, the prompt is as long as the recorded one was.

    ``tokenizer`` is the recording's: ids that are ``bytes``, or ``opaque`` ones whose text the
    recording brings along. Of a recording of ``turns`` the prompt's first id is the number of the
    turn: how often the conversation's assistant has spoken.
    """

    def __init__(
        self, prompt_tokens: int, tokenizer: Literal["bytes", "opaque"], *, turns: bool = False
    ) -> None:
        self._prompt_tokens = prompt_tokens
        self._turns = turns
        self._ids_are_bytes = tokenizer == "bytes"

    @property
    def longest_token(self) -> int:
        return 2**32  # nothing is too long for a recording

    @property
    def takes_chats(self) -> bool:
        return True

    @property
    def writes_prompts(self) -> bool:
        return False

    @property
    def takes_tools(self) -> bool:
        return True

    @property
    def takes_system(self) -> bool:
        return True

    @property
    def shows_calls(self) -> bool:
        return True

    @property
    def takes_documents(self) -> bool:
        return True

    @property
    def variables(self) -> frozenset[str]:
        return frozenset()

    def chat(self, messages: Sequence[Message], **_options: Any) -> array[int]:
        prompt = self._recorded()
        if self._turns:
            prompt[0] = sum(message["role"] == "assistant" for message in messages)
        return prompt

    def text(self, *_prompt: Any, **_options: Any) -> array[int]:
        return self._recorded()

    def encode(self, text: str, *, add_special_tokens: bool = True) -> array[int]:
        del add_special_tokens  # there are none
        if not self._ids_are_bytes:
            raise InvalidRequest(
                "The ids of this recording mean nothing: no text can be given in them.",
                code="unsupported_parameter",
                param="prompt",
            )
        return array("I", iter(text.encode()))

    def ids(self, *_tokens: Any) -> array[int]:
        return self._recorded()

    def decode(self, tokens: Sequence[int]) -> str:
        return spelled(self._bytes(tokens), _BYTES)

    def spell(self, tokens: Sequence[int]) -> list[str]:
        return spelled_apart(self._bytes(tokens), _BYTES)

    def detokenizer(self, *, skip_special: bool = True, markup: str = "") -> Detokenizer | None:
        del skip_special, markup  # a recording has no control tokens: what it shows, it shows
        return _SHOWING.fresh() if self._ids_are_bytes else None

    def _bytes(self, tokens: Sequence[int]) -> array[int]:
        if not self._ids_are_bytes:
            raise InvalidRequest(
                "The ids of this recording have no text of their own.",
                code="unsupported_parameter",
                param="prompt",
            )
        return checked_ids(tokens, len(_BYTES))

    def _recorded(self) -> array[int]:
        return array("I", bytes(array("I").itemsize * self._prompt_tokens))
