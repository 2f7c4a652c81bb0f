"""Who is believed about the client, hop by hop."""

from __future__ import annotations

import ipaddress
import socket

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quart import Quart, request

from antiphon.errors import StartupError
from antiphon.transport.access_log import AccessLog, Entry
from antiphon.transport.forwarded import Forwarded, Proxies
from antiphon.transport.listener import Listener, bind
from transport.hosting import quart_app, serving_on

PROXY = ipaddress.ip_address("10.0.0.1")


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "10.0.0.1"),
        ([b"192.0.2.7"], "192.0.2.7"),
        ([b"192.0.2.7, 10.0.0.9"], "192.0.2.7"),
        ([b"192.0.2.7", b"10.0.0.9"], "192.0.2.7"),
        ([b"203.0.113.1, 192.0.2.7"], "192.0.2.7"),  # only the proxy's own word counts
        ([b"10.0.0.8,10.0.0.9"], "10.0.0.8"),
        ([b"192.0.2.7:4711"], "192.0.2.7"),
        ([b"2001:db8::1"], "2001:db8::1"),
        ([b"[2001:db8::1]:443"], "2001:db8::1"),
        ([b"unknown"], "10.0.0.1"),
        ([b"192.0.2.7, unknown, 10.0.0.9"], "10.0.0.9"),
        ([b""], "10.0.0.1"),
        ([b"\xff\n"], "10.0.0.1"),
        ([b"192.0.2.7, ::ffff:10.0.0.9"], "192.0.2.7"),
        ([b"::ffff:192.0.2.7"], "192.0.2.7"),
    ],
)
def test_the_client_behind_proxies(forwarded: list[bytes], client: str) -> None:
    assert str(Proxies(["10.0.0.0/8"]).client(PROXY, forwarded)) == client


def test_a_peer_that_is_not_allowed_is_not_asked() -> None:
    peer = ipaddress.ip_address("192.0.2.1")
    assert Proxies(["10.0.0.0/8"]).client(peer, [b"203.0.113.5"]) == peer
    assert Proxies([]).client(peer, [b"203.0.113.5"]) == peer


def test_sockets_in_the_file_system_and_everybody() -> None:
    told = [b"192.0.2.7"]
    assert Proxies(["10.0.0.1"]).client(None, told) is None
    for allowed in ("unix", "*"):
        assert str(Proxies([allowed]).client(None, told)) == "192.0.2.7"
    assert str(Proxies(["*"]).client(PROXY, [b"192.0.2.7, 203.0.113.5"])) == "192.0.2.7"
    assert Proxies(["unix"]).client(PROXY, told) == PROXY


@given(st.lists(st.binary(max_size=60)), st.sampled_from(["*", "10.0.0.0/8", "unix"]))
def test_whatever_is_told_there_is_an_address(told: list[bytes], allowed: str) -> None:
    assert Proxies([allowed]).client(PROXY, told) is not None


@pytest.mark.parametrize("text", ["", "localhost", "10.0.0.0/33", "1.2.3", "10.0.0.1 10.0.0.2"])
def test_what_is_no_network_is_one_line(text: str) -> None:
    with pytest.raises(StartupError, match="--forwarded-allow-ips") as caught:
        Proxies([text])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("allowed", "seen"), [("127.0.0.1", "192.0.2.7 https"), ("10.0.0.1", "127.0.0.1 http")]
)
async def test_the_application_is_told(allowed: str, seen: str) -> None:
    app: Quart = quart_app()

    @app.get("/who")
    async def who() -> str:
        return f"{request.remote_addr} {request.scheme}"

    listener = bind("127.0.0.1", 0)
    told = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
    behind = Forwarded(app, Proxies([allowed]))
    async with serving_on(behind, [listener]), httpx.AsyncClient(headers=told) as client:
        assert (await client.get(f"{listener.url}/who")).text == seen


@pytest.mark.parametrize(
    ("allowed", "seen"),
    [
        ("127.0.0.0/8", "192.0.2.7"),
        ("::ffff:127.0.0.0/104", "192.0.2.7"),
        ("10.0.0.0/8", "127.0.0.1"),
        ("::ffff:10.0.0.0/104", "127.0.0.1"),
    ],
)
async def test_one_socket_for_both_kinds_of_address(allowed: str, seen: str) -> None:
    """There a client of the one kind comes as ``::ffff:127.0.0.1``, of the other."""
    try:
        both = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        pytest.skip("there is no IPv6 here")
    both.setblocking(False)
    entries: list[Entry] = []
    listener = Listener(both, "127.0.0.1")
    behind = Forwarded(AccessLog(quart_app(), entries.append), Proxies([allowed]))
    told = {"X-Forwarded-For": "192.0.2.7"}
    async with serving_on(behind, [listener]), httpx.AsyncClient(headers=told) as client:
        await client.get(f"{listener.url}/x")
    assert [entry.client for entry in entries] == [seen]
