"""A real server under everything at once, by clients that stay and clients that leave."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.mixed_load.load import CLIENTS, run
from benchmarks.mixed_load.table import summary

from known_replies import FOLDER, REPLIES

ROUNDS = 2
# Fewer places than clients want, and small steps: prompts are read in pieces, and some wait.
TIGHT = ("--max-running", "6", "--step-tokens", "48", "--dtype", "float32", "--weights", "float")
PAGES = 110
PAGE_BYTES = 3 * 2 * 16 * 32 * 4


@pytest.mark.parametrize("where", ["thread", "child"])
async def test_nothing_is_lost(where: str) -> None:
    """One end each, the answer that each got alone, and afterwards no page held."""
    options = (*TIGHT, "--engine-process", where, "--kv-cache-bytes", str(PAGES * PAGE_BYTES))
    report = await run(str(FOLDER), options, rounds=ROUNDS, seed=1)
    assert report.troubles() == [], summary(report)
    assert len(report.outcomes) > 2 * CLIENTS
    assert report.rest.cached + report.rest.free == PAGES
    left = [one for one in report.outcomes if one.mixed.left]
    assert len(left) == 5 * ROUNDS
    known = Counter(one.reply for one in REPLIES.values())
    for one in report.outcomes:
        if one.ask.kind in ("short chat", "long answer"):
            ((text, _),) = one.mixed.choices
            assert known[text] or any(reply.startswith(text) for reply in known), text
