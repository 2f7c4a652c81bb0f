"""Text to token ids, and what the rest of the server must know of a vocabulary."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from antiphon.errors import InvalidRequest, StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.hf_folder import SENTENCE_PIECE, TEKKEN, TOKENIZER
from antiphon.models.regular import require_regular
from antiphon.models.token_table import TokenTable
from antiphon.prompting import (
    gguf_vocabulary,
    json_vocabulary,
    sentence_piece_vocabulary,
    start_marks,
    tekken_vocabulary,
)
from antiphon.prompting.control_tokens import ControlTokens
from antiphon.prompting.panics import panics_as
from antiphon.prompting.plain_encoder import PlainEncoder
from antiphon.prompting.vocabulary import Vocabulary

_PROBE = "".join(map(chr, range(0x20, 0x7F)))
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
            with panics_as(_cannot_encode):
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
        with panics_as(_cannot_encode):
            return self._plain.encode(text, at_start=at_start)

    def table(self) -> TokenTable:
        """The vocabulary as an engine may need it; its tokenizer puts nothing before a text."""
        bare = start_marks.without_marks(self._encoder.to_str())
        return TokenTable(tokens=self.token_bytes, special=self.special_ids, tokenizer=bare)

    def check(self, path: Path) -> None:
        """Encode a text as requests will. Raises ``StartupError`` if none could be served."""
        try:
            ids = self.encode(_PROBE, add_special_tokens=True, allow_special=True)
            self.surrounded(ids)
        except Exception as failure:  # the library raises nothing narrower
            raise StartupError(f"{path}: no text can be encoded: {failure}.") from failure
        if not ids:
            raise StartupError(
                f"{path}: a text of all letters has no tokens; is post_processor damaged?"
            )
        if (highest := max(ids)) >= self.vocab_size:
            raise StartupError(
                f"{path}: post_processor puts id {highest} around a text; ids run from 0 to "
                f"{self.vocab_size - 1}."
            )

    def _surroundings(self) -> tuple[array[int], array[int]]:
        """What the model wants before and after a text."""
        inner = self._encoder.encode("a", add_special_tokens=False).ids
        whole = self._encoder.encode("a", add_special_tokens=True).ids
        count = len(whole) - len(inner)
        places = (i for i in range(count + 1) if whole[i : i + len(inner)] == inner)
        if (start := next(places, None)) is None:
            raise ValueError("post_processor leaves the text itself out")
        return array("I", whole[:start]), array("I", whole[start + len(inner) :])


def require_unicode(text: str) -> None:
    """Refuse half a surrogate pair, which JSON can spell and UTF-8 cannot: ``InvalidRequest``."""
    if half := _SURROGATE.search(text):
        raise InvalidRequest(
            f"The text holds half a surrogate pair (U+{ord(half[0]):04X}): it was cut inside a "
            "character."
        )


def _cannot_encode(words: str) -> InvalidRequest:
    """The refusal of a text that the encoder gave up on, by its own regular expressions for one."""
    return InvalidRequest(f"The model's tokenizer cannot encode this text: {words}")


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    """The tokenizer of a model: from a GGUF file's metadata, or from a file of the folder.

    In a folder ``tokenizer.json`` is taken before ``tekken.json``, and that before
    ``tokenizer.model``. Raises ``StartupError`` that names the key and its value for a kind that is
    not known.
    """
    if files.kind == "gguf":
        return _read(files.path, gguf_vocabulary.read_vocabulary)
    for name, read in _IN_FOLDER.items():
        if (files.path / name).exists():
            return _read(files.path / name, read)
    raise StartupError(f"{files.path} has no {TOKENIZER}, nor {TEKKEN} or {SENTENCE_PIECE}.")


def _read(path: Path, read: Callable[[Path], Vocabulary]) -> Tokenizer:
    require_regular(path)
    with panics_as(
        lambda words: StartupError(
            f"{path}: the vocabulary is damaged: its encoder gave up: {words}."
        )
    ):
        tokenizer = Tokenizer(read(path))
        tokenizer.check(path)
    return tokenizer


_IN_FOLDER: Mapping[str, Callable[[Path], Vocabulary]] = {
    TOKENIZER: json_vocabulary.read_vocabulary,
    TEKKEN: tekken_vocabulary.read_vocabulary,
    SENTENCE_PIECE: sentence_piece_vocabulary.read_vocabulary,
}
