"""Both hosts under the same faults: ours must have none, of Hypercorn's each is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from faults.application import Settings
from faults.long_streams import LongStreams, long_streams_of
from faults.servers import Certificate, Host, Server, serving

Serve: TypeAlias = Callable[..., Server]
Figure: TypeAlias = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes",
        type=float,
        default=10.0,
        help="Length of the long streams, which run beside all other tests.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "fails_on_stock(why, condition=True): Hypercorn has this fault, still"
    )
    config.addinivalue_line(
        "markers", "logs_its_own: the tested application fails, and what it logs is its own"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A fault of Hypercorn is expected: one that has been repaired fails the run, and says so."""
    for item in items:
        mark = item.get_closest_marker("fails_on_stock")
        called = getattr(item, "callspec", None)
        if mark is None or called is None or called.params.get("host") != "stock":
            continue
        if mark.kwargs.get("condition", True):
            item.add_marker(
                pytest.mark.xfail(reason=mark.args[0], raises=AssertionError, strict=True)
            )
    # The long streams are judged when all else is over.
    items.sort(key=lambda item: "long_streams" in getattr(item, "fixturenames", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured beside the judgements, whatever those were."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if getattr(report, "when", None) == "call" and report.user_properties
    ]
    if reports:
        terminalreporter.section("figures")
    for report in reports:
        for name, value in report.user_properties:
            terminalreporter.line(f"{report.nodeid.rpartition('::')[2]}: {name}: {value}")


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Show numbers under a name at the end of the run."""

    def show(name: str, *values: float) -> None:
        text = ", ".join(f"{value:.2f}" for value in values)
        request.node.user_properties.append((name, text))

    return show


@pytest.fixture(scope="session")
def long_streams(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LongStreams]:
    seconds = request.config.getoption("--minutes") * 60
    with long_streams_of(seconds, tmp_path_factory.mktemp("long")) as streams:
        yield streams


@pytest.fixture(scope="session", autouse=True)
def begun_first(request: pytest.FixtureRequest) -> None:
    """The long streams go on while all else is tested."""
    if any("long_streams" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("long_streams")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.make(tmp_path_factory.mktemp("certificate"))


def _starter(host: Host, request: pytest.FixtureRequest) -> Iterator[Serve]:
    certificate = request.getfixturevalue("certificate")
    servers: list[Server] = []
    with ExitStack() as stack:

        def start(*, tls: bool = False, **settings: Any) -> Server:
            context = serving(host, Settings(**settings), certificate if tls else None)
            servers.append(stack.enter_context(context))
            return servers[-1]

        yield start
        if host == "ours" and request.node.get_closest_marker("logs_its_own") is None:
            for server in servers:
                assert_quiet(server)


def assert_quiet(server: Server) -> None:
    """No fault of a client has filled the log: a line each is the most."""
    logged = server.logged()
    assert len(logged) <= 1, "\n".join(logged)


@pytest.fixture(params=["ours", "stock"])
def host(request: pytest.FixtureRequest) -> Host:
    """Who serves; a test that has this runs on both."""
    one: Host = request.param
    return one


@pytest.fixture
def serve(host: Host, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Start a server of ``host`` with some ``Settings``, and ``tls`` if it shall have it."""
    yield from _starter(host, request)


@pytest.fixture
def serve_ours(request: pytest.FixtureRequest) -> Iterator[Serve]:
    """The same where Hypercorn has nothing to be compared with."""
    yield from _starter("ours", request)
