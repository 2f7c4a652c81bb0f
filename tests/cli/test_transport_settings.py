"""Each setting of the transport has an effect on the server that is started with it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import click
import httpx
import pytest
import trustme
from click.testing import CliRunner
from h2.connection import H2Connection

from antiphon import config as config_module
from antiphon.cli import serve as command
from antiphon.config import Config
from antiphon.errors import StartupError
from antiphon.serving import Opening, serve_forever
from antiphon.transport.addresses import Address, InheritedAddress, TcpAddress
from antiphon.transport.ending import Ending
from antiphon.transport.limits import Limits

FIXTURES = Path(__file__).parents[2] / "fixtures"
GUARD_S = 20
HELLO = {"model": "plain/hello", "input": "hi", "stream": True}


@pytest.fixture(autouse=True)
def stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command leaves threads behind by ending the process, which here is that of the tests."""
    monkeypatch.setattr(command, "_leave", lambda: None)


def config(**settings: Any) -> Config:
    made = Config(engine="replay", fixtures=FIXTURES, pace="full", **settings)
    made.check()
    return made


def names(directory: Path) -> list[str]:
    """What is in it."""
    return sorted(path.name for path in directory.iterdir())


@attrs.define
class Said:
    """What the server has printed; complete once it serves."""

    lines: list[str] = attrs.field(factory=list)
    over: anyio.Event = attrs.field(factory=anyio.Event)

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("  curl "):
            self.over.set()

    @property
    def addresses(self) -> list[str]:
        """Their URLs."""
        return [line.split()[1] for line in self.lines if line.startswith("Address")]

    @property
    def command(self) -> list[str]:
        """The words of what is to be pasted."""
        return shlex.split(self.lines[-1])


@asynccontextmanager
async def running(made: Config) -> AsyncIterator[Said]:
    """The whole server, from its first socket to its end, which the end of the block asks for."""
    said = Said()
    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_forever, made, said)
            await said.over.wait()
            yield said
            signal.raise_signal(signal.SIGTERM)


async def curl(said: Said, *more: str) -> str:
    """The output of the pasted command."""
    done = await anyio.run_process([*said.command, "-sS", *more], check=False)
    return (done.stdout + done.stderr).decode()


async def test_all_addresses_are_told_and_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = socket.create_server(("127.0.0.1", 0))
    inherited = given.getsockname()[1]
    bind = ("unix:a.sock", "127.0.0.1:0", f"fd://{given.detach()}")
    async with running(config(bind=bind)) as said:
        unix, tcp, activated = said.addresses
        assert unix == "unix:a.sock"
        assert activated == f"http://127.0.0.1:{inherited}"
        assert "HTTP/2 (h2c) and HTTP/1.1" in said.lines[3]
        assert "[DONE]" in await curl(said)
        async with httpx.AsyncClient() as client:
            for url in (tcp, activated):
                assert (await client.get(f"{url}/ready")).status_code == 200
    assert names(tmp_path) == []


async def test_one_address_that_cannot_be_had_gives_back_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = ("unix:a.sock", f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(StartupError, match="in use"):
            await serve_forever(config(bind=bind), lambda line: None)
    assert names(tmp_path) == []


async def test_clients_must_be_known(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("me@example.test")
    for name, leaf in (("server", server), ("client", client)):
        leaf.private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
    pem = tmp_path / "server.pem"
    made = config(port=0, certfile=pem, keyfile=pem, client_ca=tmp_path / "ca.pem")
    async with running(made) as said:
        assert "for known clients" in said.lines[3]
        (url,) = said.addresses
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        async with httpx.AsyncClient(verify=trust) as stranger:
            with pytest.raises(httpx.TransportError):
                await stranger.get(f"{url}/ready")
        trust.load_cert_chain(tmp_path / "client.pem")
        async with httpx.AsyncClient(verify=trust) as known:
            assert (await known.get(f"{url}/ready")).status_code == 200


async def test_a_hangup_has_the_certificate_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, pem = trustme.CA(), tmp_path / "server.pem"

    async def shown() -> bytes:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.close()
        await writer.wait_closed()
        return bytes(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))

    def renew() -> None:
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)

    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    renew()
    async with running(config(port=0, certfile=pem, keyfile=pem)) as said:
        port = int(said.addresses[0].rpartition(":")[2])
        before = await shown()
        renew()
        signal.raise_signal(signal.SIGHUP)
        while await shown() == before:
            pass
    (line,) = [each for each in caplog.records if "certificate" in each.getMessage()]
    assert (line.getMessage(), line.levelname) == ("the certificate was read again", "WARNING")


async def test_one_version_of_http(tmp_path: Path) -> None:
    async with running(config(port=0, http="2")) as said:
        assert "[DONE]" in await curl(said)
        async with httpx.AsyncClient() as client:
            refused = await client.get(f"{said.addresses[0]}/ready")
        assert refused.status_code == 505
        assert said.lines[3].endswith("(HTTP/2 (h2c))")
    async with running(config(port=0, http="1.1")) as said:
        assert "[DONE]" in await curl(said)
        assert "[DONE]" not in await curl(said, "--http2-prior-knowledge")
        assert said.lines[3].endswith("(HTTP/1.1)")


async def test_requests_are_written_down_with_the_client_that_a_proxy_tells(
    tmp_path: Path,
) -> None:
    path = tmp_path / "access.log"
    made = config(port=0, access_log=str(path), forwarded_allow_ips=("127.0.0.0/8",))
    async with running(made) as said, httpx.AsyncClient(base_url=said.addresses[0]) as client:
        told = {"X-Forwarded-For": "192.0.2.7", "X-Request-ID": "mine"}
        answer = await client.post("/v1/responses", json=HELLO, headers=told)
        assert answer.status_code == 200
        await client.get("/v1/models/none?secret=1")
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["client"], first["id"]) == ("192.0.2.7", "mine")
    assert (first["method"], first["path"], first["status"]) == ("POST", "/v1/responses", 200)
    assert first["bytes"] == len(answer.content)
    assert (second["client"], second["path"]) == ("127.0.0.1", "/v1/models/none")
    assert second["status"] == 404


async def test_limits_are_those_of_the_connections() -> None:
    limits = Limits(h2_max_concurrent_streams=7, max_header_bytes=2048)
    async with running(config(port=0, limits=limits)) as said:
        port = int(said.addresses[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        connection = H2Connection()
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        connection.receive_data(await reader.read(65536))
        assert connection.remote_settings.max_concurrent_streams == 7
        assert connection.remote_settings.max_header_list_size == 2048
        writer.close()
        async with httpx.AsyncClient(base_url=said.addresses[0]) as client:
            refused = await client.get("/ready", headers={"x": "y" * 2048})
        assert refused.status_code == 431


def test_framing_by_the_library_alone() -> None:
    for value, direct in (("auto", True), ("off", False)):
        opening = Opening(config(h2_direct_framing=value), Ending())
        assert opening.host_config.h2_direct_framing is direct


@pytest.mark.parametrize(
    ("loop", "module"), [("asyncio", "asyncio"), ("uvloop", "uvloop"), ("auto", "uvloop")]
)
def test_the_event_loop(monkeypatch: pytest.MonkeyPatch, loop: str, module: str) -> None:
    pytest.importorskip("uvloop")
    assert loop_of(monkeypatch, "--loop", loop).partition(".")[0] == module


def test_without_uvloop_the_loop_is_asyncios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "find_spec", lambda name: None)
    assert loop_of(monkeypatch).startswith("asyncio.")
    with pytest.raises(StartupError, match="pip install uvloop"):
        Config(loop="uvloop").check()


def loop_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """The module of the loop that a server runs on."""

    async def tell(made: Config, say: Any) -> bool:
        click.echo(type(asyncio.get_running_loop()).__module__)
        return True

    monkeypatch.setattr(command, "serve_forever", tell)
    result = CliRunner().invoke(command.serve, ["--engine", "replay", *arguments])
    assert result.exit_code == 0, result.output
    return result.output.strip()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"bind": ("localhost",)}, "Address 'localhost' is none of"),
        ({"bind": ("127.0.0.1:0",), "port": 1}, "--bind stands in the place of --host and --port."),
        ({"bind": ("fd://3", "fd://3")}, "--bind fd://3 is given twice."),
        ({"bind": ("unix:a", "unix:./a")}, "--bind unix:a is given twice."),
        ({"client_ca": Path("ca.pem")}, "--client-ca needs --certfile and --keyfile."),
        ({"access_log": ""}, "--access-log is a file"),
        ({"access_log": "/no/such/place"}, "Cannot write the access log /no/such/place: No such"),
        ({"forwarded_allow_ips": ("localhost",)}, "--forwarded-allow-ips: 'localhost' is no"),
        ({"limits": Limits(stream_low=2, stream_high=1)}, "--stream-low must not be above"),
        (
            {"limits": Limits(stream_low=1, stream_high=3, connection_high=2)},
            "--stream-high must not be above",
        ),
    ],
)
async def test_what_cannot_be_is_one_line(settings: dict[str, Any], line: str) -> None:
    if "bind" not in settings:
        settings = {"port": 0, **settings}
    with anyio.fail_after(GUARD_S), pytest.raises(StartupError) as caught:
        await serve_forever(config(**settings), lambda said: None)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "flags", "addresses"),
    [
        ({"BIND": "unix:x"}, ["--port", "7"], (TcpAddress("127.0.0.1", 7),)),
        ({"PORT": "7", "HOST": "::1"}, ["--bind", "fd://5"], (InheritedAddress(5),)),
    ],
)
def test_flags_win_over_variables(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    flags: list[str],
    addresses: tuple[Address, ...],
) -> None:
    made: list[Config] = []

    async def keep(config: Config, say: Any) -> bool:
        made.append(config)
        return True

    monkeypatch.setattr(command, "serve_forever", keep)
    environment = {f"ANTIPHON_{name}": value for name, value in variables.items()}
    result = CliRunner().invoke(command.serve, flags, env=environment)
    assert (result.exit_code, [each.addresses for each in made]) == (0, [addresses])


def test_what_is_refused_says_which_part_is_a_variable() -> None:
    environment = {"ANTIPHON_BIND": "unix:x", "ANTIPHON_PORT": "7"}
    result = CliRunner().invoke(command.serve, [], env=environment)
    assert result.output == (
        "Error: --bind stands in the place of --host and --port. "
        "(Here --bind is ANTIPHON_BIND, --port is ANTIPHON_PORT.)\n"
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_end_leaves_nothing_behind(tmp_path: Path, loop: str) -> None:
    """Every part at once, in a process of its own whose warnings are errors."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    log, path = tmp_path / "access.log", tmp_path / "a.sock"
    pem = tmp_path / "server.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    command = [
        "antiphon", "serve", "--engine", "replay", "--fixtures", str(FIXTURES),
        "--bind", f"unix:{path}", "--bind", "127.0.0.1:0", "--certfile", str(pem),
        "--keyfile", str(pem), "--access-log", str(log), "--loop", loop,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("  curl"):
            assert process.poll() is None
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, timeout=GUARD_S) as client:
            assert client.get("http://any/ready").status_code == 200
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=GUARD_S)
    # In its debug mode asyncio tells what took it long, which on a slow machine much does.
    told = [line for line in errors.splitlines() if not re.search(r" took [0-9.]+ seconds$", line)]
    assert (process.returncode, told) == (0, [])
    assert names(tmp_path) == ["access.log", "server.pem"]
    assert json.loads(log.read_text())["uid"] == os.getuid()
