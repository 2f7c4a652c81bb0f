"""Certificates over real connections: what clients must show, and the exchange at SIGHUP."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
import trustme
from quart import Quart, Response

from antiphon.errors import StartupError
from antiphon.transport.addresses import TcpAddress
from antiphon.transport.listener import Listener, listen
from antiphon.transport.tls import Certificate, reloaded_on_hangup
from transport.hosting import GUARD_S, certificate, quart_app, serving_on

ANY = TcpAddress("127.0.0.1", 0)


@pytest.fixture
def app() -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    return app


def make(directory: Path, authority: trustme.CA, client_ca: Path | None = None) -> Certificate:
    """A certificate of ``authority`` for the server; its files are replaced if they are there."""
    issued = authority.issue_cert("127.0.0.1")
    chain, key = directory / "chain.pem", directory / "key.pem"
    issued.private_key_pem.write_to_path(key)
    issued.cert_chain_pems[0].write_to_path(chain)
    return Certificate(chain, key, client_ca)


def trusting(authority: trustme.CA, client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """The context of a client, which may have a certificate of its own."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context


@asynccontextmanager
async def client_of(listener: Listener, trust: ssl.SSLContext) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=listener.url, verify=trust) as client:
        yield client


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_without_a_certificate_of_the_right_authority_is_not_served(
    app: Quart, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    authority, clients, strangers = trustme.CA(), trustme.CA(), trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    mutual = make(tmp_path, authority, client_ca=tmp_path / "clients.pem")
    listener = listen(ANY, mutual)
    async with serving_on(app, [listener]):
        for stranger in (None, strangers.issue_cert("stranger@example.test")):
            trust = trusting(authority, stranger)
            trust.minimum_version = trust.maximum_version = version
            async with client_of(listener, trust) as client:
                with pytest.raises(httpx.TransportError):
                    await client.get("/hi")
        trust = trusting(authority, clients.issue_cert("known@example.test"))
        trust.minimum_version = trust.maximum_version = version
        async with client_of(listener, trust) as client:
            assert (await client.get("/hi")).text == "hi"


async def shown_by(listener: Listener, trust: ssl.SSLContext) -> str:
    """The serial number of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=trust)
    shown: str = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
    writer.close()
    await writer.wait_closed()
    return shown


async def test_a_hangup_changes_the_certificate_of_new_connections_alone(
    app: Quart, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = anyio.Event()

    @app.get("/slow")
    async def slow() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"before"
            await go_on.wait()
            yield b" after"

        return Response(body())

    authority = trustme.CA()
    trust, own = trusting(authority), make(tmp_path, authority)
    listener = listen(ANY, own)
    with reloaded_on_hangup(own):
        async with serving_on(app, [listener], grace_s=GUARD_S):
            async with client_of(listener, trust) as client, client.stream("GET", "/slow") as open_:
                parts = open_.aiter_bytes()
                assert await anext(parts) == b"before"
                first = await shown_by(listener, trust)
                make(tmp_path, authority)
                assert await shown_by(listener, trust) == first
                await hang_up()
                second = await shown_by(listener, trust)
                assert second != first
                # The connection that was open goes on, with a body that begins after the change.
                go_on.set()
                assert await anext(parts) == b" after"
            make(tmp_path, authority)
            (tmp_path / "key.pem").write_text("none")
            await hang_up()
            assert await shown_by(listener, trust) == second
    done, failed = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert done.getMessage() == "the certificate was read again"
    assert failed.getMessage().startswith("the certificate was not changed: Cannot use ")


async def hang_up() -> None:
    """Send the signal to this process and wait until the loop has handled it.

    It hears of signals in their order, so of a second one after the first.
    """
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, heard.set)
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGUSR1)
    with anyio.fail_after(GUARD_S):
        await heard.wait()
    loop.remove_signal_handler(signal.SIGUSR1)


async def test_after_the_block_the_signal_means_what_it_meant(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGHUP)
    with reloaded_on_hangup(make(tmp_path, trustme.CA())):
        assert signal.getsignal(signal.SIGHUP) is not before
    assert signal.getsignal(signal.SIGHUP) is before
    with reloaded_on_hangup(None):
        assert signal.getsignal(signal.SIGHUP) is before


async def test_without_alpn_it_is_http1(app: Quart, tmp_path: Path) -> None:
    pair, trust = certificate(tmp_path)
    listener = listen(ANY, Certificate(*pair))
    async with serving_on(app, [listener]):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=trust)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() is None
        writer.write(b"GET /hi HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with anyio.fail_after(GUARD_S):
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()


def test_authorities_that_cannot_be_used(tmp_path: Path) -> None:
    pair, _ = certificate(tmp_path)
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    for path, reason in ((junk, "Cannot use"), (tmp_path / "none", "Cannot read the client")):
        with pytest.raises(StartupError, match=reason) as caught:
            Certificate(*pair, client_ca=path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
