"""Both clients, on answers that are cut in awkward places, and on answers that go wrong."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from benchmarks.peers import Proto
from benchmarks.serving.client import Client, Failed, Seen
from benchmarks.serving.request_bytes import request_bytes
from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.words import word

BODY = b'{"tokens":3}'
EVENTS = b"".join(
    b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % word(number) for number in range(40)
)
OTHERS = b'event: data: none\n: data: ping\n\n data: nor this\ndata:{"content":"no word"}\n\n'
LONG = b"data: " + b"x" * 20_000 + b"\n\n"
TEXT = EVENTS + OTHERS + LONG + b"data: [DONE]\n\n"
COUNT = 40 + 1 + 1 + 1
STEP_NS = 5_000_000

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port whose connections are each given to ``answer``, until it returns."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = []

        def accept() -> None:
            while True:
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=serve, args=(link,)))
                threads[-1].start()

        def serve(link: socket.socket) -> None:
            with link:
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(OSError):  # the client has seen enough
                    answer(link)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def run(
    client: Client, port: int, proto: Proto, streams: int, limit_s: float = 20, stalled: int = 0
) -> Seen:
    request = request_bytes(proto, "/stream", {"x-key": "value"}, BODY)
    return client.run(port, proto, streams, request, "chat", limit_s, stalled=stalled)


def pieces(data: bytes, random: Random) -> list[bytes]:
    """The data in pieces of one byte to many."""
    cuts = sorted(random.sample(range(1, len(data)), k=min(30, len(data) - 1)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def chunked(parts: Sequence[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def read_request(link: socket.socket) -> bytes:
    got = b""
    while not got.endswith(BODY):
        got += link.recv(65536)
    return got


@pytest.fixture
def stepped(times: Path) -> None:
    """Every word of the text was said five milliseconds before now."""
    with StepTimes(times) as table:
        for number in range(40):
            table[number] = time.monotonic_ns() - STEP_NS


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_http1_is_counted_however_it_is_cut(client: Client, framing: str) -> None:
    random = Random(framing)
    requests = []

    def answer(link: socket.socket) -> None:
        requests.append(read_request(link))
        if framing == "chunked":
            body = chunked(pieces(TEXT, random))
            whole = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body
        elif framing == "length":
            whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(TEXT) + TEXT
        else:
            whole = HEAD + b"Connection: close\r\n\r\n" + TEXT
        for piece in pieces(whole, random):
            link.sendall(piece)
        if framing != "close":
            link.recv(1)  # until the client has seen all of it

    with answering(answer) as port:
        seen = run(client, port, "h1", 3)
    assert (seen.events, seen.streams, seen.timed) == (3 * COUNT, 3, 3 * 40)
    assert seen.p50_us is not None
    assert seen.p50_us >= STEP_NS / 1e3
    assert requests[0].startswith(b"POST /stream HTTP/1.1\r\nhost: ")
    assert b"\r\nx-key: value\r\n" in requests[0]


class Http2Server:
    """Answers each stream with the text, once so many in all have been asked for."""

    def __init__(self, random: Random, streams: int, *, reset: bool = False) -> None:
        self._random = random
        self._streams = streams
        self._reset = reset
        self._lock = threading.Lock()
        self._all_asked = threading.Event()
        self.connections = 0
        self.windows: list[int] = []
        """What each stream could be sent when its answer began."""
        self.bodies: list[bytes] = []
        self.headers: list[dict[bytes, bytes]] = []

    def __call__(self, link: socket.socket) -> None:
        speaking = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        codes = h2.settings.SettingCodes
        speaking.local_settings = h2.settings.Settings(
            client=False, initial_values={codes.MAX_CONCURRENT_STREAMS: 100}
        )
        self.connections += 1
        speaking.initiate_connection()
        speaking.ping(b"are you?")
        self._send(link, speaking.data_to_send())
        bodies: dict[int, bytes] = {}
        asked: list[int] = []
        link.settimeout(0.02)
        while True:
            try:
                if not (data := link.recv(65536)):
                    # The client has seen its streams end; these are the others.
                    self.windows += map(speaking.local_flow_control_window, asked)
                    return
            except TimeoutError:
                data = b""
            for event in speaking.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.headers.append(dict(event.headers))
                    bodies[event.stream_id] = b""
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    asked.append(event.stream_id)
                    self._note(bodies[event.stream_id])
            if self._all_asked.is_set():
                for stream in asked:
                    self._answer(speaking, stream)
                asked.clear()
            self._send(link, speaking.data_to_send())

    def _note(self, body: bytes) -> None:
        with self._lock:
            self.bodies.append(body)
            if len(self.bodies) == self._streams:
                self._all_asked.set()

    def _answer(self, speaking: h2.connection.H2Connection, stream: int) -> None:
        self.windows.append(speaking.local_flow_control_window(stream))
        if self.windows[-1] < len(TEXT):  # a stalled one: it gets what it has room for
            speaking.send_headers(stream, [(b":status", b"200")])
            speaking.send_data(stream, TEXT[: self.windows[-1]])
            return
        speaking.send_headers(stream, [(b":status", b"200"), (b"x-other", b"anything")])
        for piece in pieces(TEXT, self._random):
            speaking.send_data(stream, piece[:16384], pad_length=self._random.choice([None, 7]))
            speaking.send_data(stream, piece[16384:])
        if self._reset:
            speaking.reset_stream(stream, 8)
        else:
            speaking.send_data(stream, b"", end_stream=True)

    def _send(self, link: socket.socket, data: bytes) -> None:
        for piece in pieces(data, self._random) if len(data) > 1 else [data]:
            link.sendall(piece)


@pytest.mark.usefixtures("stepped")
@pytest.mark.parametrize("proto", ["h2", "h2-single"])
def test_http2_is_counted_however_it_is_cut(client: Client, proto: Proto) -> None:
    server = Http2Server(Random(proto), 5)
    with answering(server) as port:
        seen = run(client, port, proto, 5)
    assert (seen.events, seen.streams, seen.timed) == (5 * COUNT, 5, 5 * 40)
    assert server.connections == (1 if proto == "h2" else 5)
    assert server.bodies == [BODY] * 5
    assert all(each[b":path"] == b"/stream" for each in server.headers)
    assert all(each[b"x-key"] == b"value" for each in server.headers)


def test_a_reset_stream_makes_the_run_void(client: Client) -> None:
    with answering(Http2Server(Random(1), 2, reset=True)) as port, pytest.raises(Failed):
        run(client, port, "h2", 2)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", id="refused"
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"6\r\ndata: \r\n", id="cut in a body"
        ),
        pytest.param(HEAD, id="cut in the head"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked([b"data: half a line"]),
            id="cut in an event",
        ),
        pytest.param(b"", id="nothing"),
    ],
)
def test_an_answer_that_goes_wrong_makes_the_run_void(client: Client, sent: bytes) -> None:
    def answer(link: socket.socket) -> None:
        read_request(link)
        link.sendall(sent)

    with answering(answer) as port, pytest.raises(Failed):
        run(client, port, "h1", 1)


def test_a_silent_server_makes_the_run_void_in_the_end(client: Client) -> None:
    def answer(link: socket.socket) -> None:
        while link.recv(65536):
            pass

    with answering(answer) as port, pytest.raises(Failed, match="0 of 1 streams"):
        run(client, port, "h1", 1, limit_s=0.1)


@pytest.mark.parametrize("proto", ["h2", "h2-single"])
def test_a_stalled_stream_of_http2_has_a_window_that_does_not_grow(
    client: Client, proto: Proto
) -> None:
    server = Http2Server(Random(2), 5)
    with answering(server) as port:
        seen = run(client, port, proto, 3, stalled=2)
    assert (seen.events, seen.streams) == (3 * COUNT, 3)
    assert sorted(server.windows)[:2] == [4096, 4096]
    assert sorted(server.windows)[2] > 2**30


def test_a_stalled_stream_of_http1_is_asked_for_and_never_read(client: Client) -> None:
    sent, cut = [], []
    whole = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked([TEXT] * 50)

    def answer(link: socket.socket) -> None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        read_request(link)
        try:
            link.sendall(whole)
        except OSError:
            cut.append(link)  # the client has left with its answer unread
            return
        sent.append(link)
        link.recv(1)

    with answering(answer) as port:
        seen = run(client, port, "h1", 2, stalled=1)
    assert (seen.events, seen.streams) == (2 * 50 * COUNT, 2)
    assert (len(sent), len(cut)) == (2, 1)
