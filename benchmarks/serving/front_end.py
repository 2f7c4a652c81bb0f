"""The server under test: ``python -m benchmarks.serving.front_end --link FD [options of serve]``.

It is the command ``antiphon serve`` itself, with all that its options do. Only what loads an engine
is another: the engine is at the other end of a socket.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

from benchmarks.serving.scripted_engine import ScriptedEngine
from benchmarks.serving.word_prompter import MODEL, WordPrompter

from antiphon import serving
from antiphon.cli.serve import serve
from antiphon.config import Config
from antiphon.loading import Loaded
from antiphon.runs.catalogue import ServedModel


def main() -> None:
    _, flag, descriptor, *options = sys.argv
    assert flag == "--link", "the first argument names the socket of the engine"
    link = socket.socket(fileno=int(descriptor))

    async def load(_config: Config, _restarted: Callable[[], None]) -> Loaded:
        engine = ScriptedEngine(link)
        info = await engine.start()
        model = ServedModel(id=MODEL, created=int(time.time()), prompter=WordPrompter(), info=info)
        return engine, [model], model

    with patch.object(serving, "load", load):
        serve.main(options, prog_name="antiphon serve")


if __name__ == "__main__":
    main()
