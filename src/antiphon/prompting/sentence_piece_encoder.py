"""A SentencePiece BPE vocabulary as an encoder: pieces with scores, and bytes for what has none.

Source: Kudo and Richardson 2018. Neither format that holds such pieces (``tokenizer.model``, GGUF)
has merges; they follow from the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, processors

from antiphon.models.sentence_piece_file import Kind, Piece
from antiphon.prompting import token_bytes
from antiphon.prompting.merges import merges
from antiphon.prompting.vocabulary import Vocabulary

_SPACE = "▁"
_BYTE_PIECES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


@attrs.frozen(kw_only=True)
class Surroundings:
    """What goes around a text, and whether a space goes before it."""

    bos: int | None = None
    eos: int | None = None
    space_before: bool = True
    """A text begins like a word after a space, and so does a text after a control token."""


def missing_byte(pieces: Sequence[Piece]) -> str | None:
    """A byte that has no piece, so that some texts cannot be spelt; None if all have one."""
    return min(_BYTE_PIECES.difference(piece.text for piece in pieces), default=None)


def repeated(pieces: Sequence[Piece]) -> str | None:
    """A text that two pieces have; None if all differ."""
    seen: set[str] = set()
    for piece in pieces:
        if piece.text in seen:
            return piece.text
        seen.add(piece.text)
    return None


def make_vocabulary(pieces: Sequence[Piece], around: Surroundings) -> Vocabulary:
    """The vocabulary of pieces in the order of their ids: all differ, the bytes are among them."""
    ids = {piece.text: index for index, piece in enumerate(pieces)}
    # The others are matched whole (control, user-defined), stand for something (unknown, byte), or
    # are never written (unused).
    normal = [piece for piece in pieces if piece.kind == Kind.NORMAL]
    halves = {piece.text: ids[piece.text] for piece in normal}
    order = sorted(normal, key=lambda piece: (-piece.score, ids[piece.text]))
    unknown = next((piece.text for piece in pieces if piece.kind == Kind.UNKNOWN), None)
    encoder = tokenizers.Tokenizer(
        models.BPE(
            vocab=ids,
            merges=merges((piece.text for piece in order), halves),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    encoder.normalizer = _normalizer(around)
    encoder.decoder = _decoder(around)
    for kind, special in ((Kind.UNKNOWN, True), (Kind.CONTROL, True), (Kind.USER_DEFINED, False)):
        encoder.add_tokens(
            [
                AddedToken(piece.text, special=special, normalized=False)
                for piece in pieces
                if piece.kind == kind
            ]
        )
    _surround(encoder, pieces, around)
    return Vocabulary(encoder=encoder, token_bytes=_table(pieces))


def _normalizer(around: Surroundings) -> normalizers.Normalizer:
    spaces = normalizers.Replace(" ", _SPACE)
    if not around.space_before:
        return spaces
    return normalizers.Sequence([normalizers.Prepend(_SPACE), spaces])


def _decoder(around: Surroundings) -> decoders.Decoder:
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if around.space_before:
        steps.append(decoders.Strip(content=" ", left=1, right=0))
    return decoders.Sequence(steps)


def _surround(encoder: tokenizers.Tokenizer, pieces: Sequence[Piece], around: Surroundings) -> None:
    before, after = (
        [] if index is None else [(pieces[index].text, index)] for index in (around.bos, around.eos)
    )
    if before or after:
        encoder.post_processor = processors.TemplateProcessing(
            single=[*(text for text, _ in before), "$A", *(text for text, _ in after)],
            special_tokens=[*before, *after],
        )


def _table(pieces: Sequence[Piece]) -> list[bytes]:
    table = token_bytes.sentence_piece(piece.text for piece in pieces)
    for index, piece in enumerate(pieces):
        if piece.kind not in (Kind.NORMAL, Kind.BYTE, Kind.UNUSED):
            table[index] = piece.text.encode()
    return table
