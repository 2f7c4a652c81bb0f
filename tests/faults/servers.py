"""Servers in processes of their own, on ports they pick themselves, and what they show of it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import attrs
import trustme

from faults.application import Settings

Host: TypeAlias = Literal["ours", "stock"]

START_S = 60.0
APPLICATION = Path(__file__).parent / "application.py"
V = TypeVar("V")


@attrs.frozen
class Certificate:
    """A certificate for 127.0.0.1 with its key, and a client's context that trusts it."""

    chain: Path
    key: Path
    authority: Path

    @classmethod
    def make(cls, folder: Path) -> Certificate:
        authority = trustme.CA()
        leaf = authority.issue_cert("localhost", "127.0.0.1")
        made = cls(folder / "chain.pem", folder / "key.pem", folder / "authority.pem")
        leaf.private_key_pem.write_to_path(made.key)
        for pem in leaf.cert_chain_pems:
            pem.write_to_path(made.chain, append=True)
        authority.cert_pem.write_to_path(made.authority)
        return made

    def context(self, *alpn: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if alpn:
            context.set_alpn_protocols(alpn)
        return context


@attrs.define
class Server:
    """A running server. ``guard_s`` is how long its clients wait for what must come."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    certificate: Certificate | None
    guard_s: float

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def connect(
        self, *alpn: str, receive_buffer: int | None = None, plain: bool = False
    ) -> socket.socket:
        """A new connection, over TLS if the server has a certificate and it is not ``plain``."""
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(self.guard_s)
        try:
            sock.connect(("127.0.0.1", self.port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.certificate is None or plain:
                return sock
            context = self.certificate.context(*alpn)
            return context.wrap_socket(sock, server_hostname="127.0.0.1")
        except BaseException:
            sock.close()
            raise

    def get(self, path: str) -> bytes:
        """The body of an answer on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.sock = self.connect()
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def tally(self) -> dict[str, int]:
        """What the handlers of ``faults.application`` have done."""
        tally: dict[str, int] = json.loads(self.get("/tally"))
        return tally

    def live(self) -> int:
        """Handlers that have begun and not ended."""
        tally = self.tally()
        return tally["entered"] - tally["left"]

    def metric(self, name: str) -> float:
        """The sum of a metric over all of its labels."""
        shown = self.get("/metrics").decode()
        found = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", shown, re.MULTILINE)
        assert found, f"no metric {name}"
        return sum(map(float, found))

    def rss(self) -> int:
        """Bytes of memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def logged(self) -> list[str]:
        """What it has written about itself."""
        return self.log.read_text().splitlines()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def status(self) -> int | None:
        """The exit status, once it has ended."""
        try:
            return self.process.wait(self.guard_s)
        except subprocess.TimeoutExpired:
            return None

    def becomes(self, look: Callable[[], V], wanted: V) -> None:
        """Look until what is seen is as wanted."""
        until = time.monotonic() + self.guard_s
        while (seen := look()) != wanted:
            assert time.monotonic() < until, f"{seen!r}, not {wanted!r}"
            time.sleep(0.01)

    def settles(self, look: Callable[[], int], most: int) -> int:
        """Look until the number grows no more. It must not get above ``most``."""
        seen, same = look(), 0
        while same < 5:
            time.sleep(0.1)
            now = look()
            same = same + 1 if now == seen else 0
            seen = now
            assert seen <= most, f"{seen}, more than {most}"
        return seen


@contextmanager
def running(
    command: list[str],
    port: Callable[[str], int | None],
    certificate: Certificate | None,
    guard_s: float,
) -> Iterator[Server]:
    """Run a server, which says its port in a line that ``port`` knows; it is killed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        try:
            yield Server(process, _port(process, port, log), log, certificate, guard_s)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _port(process: subprocess.Popen[str], find: Callable[[str], int | None], log: Path) -> int:
    assert process.stdout is not None
    guard = threading.Timer(START_S, process.kill)
    guard.start()
    try:
        for line in process.stdout:
            if (port := find(line)) is not None:
                return port
    finally:
        guard.cancel()
    raise RuntimeError(f"the server did not start: {log.read_text()}")


@contextmanager
def serving(host: Host, settings: Settings, certificate: Certificate | None) -> Iterator[Server]:
    """The application of the faults behind one of the hosts.

    Hypercorn's clients wait less for what must come, since where it has a fault it never comes.
    """
    if certificate is not None:
        settings = attrs.evolve(settings, cert=(str(certificate.chain), str(certificate.key)))
    if host == "stock" and "body_first_byte" in settings.limits:
        settings = attrs.evolve(settings, body_timeout_s=settings.limits["body_first_byte"])
    told = json.dumps(attrs.asdict(settings))
    command = [sys.executable, str(APPLICATION), host, told]
    guard_s = 20.0 if host == "ours" else 2.0
    with running(command, int, certificate, guard_s) as server:
        yield server


@contextmanager
def antiphon(
    fixtures: Path, *arguments: str, pace: str = "full", certificate: Certificate | None = None
) -> Iterator[Server]:
    """``antiphon serve`` with the recordings of a folder."""
    command = [sys.executable, "-m", "antiphon", "serve", "--port", "0", "--engine", "replay"]
    command += ["--fixtures", str(fixtures), "--pace", pace, *arguments]
    if certificate is not None:
        command += ["--certfile", str(certificate.chain), "--keyfile", str(certificate.key)]

    def port(line: str) -> int | None:
        found = re.match(r"Address\s+https?://\S+:(\d+)", line)
        return int(found[1]) if found else None

    with running(command, port, certificate, 30.0) as server:
        yield server


def chat(model: str, **fields: Any) -> bytes:
    """A body for ``/v1/chat/completions`` that asks for a stream."""
    asked = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps(asked | fields).encode()
