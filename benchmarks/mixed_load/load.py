"""Every question alone, then all of them at once, and what differs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

import anyio
import attrs
import httpx
from benchmarks.mixed_load.asks import Ask, asks
from benchmarks.mixed_load.reading import Told, tell
from benchmarks.mixed_load.server import Rest, at_rest, served
from benchmarks.mixed_load.texts import texts_of

CLIENTS = 16


@attrs.frozen
class Outcome:
    """One question of the mix: what it got alone, and in company."""

    ask: Ask
    alone: Told
    mixed: Told

    @property
    def lost(self) -> str:
        """What is wrong with its end; empty if it ended once, or was left before."""
        if self.mixed.trouble or self.ask.leaves_after is None:
            return self.mixed.trouble
        return "" if self.mixed.left else "it was over before its client left"

    @property
    def changed(self) -> str:
        """How the answer is another than alone; empty if it is the same."""
        if self.ask.leaves_after is not None:
            return ""
        same = (self.mixed.choices, self.mixed.tokens) == (self.alone.choices, self.alone.tokens)
        return "" if same else f"alone {self.alone.choices}, mixed {self.mixed.choices}"


@attrs.frozen
class Report:
    """A whole run."""

    outcomes: Sequence[Outcome]
    seconds: float
    """The mix, from the first request to the last end."""
    rest: Rest

    def troubles(self, *, any_answer: bool = False) -> list[str]:
        """Everything that should not be; empty if nothing was lost.

        ``any_answer``: an answer may be another than alone.
        """
        wrong = (
            (one.ask.kind, one.lost or ("" if any_answer else one.changed)) for one in self.outcomes
        )
        found = [f"{kind}: {trouble}" for kind, trouble in wrong if trouble]
        if not self.rest.idle or self.rest.failed or self.rest.restarts:
            found.append(f"afterwards: {self.rest}")
        return found


async def run(model: str | None, options: Sequence[str], *, rounds: int, seed: int) -> Report:
    """Start a server, ask, and end it. Raises ``RuntimeError`` if it does not start or end."""
    texts = texts_of(model)
    # A question that is asked a second time finds its prompt in the cache, alone and in company.
    wanted = [ask for number in range(rounds) for ask in asks(texts, seed + number)]
    async with served(model, options) as url:
        limits = httpx.Limits(max_connections=2 * CLIENTS, max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
            name = (await client.get("/v1/models")).json()["data"][0]["id"]
            alone = [
                Told() if ask.leaves_after is not None else await tell(client, name, ask)
                for ask in wanted
            ]
            began = time.monotonic()
            mixed = await _at_once(client, name, wanted, Random(seed))
            seconds = time.monotonic() - began
            left = await at_rest(client)
    outcomes = [Outcome(*each) for each in zip(wanted, alone, mixed, strict=True)]
    return Report(outcomes, seconds, left)


async def _at_once(
    client: httpx.AsyncClient, model: str, wanted: Sequence[Ask], draw: Random
) -> list[Told]:
    """All, in random order, by ``CLIENTS`` clients that ask one after another."""
    order = list(range(len(wanted)))
    draw.shuffle(order)
    told: dict[int, Told] = {}

    async def one_client() -> None:
        while order:
            index = order.pop()
            told[index] = await tell(client, model, wanted[index])

    async with anyio.create_task_group() as tasks:
        for _ in range(CLIENTS):
            tasks.start_soon(one_client)
    return [told[index] for index in range(len(wanted))]
