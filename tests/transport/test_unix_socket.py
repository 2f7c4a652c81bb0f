"""Sockets in the file system, over real ones: their mode, what is in the way, and their end."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from quart import Quart, request

from antiphon.errors import StartupError
from antiphon.transport.addresses import UnixAddress
from antiphon.transport.listener import bind, listen
from antiphon.transport.unix_socket import Peer, peer_of
from transport.hosting import quart_app, serving_on


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # An absolute path may be too long for an address.
    return Path("antiphon.sock")


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def left_behind(path: Path) -> None:
    """A socket whose server has died."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


def test_its_owner_and_group_may_connect_and_it_goes_at_the_end(path: Path) -> None:
    before = os.umask(0)
    try:
        with listen(UnixAddress(path)) as listener:
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            assert listener.url == f"unix:{path}"
            assert connects(path)
        assert not path.exists()
        assert os.umask(0) == 0
    finally:
        os.umask(before)


def test_one_that_nobody_answers_is_replaced(path: Path) -> None:
    left_behind(path)
    assert not connects(path)
    with listen(UnixAddress(path)):
        assert connects(path)


def refusal(path: Path) -> str:
    with pytest.raises(StartupError) as caught:
        listen(UnixAddress(path))
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_one_that_is_answered_stays(path: Path) -> None:
    with listen(UnixAddress(path)):
        assert refusal(path) == f"unix:{path} is in use. Stop its owner or choose another path."
        assert connects(path)


def test_one_whose_backlog_is_full_is_in_use(path: Path) -> None:
    with listen(UnixAddress(path), backlog=0), full(path):
        assert "is in use" in refusal(path)
        assert path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems round the number")
@pytest.mark.parametrize("backlog", [0, 5])
def test_so_many_clients_may_wait(path: Path, backlog: int) -> None:
    with listen(UnixAddress(path), backlog=backlog), full(path) as waiting:
        assert waiting == backlog + 1


@contextmanager
def full(path: Path) -> Iterator[int]:
    """Clients that nobody accepts, as many as fit: their number."""
    clients: list[socket.socket] = []
    try:
        while True:
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            clients.append(client)
            if client.connect_ex(str(path)) != 0:
                break
        yield len(clients) - 1
    finally:
        for client in clients:
            client.close()


def test_other_files_stay(path: Path) -> None:
    path.write_text("mine")
    assert refusal(path).endswith("a file that is no socket is there.")
    assert path.read_text() == "mine"


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    assert "No such file or directory" in refusal(tmp_path / "none" / "x.sock")
    assert "too long" in refusal(tmp_path / ("x" * 200))


def test_a_file_that_has_taken_its_place_stays(path: Path) -> None:
    first = listen(UnixAddress(path))
    path.unlink()
    with listen(UnixAddress(path)):
        first.close()
        assert connects(path)


def test_the_end_removes_it_from_another_directory(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listen(UnixAddress(path)):
        monkeypatch.chdir("/")
    assert not (tmp_path / path).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_who_has_connected() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_of(ours) == Peer(os.getpid(), os.getuid())


def test_nobody_is_told_of_a_connection_over_the_network() -> None:
    with socket.socket() as tcp:
        assert peer_of(tcp) is None


@pytest.mark.parametrize("http2", [False, True])
async def test_it_is_served_and_its_client_has_no_address(path: Path, http2: bool) -> None:
    app = quart_app()

    @app.get("/who")
    async def who() -> str:
        return f"{request.scope['client']} {request.remote_addr}"

    async with serving_on(app, [listen(UnixAddress(path))]):
        transport = httpx.AsyncHTTPTransport(uds=str(path), http1=not http2, http2=http2)
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.get("http://any/who")
            assert answer.status_code == 200
            assert answer.text.startswith("None")
            assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
    assert not connects(path)


async def test_several_listeners_share_one_server(path: Path) -> None:
    app: Quart = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    listeners = [listen(UnixAddress(path)), bind("127.0.0.1", 0), bind("127.0.0.1", 0)]
    async with serving_on(app, listeners):
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as client:
            assert (await client.get("http://any/hi")).text == "hi"
        async with httpx.AsyncClient() as client:
            for listener in listeners[1:]:
                assert (await client.get(f"{listener.url}/hi")).text == "hi"
    assert [listener.socket.fileno() for listener in listeners] == [-1, -1, -1]
