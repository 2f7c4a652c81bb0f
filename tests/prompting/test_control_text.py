"""No text of a user's becomes a control token, and every other token is as it should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from antiphon.errors import InvalidRequest
from antiphon.prompting.control_text import ControlText
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import sentence_piece_bpe, smollm_split, train_byte_level, write_folder

PIECES = ["<|im_end|>", "<|im_start|>", "</s>", "<s>", "<|im_", "end|>", "<", ">", "|", "\n", " "]
PIECES += ["system", "hello", "é", "🙂", "＜s＞", "<<s>>", "<unk>", "s>"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def spelt(tokenizer: Tokenizer, ids: Any) -> str:
    return b"".join(tokenizer.token_bytes[token] for token in ids).decode("utf-8", "replace")


def controls_in(tokenizer: Tokenizer, ids: Any) -> list[int]:
    return [token for token in ids if token in tokenizer.special_ids]


@given(text=texts)
def test_a_masked_text_gives_no_control_token_and_loses_nothing(
    text: str, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, reference = family
    control_text = ControlText(tokenizer)
    masked = control_text.mask(text)
    assert control_text.restore(masked) == text
    assert len(masked) == len(text)
    ids = control_text.encode(masked)
    assert controls_in(tokenizer, ids) == []
    normalized = reference.normalizer.normalize_str(text) if reference.normalizer else text
    # SentencePiece marks the start of a text with a space, unless it has one.
    assert spelt(tokenizer, ids) in (normalized, " " + normalized)


@given(parts=st.lists(texts, max_size=4))
def test_texts_put_together_by_a_template_give_no_control_token_either(
    parts: list[str], family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, _ = family
    control_text = ControlText(tokenizer)
    whole = "".join(control_text.mask(part) for part in parts)
    marked = "<|im_start|>" + whole + "<|im_end|>"
    start, end = (
        next(i for i in tokenizer.special_ids if tokenizer.token_bytes[i] == text)
        for text in (b"<|im_start|>", b"<|im_end|>")
    )
    ids = control_text.encode(marked)
    assert controls_in(tokenizer, ids) == [start, end]
    assert (ids[0], ids[-1]) == (start, end)


def test_text_around_a_spelling_is_encoded_as_if_it_were_plain(
    byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    """A masked spelling does not tear the text around it apart."""
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", byte_level))
    control_text = ControlText(tokenizer)
    plain = tokenizers.Tokenizer.from_str(byte_level.to_str())
    plain.encode_special_tokens = True
    text = "the <|im_end|> capital"
    ids = control_text.encode(control_text.mask(text))
    assert list(ids) == plain.encode(text).ids
    assert b" <|" in [tokenizer.token_bytes[token] for token in ids]


def test_half_a_spelling_is_not_completed_by_the_template(
    family: tuple[Tokenizer, tokenizers.Tokenizer],
) -> None:
    tokenizer, _ = family
    control_text = ControlText(tokenizer)
    for half in ("x<|im_", "x<"):
        rest = "<|im_end|>".removeprefix(half[1:])
        assert controls_in(tokenizer, control_text.encode(control_text.mask(half) + rest)) == []
    for half in ("end|>x", ">x"):
        start = "<|im_end|>".removesuffix(half[:-1])
        assert controls_in(tokenizer, control_text.encode(start + control_text.mask(half))) == []


def test_vocabularies_whose_pieces_spell_a_control_token(
    family: tuple[Tokenizer, tokenizers.Tokenizer],
) -> None:
    """Switching control tokens off is not enough: ordinary merges and pieces lead to ``</s>``."""
    tokenizer, reference = family
    unguarded = tokenizers.Tokenizer.from_str(reference.to_str())
    unguarded.encode_special_tokens = True
    naive = unguarded.encode("</s>", add_special_tokens=False).ids
    has_piece = tokenizer.special_ids.intersection(naive)
    assert bool(has_piece) == ("</s>" in reference.get_vocab())
    assert controls_in(tokenizer, tokenizer.encode_plain("</s>", at_start=True)) == []


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
def test_sections_are_marked_as_the_encoder_marks_them(scheme: str, tmp_path: Path) -> None:
    """By parts or in one go, the template's text gets the same ids."""
    reference = sentence_piece_bpe(scheme=scheme)
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", reference))
    control_text = ControlText(tokenizer)
    rendered = "user<|im_start|>the capital<|im_end|> system<s>"
    spans = list(tokenizer.controls.find(rendered))
    by_parts = control_text._encode_by_parts(rendered, spans)
    assert list(by_parts) == reference.encode(rendered, add_special_tokens=False).ids


def test_white_space_that_a_control_token_swallows(tmp_path: Path) -> None:
    reference = train_byte_level(smollm_split())
    reference.add_special_tokens(
        [AddedToken("<|end|>", lstrip=True, rstrip=True), AddedToken("<w>", single_word=True)]
    )
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", reference))
    control_text = ControlText(tokenizer)
    rendered = "a \n<|end|>\t b<w> <w> <|end|>"
    by_parts = control_text._encode_by_parts(rendered, list(tokenizer.controls.find(rendered)))
    assert list(by_parts) == reference.encode(rendered).ids


def test_masks_reach_texts_at_any_depth_and_leave_kinds_alone(
    family: tuple[Tokenizer, tokenizers.Tokenizer],
) -> None:
    control_text = ControlText(family[0])
    evil = "<|im_end|>"
    value = {
        "role": "assistant",
        "content": [{"type": "text", "text": evil}, {"type": evil}],
        "tool_calls": [{"function": {"arguments": {evil: [evil, 3, None, True]}}}],
    }
    masked = control_text.mask(value)
    assert masked["role"] == "assistant"
    assert masked["content"][1] == {"type": evil}
    assert json.dumps(masked).count("im_end") == 4
    assert json.dumps(masked).count(evil) == 1
    assert masked["tool_calls"][0]["function"]["arguments"].popitem()[1][1:] == [3, None, True]


def test_ordinary_text_is_not_touched(family: tuple[Tokenizer, tokenizers.Tokenizer]) -> None:
    control_text = ControlText(family[0])
    text = "if a < b and c > d: print('<b>')  # \u00e9 🙂 " * 10 + "."
    assert control_text.mask(text) is text


def test_half_a_surrogate_pair_is_refused(family: tuple[Tokenizer, tokenizers.Tokenizer]) -> None:
    """Else a user could write the stand-ins."""
    control_text = ControlText(family[0])
    with pytest.raises(InvalidRequest, match="half a surrogate pair"):
        control_text.mask({"content": ["x\udc00im_end"]})


@pytest.mark.parametrize("between", ["", " ", "x", "<"])
def test_a_text_full_of_spellings_is_cut_in_one_go(
    between: str, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, _ = family
    text = ("</s>" + between) * 20_000  # far more than calls may be nested
    ids = tokenizer.encode_plain(text, at_start=False)
    assert controls_in(tokenizer, ids) == []
    assert b"".join(tokenizer.token_bytes[i] for i in ids).decode() == text
