"""The vocabulary of the scripted engine: pronounceable words, each of which is a number.

A token of step n is word n modulo ``SIZE``, so that a client can tell from the text of an event
when the engine made it. A word is a space and five letters, consonants and vowels in turn: about
as many bytes as a token of ordinary English text.
"""

from __future__ import annotations

CONSONANTS = b"bcdfghjklmnprstv"
VOWELS = b"aeio"
SIZE = 16**3 * 4**2
"""Words in all. At 100 steps a second a word comes back after eleven minutes."""
LETTERS = 5


def word(number: int) -> bytes:
    """A space and the five letters of ``number`` modulo ``SIZE``."""
    letters = bytearray(b" ")
    for kind in (CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS):
        number, place = divmod(number, len(kind))
        letters.append(kind[place])
    return bytes(letters)


def number_of(letters: bytes) -> int | None:
    """The number that the first five letters spell; None if they are no word."""
    kinds = (CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS)
    total, weight = 0, 1
    for letter, kind in zip(letters[:LETTERS], kinds, strict=False):
        place = kind.find(letter)
        if place < 0:
            return None
        total, weight = total + weight * place, weight * len(kind)
    return total if weight == SIZE else None


def vocabulary() -> tuple[bytes, ...]:
    """The bytes of every token, by id."""
    return tuple(word(number) for number in range(SIZE))
