"""The same recording in other steps: what a model says does not depend on how it arrives."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence

from golden.playing import Step
from responsory.segments import Piece

Recut = Callable[[Sequence[Step]], list[Step]]


def finest(steps: Sequence[Step]) -> list[Step]:
    """One character a step, where the ids of a piece go with its first character; pieces with
    logprobs one token a step. A ``bytes`` recording is so one byte a step: each is a piece, and
    makes one character at most."""
    return [[part] for step in steps for piece in step for part in _parts(piece)]


def _parts(piece: Piece) -> Iterator[Piece]:
    if piece.logprobs:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token, entry in zip(piece.ids, piece.logprobs, strict=True):
            yield Piece(decoder.decode(entry.data), (token,), (entry,))
        return
    yield Piece(piece.text[:1], piece.ids)
    for character in piece.text[1:]:
        yield Piece(character)


def merged(count: int | None) -> Recut:
    """``count`` pieces a step, or all in one."""

    def recut(steps: Sequence[Step]) -> list[Step]:
        pieces = [piece for step in steps for piece in step]
        size = count or max(1, len(pieces))
        return [pieces[at : at + size] for at in range(0, len(pieces), size)]

    return recut


def joined(count: int | None) -> Recut:
    """As ``merged``, and the pieces of a step are one: it does not say any more where in its text
    an id without a logprob begins."""

    def recut(steps: Sequence[Step]) -> list[Step]:
        return [[_join(step)] for step in merged(count)(steps)]

    return recut


def _join(pieces: Sequence[Piece]) -> Piece:
    return Piece(
        "".join(piece.text for piece in pieces),
        tuple(token for piece in pieces for token in piece.ids),
        tuple(entry for piece in pieces for entry in piece.logprobs),
    )


COUNTS: Mapping[str, int | None] = {"2": 2, "3": 3, "7": 7, "all": None}
MERGED: Mapping[str, Recut] = {f"{name} merged": merged(count) for name, count in COUNTS.items()}
JOINED: Mapping[str, Recut] = {f"{name} joined": joined(count) for name, count in COUNTS.items()}
