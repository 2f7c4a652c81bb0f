"""The vocabulary of a folder with a SentencePiece ``tokenizer.model`` and no ``tokenizer.json``."""

from __future__ import annotations

from pathlib import Path

from antiphon.errors import StartupError
from antiphon.models.hf_folder import TOKENIZER_CONFIG, read_optional_object
from antiphon.models.sentence_piece_file import BPE, SentencePieceFile, read_sentence_piece
from antiphon.prompting.sentence_piece_encoder import (
    Surroundings,
    make_vocabulary,
    missing_byte,
    repeated,
)
from antiphon.prompting.vocabulary import Vocabulary


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary in a ``tokenizer.model``, byte-pair encoding with byte fallback.

    Raises ``StartupError`` that names a setting that is not known here and its value.
    """
    found = read_sentence_piece(path)
    _check(path, found)
    config = read_optional_object(path.parent / TOKENIZER_CONFIG)
    ends = {"bos": found.bos_id, "eos": found.eos_id}
    # The format leaves to its reader what goes around a text; Llama's reader adds the BOS.
    wanted = {"bos": config.get("add_bos_token", True), "eos": config.get("add_eos_token", False)}
    around = {name: ends[name] for name in ends if wanted[name] and ends[name] >= 0}
    for name, index in around.items():
        if index >= len(found.pieces):
            raise _unknown(path, f"trainer_spec.{name}_id", index, "one of the pieces")
    return make_vocabulary(
        found.pieces,
        Surroundings(
            bos=around.get("bos"), eos=around.get("eos"), space_before=found.add_dummy_prefix
        ),
    )


def _check(path: Path, found: SentencePieceFile) -> None:
    if found.model_type != BPE:
        raise _unknown(path, "trainer_spec.model_type", found.model_type, f"{BPE} (BPE)")
    if not found.byte_fallback:
        raise _unknown(path, "trainer_spec.byte_fallback", False, "True")
    if found.whitespace_as_suffix:
        raise _unknown(path, "trainer_spec.treat_whitespace_as_suffix", True, "False")
    if found.remove_extra_whitespaces:
        raise _unknown(path, "normalizer_spec.remove_extra_whitespaces", True, "False")
    if not found.escape_whitespaces:
        raise _unknown(path, "normalizer_spec.escape_whitespaces", False, "True")
    if found.charsmap:
        # Llama's and Mistral's files leave characters as they are.
        raise _unknown(path, "normalizer_spec.name", found.normalizer, "identity")
    if text := repeated(found.pieces):
        raise StartupError(f"{path}: two pieces are {text!r}.")
    if byte := missing_byte(found.pieces):
        raise StartupError(f"{path}: byte_fallback is true and {byte} is missing.")


def _unknown(path: Path, key: str, value: object, known: str) -> StartupError:
    return StartupError(f"{path}: {key} is {value}; known here: {known}.")
