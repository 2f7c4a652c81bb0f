"""The reader of server-sent events (WHATWG HTML, section 9.2), and the JSON in them."""

from __future__ import annotations

import inspect
import itertools
import json
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.check import check_stream
from responsory.check.json_data import MAX_DEPTH, BadData, is_compact, read_object
from responsory.check.sse import Frame, Malformed, Reader
from responsory.projections import ChatStream, ResponsesStream
from responsory.testing import a_response


def read(pieces: Iterable[bytes]) -> list[Frame | tuple[str, int, int, str]]:
    """The events, and the fault that ended them if one did."""
    reader = Reader()
    found: list[Frame | tuple[str, int, int, str]] = []
    try:
        for piece in pieces:
            # extend takes them one by one, so what came before a fault is kept.
            found.extend(reader.feed(piece))
        reader.close()
    except Malformed as error:
        found.append((error.rule, reader.events, error.line, error.found))
    return found


def seen(data: bytes) -> list[tuple[str | None, str]]:
    frames = read([data])
    assert all(isinstance(frame, Frame) for frame in frames), frames
    return [(frame.name, frame.data) for frame in frames if isinstance(frame, Frame)]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        # The examples of the standard.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [(None, "YHOO\n+2\n10")]),
        (b": test\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
         [(None, "first event"), (None, "second event"), (None, " third event")]),
        (b"data\n\ndata\ndata\n\n", [(None, ""), (None, "\n")]),
        (b"data:test\n\ndata: test\n\n", [(None, "test"), (None, "test")]),
        # The event field, the last of several; an empty one is none.
        (b"event: a\ndata: 1\n\ndata: 2\n\n", [("a", "1"), (None, "2")]),
        (b"event: a\nevent: b\ndata: 1\n\n", [("b", "1")]),
        (b"event:\ndata: 1\n\n", [(None, "1")]),
        (b"data: 1\nevent: a\n\n", [("a", "1")]),
        # Line ends, mixed as they come.
        (b"data: 1\r\rdata: 2\r\n\r\ndata: 3\n\n", [(None, "1"), (None, "2"), (None, "3")]),
        (b"data: 1\r\n\r\r\n\ndata: 2\r\n\n", [(None, "1"), (None, "2")]),
        # What is no line end: U+2028, U+2029, U+0085, vertical tab, form feed.
        ("data: 1\u2028\u2029\x85\x0b\x0c2\n\n".encode(), [(None, "1\u2028\u2029\x85\x0b\x0c2")]),
        # A byte order mark at the very start, and one that is text.
        (b"\xef\xbb\xbfdata: 1\n\n", [(None, "1")]),
        (b"data: \xef\xbb\xbf1\n\n", [(None, "\ufeff1")]),
        # Fields without meaning here; blocks of nothing else are no event.
        (b"retry: 100\n\nid: 7\n\ndata: 1\nid: 7\nretry: x\n\n", [(None, "1")]),
        (b"\n\n\ndata: 1\n\n\n\n: c\n\n\n", [(None, "1")]),
        (b":\n:::\ndata: a: b\n\n", [(None, "a: b")]),
        (b"data: " + b"x" * 1_000_000 + b"\n\n", [(None, "x" * 1_000_000)]),
    ],
)  # fmt: skip
def test_what_a_client_sees(data: bytes, events: list[tuple[str | None, str]]) -> None:
    assert seen(data) == events


@pytest.mark.parametrize(
    ("data", "rule", "events", "line"),
    [
        (b"data: 1\n\ndata: 2\n", "frame-whole", 1, 3),
        (b"data: 1\n\ndata: 2", "frame-whole", 1, 3),
        (b"data: 1\n\n:", "frame-whole", 1, 3),
        (b"data: 1\n\nid: 1\n", "frame-whole", 1, 3),
        (b"data: 1\n\ndata: \xe9\n\n", "utf8", 1, 3),
        (b"data: 1\n\ndata: \xc3\n\xa9\n\n", "utf8", 1, 3),
        (b"data: 1\n\n: \0\n\n", "utf8", 1, 3),
        (b"data: 1\n\nDATA: 2\n\n", "sse-field", 1, 3),
        (b"data: 1\n\ndata : 2\n\n", "sse-field", 1, 3),
        (b"data: 1\n\xef\xbb\xbfdata: 2\n\n", "sse-field", 0, 2),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: 2\n\n", "sse-stream", 0, 1),
        (b"\n\n{}\n", "sse-stream", 0, 3),
        (b"{}", "sse-stream", 0, 1),
        (b"datum: 1\n\n", "sse-stream", 0, 1),
        (b"\x1f\x8b\x08", "sse-stream", 0, 1),
        (b"event: x\n\ndata: 1\n\n", "data-present", 0, 1),
        (b"", "has-events", 0, 0),
        (b"\n\r\n\r", "has-events", 0, 3),
    ],
)
def test_what_a_client_would_lose_is_refused(
    data: bytes, rule: str, events: int, line: int
) -> None:
    fault = read([data])[-1]
    assert isinstance(fault, tuple)
    assert fault[:3] == (rule, events, line)


SAMPLES = [
    b"\xef\xbb\xbfevent: a\r\ndata: \xc3\xa9\r\n\r\n: c\r\rdata: 2\n\n",
    b"data: 1\r\n\r\ndata: \xff\r\n\r\n",
    b"data: 1\rdata: 2\n\r\ndata: 3\n",
    b"\xef\xbb\xbf",
    b"\xef\xbb{}",
    b"event: x\r\n\r\n",
]


@pytest.mark.parametrize("data", SAMPLES)
def test_every_cut_in_two_reads_alike(data: bytes) -> None:
    whole = read([data])
    for cut in range(len(data) + 1):
        assert read([data[:cut], data[cut:]]) == whole
        assert read([data[:cut], b"", data[cut:]]) == whole
    assert read(data[at : at + 1] for at in range(len(data))) == whole


@pytest.mark.parametrize("start", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_what_can_be_no_field_is_refused_before_its_line_ends(start: bytes) -> None:
    data = start + b"\0" * 1000
    rest = iter(data)
    fault = read(bytes([byte]) for byte in rest)
    assert len(list(rest)) > 900
    assert fault == read([data]) == read([data + b"\n"])
    assert read(bytes([byte]) for byte in b"data")[-1] == (
        "frame-whole", 0, 1, "the stream ends inside a line"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"data: 1\n\n" + b"data: " + b"x" * 95, 3),
        (b"data: 1\n\n" + b": " + b"x" * 99, 3),
        (b"data: 1\n\n" + b"data: x\n" * 15, 17),
        (b"data: 1\n\n" + b"event: x\n" + b": 12345678\n" + b"data: " + b"x" * 87, 5),
    ],
)
def test_an_event_without_end_is_refused(
    data: bytes, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its end, and alike however it is cut."""
    monkeypatch.setattr("responsory.check.sse.MAX_SIZE", 100)
    whole = read([data])
    assert whole[-1] == ("frame-size", 1, line, "an event or comment of over 100 bytes")
    for cut in range(len(data)):
        assert read([data[:cut], data[cut:]]) == whole
    assert read(data[at : at + 1] for at in range(len(data))) == whole
    assert read([data + b"\n\n"]) == whole
    assert read([data[:-8] + b"\n\n"])[-1] != whole[-1]


BITS = st.sampled_from(
    b"data: |data|event: a|id: 1|:|\r|\n|\r\n|\n\n|x|{}|\xef\xbb\xbf|\xc3|\xa9|\0| ".split(b"|")
)


@given(st.lists(BITS, max_size=12).map(b"".join), st.lists(st.integers(0, 60), max_size=4))
def test_any_cut_of_any_bytes_reads_alike(data: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert read(data[a:b] for a, b in itertools.pairwise(borders)) == read([data])


@given(st.binary(max_size=200), st.sampled_from(["openai", "openresponses", "foreign"]))
def test_any_bytes_give_a_report(data: bytes, profile: str) -> None:
    for start in (b"", b"data: "):
        report = check_stream(start + data, profile=profile)  # type: ignore[arg-type]  # sampled
        # ``data: [DONE]`` alone is the one stream that chance may find.
        by_chance = b"data: [DONE]\n" in start + data and profile != "foreign"
        assert by_chance or not report.accepted


RENDERED = [
    b"".join(ResponsesStream().feed(0, a_response().text("é\u2028", "😀").finish().log[:])),
    b"".join(ChatStream().feed(0, a_response().call("f", "{}").finish().log[:])),
]
ALTERED = [
    *RENDERED,
    RENDERED[0].replace(b"\n", b"\r\n"),
    RENDERED[0].replace(b'"Hi', b'"H\xff'),
    RENDERED[0].replace(b"output_text.delta", b"output_text.delte", 1),
    RENDERED[1][:-9],
]


@pytest.mark.parametrize("data", ALTERED)
@pytest.mark.parametrize("profile", ["openai", "foreign"])
def test_no_cut_of_a_stream_changes_its_report(data: bytes, profile: str) -> None:
    whole = check_stream(data, profile=profile)  # type: ignore[arg-type]  # one of the three
    for cut in range(len(data) + 1):
        report = check_stream([data[:cut], data[cut:]], profile=profile)  # type: ignore[arg-type]
        assert report == whole


# --- JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "json-object"),
        ("{", "json-object"),
        ("{}{}", "json-object"),
        ("[]", "json-object"),
        ("7", "json-object"),
        ("null", "json-object"),
        ('"[DONE]"', "json-object"),
        ("{'a':1}", "json-object"),
        ('{"a":01}', "json-object"),
        ('{"a":Infinity}', "json-object"),
        ('{"a":-NaN}', "json-object"),
        ('{"a":"\t"}', "json-object"),
        ("\ufeff{}", "json-object"),
        ('{"a":{"b":1,"b":1}}', "i-json"),
        ('{"a":"\\udc00\\ud800"}', "i-json"),
        ('{"\\ud800":1}', "i-json"),
        ('{"a":-1e400}', "i-json"),
        ('{"a":' + "1" * 1_000_000 + "}", "i-json"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "i-json"),
        ("[" * 1_000_000, "i-json"),
    ],
)
def test_refused_json(text: str, rule: str) -> None:
    with pytest.raises(BadData) as caught:
        read_object(text)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        ' {"a" : [1, 2.5e3, true, null] } ',
        '{"a":"\\ud83d\\ude00"}',
        '{"a":"\\\\ud83d"}',
        '{"a":"' + "[" * 5000 + '"}',
        '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH,
        '{"a":[' + "[],[]," * 500 + "[]]}",
        '{"a":1e300,"b":' + "1" * 300 + "}",
    ],
)
def test_accepted_json(text: str) -> None:
    assert read_object(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "compact"),
    [
        ('{"a":[1,2.5],"b":"c d\\n\\"\\\\\\u001f"}', True),
        ('{"a": 1}', False),
        ('{"a":1}\n', False),
        ('{"a":"\\u00e9"}', False),
        ('{"a":"\\/"}', False),
        ("é\u2028".join(('{"a":"', '"}')), True),
        ('{"a":"' + "x" * 1_000_000, False),
    ],
)
def test_compact_json(text: str, compact: bool) -> None:
    assert is_compact(text) == compact


def test_deep_json_where_little_stack_is_left() -> None:
    text = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    limit = sys.getrecursionlimit()
    seen = set()
    for spare in range(20, 260, 10):
        sys.setrecursionlimit(len(inspect.stack(0)) + spare)
        try:
            read_object(text)
            seen.add("read")
        except BadData as error:
            seen.add(error.rule)
        except RecursionError:
            seen.add("no stack for the reader itself")
        finally:
            sys.setrecursionlimit(limit)
    assert seen <= {"read", "i-json"}
