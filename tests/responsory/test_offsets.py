"""``text_offset``: places in the visible text, whatever the entries spell."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import Refusal, Text
from responsory.projections import CompletionsStream, completion_body
from responsory.projections.offsets import AHEAD, Offsets
from responsory.segments import Piece, Segmenter
from responsory.testing import a_response, fold_completions
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.testing.streams import Builder


def token(data: bytes | str) -> Logprob:
    raw = data.encode() if isinstance(data, str) else data
    return Logprob(raw.decode(errors="replace"), -0.5, raw)


def shown(made: Builder) -> list[int]:
    """The offsets of the body, which are those of the stream."""
    body = completion_body([made.log], logprobs=True)["choices"][0]
    frames = [
        frame
        for stream in [CompletionsStream(logprobs=True)]
        for group in made.groups
        for frame in stream.feed(0, group)
    ]
    streamed = fold_completions(frames)["choices"][0]
    assert streamed["text"] == body["text"]
    assert streamed["logprobs"] == body["logprobs"]
    offsets: list[int] = body["logprobs"]["text_offset"]
    assert offsets == sorted(offsets)
    assert all(0 <= offset <= len(body["text"]) for offset in offsets)
    return offsets


def test_a_token_that_is_not_shown_has_no_extent() -> None:
    tokens = ("The", "<|x|>", " cat", "<|im_end|>")
    made = a_response().send(Text("The cat", tuple(map(token, tokens)))).finish()
    assert shown(made) == [0, 3, 3, 7]
    made = a_response()
    for name in tokens:
        made.send(Text("" if name.startswith("<") else name, (token(name),)))
    assert shown(made.finish()) == [0, 3, 3, 7]


def test_text_without_entries_is_passed_over() -> None:
    made = a_response().text("Well, ").send(Text("the", (token("the"),))).text(" old")
    assert shown(made.send(Text(" cat", (token(" cat"),))).finish()) == [6, 13]


def test_text_that_looks_like_the_next_token_is_passed_over_all_the_same() -> None:
    made = a_response().text("the a ").send(Text("a", (token("a"),))).text(" b a ")
    made.send(Text("a", (token("a"),))).text(" a").finish()
    assert shown(made) == [6, 12]


def test_the_rest_of_a_token_comes_without_entry() -> None:
    """It was held for a stop string; what stands after it stands after all of it."""
    made = a_response().send(Text("a", (token("aba"),))).text("b", "a")
    assert shown(made.send(Text("a", (token("a"),))).finish()) == [0, 3]
    made = a_response().send(Text("a", (token("abc"),))).text("b")
    assert shown(made.send(Text("cb", (token("b"),))).finish()) == [0, 3]


def test_a_token_that_was_cut_ends_where_the_text_goes_on_in_another_way() -> None:
    made = a_response().send(Text("a", (token("abc"),))).text("b")
    assert shown(made.send(Text("xx", (token("x"),))).finish()) == [0, 2]


@pytest.mark.parametrize(
    ("text", "entries", "expected"),
    [
        ("Hello a", (">Hello", " a"), [0, 5]),  # a marker took its start
        ("Hello", (" Hello",), [0]),  # no space before the first word
        ("aab", (">a", "a", "b"), [0, 1, 2]),
        ("a", ("><a",), [0]),
        ("He", (">Hello",), [0]),  # and a stop string its end
        ("xyz a", (" a",), [3]),
        ("xyz the", (" there",), [3]),
        ("xyz", ("q", "z"), [0, 2]),
        ("abc", ("b", "a", "c"), [1, 2, 2]),
    ],
)
def test_tokens_that_do_not_spell_the_text(
    text: str, entries: tuple[str, ...], expected: list[int]
) -> None:
    made = a_response().send(Text(text, tuple(map(token, entries)))).finish()
    assert shown(made) == expected


def test_what_a_marker_and_the_cut_left_of_a_token() -> None:
    made = a_response().send(Text("He", (token(">Hello"),))).text("llo")
    assert shown(made.send(Text("l", (token("l"),))).finish()) == [0, 5]


def test_a_token_is_not_looked_for_far_away() -> None:
    near, far = "x" * AHEAD + "a", "x" * (AHEAD + 1) + "a"
    assert Offsets().take(near, [token("a")]) == [AHEAD]
    assert Offsets().take(far, [token("a")]) == [0]
    assert Offsets().take(near[:-1] + "th", [token("the")]) == [AHEAD]
    long = "h" * AHEAD
    assert Offsets().take("x" + long, [token(long + "e")]) == [1]
    assert Offsets().take("x" + long + "h", [token(long + "he")]) == [2]
    assert Offsets().take("x" + "y" * AHEAD + "th", [token("the")]) == [0]


def test_an_echoed_prompt() -> None:
    """A start token that is not shown, tokens inside a character, a prompt that repeats itself, and
    the answer after it."""
    start = Logprob("<s>", None, b"")
    prompt: tuple[bytes | str, ...] = ("a", " a", b"\xf0\x9f", b"\x98\x80", " a")
    made = a_response().send(Text("a a😀 a", (start, *map(token, prompt))))
    made.tokens(token(" a"), token("!")).finish()
    assert shown(made) == [0, 0, 1, 3, 3, 4, 6, 8]
    body = completion_body([made.log], logprobs=True)["choices"][0]["logprobs"]
    assert body["token_logprobs"][:2] == [None, -0.5]
    assert body["top_logprobs"][:2] == [None, {"a": -0.5}]
    assert body["tokens"][0] == "<s>"


def test_a_refusal_is_text_without_entries() -> None:
    made = a_response().send(Text("a", (token("a"),))).send(Refusal("no b, "))
    assert shown(made.send(Text("b", (token("b"),))).finish()) == [0, 7]


@pytest.mark.parametrize(
    ("stop", "names", "expected"),
    [
        ("END", ("one", " E", "N", " two", " xEND y"), [0, 3, 5, 6, 10]),
        ("EEND", ("one", " E", "E", " two"), [0, 3, 5, 6]),
    ],
)
def test_a_token_that_was_held_or_cut_by_a_stop_string(
    stop: str, names: tuple[str, ...], expected: list[int]
) -> None:
    """The entry goes out with its first character; the rest comes later, or never."""
    segmenter = Segmenter(stop=[stop])
    made = a_response()
    for number, name in enumerate(names):
        for segment in segmenter.feed([Piece(name, (number,), (token(name),))]):
            made.send(segment)
    assert segmenter.finish() == []
    assert shown(made.finish()) == expected


@pytest.mark.wire("S4")
def test_a_character_of_several_tokens() -> None:
    parts = ("é".encode()[:1], "é".encode()[1:], b"\xf0\x9f", b"\x98\x80", b"!")
    made = a_response().send(Text("é😀!", tuple(map(token, parts)))).finish()
    assert shown(made) == [0, 0, 1, 1, 2]


def test_a_character_that_never_ends() -> None:
    parts = (b"a", b"\xf0\x9f", b"<|x|>", b"b")
    made = a_response().send(Text("ab", tuple(map(token, parts)))).finish()
    assert shown(made) == [0, 1, 1, 1]
    parts = (b"a", b"<\xf0", b"b", b"b")
    made = a_response().send(Text("abb", tuple(map(token, parts)))).finish()
    assert shown(made) == [0, 1, 1, 2]


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A text and tokens that spell it, cut between bytes."""
    text = draw(st.text("ab é😀", max_size=12))
    raw = text.encode()
    cuts = sorted(draw(st.sets(st.integers(0, len(raw)), max_size=8)) | {0, len(raw)})
    return text, [raw[start:end] for start, end in itertools.pairwise(cuts)]


def places(tokens: Sequence[bytes]) -> list[int]:
    """The character that holds each token's first byte, counted from the whole text."""
    starts = itertools.accumulate([0, *map(len, tokens)])
    raw = b"".join(tokens)
    return [len(raw[:start].decode(errors="ignore")) for start, _ in zip(starts, tokens)]  # noqa: B905  # one start more than tokens


@given(spelled(), st.lists(st.integers(0, 12), max_size=4))
def test_hidden_tokens_move_no_other(made: tuple[str, list[bytes]], at: list[int]) -> None:
    text, tokens = made
    whole = [index for index in range(len(tokens) + 1) if _whole(b"".join(tokens[:index]))]
    hidden = {whole[place % len(whole)] for place in at}
    listed: list[tuple[bytes, int | None]] = []
    for index, (data, place) in enumerate([*zip(tokens, places(tokens), strict=True), (b"", 0)]):
        if index in hidden:
            listed.append((b"<|x|>", None))
        if index < len(tokens):
            listed.append((data, place))
    starts = Offsets().take(text, [token(data) for data, _ in listed])
    assert starts == sorted(starts)
    for start, (_, expected) in zip(starts, listed, strict=True):
        assert expected is None or start == expected
        assert 0 <= start <= len(text)


def _whole(raw: bytes) -> bool:
    return raw.decode(errors="ignore").encode() == raw


@given(st.lists(st.tuples(st.text("ab<é", max_size=4), st.lists(st.binary(max_size=3)))))
def test_entries_that_spell_nothing_stay_inside_the_text(
    steps: list[tuple[str, list[bytes]]],
) -> None:
    offsets, text, last = Offsets(), "", 0
    for more, entries in steps:
        text += more
        for start in offsets.take(more, [token(data) for data in entries]):
            assert last <= start <= len(text)
            last = start


@given(st.lists(st.tuples(st.text("ab ", max_size=4), st.booleans()), max_size=8), st.data())
def test_some_tokens_with_entries(pieces: list[tuple[str, bool]], data: st.DataObject) -> None:
    """Each token in a delta of its own or cut in two, some with entries and some without: the
    places are exact, streamed and in the body, compacted or not."""
    made, at, expected = a_response(), 0, []
    for text, listed in pieces:
        cut = data.draw(st.integers(1, max(1, len(text))))
        if text:
            made.send(Text(text[:cut], (token(text),) if listed else ()))
            made.send(Text(text[cut:]))
            expected += [at] * listed
        at += len(text)
    made.finish()
    logprobs = completion_body([made.log], logprobs=True)["choices"][0]["logprobs"]
    found = [] if logprobs is None else logprobs["text_offset"]
    assert found == expected
    assert completion_body([made.log.compact()], logprobs=True) == completion_body(
        [made.log], logprobs=True
    )
    if expected:
        assert shown(made) == expected
