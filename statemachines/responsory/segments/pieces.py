"""What the detokenizer hands over, and where each token begins in it."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.values import Logprob


@immutable
class Piece:
    """Text that became final, the ids of the tokens that made it, and their logprobs if asked.

    Text without ids (a flush) and ids without text (a token inside a character) are both legal.
    """

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[Logprob, ...] = ()


class Aligner:
    """Finds the character at which each token of a piece begins.

    The bytes of the tokens spell the text, so decoding them tells how far each one reaches. A token
    whose bytes are not the text at its place (a special token that is not shown) has no extent.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def starts(self, text: str, logprobs: Sequence[Logprob]) -> list[int]:
        """One offset in characters per token, never decreasing, at most ``len(text)``."""
        at = 0
        starts = []
        for entry in logprobs:
            starts.append(at)
            spelled = self._decoder.decode(entry.data)
            if text.startswith(spelled, at):
                at += len(spelled)
            else:
                self._decoder.reset()
        return starts
