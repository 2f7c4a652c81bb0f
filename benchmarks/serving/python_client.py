"""The load client in Python, for machines without a C compiler: same arguments, same answer.

Slower than ``client.c`` by far, and its latencies with it; its counts are the same. It reads with
h11 and h2, so that each client is a check on the other.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import h11
import hpack
from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.words import LETTERS, number_of

WINDOW = 2**31 - 1
STALLED_WINDOW = 4096


class Tally:
    """The events of all streams, and how late they were."""

    def __init__(self, times: StepTimes | None, marker: bytes) -> None:
        self._times, self._marker = times, marker
        self.events = self.ended = self.bytes = self.reads = 0
        self.first_ns = self.last_ns = 0
        self.latencies: list[int] = []
        self.first_bytes: list[int] = []

    def line(self, line: bytes, now: int) -> None:
        if not line.startswith(b"data:"):
            return
        self.events += 1
        self.first_ns = self.first_ns or now
        self.last_ns = now
        _, found, after = line.partition(self._marker) if self._times else (b"", b"", b"")
        number = number_of(after[:LETTERS]) if found else None
        if number is not None and self._times is not None and self._times[number]:
            self.latencies.append(now - self._times[number])


class Stream:
    """One answer, from its request to its end."""

    def __init__(self, tally: Tally, *, stalled: bool = False) -> None:
        self._tally = tally
        self._stalled = stalled
        self._asked_ns = time.monotonic_ns()
        self._rest = b""
        self._answered = False

    def answered(self, status: int, now: int) -> None:
        if status != 200:
            sys.exit(f"status {status}")
        if not self._answered and not self._stalled:
            self._answered = True
            self._tally.first_bytes.append(now - self._asked_ns)

    def text(self, data: bytes, now: int) -> None:
        if self._stalled:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tally.line(line, now)

    def end(self) -> None:
        if self._stalled:
            return
        if self._rest:
            sys.exit("a stream ended within a line")
        self._tally.ended += 1


class Http1:
    """A connection of one stream."""

    def __init__(self, link: socket.socket, tally: Tally, head: bytes, body: bytes) -> None:
        self._h11 = h11.Connection(h11.CLIENT)
        first, *lines = head.decode().strip().split("\r\n")
        method, target, _ = first.split()
        fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        self._h11.send(h11.Request(method=method, target=target, headers=fields))
        self._h11.send(h11.Data(data=body))
        self._h11.send(h11.EndOfMessage())
        self._stream = Stream(tally)
        self._ended = False
        link.sendall(head + body)

    def received(self, data: bytes, now: int) -> bytes:
        if self._ended and not data:
            return b""  # nothing was left to say
        self._h11.receive_data(data)
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Response):
                self._stream.answered(event.status_code, now)
            elif isinstance(event, h11.Data):
                self._stream.text(bytes(event.data), now)
            elif isinstance(event, h11.EndOfMessage):
                self._ended = True
                self._stream.end()
                return b""
            elif isinstance(event, h11.ConnectionClosed):
                sys.exit("the connection of a stream was closed")
            else:
                return b""


class Http2:
    """A connection of several streams. All windows are wide but those of the stalled ones."""

    def __init__(
        self,
        link: socket.socket,
        tally: Tally,
        head: bytes,
        body: bytes,
        streams: int,
        stalled: int,
    ) -> None:
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        codes = h2.settings.SettingCodes
        self._h2.local_settings = h2.settings.Settings(
            initial_values={
                codes.INITIAL_WINDOW_SIZE: STALLED_WINDOW if stalled else WINDOW,
                codes.ENABLE_PUSH: 0,
            }
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(WINDOW - 65535)
        self._tally, self._body = tally, body
        self._read, self._all = streams, streams + stalled
        self._fields = hpack.Decoder().decode(head)
        self._streams: dict[int, Stream] = {}
        self._settled = False
        link.sendall(self._h2.data_to_send())

    def received(self, data: bytes, now: int) -> bytes:
        if not data:
            sys.exit("the connection of a stream was closed")
        for event in self._h2.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                status = int(dict(event.headers)[b":status"])
                self._streams[event.stream_id].answered(status, now)
            elif isinstance(event, h2.events.DataReceived):
                self._streams[event.stream_id].text(event.data, now)
            elif isinstance(event, h2.events.StreamEnded):
                self._streams[event.stream_id].end()
            elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
                sys.exit(f"{type(event).__name__}, code {event.error_code}")
            elif isinstance(event, h2.events.RemoteSettingsChanged):
                self._settled = True
        while (
            self._settled
            and len(self._streams) < self._all
            and self._h2.outbound_flow_control_window >= len(self._body)
        ):
            number = self._h2.get_next_available_stream_id()
            self._h2.send_headers(number, self._fields)
            self._h2.send_data(number, self._body, end_stream=True)
            stalled = len(self._streams) >= self._read
            self._streams[number] = Stream(self._tally, stalled=stalled)
            if self._read < self._all and not stalled:
                self._h2.increment_flow_control_window(WINDOW - STALLED_WINDOW, number)
        return self._h2.data_to_send()


def main() -> None:
    port, proto, streams, stalled, head, body, times, marker, limit = sys.argv[1:]
    table = StepTimes(Path(times)) if marker else None
    tally = Tally(table, marker.encode())
    sent = Path(head).read_bytes(), Path(body).read_bytes()
    poll = selectors.DefaultSelector()
    wanted, never = int(streams), int(stalled)
    unread = []
    for place in range(1 if proto == "h2" else wanted + never):
        link = socket.create_connection(("127.0.0.1", int(port)))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proto == "h2":
            spoken: Http1 | Http2 = Http2(link, tally, *sent, wanted, never)
        elif proto == "h2-single":
            spoken = Http2(link, tally, *sent, int(place < wanted), int(place >= wanted))
        elif place < wanted:
            spoken = Http1(link, tally, *sent)
        else:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_WINDOW)
            link.sendall(b"".join(sent))
            unread.append(link)
            continue
        poll.register(link, selectors.EVENT_READ, spoken)
    until = time.monotonic() + float(limit)
    while tally.ended < wanted:
        if time.monotonic() > until:
            sys.exit(f"{tally.ended} of {wanted} streams ended in time")
        for key, _ in poll.select(0.5):
            source = key.fileobj
            assert isinstance(source, socket.socket)
            data = source.recv(1 << 18)
            now = time.monotonic_ns()
            tally.bytes, tally.reads = tally.bytes + len(data), tally.reads + 1
            if not data:
                poll.unregister(source)
            if answer := key.data.received(data, now):
                source.sendall(answer)
    print(json.dumps(_told(tally)))


def _told(tally: Tally) -> dict[str, float | int]:
    told: dict[str, float | int] = {
        "events": tally.events,
        "streams": tally.ended,
        "bytes": tally.bytes,
        "reads": tally.reads,
        "seconds": (tally.last_ns - tally.first_ns) / 1e9,
        "head_p50_us": _us(tally.first_bytes, 0.5),
    }
    if late := tally.latencies:
        told |= {"timed": len(late), "max_us": max(late) / 1e3}
        told |= {"p50_us": _us(late, 0.5), "p99_us": _us(late, 0.99)}
    return told


def _us(values: list[int], part: float) -> float:
    values = sorted(values)
    return values[min(int(len(values) * part), len(values) - 1)] / 1e3


if __name__ == "__main__":
    main()
