"""Where forms are tried: ``python -m antiphon.engines.torch.grammar.trial``.

Nothing else bounds what a form may cost. One form a line comes in, one verdict a line goes out; a
form that takes too much ends the process, and whoever started it sees by what. It ends with its
standard input as well, at once.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from antiphon.engines.child.main import calm
from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.engines.torch.grammar.walk import walk
from antiphon.engines.torch.grammar.workers import Workers
from antiphon.models.token_table import TokenTable

CPU_S = 3
"""Processor seconds for one form: a busy machine makes no form too dear."""
MEMORY_BYTES = 512 * 2**20
"""Address space for all that is made of forms."""


class _Allocated(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip


def main() -> None:
    """Take the vocabulary, then forms, until the input ends."""
    calm()
    first = json.loads(sys.stdin.readline())
    table = TokenTable.from_text(first["table"])
    vocabulary = GrammarVocabulary.of(table, first["vocab_size"], frozenset(first["eos_ids"]))
    worker = Workers(1)
    worker.put(lambda: _begin(vocabulary))
    for line in sys.stdin:
        worker.put(partial(_try, line, vocabulary))
    os._exit(0)


def _begin(vocabulary: GrammarVocabulary) -> None:
    """On the thread that will compile, so that its stack is counted."""
    compiled(GrammarSpec(kind="regex", text="a"), vocabulary)
    # What the library prints before it gives up is nobody's news.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _bound_memory()
    _say({})


def _try(line: str, vocabulary: GrammarVocabulary) -> None:
    _say(_tried(line, vocabulary))


def _tried(line: str, vocabulary: GrammarVocabulary) -> dict[str, Any]:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = math.ceil(time.process_time()) + CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
    spec = GrammarSpec(**json.loads(line))
    before = allocated()
    try:
        held = compiled(spec, vocabulary, walk)
        size = max(allocated() - before, 0)
        del held
    except GrammarRefused as refusal:
        return {"refused": str(refusal)}
    except MemoryError:
        return {"memory": True}
    return {"bytes": size}


def allocated() -> int:
    """Bytes that are taken from the allocator now; 0 where it does not tell."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):  # not glibc
        return 0
    mallinfo2.restype = _Allocated
    now = mallinfo2()
    return int(now.uordblks + now.hblkhd)


def _bound_memory() -> None:
    """Of this process, beside what it has. Only Linux tells what it has, and keeps to it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = pages * resource.getpagesize() + MEMORY_BYTES
    if hard == resource.RLIM_INFINITY or bound < hard:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


def _say(verdict: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(verdict) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
