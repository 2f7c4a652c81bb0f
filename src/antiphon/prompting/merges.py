"""The merges behind a vocabulary that gives its tokens in order, and no merges.

Tekken's ranks and SentencePiece's scores both say: of all neighbours whose joining is a token, join
the pair whose token comes first. The ``tokenizers`` library wants every such pair in that order.
Pairs that join to one token are equal in the original, which takes the leftmost; here the one with
the earlier left half wins, which differs only where two such pairs overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Text = TypeVar("Text", str, bytes)


def merges(order: Iterable[Text], ids: Mapping[Text, int]) -> list[tuple[Text, Text]]:
    """The pairs of tokens that join to one of ``order``, first come first merged.

    ``ids`` are all tokens that may be halves, and their numbers.
    """
    found: list[tuple[Text, Text]] = []
    for whole in order:
        halves = [
            (whole[:cut], whole[cut:])
            for cut in range(1, len(whole))
            if whole[:cut] in ids and whole[cut:] in ids
        ]
        if len(halves) > 1:
            halves.sort(key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        found += halves
    return found
