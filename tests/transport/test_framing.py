"""Requests of which nobody can be sure where they end, or what they mean by that."""

from __future__ import annotations

import json

import pytest

from transport.hosting import OWN_ID, H1Client
from transport.scene import HEAD_END, scene

SMUGGLED = b"GET /silent HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKS = b"2\r\nok\r\n0\r\n\r\n"


def post(*fields: bytes, path: bytes = b"/echo", version: bytes = b"1.1") -> bytes:
    lines = [b"POST %s HTTP/%s" % (path, version), b"host: x", *fields, b"", b""]
    return b"\r\n".join(lines)


def error_in(answer: bytes) -> dict[str, str]:
    head, _, body = answer.partition(HEAD_END)
    assert f"x-request-id: {OWN_ID}\r\n".encode() in head
    error: dict[str, str] = json.loads(body)["error"]
    return error


@pytest.mark.parametrize("path", [b"/echo", b"/early"])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_body_that_is_framed_twice_ends_the_connection(
    caplog: pytest.LogCaptureFixture, path: bytes, at_once: bool
) -> None:
    fields = (b"content-length: 4", b"transfer-encoding: chunked")
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        request = post(*fields, path=path) + CHUNKS
        if at_once:
            await client.send(request + SMUGGLED)
        else:
            await client.send(request)
            await client.until(HEAD_END[:2])
            client.writer.write(SMUGGLED)
        answer = await client.rest()
        assert answer.count(b"HTTP/1.1 ") == at_once
        assert b"connection: close" in answer
        assert answer.endswith(b"ok" if path == b"/echo" else b"no")
        assert it.tracker.entered == (path == b"/echo")


@pytest.mark.parametrize(
    "coding",
    [b"xchunked", b"gzip, chunked", b"chunked, chunked", b"identity", b"chunked\r\n%s: chunked"],
)
async def test_a_coding_that_is_not_known(caplog: pytest.LogCaptureFixture, coding: bytes) -> None:
    name = b"transfer-encoding"
    field = name + b": " + coding.replace(b"%s", name)
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(post(field) + CHUNKS + SMUGGLED)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 501 Not Implemented\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        error = error_in(answer)
        assert error["type"] == "invalid_request_error"
        assert error["code"] == "unsupported_transfer_encoding"
        assert it.tracker.entered == 0


@pytest.mark.parametrize("version", [b"2.0", b"3.0", b"9.1"])
@pytest.mark.parametrize("upgrade", [b"x: y", b"upgrade: websocket\r\nconnection: upgrade"])
async def test_a_version_that_is_not_spoken(
    caplog: pytest.LogCaptureFixture, version: bytes, upgrade: bytes
) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        request = post(upgrade, b"content-length: 0", version=version)
        await client.send(request + SMUGGLED)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 505 HTTP Version Not Supported\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in answer
        assert error_in(answer)["code"] == "http_version_not_supported"
        assert it.tracker.entered == 0


async def test_a_later_minor_version_means_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(post(b"content-length: 2", version=b"1.2") + b"ok")
        assert (await client.until(b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")
