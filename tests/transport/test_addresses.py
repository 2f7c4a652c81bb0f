"""Addresses as text: what each form means, and one clear line for what is none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import StartupError
from antiphon.transport.addresses import (
    Address,
    InheritedAddress,
    TcpAddress,
    UnixAddress,
    parse_address,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", TcpAddress("127.0.0.1", 80)),
        ("localhost:0", TcpAddress("localhost", 0)),
        ("[::1]:8000", TcpAddress("::1", 8000)),
        ("unix:/run/a b.sock", UnixAddress(Path("/run/a b.sock"))),
        ("unix:here:1", UnixAddress(Path("here:1"))),
        ("fd://3", InheritedAddress(3)),
    ],
)
def test_each_form(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "8000", ":80", "[]:80", "::1:80", "[::1]", "[localhost:80", "a:b:80",
     "localhost:", "localhost:http", "localhost:-1", "localhost:80 ", "localhost:٣",
     "unix:", "fd://", "fd://x", "fd://-1", "fd://99999999999999999999"],
)  # fmt: skip
def test_what_is_none_is_one_line_that_names_it(text: str) -> None:
    with pytest.raises(StartupError) as caught:
        parse_address(text)
    line = str(caught.value)
    assert line.startswith(f"Address {text!r} ")
    assert "\n" not in line


@given(st.text())
def test_any_text_is_an_address_or_a_startup_error(text: str) -> None:
    with suppress(StartupError):
        parse_address(text)


@given(st.integers(0, 65535), st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_the_text_of_an_ip_address_and_a_port(port: int, ip: object) -> None:
    host = str(ip)
    text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    assert parse_address(text) == TcpAddress(host, port)
