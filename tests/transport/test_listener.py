"""Binding: what a listener is, and one clear line for each way not to get one."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from antiphon.errors import StartupError
from antiphon.transport.addresses import InheritedAddress, TcpAddress, UnixAddress
from antiphon.transport.listener import bind, listen
from transport.hosting import certificate


def test_port_zero_is_a_real_port_that_accepts() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.port > 0
        assert listener.url == f"http://127.0.0.1:{listener.port}"
        socket.create_connection(("127.0.0.1", listener.port)).close()


def test_leaving_the_block_gives_the_port_back() -> None:
    with bind("127.0.0.1", 0) as listener:
        port = listener.port
    with bind("127.0.0.1", port) as again:
        assert again.port == port


def test_a_name_is_resolved_to_ipv4_first() -> None:
    with bind("localhost", 0) as listener:
        assert listener.socket.family is socket.AF_INET
        assert listener.url.startswith("http://localhost:")


def test_ipv6_urls_have_brackets() -> None:
    try:
        listener = bind("::1", 0)
    except StartupError as error:
        pytest.skip(str(error))
    with listener:
        assert listener.url == f"http://[::1]:{listener.port}"


def test_tls_has_its_own_scheme(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    with bind("127.0.0.1", 0, *cert) as listener:
        assert listener.url.startswith("https://")


def refusal(*arguments: Any) -> str:
    with pytest.raises(StartupError) as caught:
        bind(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_a_port_in_use() -> None:
    with bind("127.0.0.1", 0) as taken:
        assert refusal("127.0.0.1", taken.port) == (
            f"Port {taken.port} on 127.0.0.1 is in use. Stop its owner or choose another --port."
        )


def test_a_port_that_needs_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Root may bind every port, so the kernel's refusal is played.
    monkeypatch.setattr(socket, "socket", lambda *_: Refusing(deny))
    assert refusal("127.0.0.1", 80).startswith("No permission to listen on port 80.")


class Refusing:
    """A socket whose ``bind`` is given."""

    def __init__(self, bind: object) -> None:
        self.bind = bind

    def setsockopt(self, *_: object) -> None: ...

    def close(self) -> None: ...


def test_addresses_that_cannot_be() -> None:
    assert refusal("no-such-host.invalid", 0) == "Host 'no-such-host.invalid' is not known."
    assert refusal("a" * 300, 0).startswith("Host 'aaa")
    assert refusal("192.0.2.1", 0) == "192.0.2.1 is not an address of this machine."
    assert refusal("127.0.0.1", 65536) == "Port 65536 is not between 0 and 65535."


def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    (chain, key), _ = certificate(tmp_path)
    nothing, junk = tmp_path / "nothing.pem", tmp_path / "junk.pem"
    junk.write_text("junk")
    assert refusal("127.0.0.1", 0, chain, None) == (
        "A certificate and its key must be given together."
    )
    assert refusal("127.0.0.1", 0, nothing, key) == (
        f"Cannot read the certificate {nothing}: No such file or directory."
    )
    assert refusal("127.0.0.1", 0, chain, nothing).startswith(f"Cannot read the key {nothing}:")
    assert refusal("127.0.0.1", 0, tmp_path, key).endswith("Is a directory.")
    for pair in ((junk, key), (chain, junk), (key, chain)):
        assert refusal("127.0.0.1", 0, *pair).startswith(f"Cannot use {pair[0]} with {pair[1]}:")


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (chain, _), _ = certificate(tmp_path)
    (_, key), _ = certificate(tmp_path / "other")
    assert "key values mismatch" in refusal("127.0.0.1", 0, chain, key)


def test_an_encrypted_key_is_refused_without_a_prompt(tmp_path: Path) -> None:
    (chain, key), _ = certificate(tmp_path)
    plain = load_pem_private_key(key.read_bytes(), None)
    locked = plain.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    key.write_bytes(locked)
    assert "is encrypted" in refusal("127.0.0.1", 0, chain, key)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_key_that_may_not_be_read(tmp_path: Path) -> None:
    (chain, key), _ = certificate(tmp_path)
    key.chmod(0)
    assert refusal("127.0.0.1", 0, chain, key).endswith("Permission denied.")


def test_a_socket_that_somebody_else_has_bound(tmp_path: Path) -> None:
    given = socket.create_server(("127.0.0.1", 0))
    port = given.getsockname()[1]
    given.set_inheritable(True)
    with listen(InheritedAddress(given.detach())) as listener:
        assert listener.url == f"http://127.0.0.1:{port}"
        assert not listener.socket.get_inheritable()
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_file_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as given:
        given.bind(str(tmp_path / "their.sock"))
        with listen(InheritedAddress(given.detach())) as listener:
            assert listener.url == f"unix:{tmp_path / 'their.sock'}"
    assert (tmp_path / "their.sock").is_socket()


def test_file_descriptors_that_cannot_be_served(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("w") as file,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket() as nowhere,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connected,
    ):
        for bad in (file, datagrams, nowhere, connected):
            with pytest.raises(StartupError, match=f"fd://{bad.fileno()}") as caught:
                listen(InheritedAddress(bad.fileno()))
            assert "\n" not in str(caught.value)
            os.fstat(bad.fileno())  # It stays open: it is not ours.
    with pytest.raises(StartupError, match="fd://99999 is no open socket"):
        listen(InheritedAddress(99999))


def test_a_backlog_that_no_system_has_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        for address in (
            UnixAddress(path),
            TcpAddress("127.0.0.1", 0),
            InheritedAddress(given.fileno()),
        ):
            with pytest.raises(StartupError, match="Cannot listen on"):
                listen(address, backlog=3_000_000_000)
        assert given.getsockname()
    assert not path.exists()
