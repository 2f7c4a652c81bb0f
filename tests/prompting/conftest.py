"""The three families of vocabularies, once a session."""

from __future__ import annotations

import pytest
import tokenizers

from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting import vocabularies

FAMILIES = {
    "byte-level": lambda: vocabularies.train_byte_level(vocabularies.smollm_split()),
    "sentence-piece-bpe": vocabularies.sentence_piece_bpe,
    "sentence-piece-unigram": vocabularies.sentence_piece_unigram,
}


@pytest.fixture(scope="session")
def byte_level() -> tokenizers.Tokenizer:
    """A reference encoder of the byte-level family."""
    return FAMILIES["byte-level"]()


@pytest.fixture(scope="session", params=FAMILIES)
def family(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """Our tokenizer, loaded from a folder, and the reference it was saved from."""
    reference = FAMILIES[request.param]()
    files = vocabularies.write_folder(tmp_path_factory.mktemp(request.param), reference)
    return load_tokenizer(files), reference
