"""What the scripted engine's process and the server say to each other over a socket pair.

To the engine: commands of a fixed size. From it: a frame per step, its columns as they lie in
memory, since both ends run on one machine. Little enough that what is measured behind it is the
front end and not this format.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

from antiphon.engines.port import EngineError, Finish, StepFrame

COMMAND = struct.Struct("=BII")
"""(kind, key, tokens)"""
SUBMIT, ABORT, STOP = range(3)
"""``tokens`` is the limit of a submitted request, and the milliseconds of grace of a stop."""

_HEAD = struct.Struct("=IIqII")
"""(bytes that follow this field, step, monotonic ns, rows, tokens)"""
_LENGTH = struct.Struct("=I")
_OF_ROWS = "IHBii"
"""Typecodes of the columns that have an entry per row, in the order of ``encode``."""

STOPPED = EngineError(code="engine_overloaded", message="the engine has stopped")


def commands(data: bytes) -> tuple[list[tuple[int, int, int]], bytes]:
    """The whole commands in ``data``, and what is left of it."""
    whole = len(data) - len(data) % COMMAND.size
    return list(COMMAND.iter_unpack(data[:whole])), data[whole:]


def encode(frame: StepFrame) -> bytes:
    """A frame as bytes. An ``ERROR`` row is one of an engine that has stopped."""
    of_rows = (frame.key, frame.n_new, frame.finish, frame.stop_id, frame.cached)
    columns = b"".join([column.tobytes() for column in (*of_rows, frame.token)])
    size = _HEAD.size - _LENGTH.size + len(columns)
    return _HEAD.pack(size, frame.step, frame.t_ns, len(frame.key), len(frame.token)) + columns


class Decoder:
    """Bytes as they come to whole frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[StepFrame]:
        """The frames that these bytes complete."""
        data = self._rest + data if self._rest else data
        at = 0
        while len(data) - at >= _HEAD.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            yield _decode(data, at)
            at = end
        self._rest = data[at:]


def _decode(data: bytes, at: int) -> StepFrame:
    _, step, t_ns, rows, tokens = _HEAD.unpack_from(data, at)
    at += _HEAD.size
    columns = []
    for kind, count in (*((kind, rows) for kind in _OF_ROWS), ("I", tokens)):
        column = array(kind)
        size = column.itemsize * count
        column.frombytes(data[at : at + size])
        columns.append(column)
        at += size
    key, n_new, finish, stop_id, cached, token = columns
    error = {}
    if Finish.ERROR in finish:
        error = {row: STOPPED for row, how in enumerate(finish) if how == Finish.ERROR}
    return StepFrame(
        step=step,
        t_ns=t_ns,
        key=key,
        n_new=n_new,
        token=token,
        finish=finish,
        stop_id=stop_id,
        cached=cached,
        error=error,
    )
