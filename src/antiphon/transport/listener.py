"""Listening sockets: all that can be refused before anything is loaded."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from types import TracebackType

import attrs

from antiphon.errors import StartupError
from antiphon.transport.addresses import Address, InheritedAddress, TcpAddress, UnixAddress
from antiphon.transport.settings import BACKLOG
from antiphon.transport.tls import Certificate
from antiphon.transport.unix_socket import SocketFile, bind_file


@attrs.define
class Listener:
    """A listening socket, with the certificate of its connections if it has one.

    A socket in the file system has none: its clients are on this machine, and the file's mode says
    which of them.
    """

    socket: socket.socket
    host: str
    """The host as it was asked for; empty where the socket has no host."""
    certificate: Certificate | None = None
    file: SocketFile | None = None
    """What goes when the socket is closed."""

    @property
    def port(self) -> int:
        """The real port, also where 0 was asked for."""
        port: int = self.socket.getsockname()[1]
        return port

    @property
    def path(self) -> Path | None:
        """Where the socket is in the file system; None if it is on the network."""
        if self.socket.family != socket.AF_UNIX:
            return None
        return Path(os.fsdecode(self.socket.getsockname()))

    @property
    def url(self) -> str:
        """``http://host:port`` or ``https://host:port``; ``unix:path`` in the file system."""
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def close(self) -> None:
        """Give the address back; idempotent."""
        if self.file is not None:
            self.file.remove()
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
    host: str,
    port: int,
    certfile: Path | None = None,
    keyfile: Path | None = None,
) -> Listener:
    """Listen on ``host:port`` (0: any free port), over TLS if a certificate and key are given.

    Connections that come before anyone serves wait in the backlog. Raises ``StartupError`` for an
    address that cannot be had and for a certificate or key that cannot be used.
    """
    if (certfile is None) != (keyfile is None):
        raise StartupError("A certificate and its key must be given together.")
    certificate = None
    if certfile is not None and keyfile is not None:
        certificate = Certificate(certfile, keyfile)
    return listen(TcpAddress(host, port), certificate)


def listen(
    address: Address, certificate: Certificate | None = None, backlog: int = BACKLOG
) -> Listener:
    """Listen on ``address``; ``backlog`` is how many connections may wait to be accepted.

    Raises ``StartupError`` for an address that cannot be had.
    """
    match address:
        case TcpAddress(host, port):
            return Listener(_tcp(host, port, backlog), host, certificate)
        case UnixAddress(path):
            made, file = bind_file(path)
            listener = Listener(made, "", file=file)
            try:
                made.listen(backlog)
            except _NOT_SO as error:
                listener.close()
                raise StartupError(f"Cannot listen on unix:{path}: {_words(error)}.") from None
            made.setblocking(False)
            return listener
        case InheritedAddress(fd):
            return _inherited(fd, certificate, backlog)


def _tcp(host: str, port: int, backlog: int) -> socket.socket:
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
        listening.listen(backlog)
        listening.setblocking(False)
    except _NOT_SO as error:
        listening.close()
        raise StartupError(_why_not(host, port, error)) from None
    return listening


_NOT_SO = (OSError, OverflowError)
"""What ``listen`` raises; the latter for a backlog that no system's number holds."""


def _words(error: OSError | OverflowError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _why_not(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"Cannot listen on {host}:{port}: {error}."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop its owner or choose another --port."
    if error.errno == errno.EACCES:
        return f"No permission to listen on port {port}. Ports from 1024 on need none."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine."
    return f"Cannot listen on {host}:{port}: {error.strerror}."


def _inherited(fd: int, certificate: Certificate | None, backlog: int) -> Listener:
    """The socket of a file descriptor, which is ours from here on."""
    try:
        listening = socket.socket(fileno=fd)
    except OSError:
        raise StartupError(f"fd://{fd} is no open socket.") from None
    name = listening.getsockname() if listening.family in _FAMILIES else None
    if listening.type != socket.SOCK_STREAM or not name or not _is_bound(name):
        listening.detach()
        raise StartupError(f"fd://{fd} is not a bound stream socket.")
    try:
        listening.listen(backlog)
    except _NOT_SO as error:
        listening.detach()
        raise StartupError(f"Cannot listen on fd://{fd}: {_words(error)}.") from None
    listening.setblocking(False)
    listening.set_inheritable(False)
    if listening.family == socket.AF_UNIX:
        return Listener(listening, "")
    return Listener(listening, name[0], certificate)


_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)


def _is_bound(name: object) -> bool:
    return isinstance(name, str | bytes) or (isinstance(name, tuple) and name[1] != 0)
