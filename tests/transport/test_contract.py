"""What is inherited from Hypercorn, Quart and h2: names, signatures and attributes relied on.

A release that changes one fails here, by name, before anything stranger fails elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
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
from h2.errors import ErrorCodes
from h2.exceptions import DenialOfServiceError
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import AsyncioSingleTask, WorkerContext
from hypercorn.config import Config
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import STREAM_ID, H2CProtocolRequiredError, H11Protocol
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.utils import filter_pseudo_headers, parse_socket_addr
from quart.asgi import ASGIHTTPConnection
from quart.wrappers import Response

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
    (HTTPStream.app_send, "self message"),
    (TaskGroup.__init__, "self loop"),
    (TaskGroup.spawn, "self func args"),
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
    (quart.asgi._handle_exception, "app error"),
    (quart.utils.raise_task_exceptions, "tasks"),
    (h2.connection.H2Connection.close_connection, "self error_code additional_data last_stream_id"),
    (h2.connection.H2Connection.reset_stream, "self stream_id error_code"),
    (h2.connection.H2Connection.acknowledge_received_data, "self acknowledged_size stream_id"),
    (h2.connection.H2Connection.initiate_connection, "self"),
    (h2.connection.H2Connection.ping, "self opaque_data"),
    (h2.connection.H2Connection._receive_frame, "self frame"),
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


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (H2Protocol, "app client closed config connection connection_state context has_data send "
                     "server ssl streams task_group"),
        (H11Protocol, "app can_read client config connection connection_state context send server "
                      "ssl stream task_group"),
        (TCPServer, "app config context idle_task loop protocol reader send_lock state writer"),
        (ProtocolWrapper, "app client config context protocol send server ssl state task_group"),
        (HTTPStream, "closed state stream_id"),
        (h2.connection.H2Connection, "_data_to_send decoder incoming_buffer local_settings "
                                     "state_machine streams MAX_CLOSED_STREAMS"),
        (h2.frame_buffer.FrameBuffer, "_data _headers_buffer"),
        (h2.stream.H2Stream, "_actual_content_length _expected_content_length state_machine"),
    ],
)  # fmt: skip
def test_attributes_are_set(owner: type, names: str) -> None:
    source = inspect.getsource(owner)
    for name in names.split():
        assert f"self.{name}" in source, name


def test_states_and_stream_id() -> None:
    assert {"REQUEST", "RESPONSE", "TRAILERS", "CLOSED"} <= set(ASGIHTTPState.__members__)
    assert STREAM_ID == 1


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
