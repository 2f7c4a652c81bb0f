"""Golden cases that no recording of the repository shows: scripts of commands, one log a choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from golden.echo import TAIL, echo
from responsory import Logprob, TopLogprob, Usage
from responsory.commands import Text
from responsory.testing import a_response
from responsory.values import JSON

if TYPE_CHECKING:
    from responsory import EventLog
    from responsory.testing.streams import Builder

WEATHER: JSON = {
    "type": "function",
    "name": "get_weather",
    "description": None,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "strict": None,
}
PING: JSON = {
    "type": "function",
    "name": "ping",
    "description": "Check that the service answers",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
TOOLS: JSON = [WEATHER, PING]
OSLO = ('{"city"', ':"Oslo"}')
ROME = ('{"city":', '"Rome"}')
CUT = ('{"city":', '"Os')
"""Arguments that the limit or a failure cut."""
AWKWARD = (
    'Say "no\\yes"',
    "\u2028\u2029",
    "\x00\x1f\x7f",
    "👩\u200d🚀é",
    "\r\n",
    "data: [DONE]\n\n",
    " \t ",
)
"""What JSON must escape, what it need not, and what only looks like the end of a frame."""


def begun(**changes: JSON) -> Builder:
    return a_response(TAIL, echo=echo(**changes))


def with_tools() -> Builder:
    return begun(tools=TOOLS)


def in_background() -> Builder:
    return a_response(TAIL, background=True, echo=echo(background=True))


def cut(limit: int = 4) -> Builder:
    return begun(max_output_tokens=limit, tools=TOOLS)


def used(output: int, *, reasoning: int = 0, cached: int = 0, written: int = 0) -> Usage:
    return Usage(11, output, cached, reasoning, written)


def drawn(data: bytes, logprob: float, *others: tuple[bytes, float]) -> Logprob:
    """A token and its alternatives, itself first; a part of a character is named U+FFFD."""
    top = [(data, logprob), *others]
    return Logprob(
        data.decode(errors="replace"),
        logprob,
        data,
        tuple(TopLogprob(other.decode(errors="replace"), at, other) for other, at in top),
    )


def with_logprobs() -> Builder:
    """Words, then an emoji of two tokens: only with its second one is there text."""
    thumb = "👍".encode()
    inside = drawn(thumb[:2], -0.5, (b"!", -1.25)), drawn(thumb[2:], -0.001, (b"\x91\x8e", -7.5))
    word = drawn(b"Fine", -0.125, ("Très".encode(), -2.5))
    return begun(top_logprobs=2).tokens(word).send(Text("👍", inside)).tokens(drawn(b".", 0.0))


def ended(
    builder: Builder, ending: Literal["length", "content_filter"], output: int, reasoning: int = 0
) -> Builder:
    return builder.finish(ending, usage=used(output, reasoning=reasoning))


SINGLE: Mapping[str, Builder] = {
    "empty": begun().finish(usage=used(1)),
    "text": begun().text("Hi", " there").finish(usage=used(3)),
    "awkward": begun()
    .reasoning(*AWKWARD)
    .text(*AWKWARD)
    .call("get_weather", *AWKWARD)
    .finish(usage=used(21, reasoning=7)),
    "cached-prompt": begun().text("Hi").finish(usage=used(2, cached=8, written=3)),
    "logprobs": with_logprobs().finish(usage=used(4)),
    "stop-string": begun().text("Before the ").finish(usage=used(3), stop="END"),
    "stop-id": begun().text("Before").finish(usage=used(2), stop=7),
    # --- calls ----------------------------------------------------------------------------------
    "call": with_tools().call("get_weather", *OSLO).finish(usage=used(17)),
    "two-calls": with_tools()
    .call("get_weather", *OSLO)
    .call("get_weather", *ROME)
    .finish(usage=used(34)),
    "call-without-arguments": with_tools().call("ping").finish(usage=used(9)),
    "call-of-a-family-id": with_tools()
    .call("get_weather", *OSLO, call_id="functions.get_weather:0")
    .finish(usage=used(17)),
    "custom-call": begun().call("shell", "ls", " -l\n", kind="custom").finish(usage=used(6)),
    "text-around-calls": with_tools()
    .text("Let me", " look.")
    .call("get_weather", *OSLO)
    .call("ping")
    .text("Done.")
    .finish(usage=used(31)),
    # --- reasoning, refusals, phases ------------------------------------------------------------
    "reasoning": begun(reasoning={"effort": "low", "summary": None})
    .reasoning("2+2", " is 4.")
    .text("4")
    .finish(usage=used(9, reasoning=6)),
    "reasoning-text-call": with_tools()
    .reasoning("I need", " the weather.")
    .text("One moment.")
    .call("get_weather", *OSLO)
    .finish(usage=used(30, reasoning=5)),
    "reasoning-alone": begun().reasoning("Nothing to say.").finish(usage=used(5, reasoning=4)),
    "refusal": begun().refusal("I cannot", " do that.").finish(usage=used(5)),
    "text-then-refusal": begun()
    .text("The first half is", " this.")
    .refusal("The rest", " I cannot say.")
    .finish(usage=used(12)),
    "phases": with_tools()
    .text("Looking", " it up.", phase="commentary")
    .call("get_weather", *OSLO)
    .text("Still looking.", phase="commentary")
    .text("It rains", " in Oslo.", phase="final_answer")
    .finish(usage=used(33)),
    # --- cut ------------------------------------------------------------------------------------
    "length-in-text": ended(cut().text("One,", " two"), "length", 4),
    "length-in-reasoning": ended(cut().reasoning("First", " I"), "length", 4, 3),
    "length-in-refusal": ended(cut().refusal("I cann"), "length", 4),
    "length-in-arguments": ended(cut().call("get_weather", *CUT, closed=False), "length", 4),
    "length-in-custom-input": ended(
        cut().call("shell", "ls -", kind="custom", closed=False), "length", 4
    ),
    "length-before-arguments": ended(cut().call("get_weather", closed=False), "length", 4),
    "length-after-a-call": ended(cut().call("get_weather", *OSLO), "length", 4),
    "length-at-once": ended(cut(1), "length", 1),
    "content-filter": ended(begun().text("This is"), "content_filter", 3),
    # --- failed ---------------------------------------------------------------------------------
    "failed-while-queued": in_background().fail(usage=used(0)),
    "failed-before-text": begun().fail(usage=used(0)),
    "failed-in-text": begun().text("One", " two").fail(usage=used(2)),
    "failed-in-reasoning": begun().reasoning("First").fail(usage=used(2, reasoning=1)),
    "failed-in-arguments": with_tools()
    .text("Let me look.")
    .call("get_weather", *CUT, closed=False)
    .fail(usage=used(9)),
    "failed-after-an-item": with_tools().call("get_weather", *OSLO).fail(usage=used(17)),
    # --- cancelled ------------------------------------------------------------------------------
    "cancelled-while-queued": in_background().cancel(usage=used(0)),
    "cancelled-before-text": in_background().start().cancel(usage=used(0)),
    "cancelled-in-text": in_background().start().text("Hi").cancel(usage=used(1)),
    "cancelled-in-arguments": with_tools()
    .call("get_weather", *CUT, closed=False)
    .cancel(usage=used(8)),
    "background": in_background().start().text("Hi", " there").finish(usage=used(3)),
}

BUILT: Mapping[str, Sequence[EventLog]] = {
    **{f"built/{name}": [builder.log] for name, builder in SINGLE.items()},
    "built/choices": [
        begun().text("One", " way.").finish(usage=used(4)).log,
        with_tools().reasoning("Hm.").call("get_weather", *OSLO).finish(usage=used(19)).log,
        ended(begun().text("Another"), "length", 2).log,
    ],
    "built/choices-one-failed": [
        begun().text("One").fail(usage=used(1)).log,
        begun().text("Another way.").finish(usage=used(4)).log,
    ],
}
"""By case name, as the folders under ``fixtures/golden`` are called; a log for each choice."""
