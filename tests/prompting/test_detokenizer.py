"""Ids to text: whole characters only, nothing lost, nothing held back that need not be."""

from __future__ import annotations

import itertools

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.prompting.detokenizer import Detokenizer
from antiphon.prompting.tokenizer import Tokenizer
from prompting.vocabularies import HOSTILE

BYTES = [bytes([byte]) for byte in range(256)]


def unfinished(data: bytes) -> int:
    """How many bytes at the end are the start of a character (Unicode 16, table 3-7)."""
    second = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
    for size in (3, 2, 1):
        tail = data[-size:]
        if len(tail) < size:
            continue
        first = tail[0]
        length = 2 if 0xC2 <= first <= 0xDF else 3 if 0xE0 <= first <= 0xEF else 4
        if not 0xC2 <= first <= 0xF4 or size >= length:
            continue
        low, high = second.get(first, (0x80, 0xBF))
        follows = [low <= tail[1] <= high] if size > 1 else []
        follows += [0x80 <= byte <= 0xBF for byte in tail[2:]]
        if all(follows):
            return size
    return 0


# Bytes that meet at the edges of UTF-8's table, so that random ids hit its corners.
CORNERS = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE2]
CORNERS += [0xED, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5, 0xFF, 0xBD]


@example(data=b"\xed\xa0")  # half of a surrogate: invalid, though Python's decoder waits
@given(data=st.lists(st.sampled_from(CORNERS) | st.integers(0, 255), max_size=40).map(bytes))
def test_any_bytes_give_what_one_decode_gives_and_only_a_live_tail_is_held(data: bytes) -> None:
    detokenizer = Detokenizer(BYTES)
    text = ""
    for end, byte in enumerate(data, 1):
        text += detokenizer.feed(byte)
        complete = data[: end - unfinished(data[:end])]
        assert text == complete.decode("utf-8", "replace")
    tail = detokenizer.flush()
    assert tail == ("\ufffd" if unfinished(data) else "")
    assert text + tail == data.decode("utf-8", "replace")


@given(data=st.data())
def test_any_cut_of_the_bytes_into_tokens_gives_the_same_text(data: st.DataObject) -> None:
    table = data.draw(st.lists(st.binary(max_size=6), min_size=1, max_size=20))
    ids = data.draw(st.lists(st.integers(0, len(table) - 1), max_size=30))
    detokenizer = Detokenizer(table)
    text = "".join(map(detokenizer.feed, ids)) + detokenizer.flush()
    assert text == b"".join(table[index] for index in ids).decode("utf-8", "replace")


@given(data=st.data())
def test_any_ids_of_every_family(
    data: st.DataObject, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, _ = family
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    detokenizer = Detokenizer(tokenizer.token_bytes, hidden=tokenizer.special_ids)
    text = "".join(map(detokenizer.feed, ids)) + detokenizer.flush()
    shown = (index for index in ids if index not in tokenizer.special_ids)
    data_of = b"".join(tokenizer.token_bytes[index] for index in shown)
    assert text == data_of.decode("utf-8", "replace")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_the_text_of_a_text_is_what_the_reference_decoder_gives(
    text: str, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, reference = family
    ids = tokenizer.encode(text, add_special_tokens=False, allow_special=True)
    detokenizer = Detokenizer(tokenizer.token_bytes, hidden=tokenizer.special_ids)
    ours = "".join(map(detokenizer.feed, ids)) + detokenizer.flush()
    assert ours == reference.decode(list(ids), skip_special_tokens=True)


def test_a_literal_replacement_character_passes_at_once() -> None:
    detokenizer = Detokenizer(["\ufffd".encode(), b"x"])
    assert [detokenizer.feed(0), detokenizer.feed(0), detokenizer.feed(1)] == ["\ufffd"] * 2 + ["x"]
    assert detokenizer.flush() == ""


def test_an_unfinished_character_at_the_end_is_one_replacement_character() -> None:
    detokenizer = Detokenizer(BYTES)
    assert [detokenizer.feed(byte) for byte in "🙂".encode()[:3]] == ["", "", ""]
    assert detokenizer.flush() == "\ufffd"


def test_continuation_bytes_of_a_prompt_that_is_not_ours_are_replaced() -> None:
    detokenizer = Detokenizer(BYTES)
    assert [detokenizer.feed(byte) for byte in "🙂".encode()[2:]] == ["\ufffd", "\ufffd"]


def test_hidden_tokens_and_ids_beyond_the_table_give_no_text_and_break_no_character() -> None:
    first, second = "é".encode()[:1], "é".encode()[1:]
    detokenizer = Detokenizer([first, b"<|end|>", second], hidden=frozenset({1}))
    assert [detokenizer.feed(token) for token in (0, 1, 99, 2)] == ["", "", "", "é"]


def test_a_tokens_own_text_does_not_depend_on_what_was_fed() -> None:
    detokenizer = Detokenizer(["é".encode()[:1], b"<|end|>"], hidden=frozenset({1}))
    detokenizer.feed(0)
    assert [detokenizer.token_text(token) for token in (0, 1, 99)] == ["\ufffd", "<|end|>", ""]
    assert [detokenizer.bytes_of(token) for token in (0, 1, 99)] == [b"\xc3", b"<|end|>", b""]


@given(data=st.data())
def test_what_is_known_of_tokens_changes_no_text(data: st.DataObject) -> None:
    table = data.draw(
        st.lists(st.binary(max_size=4) | st.sampled_from([b"a", b"\xed"]), min_size=1)
    )
    hidden = data.draw(st.frozensets(st.integers(0, len(table) - 1), max_size=2))
    model = Detokenizer(table, hidden)
    sequences = st.lists(st.lists(st.integers(0, len(table)), max_size=12), max_size=4)
    for ids in data.draw(sequences):
        knowing, alone = model.fresh(), Detokenizer(table, hidden)
        for token in ids:
            text = knowing.whole(token)
            assert alone.whole(token) in (None, text)
            if text is None:
                text = knowing.feed(token)
            shown = b"" if token in hidden else alone.bytes_of(token)
            assert text == alone.feed_bytes(shown)
        assert knowing.flush() == alone.flush()


def test_tokens_of_whole_characters_are_known_to_all_sequences_of_a_model() -> None:
    model = Detokenizer([b"a", "é".encode()[:1], b"<|end|>", b""], hidden=frozenset({2}))
    first, second = model.fresh(), model.fresh()
    assert [first.whole(token) for token in range(5)] == [None] * 5
    assert [first.feed(token) for token in (0, 2, 3, 4, 1)] == ["a", "", "", "", ""]
    assert [second.whole(token) for token in range(5)] == ["a", None, None, None, None]
    assert first.whole(0) is None  # half a character is held
    assert (first.flush(), first.whole(0)) == ("\ufffd", "a")


def pieces(table: list[bytes], ids: list[int], cuts: list[int]) -> str:
    """The text of the ids, fed in the runs between the cuts, and the flush."""
    detokenizer, texts = Detokenizer(table), []
    for start, end in itertools.pairwise([0, *cuts, len(ids)]):
        texts.append("".join(map(detokenizer.feed, ids[start:end])))
    return "".join(texts) + detokenizer.flush()


@given(data=st.data())
def test_every_split_of_every_family(
    data: st.DataObject, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    table = list(family[0].token_bytes)
    parts = [i for i, spelt in enumerate(table) if spelt and max(spelt[0], spelt[-1]) >= 0x80]
    some = st.integers(0, len(table) - 1) | st.sampled_from(parts)
    ids = data.draw(st.lists(some, max_size=24))
    whole = b"".join(table[i] for i in ids).decode("utf-8", "replace")
    for cut in range(len(ids) + 1):
        assert pieces(table, ids, [cut]) == whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=8)))
    assert pieces(table, ids, cuts) == whole


@given(data=st.lists(st.sampled_from(CORNERS) | st.integers(0, 255), max_size=24).map(bytes))
def test_every_split_of_any_bytes(data: bytes) -> None:
    whole = data.decode("utf-8", "replace")
    for cut in range(len(data) + 1):
        detokenizer = Detokenizer([])
        text = detokenizer.feed_bytes(data[:cut]) + detokenizer.feed_bytes(data[cut:])
        assert text + detokenizer.flush() == whole
