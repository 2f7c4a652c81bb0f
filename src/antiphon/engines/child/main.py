"""The process of an engine: one start message, then commands in and frames out until its end."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeAlias

from antiphon.engines.child.commands import RemoteInbox
from antiphon.engines.child.sender import Sender
from antiphon.engines.codec.envelope import CodecError, Kind, Messages, seal
from antiphon.engines.codec.frames import encode_frame
from antiphon.engines.codec.notices import decode_start, encode_info, encode_text
from antiphon.engines.port import EngineInfo, StepFrame
from antiphon.engines.torch.inbox import Inbox

log = logging.getLogger(__name__)


class Loop(Protocol):
    """An engine that is loaded."""

    info: EngineInfo
    failure: BaseException | None
    """What ended ``run``, if anything did; its keys have had their rows."""

    def run(self) -> None:
        """Turn until drained."""
        ...


Load: TypeAlias = Callable[[dict[str, Any], Inbox, Callable[[StepFrame], None]], Loop]
"""Options, commands, and where frames go. Raises ``EngineStartError``; of any other failure its
``repr`` is told."""


def run(number: int, load: Load) -> NoReturn:
    """Be an engine on the socket of that number. It ends with the socket at last."""
    calm()
    connection = socket.socket(fileno=number)
    sender, messages = Sender(connection), Messages()
    inbox = RemoteInbox(lambda: sender.send(seal(Kind.PONG)))
    options: list[dict[str, Any]] = []
    started = threading.Event()

    def take(kind: Kind, body: memoryview) -> None:
        if options:
            inbox.receive(kind, body)
        elif kind is Kind.START:
            options.append(decode_start(body))
            started.set()
        else:
            raise CodecError(f"{kind.name} came before START")

    reading = threading.Thread(
        target=_read, args=(connection, messages, take), name="commands", daemon=True
    )
    reading.start()
    started.wait()
    status = _live(options[0], inbox, sender, load)
    sender.flush()
    leave(status)


def calm() -> None:
    """Leave signals to the server, which says when to end, and die without delay.

    A core dump would keep the socket open while gigabytes are written.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    faulthandler.enable()
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def leave(status: int) -> NoReturn:
    """End without the interpreter's farewell, which waits for native threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _live(options: dict[str, Any], inbox: Inbox, sender: Sender, load: Load) -> int:
    """Load and run; the exit status."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        loop = load(options, inbox, lambda frame: sender.send(encode_frame(frame)))
    except BaseException as failure:
        sender.send(encode_text(Kind.NOT_STARTED, str(failure) or repr(failure)))
        return 1
    sender.send(encode_info(loop.info))
    loop.run()
    sender.send(encode_text(Kind.OVER, None if loop.failure is None else repr(loop.failure)))
    return int(loop.failure is not None)


def _read(
    connection: socket.socket, messages: Messages, take: Callable[[Kind, memoryview], None]
) -> None:
    """The thread that reads commands. Without a server there is nothing to live for."""
    try:
        while count := connection.recv_into(messages.room()):
            for kind, body in messages.received(count):
                take(kind, body)
    except OSError:
        pass
    except BaseException:
        log.exception("the server's commands cannot be read")
    os._exit(1)
