"""Frames as bytes: what goes in comes out, version 1 stays what it is, and no bytes are trusted."""

from __future__ import annotations

import struct
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.codec.envelope import (
    MARK,
    MOST,
    PREFIX,
    VERSION,
    CodecError,
    Kind,
    Messages,
    opened,
    seal,
)
from antiphon.engines.codec.frames import HEAD, decode_frame, encode_frame
from antiphon.engines.port import (
    EngineError,
    Finish,
    Gauges,
    PromptLogprobs,
    StepFrame,
    TokenSpelling,
)
from engines.process.frames import exact, frames

GOLDEN = Path(__file__).parent / "frame_version_1.hex"


def decoded(message: bytes) -> StepFrame:
    kind, body = opened(message)
    assert kind is Kind.FRAME
    return decode_frame(body)


@given(frames())
def test_a_frame_comes_back_as_it_was(frame: StepFrame) -> None:
    message = encode_frame(frame)
    assert len(message) % 8 == 0
    assert exact(decoded(message)) == exact(frame)


def full_frame() -> StepFrame:
    """Something in every place."""
    nan, inf = float("nan"), float("inf")
    return StepFrame(
        step=2**40 + 1,
        t_ns=2**50 + 3,
        key=array("I", [7, 2**32 - 1, 9]),
        n_new=array("H", [0, 2, 1]),
        token=array("I", [5, 6, 2**32 - 2]),
        finish=array("B", [Finish.ERROR, Finish.NONE, Finish.STOP]),
        stop_id=array("i", [-1, -1, 3]),
        cached=array("i", [-1, 16, -1]),
        error={0: EngineError(code="engine_failed", message="gone: ü")},
        logprob=array("f", [-0.5, nan, -2.25]),
        top_n=1,
        top_id=array("I", [5, 2**32 - 1, 8]),
        top_lp=array("f", [-0.25, -inf, -1.0]),
        prompt_lp={
            1: PromptLogprobs(
                logprob=array("f", [-1.5]),
                top_n=2,
                top_id=array("I", [1, 2]),
                top_lp=array("f", [-1.0, -2.0]),
            )
        },
        text={2: "née"},
        spelling={
            2: [TokenSpelling(text="n", data=b"n", logprob=-0.1, top=(("é", -3.5, b"\xc3"),))]
        },
        gauges=Gauges(
            running=1,
            waiting=2,
            pages_free=3,
            pages_cached=4,
            batch_tokens=5,
            preemptions=6,
            step_us=7,
        ),
    )


def test_version_1_is_what_it_was() -> None:
    """The bytes on disk are those of an engine of another build: both ways they must stay."""
    golden = bytes.fromhex(GOLDEN.read_text())
    assert encode_frame(full_frame()) == golden
    assert exact(decoded(golden)) == exact(full_frame())


def test_columns_are_where_the_format_says() -> None:
    """Read by hand: little-endian, in the port's order, each at a multiple of 8."""
    message = encode_frame(full_frame())
    length, kind, version, mark = struct.unpack_from("<IBBH", message)
    assert (length, kind, version, mark) == (len(message) - 8, Kind.FRAME, 1, 0xA71F)
    assert struct.unpack_from("<QQIIIIII", message, 8)[:4] == (2**40 + 1, 2**50 + 3, 3, 3)
    assert struct.unpack_from("<7q", message, 8 + 48) == (1, 2, 3, 4, 5, 6, 7)
    at = 8 + HEAD.size
    assert struct.unpack_from("<3I", message, at) == (7, 2**32 - 1, 9)
    assert struct.unpack_from("<3H", message, at + 16) == (0, 2, 1)
    assert struct.unpack_from("<3I", message, at + 24) == (5, 6, 2**32 - 2)
    assert struct.unpack_from("<3B", message, at + 40) == (4, 0, 1)
    assert struct.unpack_from("<3i", message, at + 48) == (-1, -1, 3)
    assert struct.unpack_from("<3i", message, at + 64) == (-1, 16, -1)


def test_the_largest_columns() -> None:
    """65,535 tokens in a row, and logprobs of 20 alternatives each: 10 MB."""
    tokens, top_n = 65_535, 20
    frame = StepFrame(
        step=0,
        t_ns=0,
        key=array("I", [1]),
        n_new=array("H", [tokens]),
        token=array("I", range(tokens)),
        finish=array("B", [0]),
        stop_id=array("i", [-1]),
        cached=array("i", [-1]),
        logprob=array("f", bytes(4 * tokens)),
        top_n=top_n,
        top_id=array("I", bytes(4 * tokens * top_n)),
        top_lp=array("f", bytes(4 * tokens * top_n)),
    )
    assert exact(decoded(encode_frame(frame))) == exact(frame)


@given(st.lists(frames(), max_size=4), st.data())
def test_the_pieces_of_a_stream_end_anywhere(several: list[StepFrame], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, several))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    messages, found = Messages(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        for kind, body in messages.feed(memoryview(stream)[start:end]):
            assert kind is Kind.FRAME
            found.append(decode_frame(body))
    assert exact(found) == exact(several)
    assert not messages.waiting


@given(frames(), st.data())
def test_a_body_that_is_cut_is_one_error(frame: StepFrame, data: st.DataObject) -> None:
    _, body = opened(encode_frame(frame))
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(CodecError):
        decode_frame(body[:cut])


@given(frames(), st.data())
def test_flipped_bits_are_an_error_or_another_frame(frame: StepFrame, data: st.DataObject) -> None:
    """Never a third: what decodes is exactly what its bytes say."""
    message = bytearray(encode_frame(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(PREFIX.size, len(message) - 1))
        message[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        changed = decoded(bytes(message))
    except CodecError:
        return
    assert encode_frame(changed) == bytes(message)


@given(st.binary(max_size=400))
def test_hostile_bodies_are_an_error(junk: bytes) -> None:
    with pytest.raises(CodecError):
        decode_frame(memoryview(junk))


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=6),
    st.binary(max_size=200),
)
def test_hostile_counts_are_an_error(step: int, counts: list[int], junk: bytes) -> None:
    """Counts of up to four thousand million take neither time nor memory."""
    counts[0] |= 1 << 16
    head = HEAD.pack(step, 0, *counts, 255, 7, *[0] * 7)
    with pytest.raises(CodecError):
        decode_frame(memoryview(head + junk))


@given(st.binary(min_size=8, max_size=64))
def test_hostile_streams_end_or_wait(junk: bytes) -> None:
    messages = Messages()
    try:
        for kind, body in messages.feed(memoryview(junk)):
            assert isinstance(kind, Kind)
            assert len(body) % 8 == 0
    except CodecError:
        return
    assert len(messages.room()) <= 2**17, "no memory is taken for a length that is only said"


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        (PREFIX.pack(8, Kind.FRAME, VERSION + 1, MARK), "version 2; this is version 1"),
        (PREFIX.pack(8, 99, VERSION, MARK), "kind 99"),
        (PREFIX.pack(8, Kind.FRAME, VERSION, 0), "does not begin"),
        (PREFIX.pack(12, Kind.FRAME, VERSION, MARK), "cannot be 12 bytes"),
        (PREFIX.pack(MOST + 8, Kind.FRAME, VERSION, MARK), "bytes long"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(prefix: bytes, told: str) -> None:
    with pytest.raises(CodecError, match=told):
        opened(prefix + bytes(8))


def test_a_message_is_not_longer_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.engines.codec.envelope.MOST", 16)
    assert opened(seal(Kind.FRAME, bytes(16)))[1] == bytes(16)
    with pytest.raises(CodecError, match="too long"):
        seal(Kind.FRAME, bytes(24))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"error": {}}, "errors are not those"),
        ({"finish": array("B", [4, 0, 6])}, "ends in 6"),
        ({"text": {3: "x"}}, "row that is not there"),
        ({"n_new": array("H", [0, 2, 2])}, "tokens"),
        ({"stop_id": array("i", [0] * 40)}, "errors|ends before|follow|zero|UTF-8"),
    ],
)
def test_frames_that_are_none(change: dict[str, object], told: str) -> None:
    frame = full_frame()
    for name, value in change.items():
        setattr(frame, name, value)
    with pytest.raises(CodecError, match=told):
        decoded(encode_frame(frame))
