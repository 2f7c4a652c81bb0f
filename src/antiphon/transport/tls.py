"""The certificate of a server, and its exchange while connections are open."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from antiphon.errors import StartupError
from antiphon.transport.settings import HttpVersions

ALPN: Mapping[HttpVersions, Sequence[str]] = {
    "auto": ("h2", "http/1.1"),
    "1.1": ("http/1.1",),
    "2": ("h2",),
}
"""The protocols that may be agreed on, the best first (RFC 7301)."""
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: what RFC 9113 (appendix A) leaves over. TLS 1.3 has suites of its own."""

log = logging.getLogger("antiphon.transport")


@attrs.define
class Certificate:
    """A certificate chain with its key, and the context that new connections get.

    With ``client_ca`` a client must show a certificate that one of the authorities in that file has
    signed. ``http`` are the versions that may be agreed on. Raises ``StartupError`` for files that
    cannot be used.
    """

    certfile: Path
    keyfile: Path
    client_ca: Path | None = None
    http: HttpVersions = "auto"
    context: ssl.SSLContext = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.context = self._made()

    def reload(self) -> None:
        """Read the files again, for the connections that come; those that are open stay.

        Raises ``StartupError``, and everything stays as it is, where the new files cannot be used.
        """
        self.context = self._made()

    def _made(self) -> ssl.SSLContext:
        files = {"certificate": self.certfile, "key": self.keyfile}
        if self.client_ca is not None:
            files["client authorities"] = self.client_ca
        for what, path in files.items():
            try:
                path.open("rb").close()
            except OSError as error:
                raise StartupError(f"Cannot read the {what} {path}: {error.strerror}.") from None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION
        context.set_ciphers(CIPHERS)
        context.set_alpn_protocols(ALPN[self.http])
        self._load_pair(context)
        if self.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(self.client_ca)
            except ssl.SSLError as error:
                raise StartupError(f"Cannot use {self.client_ca}: {_reason(error)}.") from None
        return context

    def _load_pair(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.certfile, self.keyfile, password=_no_password)
        except _EncryptedKeyError:
            raise StartupError(
                f"The key {self.keyfile} is encrypted; give one without a password."
            ) from None
        except ssl.SSLError as error:
            why = _reason(error)
            raise StartupError(f"Cannot use {self.certfile} with {self.keyfile}: {why}.") from None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not in PEM").replace("_", " ").lower()


class _EncryptedKeyError(Exception):
    """OpenSSL asked for a password."""


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal and wait.
    raise _EncryptedKeyError


@contextmanager
def reloaded_on_hangup(certificate: Certificate | None) -> Iterator[None]:
    """SIGHUP has the certificate read again while the block runs, on the main thread's event loop.

    Without a certificate the signal keeps what it means. What came of it is one line in the log.
    """
    if certificate is None:
        yield
        return

    def reload() -> None:
        try:
            certificate.reload()
        except StartupError as error:
            log.error("the certificate was not changed: %s", error)
        else:
            # Nothing is wrong, but whoever sent the signal wants to know, and less is not shown.
            log.warning("the certificate was read again")

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
