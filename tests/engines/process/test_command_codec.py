"""Commands and notices as bytes."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.codec.columns import Writer
from antiphon.engines.codec.commands import (
    GRAMMAR,
    REQUEST,
    decode_abort,
    decode_submit,
    encode_abort,
    encode_submit,
)
from antiphon.engines.codec.envelope import PREFIX, CodecError, Kind, opened
from antiphon.engines.codec.notices import (
    decode_info,
    decode_start,
    decode_text,
    encode_info,
    encode_start,
    encode_text,
)
from antiphon.engines.port import EngineInfo, EngineRequest, GrammarSpec
from antiphon.engines.torch.child import from_json, to_json
from antiphon.engines.torch.options import EngineOptions
from antiphon.models.files import ModelFiles
from engines.process.frames import REQUESTS, U32, exact

IN_COLUMNS = {"prompt", "allowed_ids", "logit_bias"}
IN_JSON_BY_HAND = {"stop_ids", "cache_salt", "grammar"}


@given(REQUESTS)
def test_a_request_comes_back_as_it_was(request_: EngineRequest) -> None:
    kind, body = opened(encode_submit(request_))
    assert kind is Kind.SUBMIT
    assert exact(decode_submit(body)) == exact(request_)


def test_every_field_of_a_request_is_sent() -> None:
    names = {field.name for field in attrs.fields(EngineRequest)}
    assert names == set(REQUEST) | IN_COLUMNS | IN_JSON_BY_HAND
    assert {field.name for field in attrs.fields(GrammarSpec)} == set(GRAMMAR)


def test_ids_are_raw_behind_the_header() -> None:
    request = EngineRequest(
        key=1, id="a-0", group=1, model="m", prompt=array("I", range(1000)), max_tokens=1
    )
    message = encode_submit(request)
    assert array("I", range(1000)).tobytes() in message
    assert len(message) < 4000 + 700


@given(st.lists(U32))
def test_keys_come_back(keys: list[int]) -> None:
    kind, body = opened(encode_abort(keys))
    assert kind is Kind.ABORT
    assert decode_abort(body) == tuple(keys)


INFO = EngineInfo(
    name="torch",
    model_id="m",
    vocab_size=96,
    context_length=2048,
    eos_ids=frozenset({3, 1}),
    max_running=4,
    page_size=16,
    kv_pages=128,
    dtype="float32",
    device="cpu",
    capabilities=frozenset({"seed", "grammar"}),
    healthy=True,
)


def test_what_an_engine_is_comes_back() -> None:
    kind, body = opened(encode_info(INFO))
    assert kind is Kind.READY
    assert decode_info(body) == INFO


@pytest.mark.parametrize("text", [None, "", "ü \ud800"])
def test_texts_come_back(text: str | None) -> None:
    assert decode_text(opened(encode_text(Kind.OVER, text))[1]) == text


def test_every_option_reaches_the_child(tmp_path: Path) -> None:
    """Each with another value than its default: a field that is not carried is found here."""
    files = ModelFiles("tiny", "hf", tmp_path / "\udcff model")
    other: dict[str, Any] = {"files": files}
    for field in attrs.fields(EngineOptions):
        if field.name == "files":
            continue
        if "Path" in str(field.type):
            other[field.name] = tmp_path / field.name
        elif isinstance(field.default, bool):
            other[field.name] = not field.default
        elif isinstance(field.default, str):
            other[field.name] = f"{field.default}-other"
        else:
            other[field.name] = 12_345
    options = EngineOptions(**other)
    assert from_json(decode_start(opened(encode_start(to_json(options)))[1])) == options
    plain = EngineOptions(files=files)
    assert from_json(decode_start(opened(encode_start(to_json(plain)))[1])) == plain


def a_request(**changes: Any) -> EngineRequest:
    settings: dict[str, Any] = {
        "key": 1, "id": "a-0", "group": 1, "model": "m", "prompt": array("I", [1]), "max_tokens": 1
    }  # fmt: skip
    return EngineRequest(**settings | changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", "1"),
        ("key", True),
        ("key", None),
        ("ignore_eos", 1),
        ("temperature", "hot"),
        ("logprobs", 1.5),
        ("stop_ids", [1, "2"]),
        ("stop_ids", None),
        ("cache_salt", "0g"),
        ("cache_salt", 5),
        ("grammar", ["regex"]),
        ("grammar", {"kind": "regex"}),
        ("prompt", -1),
        ("prompt", 2**40),
        ("prompt", 3),
        ("allowed_ids", True),
        ("logit_bias", None),
    ],
)
def test_headers_that_are_none(name: str, value: object) -> None:
    _, body = opened(encode_submit(a_request()))
    length = int.from_bytes(body[:4], "little")
    header = json.loads(bytes(body[8 : 8 + length]))
    writer = Writer()
    writer.json({**header, name: value})
    writer.column(array("I", [1]))
    with pytest.raises(CodecError):
        decode_submit(memoryview(writer.body()))


@given(st.binary(max_size=200), st.sampled_from([decode_submit, decode_abort, decode_info]))
def test_hostile_bodies_are_an_error(junk: bytes, decode: Any) -> None:
    with pytest.raises(CodecError):
        decode(memoryview(junk))


@given(REQUESTS, st.data())
def test_flipped_bits_are_an_error_or_another_request(
    request_: EngineRequest, data: st.DataObject
) -> None:
    message = bytearray(encode_submit(request_))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(PREFIX.size, len(message) - 1))
        message[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        changed = decode_submit(memoryview(message)[PREFIX.size :])
    except CodecError:
        return
    assert isinstance(changed, EngineRequest)
    encode_submit(changed)


def test_json_of_any_depth_is_an_error() -> None:
    writer = Writer()
    writer.blobs([b"[" * 100_000])
    with pytest.raises(CodecError):
        decode_submit(memoryview(writer.body()))
