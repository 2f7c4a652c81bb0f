"""Real servers in processes of their own, as a user starts them, on ports they pick themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
import trustme

from antiphon.models.files import ModelFiles

FIXTURES = Path(__file__).parents[2] / "fixtures"


@attrs.frozen
class Server:
    """A running server: where it listens and what it printed until it was ready."""

    url: str
    greeting: tuple[str, ...]
    process: subprocess.Popen[str]

    @property
    def api(self) -> str:
        return f"{self.url}/v1"


@contextmanager
def serving(*arguments: str) -> Iterator[Server]:
    """``antiphon serve`` with a free port; stopped by SIGTERM, and well."""
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines: list[str] = []
    # A server that never gets ready must not hold the tests for ever.
    guard = threading.Timer(120, process.kill)
    guard.start()
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1].startswith("  curl"):
                break
        guard.cancel()
        assert lines, f"the server ended with status {process.wait()}"
        url = next(line.split()[1] for line in lines if line.startswith("Address"))
        yield Server(url, tuple(lines), process)
    finally:
        guard.cancel()
        process.terminate()
        process.stdout.close()
        assert process.wait(timeout=30) == 0


REPLAY = ("--engine", "replay", "--pace", "full", "--fixtures")


@pytest.fixture(scope="session")
def replay_server() -> Iterator[Server]:
    """Every recording of the repository, flat out."""
    with serving(*REPLAY, str(FIXTURES)) as server:
        yield server


@pytest.fixture(scope="session")
def model_server(default_model: ModelFiles) -> Iterator[Server]:
    """The default model."""
    with serving() as server:
        yield server


@attrs.frozen
class TlsServer:
    """A server behind TLS and the file of the authority that signed its certificate."""

    server: Server
    authority: str


@contextmanager
def serving_tls(folder: Path, *arguments: str) -> Iterator[TlsServer]:
    """``serving`` over TLS, with certificates that are written to ``folder``."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    chain, key, root = folder / "chain.pem", folder / "key.pem", folder / "ca.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(root))
    files = ("--certfile", str(chain), "--keyfile", str(key))
    with serving(*files, *arguments) as server:
        yield TlsServer(server, str(root))


@pytest.fixture(scope="session")
def tls_server(
    default_model: ModelFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsServer]:
    """The default model over TLS, with a key."""
    with serving_tls(tmp_path_factory.mktemp("tls"), "--api-key", "secret") as server:
        yield server
