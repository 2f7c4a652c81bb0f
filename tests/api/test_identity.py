"""Id tails: taken from the client where possible, minted otherwise, never used twice at once."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.api.identity import tail_of, unique, uuid7_hex
from api.conftest import Bench
from api.hosted import hosted
from api.test_errors import CHAT, HELLO
from responsory.ids import call_id, chat_call_id
from transport.hosting import H1Client


@given(st.text(alphabet="abcXYZ019._-", min_size=1, max_size=48))
def test_a_safe_id_is_the_tail(given_id: str) -> None:
    assert tail_of(given_id) == given_id


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=512))
def test_printable_ids_give_a_safe_tail(given_id: str) -> None:
    tail = tail_of(given_id)
    assert tail is not None
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,48}", tail)


@pytest.mark.parametrize("given_id", [None, "", "é", "a\tb", "x" * 513])
def test_other_ids_cannot_be_used(given_id: str | None) -> None:
    assert tail_of(given_id) is None


@pytest.mark.wire("I1")
@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_minted_ids_are_version_7_uuids(unix_ms: int, random: bytes) -> None:
    minted = uuid.UUID(uuid7_hex(unix_ms, random))
    assert (minted.version, minted.variant) == (7, uuid.RFC_4122)
    assert minted.int >> 80 == unix_ms


@pytest.mark.wire("I2")
def test_a_live_tail_gets_a_suffix() -> None:
    suffixes = iter(["aaaaaaaa", "bbbbbbbb"])
    assert unique("t", {"t", "t-aaaaaaaa"}.__contains__, lambda: next(suffixes)) == "t-bbbbbbbb"
    assert unique("t", set[str]().__contains__, lambda: next(suffixes)) == "t"


def test_ids_of_calls_stay_within_what_clients_send_back() -> None:
    longest = "x" * 48
    tail = unique(longest, {longest}.__contains__, lambda: "01234567")
    assert tail == f"{'x' * 39}-01234567"
    for call in (chat_call_id(tail, 127, 999), call_id(tail, 9999)):
        assert len(call) <= 64


@pytest.mark.wire("I1", "S20")
async def test_the_header_names_the_answer_and_is_echoed(bench: Bench) -> None:
    response = await bench.client.post(CHAT, json=HELLO, headers={"x-request-id": "r1"})
    assert response.headers["x-request-id"] == "r1"
    assert (await response.get_json())["id"] == "chatcmpl-r1"


async def test_an_odd_header_is_echoed_verbatim_and_hashed(bench: Bench) -> None:
    response = await bench.client.post(CHAT, json=HELLO, headers={"x-request-id": "a b/c"})
    assert response.headers["x-request-id"] == "a b/c"
    assert re.fullmatch(r"chatcmpl-[0-9a-f]{32}", (await response.get_json())["id"])


@pytest.mark.wire("I1")
async def test_the_body_names_the_answer_where_no_header_does(bench: Bench) -> None:
    response = await bench.client.post(CHAT, json={**HELLO, "request_id": "b1"})
    assert response.headers["x-request-id"] == "b1"
    assert (await response.get_json())["id"] == "chatcmpl-b1"
    response = await bench.client.post(
        CHAT, json={**HELLO, "request_id": "b1"}, headers={"x-request-id": "h1"}
    )
    assert (await response.get_json())["id"] == "chatcmpl-h1"


async def test_minted_ids_are_sent(bench: Bench) -> None:
    response = await bench.client.post("/v1/responses", json={"model": "plain/hello", "input": "x"})
    assert (await response.get_json())["id"] == f"resp_{response.headers['x-request-id']}"


async def test_what_is_no_http_gets_an_id_like_all_others() -> None:
    async with hosted() as host, H1Client.open(host.listener) as client:
        await client.send(b"NO HTTP\r\n\r\n")
        head = (await client.until(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 400 ")
    (minted,) = re.findall("\r\nx-request-id: ([0-9a-f]{32})\r\n", head)
    assert uuid.UUID(minted).version == 7


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"request_id": "body1", "n": 0}, "body1"),
        ({"request_id": "body1", "model": "nope"}, "body1"),
        ({"request_id": "é", "rid": "r2"}, "r2"),
        ({"request_id": 5, "rid": "r2"}, "r2"),
        ({"rid": "r3", "temperature": "x"}, "r3"),
    ],
)
async def test_a_body_that_is_refused_names_its_refusal(
    bench: Bench, fields: dict[str, Any], named: str
) -> None:
    for headers, expected in (({}, named), ({"x-request-id": "r0"}, "r0")):
        response = await bench.client.post(CHAT, json={**HELLO, **fields}, headers=headers)
        assert response.headers["x-request-id"] == expected


async def test_a_count_is_named_by_its_body(bench: Bench) -> None:
    body = {"model": "plain/hello", "input": "Hi", "request_id": "counted"}
    response = await bench.client.post("/v1/responses/input_tokens", json=body)
    assert response.headers["x-request-id"] == "counted"
