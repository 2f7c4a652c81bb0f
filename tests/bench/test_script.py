"""What the scripted engine says, and the way from its process to the server."""

from __future__ import annotations

from array import array

from benchmarks.serving.hand_off import ABORT, COMMAND, STOP, SUBMIT, Decoder, commands, encode
from benchmarks.serving.script import Script
from benchmarks.serving.words import SIZE, number_of, vocabulary, word
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import Finish, StepFrame


def rows(frame: StepFrame | None) -> list[tuple[int, list[int], int]]:
    """(key, tokens, finish) of each row."""
    if frame is None:
        return []
    found, first = [], 0
    for key, count, finish in zip(frame.key, frame.n_new, frame.finish, strict=True):
        found.append((key, list(frame.token[first : first + count]), finish))
        first += count
    return found


def test_a_request_gets_as_many_tokens_as_it_asked_for_and_each_is_its_step() -> None:
    script = Script()
    script.submit(7, 3)
    script.submit(8, 1)
    assert rows(script.news(0)) == [(7, [], Finish.NONE), (8, [], Finish.NONE)]
    script.begin()
    steps = [rows(script.step(0)) for _ in range(3)]
    assert steps == [
        [(7, [0], Finish.NONE), (8, [0], Finish.LENGTH)],
        [(7, [1], Finish.NONE)],
        [(7, [2], Finish.LENGTH)],
    ]
    assert not script.running


def test_an_aborted_request_ends_once_and_gets_no_further_token() -> None:
    script = Script()
    script.submit(1, 5)
    script.submit(2, 5)
    script.news(0)
    script.begin()
    script.step(0)
    script.abort(1)
    script.abort(1)
    assert rows(script.news(0)) == [(1, [], Finish.ABORT)]
    assert rows(script.step(0)) == [(2, [1], Finish.NONE)]
    script.abort_all()
    assert rows(script.news(0)) == [(2, [], Finish.ABORT)]
    assert script.news(0) is None


def test_a_request_for_nothing_ends_as_it_is_taken() -> None:
    script = Script()
    script.submit(1, 0)
    assert rows(script.news(0)) == [(1, [], Finish.LENGTH)]
    assert not script.waiting


columns = st.lists(
    st.tuples(
        st.integers(0, 2**32 - 1),
        st.lists(st.integers(0, 2**32 - 1), max_size=3),
        st.sampled_from(list(Finish)),
        st.integers(-1, 2**31 - 1),
        st.integers(-1, 2**31 - 1),
    ),
    max_size=5,
)


@st.composite
def frames(draw: st.DrawFn) -> StepFrame:
    drawn = draw(columns)
    return StepFrame(
        step=draw(st.integers(0, 2**32 - 1)),
        t_ns=draw(st.integers(0, 2**63 - 1)),
        key=array("I", [each[0] for each in drawn]),
        n_new=array("H", [len(each[1]) for each in drawn]),
        token=array("I", [token for each in drawn for token in each[1]]),
        finish=array("B", [each[2] for each in drawn]),
        stop_id=array("i", [each[3] for each in drawn]),
        cached=array("i", [each[4] for each in drawn]),
    )


@given(st.lists(frames(), max_size=4), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    sent: list[StepFrame], data: st.DataObject
) -> None:
    whole = b"".join(map(encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    decoder, found = Decoder(), list[StepFrame]()
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += decoder.feed(whole[begin:end])
    for frame in found:
        errors = [row for row, finish in enumerate(frame.finish) if finish == Finish.ERROR]
        assert list(frame.error) == errors  # each has its reason, which is not sent
        frame.error = {}
    assert found == sent


@given(
    st.lists(
        st.tuples(
            st.sampled_from([SUBMIT, ABORT, STOP]),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**32 - 1),
        )
    ),
    st.integers(0, 100),
)
def test_commands_come_out_as_they_went_in(sent: list[tuple[int, int, int]], cut: int) -> None:
    whole = b"".join(COMMAND.pack(*each) for each in sent)
    first, rest = commands(whole[:cut])
    second, rest = commands(rest + whole[cut:])
    assert (first + second, rest) == (sent, b"")


def test_every_word_is_its_number_and_as_long_as_any_other() -> None:
    words = vocabulary()
    assert len(set(words)) == SIZE
    assert {len(each) for each in words} == {6}
    assert [number_of(each[1:]) for each in words] == list(range(SIZE))
    assert word(SIZE + 3) == word(3)
    assert number_of(b"hello") is None
    assert number_of(b"ba") is None
