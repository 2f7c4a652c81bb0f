"""What the detokenizer hands over, and where each token begins in it."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.values import Logprob


@immutable
class Piece:
    """Text that became final, the ids of the tokens that made it, and their logprobs if asked.

    Text without ids (a flush) and ids without text (a token inside a character) are both legal.
    """

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[Logprob, ...] = ()


def is_whole_token(piece: Piece) -> bool:
    """Whether the piece is one token, and its logprob spells the whole of its text."""
    return (
        len(piece.ids) == len(piece.logprobs) == 1 and piece.logprobs[0].data == piece.text.encode()
    )


class Aligner:
    """Finds the characters of each token of a piece.

    The bytes of the tokens spell the text, so decoding them tells how far each one reaches. A token
    whose bytes are not the text at its place (a special token that is not shown) has no extent, and
    may stand inside a character that the tokens around it spell.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def extents(self, piece: Piece, origin: int) -> list[tuple[int, int, Logprob]]:
        """(start, end, logprob) of each token, in characters, where the piece's text begins at
        ``origin``. Ends never decrease, and none is past the piece's own."""
        text, at = piece.text, 0
        extents = []
        for entry in piece.logprobs:
            start = at
            at = self._end(text, at, entry.data)
            extents.append((origin + start, origin + at, entry))
        return extents

    def _end(self, text: str, at: int, data: bytes) -> int:
        """Where the token ends that is due at ``at``."""
        decoder = self._decoder
        before = decoder.getstate()
        spelled = decoder.decode(data)
        if text.startswith(spelled, at):
            return at + len(spelled)
        decoder.reset()
        if before[0]:
            spelled = decoder.decode(data)
            if spelled and text.startswith(spelled, at):
                return at + len(spelled)
            decoder.setstate(before)
        return at
