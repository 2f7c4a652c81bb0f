"""The end of a server: it is asked for once, and who asks again does not want to wait."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Ending:
    """Whether a server was told to end, and whether at once."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        """The server ends: open answers get their time."""
        self.forced = asyncio.Event()
        """It ends now: open answers are ended."""

    def ask(self) -> None:
        """End the server; idempotent."""
        self.asked.set()

    def ask_again(self) -> None:
        """End the server, or if it is about to end: at once."""
        (self.forced if self.asked.is_set() else self.asked).set()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask while the block runs, on the event loop of the main thread.

        One that comes when the end is forced already kills the process: whoever sends it has
        waited long enough.
        """
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in NUMBERS}

        def hear() -> None:
            self.ask_again()
            if self.forced.is_set():
                for number in NUMBERS:
                    loop.remove_signal_handler(number)
                    signal.signal(number, signal.SIG_DFL)

        for number in NUMBERS:
            loop.add_signal_handler(number, hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
