"""The listening socket and its certificate: all that can be refused before anything is loaded."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path
from types import TracebackType

import attrs

from antiphon.errors import StartupError

BACKLOG = 2048
ALPN = ("h2", "http/1.1")
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: what RFC 9113 (appendix A) leaves over. TLS 1.3 has suites of its own."""


@attrs.define
class Listener:
    """A listening TCP socket, with the TLS context of its connections if it has a certificate."""

    socket: socket.socket
    host: str
    """The host as it was asked for."""
    tls: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """The real port, also where 0 was asked for."""
        port: int = self.socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """``http://host:port`` or ``https://host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def close(self) -> None:
        """Give the port back; idempotent."""
        self.socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def bind(
    host: str, port: int, certfile: Path | None = None, keyfile: Path | None = None
) -> Listener:
    """Listen on ``host:port`` (0: any free port), over TLS if a certificate and key are given.

    Connections that come before anyone serves wait in the backlog. Raises ``StartupError`` for an
    address that cannot be had and for a certificate or key that cannot be used.
    """
    if (certfile is None) != (keyfile is None):
        raise StartupError("A certificate and its key must be given together.")
    tls = None
    if certfile is not None and keyfile is not None:
        tls = _tls_context(certfile, keyfile)
    return Listener(_listen(host, port), host, tls)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise StartupError(f"Port {port} is not between 0 and 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise StartupError(f"Host {host!r} is not known.") from None
    # A name may stand for several addresses; clients that know only IPv4 must find it.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise StartupError(_why_not(host, port, error)) from None
    return listening


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop its owner or choose another --port."
    if error.errno == errno.EACCES:
        return f"No permission to listen on port {port}. Ports from 1024 on need none."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine."
    return f"Cannot listen on {host}:{port}: {error.strerror}."


def _tls_context(certfile: Path, keyfile: Path) -> ssl.SSLContext:
    for what, path in (("certificate", certfile), ("key", keyfile)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise StartupError(f"Cannot read the {what} {path}: {error.strerror}.") from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(ALPN)
    try:
        context.load_cert_chain(certfile, keyfile, password=_no_password)
    except _EncryptedKeyError:
        raise StartupError(
            f"The key {keyfile} is encrypted; give one without a password."
        ) from None
    except ssl.SSLError as error:
        reason = (error.reason or "not a PEM certificate with its key").replace("_", " ").lower()
        raise StartupError(f"Cannot use {certfile} with {keyfile}: {reason}.") from None
    return context


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a password."""


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal and wait.
    raise _EncryptedKeyError
