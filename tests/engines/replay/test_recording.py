"""Reading recordings: what a sound file becomes, and which line an unsound one is blamed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import EngineError, Finish, TokenSpelling
from antiphon.engines.recording import load_recordings, parse_recording
from antiphon.errors import StartupError
from engines.replay.builders import entry, lines, recording, said

STEP = [10, 0, [7], "a", None]
STOP = ["finish", 0, "stop"]


def test_steps_keep_their_order_ids_text_and_time() -> None:
    (choice,) = recording([1.5, 0, [7, 8], "ab", None], [20, 0, [9], "c", None], STOP).choices
    assert [(step.ms, list(step.ids), step.text) for step in choice.steps] == [
        (1.5, [7, 8], "ab"),
        (20, [9], "c"),
    ]
    assert (choice.finish, choice.error, choice.holds) == (Finish.STOP, None, False)


def test_header_is_kept_and_its_optional_fields_have_defaults() -> None:
    header = recording(STOP, family="think+hermes", note="why", source="recorded")
    assert (header.source, header.model, header.tokenizer) == ("recorded", "m", "opaque")
    assert (header.family, header.prompt_tokens, header.note) == ("think+hermes", 3, "why")
    assert recording(STOP).family == "plain"


def test_steps_without_ids_only_move_the_end() -> None:
    (choice,) = recording([5, 0, [], "", None], STEP, [90, 0, [], "", []], STOP).choices
    assert [step.ms for step in choice.steps] == [10]
    assert choice.end_ms == 90


def test_choices_are_sorted_by_index_and_repeat_from_the_first() -> None:
    made = recording(
        *said("x", choice=1), *said("y", "z"), ["finish", 1, "length"], ["finish", 0, "stop"]
    )
    assert [len(choice.steps) for choice in made.choices] == [2, 1]
    assert [made.choice(index).finish for index in range(4)] == [
        *(Finish.STOP, Finish.LENGTH),
        *(Finish.STOP, Finish.LENGTH),
    ]


@pytest.mark.parametrize("reason", ["stop", "length", "abort", "content_filter"])
def test_finish_reasons(reason: str) -> None:
    assert recording(["finish", 0, reason]).choices[0].finish is Finish[reason.upper()]


def test_error_finish_keeps_code_and_message() -> None:
    detail = {"code": "engine_overloaded", "message": "no room"}
    (choice,) = recording(["finish", 0, "error", detail]).choices
    assert choice.finish is Finish.ERROR
    assert choice.error == EngineError(code="engine_overloaded", message="no room")


@pytest.mark.parametrize("rows", [(), (STEP,)])
def test_no_finish_line_is_an_engine_failure(rows: tuple[object, ...]) -> None:
    (choice,) = recording(*rows).choices
    assert choice.finish is Finish.ERROR
    assert choice.error is not None
    assert choice.error.code == "engine_failed"


@pytest.mark.parametrize("rows", [(["hold"],), (["hold"], ["finish", 0, "abort"])])
def test_a_hold_holds_with_and_without_a_finish_line(rows: tuple[object, ...]) -> None:
    (choice,) = recording(STEP, *rows).choices
    assert choice.holds


def test_a_hold_leaves_choices_that_finished_before_it() -> None:
    made = recording(STEP, STOP, [10, 1, [7], "a", None], ["hold"])
    assert [choice.holds for choice in made.choices] == [False, True]


def test_logprobs_become_spellings() -> None:
    (choice,) = recording([1, 0, [1, 2], "ab", [entry("a", None, "x"), entry("b")]], STOP).choices
    assert choice.spelled
    assert choice.steps[0].spelling == (
        TokenSpelling(text="a", data=b"a", logprob=-0.5, top=(("x", -1.0, b"x"),)),
        TokenSpelling(text="b", data=b"b", logprob=-0.5),
    )


def test_a_character_may_be_split_over_spelled_tokens() -> None:
    halves = "é".encode()
    made = recording(
        [1, 0, [1], "", [entry("\ufffd", halves[:1])]],
        [2, 0, [2], "é", [entry("\ufffd", halves[1:])]],
        STOP,
    )
    assert len(made.choices[0].steps) == 2


BAD_ROWS: dict[str, tuple[object, str]] = {
    "an object": ({}, "expected [ms, choice"),
    "a number": (1, "expected [ms, choice"),
    "a short step": ([1, 0, [1], "a"], "expected [ms, choice"),
    "a long step": ([1, 0, [1], "a", None, 0], "expected [ms, choice"),
    "ids no list": ([1, 0, 1, "a", None], "expected [ms, choice"),
    "a hold with a value": (["hold", 0], "expected [ms, choice"),
    "a finish too long": (["finish", 0, "error", {}, 1], "expected [ms, choice"),
    "negative time": ([-1, 0, [1], "a", None], "ms must be"),
    "boolean time": ([True, 0, [1], "a", None], "ms must be"),
    "negative choice": ([1, -1, [1], "a", None], "choice must be"),
    "boolean choice": ([1, False, [1], "a", None], "choice must be"),
    "choice out of range": ([1, 5000, [1], "a", None], "choice must be"),
    "id above u32": ([1, 0, [2**32], "a", None], "id must be"),
    "the padding id": ([1, 0, [2**32 - 1], "a", None], "id must be"),
    "negative id": ([1, 0, [-1], "a", None], "id must be"),
    "id no integer": ([1, 0, [1.0], "a", None], "id must be"),
    "too many ids": ([1, 0, [1] * 40_000, "a", None], "at most 32767 ids"),
    "text null": ([1, 0, [1], None, None], "text must be a string"),
    "half a surrogate pair": ([1, 0, [1], "\ud83d", None], "surrogate"),
    "logprobs no list": ([1, 0, [1], "a", {}], "one entry per id"),
    "logprobs too few": ([1, 0, [1, 2], "a", [entry("a")]], "one entry per id"),
    "logprobs entry": ([1, 0, [1], "a", [{"token": "a"}]], "{token, logprob, bytes, top}"),
    "logprobs extra key": ([1, 0, [1], "a", [{**entry("a"), "id": 1}]], "{token, logprob, bytes}"),
    "logprob true": ([1, 0, [1], "a", [{**entry("a"), "logprob": True}]], "{token, logprob"),
    "byte 256": ([1, 0, [1], "a", [{**entry("a"), "bytes": [256]}]], "byte must be"),
    "spelling other text": ([1, 0, [1], "a", [entry("b")]], "do not spell its text"),
    "unknown reason": (["finish", 0, "tired"], "finish reason must be one of stop, length"),
    "reason no string": (["finish", 0, ["stop"]], "finish reason must be one of"),
    "reason none": (["finish", 0, "none"], "finish reason must be one of"),
    "error without detail": (["finish", 0, "error"], "takes a detail"),
    "error with more": (["finish", 0, "error", {"code": "a", "message": "b", "x": 1}], "takes a"),
    "stop with detail": (["finish", 0, "stop", {}], "takes no detail"),
    "a hole in the choices": ([1, 1, [1], "a", None], "choice 0 has no line"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_name_file_and_line(name: str) -> None:
    row, message = BAD_ROWS[name]
    with pytest.raises(StartupError) as caught:
        recording(row)
    text = str(caught.value)
    assert text.startswith("test.jsonl, line 2: ")
    assert message in text
    assert "\n" not in text


BAD_ORDERS: dict[str, tuple[list[object], int, str]] = {
    "time": ([STEP, [9, 0, [1], "b", None]], 3, "time goes backwards"),
    "time after an empty step": ([[30, 0, [], "", None], STEP], 3, "time goes backwards"),
    "step after finish": ([STOP, STEP], 3, "has finished already"),
    "finish after finish": ([STOP, STOP], 3, "has finished already"),
    "step after hold": ([["hold"], STEP], 3, "never played"),
    "hold after hold": ([["hold"], ["hold"]], 3, "never reached"),
    "stop after hold": ([["hold"], STOP], 3, "only finish with abort"),
    "logprobs now and then": ([STEP, [11, 0, [1], "b", [entry("b")]]], 3, "on some of its steps"),
}


@pytest.mark.parametrize("name", BAD_ORDERS)
def test_bad_orders_name_the_line(name: str) -> None:
    rows, line, message = BAD_ORDERS[name]
    with pytest.raises(StartupError, match=rf"^test.jsonl, line {line}: .*{message}"):
        recording(*rows)


def test_choices_may_stand_one_after_the_other() -> None:
    made = recording(*said("a", "b"), *said("c", "d", choice=1))
    assert len(made.choices) == 2


BAD_HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "format 2": ({"format": 2}, "format must be 1, not 2"),
    "format true": ({"format": True}, "format must be 1, not true"),
    "unknown field": ({"speed": 1}, "unknown header field 'speed'"),
    "tokenizer": ({"tokenizer": "bpe"}, "tokenizer must be bytes or opaque"),
    "source": ({"source": "found"}, "source must be handmade or recorded"),
    "turns": ({"turns": 1}, "turns must be"),
    "turns that no prompt tells": ({"turns": True, "prompt_tokens": 0}, "a recording of turns"),
    "prompt_tokens": ({"prompt_tokens": -1}, "prompt_tokens must be"),
    "model": ({"model": 1}, "model must be a string"),
    "family": ({"family": None}, "family must be a string"),
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_bad_headers(name: str) -> None:
    header, message = BAD_HEADERS[name]
    with pytest.raises(StartupError) as caught:
        recording(**header)
    assert str(caught.value).startswith(f"test.jsonl, line 1: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not JSON"),
        ("{", "line 1: not JSON"),
        ("[]\n", "line 1: the first line is the header"),
        ('{"format": 1}\n', "line 1: the header lacks"),
        (lines() + "\n", "line 2: not JSON"),
        (lines() + "[1, 0, [1], 'a', null]\n", "line 2: not JSON"),
        (lines() + '[NaN, 0, [1], "a", null]\n', "line 2: not JSON: NaN"),
        (lines() + '[1e999, 0, [1], "a", null]\n', "line 2: ms must be"),
        (lines() + "[" * 100_000 + "\n", "line 2: not JSON: nested too deeply"),
        (
            lines() + '[1, 0, [1], "a", [{"token":"a","logprob":-1e999,"bytes":[97],"top":[]}]]\n',
            "line 2: logprob must be finite",
        ),
    ],
)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(StartupError) as caught:
        parse_recording("plain/test", text, "test.jsonl")
    assert message in str(caught.value)


def test_line_separators_inside_strings_do_not_end_a_line() -> None:
    text = lines() + '[1, 0, [1], "a\u2028b\x85c", null]\n'
    (choice,) = parse_recording("plain/test", text, "test.jsonl").choices
    assert choice.steps[0].text == "a\u2028b\x85c"


@pytest.mark.parametrize("row", [[1, 0, [256], None, None], [1, 0, [97], "a", None]])
def test_byte_recordings_hold_bytes_and_no_text(row: object) -> None:
    with pytest.raises(StartupError, match=r"line 2: (id|text) must be"):
        recording(row, tokenizer="bytes")


def test_byte_recordings_may_be_spelled() -> None:
    made = recording([1, 0, [0xC3, 0xA9], None, [entry("", b"\xc3"), entry("", b"\xa9")]], STOP,
                     tokenizer="bytes")  # fmt: skip
    assert made.choices[0].spelled
    with pytest.raises(StartupError, match="do not spell"):
        recording([1, 0, [0xC3], None, [entry("", b"\xc4")]], STOP, tokenizer="bytes")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
    | st.tuples(st.integers(0, 9), st.integers(0, 2), st.lists(st.integers(), max_size=3),
                st.none() | st.text(), st.none() | st.lists(st.just(entry("a")))).map(list)
)  # fmt: skip
def test_any_json_row_is_read_or_refused_with_its_line(row: object) -> None:
    blame = None
    try:
        assert parse_recording("plain/test", f"{lines()}{json.dumps(row)}\n", "test.jsonl").choices
    except StartupError as error:
        blame = str(error)
    assert blame is None or blame.startswith("test.jsonl, line 2: ")


def test_names_are_paths_below_the_directory(tmp_path: Path) -> None:
    for name in ("a", "plain/b", "plain/deep/c.d"):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(lines(STOP))
    (tmp_path / "plain" / "notes.txt").write_text("not a recording")
    loaded = load_recordings(tmp_path)
    assert list(loaded) == ["a", "plain/b", "plain/deep/c.d"]
    assert all(made.name == name for name, made in loaded.items())


def test_a_tokens_folder_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "tokens" / "plain").mkdir(parents=True)
    (tmp_path / "tokens" / "plain" / "x.jsonl").write_text(lines(STOP))
    (tmp_path / "requests.jsonl").write_text("not a recording")
    assert list(load_recordings(tmp_path)) == list(load_recordings(tmp_path / "tokens"))
    assert list(load_recordings(tmp_path)) == ["plain/x"]


def test_loading_errors_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="nowhere is not a directory"):
        load_recordings(tmp_path / "nowhere")
    with pytest.raises(StartupError, match="holds no recordings"):
        load_recordings(tmp_path)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"\xff\n")
    with pytest.raises(StartupError, match=r"bad\.jsonl: not UTF-8: .* at byte 0"):
        load_recordings(tmp_path)
    bad.write_text(lines(["finish", 0, "tired"]))
    with pytest.raises(StartupError, match=r"bad\.jsonl, line 2: finish reason"):
        load_recordings(tmp_path)
    bad.unlink()
    bad.mkdir()
    with pytest.raises(StartupError, match=r"bad\.jsonl: Is a directory"):
        load_recordings(tmp_path)
