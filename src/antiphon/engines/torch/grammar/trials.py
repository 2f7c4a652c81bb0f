"""Forms are tried in processes of their own, which can be ended: threads cannot."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

import attrs

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.refused import GrammarRefused, GrammarUnavailable
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary

ARGV = (sys.executable, "-P", "-m", "antiphon.engines.torch.grammar.trial")
WALL_S = 12.0
"""For one form. The process itself keeps to seconds of the processor, of which a busy machine
gives it fewer."""
START_S = 60.0
LEFT_S = 0.5
"""What a form may take that nobody waits for any more: about what a new process costs."""
LOOK_S = 0.05
"""How often it is asked whether anybody waits."""


class Trial:
    """Whether somebody waits for the outcome."""

    def __init__(self) -> None:
        self.left = False


class Trials:
    """Tries forms, on the threads that ask. Processes are spawned when needed, and kept."""

    def __init__(self, vocabulary: GrammarVocabulary) -> None:
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        weakref.finalize(self, _end, self._all)

    def bytes_of(self, form: GrammarSpec, trial: Trial) -> int:
        """Bytes that the form takes when compiled; 0: not known.

        Raises ``GrammarRefused``, and ``GrammarUnavailable`` if nobody waits any more or no process
        can be had.
        """
        process = self._take()
        try:
            verdict = process.ask(form, trial)
        except BaseException:
            process.end()
            self._all.discard(process)
            raise
        with self._lock:
            self._idle.append(process)
        if "refused" in verdict:
            raise GrammarRefused(verdict["refused"])
        if "memory" in verdict:
            raise GrammarRefused("it takes too much memory")
        return int(verdict["bytes"])

    def _take(self) -> _Process:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                process.end()
                self._all.discard(process)
        process = _Process()
        self._all.add(process)
        try:
            process.begin(self._vocabulary)
        except BaseException:
            process.end()
            self._all.discard(process)
            raise
        return process


def _end(processes: set[_Process]) -> None:
    for process in [*processes]:
        process.end()


class _Process:
    """One process, in a group of its own: the terminal's signals are for the server."""

    def __init__(self) -> None:
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
                ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
            )
        except OSError as failure:
            raise GrammarUnavailable(f"no process to try forms in: {failure}") from failure

    @property
    def alive(self) -> bool:
        """Whether it can be asked: others may have ended it."""
        return self._popen.poll() is None

    def begin(self, vocabulary: GrammarVocabulary) -> None:
        """Hand over the vocabulary."""
        first = {
            "table": vocabulary.table.to_text(),
            "vocab_size": vocabulary.guide.vocab_size,
            "eos_ids": sorted(vocabulary.eos_ids),
        }
        if not self._put(first) or self._answer(time.monotonic() + START_S, Trial()) is None:
            raise GrammarUnavailable("the process to try forms in does not start")

    def ask(self, form: GrammarSpec, trial: Trial) -> dict[str, Any]:
        """What becomes of a form."""
        told = self._put(attrs.asdict(form))
        verdict = self._answer(time.monotonic() + WALL_S, trial) if told else None
        if verdict is not None:
            return verdict
        if trial.left:
            raise GrammarUnavailable("nobody waits for the form")
        status = self._popen.poll() if self._gone() else None
        if status is None or status == -signal.SIGXCPU:
            raise GrammarRefused("it takes too long to compile")
        if status == -signal.SIGABRT:
            raise GrammarRefused("it takes too much memory")
        raise GrammarRefused("it takes too much to compile")

    def end(self) -> None:
        """Now, whatever it does."""
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(OSError):  # half a form may be left that nobody reads
                    pipe.close()

    def _gone(self) -> bool:
        """Whether it has ended by itself, or is about to: its output has."""
        try:
            self._popen.wait(0.5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _put(self, message: dict[str, Any]) -> bool:
        pipe = self._popen.stdin
        if pipe is None:
            return False
        try:
            pipe.write(json.dumps(message).encode() + b"\n")
            pipe.flush()
        except OSError:  # it has ended
            return False
        return True

    def _answer(self, until: float, trial: Trial) -> dict[str, Any] | None:
        """Its next line; None if there is none in time."""
        pipe, line = self._popen.stdout, b""
        began = time.monotonic()
        while pipe is not None and (now := time.monotonic()) < until:
            if trial.left and now > began + LEFT_S:
                return None
            if not select.select([pipe], [], [], LOOK_S)[0]:
                continue
            read = os.read(pipe.fileno(), 65_536)
            line += read
            if line.endswith(b"\n"):
                verdict: dict[str, Any] = json.loads(line)
                return verdict
            if not read:
                return None
        return None
