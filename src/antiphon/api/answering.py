"""One run as one HTTP answer: a stream of its frames, or a body folded from its logs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

from quart import Response, g

from antiphon.api.json_response import json_response
from antiphon.api.planning import in_thread
from antiphon.api.service import Service
from antiphon.errors import Overloaded
from antiphon.runs.forms import calls_form, holds_calls
from antiphon.runs.plan import RunPlan
from antiphon.runs.run import Run
from antiphon.runs.subscribers import Subscription
from antiphon.transport.quart_host import EventStreamResponse

MAX_NAME = 64
"""Characters of a field's path that a header repeats."""
MAX_NAMED = 20
"""Fields that a header names."""


async def answer(service: Service, plan: RunPlan, ignored: Sequence[str]) -> Response:
    """Run the plan. The head is sent once the engine took the request, never before.

    Raises an ``AntiphonError`` for every failure before the first byte. Whoever leaves early,
    by cancellation or by closing the stream, aborts the run.
    """
    headers = ignored_header(ignored)
    started = time.perf_counter_ns()
    if holds_calls(plan):
        plan.calls_form = await in_thread(service, partial(calls_form, plan), "tools")
    run = service.fanout.open(plan)
    leave = partial(service.fanout.cancel, run)
    try:
        await _taken(service, run)
        if plan.answer.stream is not None:
            return EventStreamResponse(
                Subscription(run, ping_s=service.ping_s, leave=leave), headers
            )
        await run.finished()
    except BaseException:
        leave()
        raise
    headers["openai-processing-ms"] = str((time.perf_counter_ns() - started) // 1_000_000)
    return json_response(plan.answer.body(run.logs), headers=headers)


async def _taken(service: Service, run: Run) -> None:
    """Wait until the engine took the run. Raises why it did not."""
    try:
        await run.opened()
    except Overloaded as refused:
        # The engine's queue may be full before ours is; it does not know for how long.
        wait_s = service.fanout.wait_s(len(run.choices))
        raise Overloaded(refused.message, wait_s=wait_s) from None


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """The header that names the fields without effect, sorted; none where all had one.

    ``g.ignored`` is then how many they are.
    """
    if not names:
        return {}
    g.ignored = len(names) + g.get("unnamed", 0)
    named = sorted(names)[:MAX_NAMED]
    return {"antiphon-ignored-fields": ", ".join(map(_safe, named))}


def _safe(name: str) -> str:
    """A field's path as it can stand in a header: percent-encoded (RFC 3986), not too long."""
    return quote(name[:MAX_NAME], safe="[]") or '""'
