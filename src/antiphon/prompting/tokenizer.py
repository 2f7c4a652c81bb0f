"""Text to token ids, and what the rest of the server must know of a vocabulary."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from antiphon.errors import InvalidRequest, StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.hf_folder import SENTENCE_PIECE, TEKKEN, TOKENIZER
from antiphon.models.token_table import TokenTable
from antiphon.prompting import (
    gguf_vocabulary,
    json_vocabulary,
    sentence_piece_vocabulary,
    start_marks,
    tekken_vocabulary,
)
from antiphon.prompting.control_tokens import ControlTokens
from antiphon.prompting.plain_encoder import PlainEncoder
from antiphon.prompting.vocabulary import Vocabulary

_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """A vocabulary with its encoder, made by ``load_tokenizer``. Several threads may use one."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._encoder = vocabulary.encoder
        self.token_bytes: Sequence[bytes] = vocabulary.token_bytes
        """id → bytes. A special token has its text's bytes, an id that is skipped has none."""
        self.controls = ControlTokens(vocabulary.encoder.get_added_tokens_decoder())
        self._plain = PlainEncoder(self._encoder, self.controls)

    @property
    def vocab_size(self) -> int:
        """Every id is below it."""
        return len(self.token_bytes)

    @property
    def special_ids(self) -> frozenset[int]:
        """The control tokens' ids: turn markers and the like, never a user's to write."""
        return self.controls.ids

    def encode(self, text: str, *, add_special_tokens: bool, allow_special: bool) -> array[int]:
        """The ids of ``text``.

        ``add_special_tokens`` adds what the model wants around a text, usually its BOS.
        ``allow_special`` reads the spelling of a control token as that token; without it, it is
        text like any other. A byte that the vocabulary has no token for gives none, as in the
        reference implementations. Raises ``InvalidRequest`` for text that UTF-8 cannot spell.
        """
        require_unicode(text)
        if allow_special:
            encoding = self._encoder.encode(text, add_special_tokens=add_special_tokens)
            return array("I", encoding.ids)
        ids = array("I", self.encode_plain(text, at_start=True))
        return self.surrounded(ids) if add_special_tokens else ids

    def surrounded(self, ids: array[int]) -> array[int]:
        """The ids of a text with what the model wants around it, usually its BOS."""
        before, after = self._surroundings()
        return before + ids + after

    def encode_plain(self, text: str, *, at_start: bool) -> list[int]:
        """The ids of text that holds no control token; ``at_start`` False: more stands before it.

        Raises ``InvalidRequest`` if the vocabulary cannot spell the text without one.
        """
        return self._plain.encode(text, at_start=at_start)

    def table(self) -> TokenTable:
        """The vocabulary as an engine may need it; its tokenizer puts nothing before a text."""
        bare = start_marks.without_marks(self._encoder.to_str())
        return TokenTable(tokens=self.token_bytes, special=self.special_ids, tokenizer=bare)

    def _surroundings(self) -> tuple[array[int], array[int]]:
        """What the model wants before and after a text."""
        inner = self._encoder.encode("a", add_special_tokens=False).ids
        whole = self._encoder.encode("a", add_special_tokens=True).ids
        count = len(whole) - len(inner)
        start = next(i for i in range(count + 1) if whole[i : i + len(inner)] == inner)
        return array("I", whole[:start]), array("I", whole[start + len(inner) :])


def require_unicode(text: str) -> None:
    """Refuse half a surrogate pair, which JSON can spell and UTF-8 cannot: ``InvalidRequest``."""
    if half := _SURROGATE.search(text):
        raise InvalidRequest(
            f"The text holds half a surrogate pair (U+{ord(half[0]):04X}): it was cut inside a "
            "character."
        )


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    """The tokenizer of a model: from a GGUF file's metadata, or from a file of the folder.

    In a folder ``tokenizer.json`` is taken before ``tekken.json``, and that before
    ``tokenizer.model``. Raises ``StartupError`` that names the key and its value for a kind that is
    not known.
    """
    if files.kind == "gguf":
        return Tokenizer(gguf_vocabulary.read_vocabulary(files.path))
    for name, read in _IN_FOLDER.items():
        if (files.path / name).exists():
            return Tokenizer(read(files.path / name))
    raise StartupError(f"{files.path} has no {TOKENIZER}, nor {TEKKEN} or {SENTENCE_PIECE}.")


_IN_FOLDER: Mapping[str, Callable[[Path], Vocabulary]] = {
    TOKENIZER: json_vocabulary.read_vocabulary,
    TEKKEN: tekken_vocabulary.read_vocabulary,
    SENTENCE_PIECE: sentence_piece_vocabulary.read_vocabulary,
}
