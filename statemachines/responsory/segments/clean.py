"""Steps that are text of the mode and nothing else: nearly every one is.

``starts``: the characters with which a marker begins. ``looked``: stop strings are looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.segments.markup import holds_no_markup
from responsory.segments.pieces import is_whole_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.segments.pieces import Piece


def is_clean(piece: Piece, starts: tuple[str, ...], *, looked: bool) -> bool:
    """Whether all of the piece is text of the mode, and no token of it is left over."""
    text = piece.text
    if not text or (starts and not holds_no_markup(text, starts)):
        return False
    return not piece.logprobs or (not looked and is_whole_token(piece))


def are_clean(pieces: Sequence[Piece], starts: tuple[str, ...], *, looked: bool) -> bool:
    """The same of a step of several pieces."""
    text = "".join([piece.text for piece in pieces])
    if not pieces[-1].text or (starts and not holds_no_markup(text, starts)):
        return False
    asked = [piece for piece in pieces if piece.logprobs]
    return not asked or (not looked and all(map(is_whole_token, asked)))
