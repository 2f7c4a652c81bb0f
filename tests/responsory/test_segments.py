"""The segmenter: stop strings, logprobs and counts are the same for any cut of the text."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from responsory.commands import Text
from responsory.segments import PLAIN, Piece, Segmenter
from responsory.segments.stops import Needle, StopMatcher
from responsory.testing.strategies import splits
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence


def token(text: str, value: float = -0.5, data: bytes | None = None) -> Logprob:
    return Logprob(text, value, text.encode() if data is None else data)


def run(
    steps: Sequence[Sequence[Piece]], stop: Sequence[str] = (), *, include: bool = False
) -> tuple[list[Text], Segmenter]:
    segmenter = Segmenter(PLAIN, stop=stop, include_stop=include)
    segments: list[Text] = []
    for step in [*steps, None]:
        found = segmenter.finish() if step is None else segmenter.feed(step)
        assert len(found) <= 1, "one delta for each step"
        for segment in found:
            assert isinstance(segment, Text)
            assert segment.text, "no empty text"
            segments.append(segment)
    return segments, segmenter


def joined(segments: Sequence[Text]) -> tuple[str, tuple[Logprob, ...]]:
    text = "".join(segment.text for segment in segments)
    return text, tuple(entry for segment in segments for entry in segment.logprobs)


def reference(text: str, stops: Sequence[str], *, include: bool) -> tuple[str, str | None, int]:
    """(visible text, matched stop, end of the match), by trying every end in turn."""
    for end in range(1, len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            stop = max(hits, key=len)
            return text[: end if include else end - len(stop)], stop, end
    return text, None, len(text)


def per_character(text: str) -> list[Piece]:
    return [Piece(char, (index,), (token(char),)) for index, char in enumerate(text)]


# --- one case at a time -------------------------------------------------------------------------

CASES = [
    (["ABC", " ", "DE", "FGH", " DEFGHIJ", " tail"], ["DEFGHIJ", "DE"], "ABC ", "DE", 3),
    (["ABCDEFG", "HI", " done"], ["DEFGHIJ"], "ABCDEFGHI done", None, 3),
    (["UNO", " DUE", " TR"], ["TRE"], "UNO DUE TR", None, 3),
    (["alpha", " beta", ".gam", "ma"], ["."], "alpha beta", ".", 3),
    (["a", "ab"], ["aab"], "", "aab", 2),
    (["aa", "ab"], ["aab"], "a", "aab", 2),
    (["xabc"], ["bc", "abc"], "x", "abc", 1),
    (["xabcd"], ["abcd", "b"], "xa", "b", 1),
    (["one", "two"], [], "onetwo", None, 2),
    (["", "a", ""], ["b"], "a", None, 3),
    (["a"], ["Za"], "a", None, 1),
    ([" \n a ", " "], [], " \n a  ", None, 2),
    ([" \n a ", " "], ["b"], " \n a  ", None, 2),
]


@pytest.mark.parametrize(("tokens", "stop", "text", "hit", "count"), CASES)
def test_stop_strings(
    tokens: list[str], stop: list[str], text: str, hit: str | None, count: int
) -> None:
    steps = [[Piece(part, (index,))] for index, part in enumerate(tokens)]
    segments, segmenter = run(steps, stop)
    assert joined(segments)[0] == text
    assert segmenter.stop == hit
    assert segmenter.output_tokens == count
    assert segmenter.reasoning_tokens == 0


@pytest.mark.wire("F7")
def test_a_live_prefix_is_held_and_nothing_else() -> None:
    segmenter = Segmenter(stop=["DEF"])
    assert segmenter.feed([Piece("abcD")]) == [Text("abc")]
    assert segmenter.feed([Piece("E")]) == []
    assert segmenter.feed([Piece("D")]) == [Text("DE")]
    assert segmenter.feed([Piece("x")]) == [Text("Dx")]
    assert segmenter.finish() == []


def test_without_markers_and_stop_strings_nothing_is_held() -> None:
    """Read with care too: for the tokens of a piece."""
    entries = (token("a"), token(" "))
    assert Segmenter().feed([Piece("a ", (1, 2), entries)]) == [Text("a ", entries)]


def test_with_the_stop_string_included_nothing_is_held() -> None:
    segmenter = Segmenter(stop=["DEF"], include_stop=True)
    assert segmenter.feed([Piece("abcD", (1,))]) == [Text("abcD")]
    assert segmenter.feed([Piece("EFgh", (2,))]) == [Text("EF")]
    assert segmenter.stop == "DEF"
    assert segmenter.feed([Piece("more", (3,))]) == []
    assert segmenter.finish() == []
    assert segmenter.output_tokens == 2


def test_the_texts_of_one_step_are_one_segment() -> None:
    segmenter = Segmenter()
    step = [Piece("a", (1,), (token("a"),)), Piece("", (2,)), Piece("b", (3,), (token("b"),))]
    assert segmenter.feed(step) == [Text("ab", (token("a"), token("b")))]


def test_logprobs_are_cut_where_the_text_is() -> None:
    one, two, three, stop = token("one"), token(" two"), token(" three"), token(" STOP")
    rest = (token(" four"), token(" five"))
    steps = [
        [Piece("one two three", (1, 2, 3), (one, two, three))],
        [Piece(" STOP four five", (4, 5, 6), (stop, *rest))],
    ]
    segments, segmenter = run(steps, [" STOP"])
    assert joined(segments) == ("one two three", (one, two, three))
    assert segmenter.output_tokens == 4
    segments, segmenter = run(steps, [" STOP"], include=True)
    assert joined(segments) == ("one two three STOP", (one, two, three, stop))
    assert segmenter.output_tokens == 4


def test_a_token_half_cut_keeps_its_logprob_if_any_of_it_is_visible() -> None:
    half, hidden = token("yes.no"), token(".")
    segments, _ = run([[Piece("yes.no", (1,), (half,))]], ["."])
    assert joined(segments) == ("yes", (half,))
    segments, _ = run([[Piece("yes", (1,), (token("yes"),)), Piece(".", (2,), (hidden,))]], ["."])
    assert joined(segments) == ("yes", (token("yes"),))


def test_without_borders_all_ids_of_a_piece_count() -> None:
    _, segmenter = run([[Piece("a.bc", (1, 2, 3))]], ["."])
    assert segmenter.output_tokens == 3
    _, segmenter = run([[Piece("a.bc", (1, 2, 3), (token("a"), token("."), token("bc")))]], ["."])
    assert segmenter.output_tokens == 2


def test_a_token_inside_a_character_rides_on_the_next_text() -> None:
    first, second, tail = token("", -0.1, b"\xf0\x9f"), token("", -0.2, b"\x98\x80"), token("!")
    pieces = [Piece("", (1,), (first,)), Piece("😀", (2,), (second,)), Piece("!", (3,), (tail,))]
    for steps in ([pieces], [[piece] for piece in pieces]):
        segments, segmenter = run(steps)
        assert joined(segments) == ("😀!", (first, second, tail))
        assert segmenter.output_tokens == 3
    # The character was cut off: both its tokens counted, neither is visible.
    segments, segmenter = run([pieces], ["😀"])
    assert joined(segments) == ("", ())
    assert segmenter.output_tokens == 2


def test_held_text_holds_its_logprobs_until_the_flush() -> None:
    segmenter = Segmenter(stop=["TRE"])
    assert segmenter.feed([Piece("a", (1,), (token("a"),))]) == [Text("a", (token("a"),))]
    assert segmenter.feed([Piece("TR", (2,), (token("TR"),))]) == []
    assert segmenter.finish() == [Text("TR", (token("TR"),))]
    assert segmenter.finish() == []


def test_a_token_after_which_no_text_comes_rides_on_the_flush() -> None:
    segmenter = Segmenter()
    assert segmenter.feed([Piece("", (7,), (token("</s>"),))]) == []
    assert segmenter.finish() == [Text("", (token("</s>"),))]
    assert segmenter.finish() == []
    assert segmenter.output_tokens == 1
    segmenter = Segmenter(stop=["TRE"])
    segmenter.feed([Piece("TR", (1,), (token("TR"),)), Piece("", (7,), (token("</s>"),))])
    assert segmenter.finish() == [Text("TR", (token("TR"), token("</s>")))]


def test_a_token_that_is_not_shown_has_no_extent() -> None:
    hello, special, there = token("Hi"), token("<|x|>"), token(".no")
    piece = Piece("Hi.no", (1, 2, 3), (hello, special, there))
    segments, segmenter = run([[piece]], ["."])
    assert joined(segments) == ("Hi", (hello,))
    assert segmenter.output_tokens == 3


def test_a_special_token_leaves_no_half_character_behind() -> None:
    special, char = token("<|x|>", data=b"<|x|>\xf0"), token("é")
    entries = (token("a"), special, char, token("."), token("b"))
    segments, segmenter = run([[Piece("aé.b", (1, 2, 3, 4, 5), entries)]], ["."])
    assert joined(segments) == ("aé", (token("a"), special, char))
    assert segmenter.output_tokens == 4


def test_bytes_that_are_no_text_are_shown_as_the_replacement_character() -> None:
    entry = token("\ufffd", data=b"\xff")
    segments, segmenter = run([[Piece("\ufffd.", (1, 2), (entry, token(".")))]], ["."])
    assert joined(segments) == ("\ufffd", (entry,))
    assert segmenter.output_tokens == 2


def test_all_ids_count_where_not_each_has_a_logprob() -> None:
    _, segmenter = run([[Piece("ab", (1, 2, 3), (token("ab"),))], [Piece("c", (), (token("c"),))]])
    assert segmenter.output_tokens == 3


def test_the_end_is_the_end() -> None:
    """Finishing again changes nothing."""
    segmenter = Segmenter(stop=["xy"])
    segmenter.feed([Piece("a", (1,)), Piece("x", (2,)), Piece("", (3,))])
    assert segmenter.finish() == [Text("x")]
    assert segmenter.finish() == []
    assert segmenter.output_tokens == 3


def test_a_matcher_gives_nothing_more_after_a_hit() -> None:
    for include, visible in ((False, ""), (True, "ab")):
        matcher = StopMatcher(["ab"], include=include)
        assert matcher.feed("abab") == visible
        assert (matcher.hit, matcher.hit_end, matcher.end) == ("ab", 2, 4)
        assert matcher.feed("c") == ""
        assert matcher.feed("ab") == ""
        assert matcher.flush() == ""
        assert (matcher.hit, matcher.hit_end) == ("ab", 2)


def test_a_match_does_not_reach_over_what_was_flushed() -> None:
    matcher = StopMatcher(["ab", "Zb"], include=False)
    assert matcher.feed("xa") == "x"
    assert matcher.flush() == "a"
    assert matcher.feed("b") == "b"
    assert (matcher.end, matcher.released) == (3, 3)
    assert matcher.feed("a") == ""
    assert matcher.flush() == "a"
    assert matcher.feed("ba") == "b"
    assert (matcher.hit, matcher.hit_end) == (None, -1)


def test_a_matcher_keeps_what_may_become_a_match_and_nothing_else() -> None:
    matcher = StopMatcher(["ab"], include=False)
    for text, live in (("aaa", "a"), ("c", ""), ("ba", "a"), ("", "a"), ("a", "a")):
        matcher.feed(text)
        assert matcher._live == live
    matcher.flush()
    assert matcher._live == ""


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        Segmenter(stop=["a", ""])


# --- every cut ----------------------------------------------------------------------------------

TEXTS = [
    ("ABC DEFGH DEFGHIJ tail", ["DEFGHIJ", "DE"]),
    ("ABC DEFGH DEFGHIJ tail", ["DEFGHIJ"]),
    ("aabaabaaab", ["aaab", "abaaba"]),
    ("aabaabaab", ["aabaac", "baabx"]),
    ("naïve 😀 STOP é", ["STOP", "😀 X"]),
    ("tail held ST", ["STOP"]),
]


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(("text", "stop"), TEXTS)
def test_every_cut_gives_the_same(text: str, stop: list[str], include: bool) -> None:
    pieces = per_character(text)
    visible, hit, end = reference(text, stop, include=include)
    expected = (visible, tuple(piece.logprobs[0] for piece in pieces[: len(visible)]))
    count = end if hit else len(text)
    cuts = [[[piece] for piece in pieces], [pieces]]
    cuts += [[pieces[:at], pieces[at:]] for at in range(len(text) + 1)]
    for steps in cuts:
        segments, segmenter = run(steps, stop, include=include)
        assert joined(segments) == expected
        assert segmenter.stop == hit
        assert segmenter.output_tokens == count
    # The same with text alone, in pieces that are cut themselves.
    for at in range(len(text) + 1):
        segments, segmenter = run([[Piece(text[:at])], [Piece(text[at:])]], stop, include=include)
        assert joined(segments) == (visible, ())
        assert segmenter.stop == hit


def test_every_short_stop_string_in_every_short_text() -> None:
    """Of two letters, so that a stop string begins again inside itself in every way."""
    texts = ["".join(text) for text in itertools.product("ab", repeat=9)]
    for length in range(1, 7):
        for letters in itertools.product("ab", repeat=length):
            stop = "".join(letters)
            needle = Needle(stop)
            for text in texts:
                needle.matched = 0
                found = text.find(stop)
                end = found + len(stop) if found >= 0 else -1
                assert needle.feed(text) == end, (stop, text)


letters = st.text("ab", min_size=1, max_size=5)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    text = draw(st.text("abc😀", max_size=30))
    return text, draw(st.lists(letters, max_size=4)), draw(splits(text))


@given(cut_texts(), st.booleans())
@example(("aab", ["ab", "aab"], ["a", "ab"]), False)
def test_random_cuts_match_the_reference(
    made: tuple[str, list[str], list[str]], include: bool
) -> None:
    text, stop, parts = made
    visible, hit, _ = reference(text, stop, include=include)
    segments, segmenter = run([[Piece(part)] for part in parts], stop, include=include)
    assert joined(segments)[0] == visible
    assert segmenter.stop == hit


@given(cut_texts(), st.data())
def test_grouping_of_tokens_into_pieces_and_steps_does_not_matter(
    made: tuple[str, list[str], list[str]], data: st.DataObject
) -> None:
    """Tokens cut at any byte; the text of a piece is what became final with its tokens."""
    text, stop, _ = made
    raw = text.encode()
    borders = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=8)) | {0, len(raw)})
    tokens = [raw[start:end] for start, end in itertools.pairwise(borders)]

    def pieces_of(groups: list[int]) -> list[Piece]:
        pieces, done, at = [], 0, 0
        for size in groups:
            group = tokens[at : at + size]
            at += size
            final = len(b"".join(tokens[:at]).decode(errors="ignore"))
            named = tuple(Logprob("?", -float(at - size + k), part) for k, part in enumerate(group))
            pieces.append(Piece(text[done:final], tuple(range(size)), named))
            done = final
        return pieces

    single = pieces_of([1] * len(tokens))
    sizes: list[int] = []
    while sum(sizes) < len(tokens):
        sizes.append(data.draw(st.integers(1, len(tokens) - sum(sizes))))
    grouped = pieces_of(sizes)
    expected, one = run([[piece] for piece in single], stop)
    for steps in ([single], [grouped], [[piece] for piece in grouped]):
        segments, segmenter = run(steps, stop)
        assert joined(segments) == joined(expected)
        assert segmenter.stop == one.stop
        assert segmenter.output_tokens == one.output_tokens
    assert joined(expected)[0] == reference(text, stop, include=False)[0]
