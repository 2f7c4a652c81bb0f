"""What is inherited from Hypercorn, Quart, h2, h11 and asyncio, and relied on.

A release that changes one fails here, by name, before anything stranger fails elsewhere. What is
overridden has to be listed, and what is listed has to be used.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import h2.config
import h2.connection
import h2.frame_buffer
import h2.settings
import h2.stream
import h11
import pytest
import quart.asgi
import quart.utils
import uvloop
from h2.errors import ErrorCodes
from h2.exceptions import DenialOfServiceError, ProtocolError
from h2.settings import SettingCodes
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import AsyncioSingleTask, WorkerContext
from hypercorn.config import Config
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Body as BodyCame
from hypercorn.protocol.events import EndBody, Request, StreamClosed
from hypercorn.protocol.events import Response as HeadSent
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import STREAM_ID, H2CProtocolRequiredError, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.utils import filter_pseudo_headers, parse_socket_addr
from quart.asgi import ASGIHTTPConnection
from quart.wrappers import Response
from quart.wrappers.request import Body

import antiphon.transport
from antiphon.transport.quart_host import refuse_body
from antiphon.transport.wire import HIGH, LOW

PROTOCOL = "app config context task_group connection_state ssl client server send"

SIGNATURES: list[tuple[Callable[..., Any], str]] = [
    (TCPServer.__init__, "self app loop config context state reader writer"),
    (TCPServer.run, "self"),
    (TCPServer.protocol_send, "self event"),
    (TCPServer._read_data, "self"),
    (TCPServer._close, "self"),
    (TCPServer._idle_timeout, "self"),
    (TCPServer._initiate_server_close, "self"),
    (
        ProtocolWrapper.__init__,
        "self app config context task_group state ssl client server send alpn_protocol",
    ),
    (ProtocolWrapper.initiate, "self"),
    (ProtocolWrapper.handle, "self event"),
    (H2Protocol.__init__, f"self {PROTOCOL}"),
    (H2Protocol.initiate, "self headers settings"),
    (H2Protocol.handle, "self event"),
    (H2Protocol.send_task, "self"),
    (H2Protocol.stream_send, "self event"),
    (H2Protocol._handle_events, "self events"),
    (H2Protocol._flush, "self"),
    (H2Protocol._window_updated, "self stream_id"),
    (H2Protocol._create_stream, "self request"),
    (H2Protocol._close_stream, "self stream_id"),
    (H11Protocol.__init__, f"self {PROTOCOL}"),
    (H11Protocol.handle, "self event"),
    (H11Protocol.stream_send, "self event"),
    (H11Protocol._handle_events, "self"),
    (H11Protocol._create_stream, "self request"),
    (H11Protocol._check_protocol, "self event"),
    (H11Protocol._send_h11_event, "self event"),
    (H11Protocol._send_error_response, "self status_code"),
    (H11Protocol._maybe_recycle, "self"),
    (H11Protocol._close_stream, "self"),
    (H2CProtocolRequiredError.__init__, "self data request"),
    (HTTPStream.__init__, "self app config context task_group ssl client server send stream_id"),
    (HTTPStream.handle, "self event"),
    (TaskGroup.__init__, "self loop"),
    (TaskGroup.spawn, "self func args"),
    (TaskGroup.spawn_app, "self app config scope send"),
    (WorkerContext.__init__, "self max_requests"),
    (AsyncioSingleTask.restart, "self task_group action"),
    (AsyncioSingleTask.stop, "self"),
    (Lifespan.__init__, "self app config loop lifespan_state"),
    (Lifespan.handle_lifespan, "self"),
    (Lifespan.wait_for_startup, "self"),
    (Lifespan.wait_for_shutdown, "self"),
    (Config.response_headers, "self protocol"),
    (filter_pseudo_headers, "headers"),
    (parse_socket_addr, "family address"),
    (ASGIHTTPConnection.__init__, "self app scope"),
    (ASGIHTTPConnection.__call__, "self receive send"),
    (ASGIHTTPConnection.handle_messages, "self request receive"),
    (ASGIHTTPConnection.handle_request, "self request send"),
    (ASGIHTTPConnection._create_request_from_scope, "self send"),
    (ASGIHTTPConnection._send_response, "self send response"),
    (Body.__init__, "self expected_content_length max_content_length"),
    (Body.__anext__, "self"),
    (Body.__await__, "self"),
    (Body.set_complete, "self"),
    (quart.asgi._handle_exception, "app error"),
    (quart.utils.encode_headers, "headers"),
    (quart.utils.raise_task_exceptions, "tasks"),
    (h2.connection.H2Connection.close_connection, "self error_code additional_data last_stream_id"),
    (h2.connection.H2Connection.reset_stream, "self stream_id error_code"),
    (h2.connection.H2Connection.acknowledge_received_data, "self acknowledged_size stream_id"),
    (h2.connection.H2Connection.__init__, "self config"),
    (h2.connection.H2Connection.data_to_send, "self amount"),
    (h2.connection.H2Connection.end_stream, "self stream_id"),
    (h2.connection.H2Connection.initiate_connection, "self"),
    (h2.connection.H2Connection.ping, "self opaque_data"),
    (h2.connection.H2Connection.send_data, "self stream_id data end_stream pad_length"),
    (
        h2.connection.H2Connection.send_headers,
        "self stream_id headers end_stream priority_weight priority_depends_on priority_exclusive",
    ),
    (h2.connection.H2Connection._receive_frame, "self frame"),
    (h2.connection.H2Connection._receive_settings_frame, "self frame"),
    (h2.connection.H2Connection._receive_priority_frame, "self frame"),
    (h2.connection.H2Connection._receive_goaway_frame, "self frame"),
    (h2.frame_buffer.FrameBuffer.__init__, "self server"),
    (h2.frame_buffer.FrameBuffer.__next__, "self"),
    (h2.frame_buffer.FrameBuffer._update_header_buffer, "self f"),
    (h2.frame_buffer.FrameBuffer._validate_frame_length, "self length"),
]


@pytest.mark.parametrize(
    ("function", "parameters"), SIGNATURES, ids=[each[0].__qualname__ for each in SIGNATURES]
)
def test_signature(function: Callable[..., Any], parameters: str) -> None:
    assert " ".join(inspect.signature(function).parameters) == parameters


@pytest.mark.parametrize(
    "name",
    ["accesslog", "errorlog", "h11_max_incomplete_size", "h2_max_concurrent_streams",
     "h2_max_header_list_size", "keep_alive_max_requests", "keep_alive_timeout",
     "ssl_handshake_timeout"],
)  # fmt: skip
def test_setting_exists(name: str) -> None:
    assert hasattr(Config, name)


ATTRIBUTES: list[tuple[type, str]] = [
    (H2Protocol, "app client closed config connection connection_state context send "
                 "server ssl streams task_group"),
    (H11Protocol, "app can_read client config connection connection_state context send server "
                  "ssl stream task_group"),
    (Body, "_must_raise"),
    (TCPServer, "app config context idle_task loop protocol reader state writer"),
    (ProtocolWrapper, "app client config context protocol send server ssl state task_group"),
    (h2.connection.H2Connection, "_data_to_send decoder incoming_buffer local_settings "
                                 "state_machine streams MAX_CLOSED_STREAMS "
                                 "highest_inbound_stream_id "
                                 "_inbound_flow_control_window_manager"),
    (h2.frame_buffer.FrameBuffer, "_data _headers_buffer"),
    (h2.connection.H2Connection, "max_outbound_frame_size outbound_flow_control_window"),
    (h2.stream.H2Stream, "_actual_content_length _expected_content_length state_machine "
                         "outbound_flow_control_window"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "names"), ATTRIBUTES)
def test_attributes_are_set(owner: type, names: str) -> None:
    source = inspect.getsource(owner)
    for name in names.split():
        assert f"self.{name}" in source, name


def test_the_stream_of_http1() -> None:
    assert STREAM_ID == 1


def _sources() -> Iterator[ModuleType]:
    for each in pkgutil.iter_modules(antiphon.transport.__path__, "antiphon.transport."):
        yield importlib.import_module(each.name)


def _overrides() -> Iterator[Callable[..., Any]]:
    """What the classes of our transport put something else in the place of."""
    for module in _sources():
        for ours in vars(module).values():
            if not inspect.isclass(ours) or ours.__module__ != module.__name__:
                continue
            theirs = [each for each in ours.__mro__ if each.__module__.split(".")[0] in OTHERS]
            for name in vars(ours):
                for base in theirs:
                    if inspect.isfunction(inherited := vars(base).get(name)):
                        yield inherited
                        break


OTHERS = {"hypercorn", "quart", "h2", "h11", "hyperframe"}


def test_what_is_overridden_is_listed() -> None:
    listed = {function for function, _ in SIGNATURES}
    missing = {each.__qualname__ for each in _overrides() if each not in listed}
    # A response is made with names, and has many.
    assert missing == {"Response.__init__"}
    assert len(list(_overrides())) > 40


def test_what_is_listed_is_used() -> None:
    source = "\n".join(map(inspect.getsource, _sources()))
    used = set(re.findall(r"\w+", source))
    names = {function.__name__ for function, _ in SIGNATURES}
    names |= {name for _, listed in ATTRIBUTES for name in listed.split()}
    # Classes are made by their own names.
    assert {each for each in names if not each.startswith("__")} - used == set()


def test_what_hypercorn_does_for_priorities_is_left_alone() -> None:
    """Its tree of priorities, its buffers and the task that writes from them have no part here."""
    source = "\n".join(map(inspect.getsource, _sources()))
    for name in ("import priority", "self.priority", "stream_buffers", "has_data", "_send_data"):
        assert name not in source


async def test_a_head_is_sent_when_it_is_known() -> None:
    """By Hypercorn's stream, which an older one kept until there was a body; and a stream that its
    application leaves in the middle is closed and no more, which the protocols tell from an end."""
    sent: list[object] = []

    async def send(event: object) -> None:
        sent.append(event)

    stream = HTTPStream(*[None] * 7, send, 1)  # type: ignore[call-arg, arg-type]
    await stream.app_send({"type": "http.response.start", "status": 200, "headers": []})
    (head,) = sent
    assert isinstance(head, HeadSent)
    await stream.app_send(None)
    assert isinstance(sent[1], StreamClosed)
    assert len(sent) == 2


async def test_what_comes_for_a_request_goes_where_its_application_was_begun() -> None:
    """To what ``spawn_app`` gives back, whatever that is: the pieces, the end, and the client's."""
    came: list[Any] = []

    class Group:
        async def spawn_app(self, *_: object) -> Callable[[object], Any]:
            async def put(message: object) -> None:
                came.append(message)

            return put

    stream = HTTPStream(None, Config(), None, Group(), *[None] * 4, 1)  # type: ignore[call-arg, arg-type]
    await stream.handle(Request(1, [(b"host", b"x")], "1.1", "POST", b"/", {}))  # type: ignore[arg-type]
    for event in (BodyCame(1, b"piece"), EndBody(1), StreamClosed(1)):
        await stream.handle(event)
    assert came == [
        {"type": "http.request", "body": b"piece", "more_body": True},
        {"type": "http.request", "body": b"", "more_body": False},
        {"type": "http.disconnect"},
    ]


@pytest.mark.parametrize("complete", [False, True])
async def test_a_body_raises_what_it_must_however_it_is_asked_for(complete: bool) -> None:
    """Also whoever waits for it already."""
    body = Body(None, None)
    if complete:
        body.append(b"whole")
    waiting = asyncio.ensure_future(anext(body) if complete else _whole(body))
    if complete:
        assert await waiting == b"whole"
    await asyncio.sleep(0)
    refuse_body(body, LookupError("gone"))
    for asked in (anext(body), _whole(body), *([] if complete else [waiting])):
        with pytest.raises(LookupError, match="gone"):
            await asyncio.wait_for(asked, 5)


async def _whole(body: Body) -> bytes:
    data: bytes = await body
    return data


@pytest.mark.parametrize(
    ("version", "end", "state"),
    [(b"1.1", b"0\r\n\r\n", h11.DONE), (b"1.0", b"", h11.MUST_CLOSE)],
)
def test_h11_ends_a_body_of_which_it_has_seen_nothing(
    version: bytes, end: bytes, state: object
) -> None:
    """So that the chunks in between may be made by others."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"GET / HTTP/%s\r\nhost: x\r\n\r\n" % version)
    assert isinstance(connection.next_event(), h11.Request)
    assert isinstance(connection.next_event(), h11.EndOfMessage)
    head = connection.send(h11.Response(status_code=200, headers=[]))
    assert head is not None
    assert (b"chunked" in head) == (version == b"1.1")
    assert connection.send(h11.EndOfMessage()) == end
    assert connection.our_state is state


def test_h2_lets_others_frame_what_it_counts() -> None:
    """The windows are plain numbers, of which others may take; WINDOW_UPDATE and SETTINGS add to
    what is left, and h2's own sending takes of the same."""
    client, server = _connected()
    stream = server.streams[1]
    assert (stream.outbound_flow_control_window, server.outbound_flow_control_window) == (
        65_535,
        65_535,
    )
    stream.outbound_flow_control_window -= 1000
    server.outbound_flow_control_window -= 1000
    server.send_data(1, b"0123456789")
    client.increment_flow_control_window(5, 1)
    client.increment_flow_control_window(7)
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 65_635})
    client.update_settings({SettingCodes.MAX_FRAME_SIZE: 20_000})
    server.receive_data(client.data_to_send())
    assert stream.outbound_flow_control_window == 65_535 - 1010 + 5 + 100
    assert server.outbound_flow_control_window == 65_535 - 1010 + 7
    assert server.max_outbound_frame_size == 20_000
    assert not stream.closed
    server.end_stream(1)
    assert stream.closed


def test_h2_knows_of_a_reset_before_its_event_is_handled() -> None:
    client, server = _connected()
    stream = server.streams[1]
    client.reset_stream(1)
    events = server.receive_data(client.data_to_send())
    assert [type(each).__name__ for each in events] == ["StreamReset"]
    assert stream.closed
    with pytest.raises(ProtocolError):
        server.send_data(1, b"x")


def _connected() -> tuple[h2.connection.H2Connection, h2.connection.H2Connection]:
    """A client and a server that has sent the head of its answer on stream 1."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    client.initiate_connection()
    server.initiate_connection()
    pseudo = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
    client.send_headers(1, pseudo, end_stream=True)
    server.receive_data(client.data_to_send())
    server.send_headers(1, [(":status", "200")])
    client.receive_data(server.data_to_send())
    server.receive_data(client.data_to_send())
    return client, server


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_transport_waits_above_its_mark_and_tells_what_it_holds(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """``drain`` returns at once with so many bytes unsent, and not with one more."""

    async def run() -> None:
        here, there = socket.socketpair()
        with there:
            _, writer = await asyncio.open_connection(sock=here)
            transport = writer.transport
            transport.set_write_buffer_limits(high=HIGH, low=LOW)
            while not (full := transport.get_write_buffer_size()):
                transport.write(bytes(HIGH))
                await asyncio.sleep(0)  # uvloop writes at the end of a turn
            assert full <= HIGH
            transport.write(bytes(HIGH - full))
            assert transport.get_write_buffer_size() == HIGH
            await asyncio.wait_for(writer.drain(), 9)
            transport.write(b"x")
            assert transport.get_write_buffer_size() == HIGH + 1
            drained = asyncio.ensure_future(writer.drain())
            await asyncio.sleep(0)
            assert not drained.done()
            there.setblocking(False)
            while not drained.done():
                with suppress(BlockingIOError):
                    there.recv(2**20)
                await asyncio.sleep(0)
            assert transport.get_write_buffer_size() <= LOW
            assert not transport.is_closing()
            transport.abort()
            assert transport.is_closing()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


def test_h2_asks_its_settings_for_the_stream_limit() -> None:
    source = inspect.getsource(h2.connection.H2Connection._receive_headers_frame)
    assert "self.local_settings.max_concurrent_streams" in source
    assert isinstance(
        inspect.getattr_static(h2.settings.Settings, "max_concurrent_streams"), property
    )
    assert isinstance(h2.connection.H2Connection(h2.config.H2Configuration()).streams, dict)


def test_h2_ends_a_connection_for_what_a_frame_raises_and_says_why() -> None:
    source = inspect.getsource(h2.connection.H2Connection.receive_data)
    assert "for frame in self.incoming_buffer" in source
    assert "self._terminate_connection(e.error_code)" in source
    assert DenialOfServiceError.error_code == ErrorCodes.ENHANCE_YOUR_CALM


def test_h11_keeps_what_follows_a_request() -> None:
    assert isinstance(inspect.getattr_static(h11.Connection, "trailing_data"), property)


def test_quart_takes_a_connection_class_and_a_timeout() -> None:
    assert quart.Quart.asgi_http_class is ASGIHTTPConnection
    assert Response("").timeout is Ellipsis
    assert "RESPONSE_TIMEOUT" in quart.Quart.default_config
