"""What was read before is not read again, and usage says how much that was."""

from __future__ import annotations

from typing import Any

import pytest
import tokenizers

from api.tinychat.asking import ENDPOINTS, Asking, Endpoint, question, the_answer, usage
from known_replies import REPLIES

PAGE = 16
FIRST, SECOND = REPLIES["reading-1.1"], REPLIES["reading-1.2"]


def pages(count: int) -> int:
    """The tokens of whole pages in as many tokens, of which the last is always read."""
    return (count - 1) // PAGE * PAGE


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_second_turn_finds_the_first(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """All of the first prompt and of its answer that fills pages, whatever endpoint it came by."""
    salt: dict[str, Any] = {"cache_salt": endpoint, "temperature": 0}
    first = await asking.body(endpoint, **question(endpoint, FIRST), **salt)
    assert the_answer(endpoint, first).text == FIRST.reply
    assert usage(endpoint, first).cached == 0
    second = await asking.body(endpoint, **question(endpoint, SECOND), **salt)
    assert the_answer(endpoint, second).text == SECOND.reply
    known = len(tokenizer.encode(FIRST.prompt + FIRST.reply).ids)
    assert usage(endpoint, second).cached == pages(known + 1)
    again = await asking.body(endpoint, **question(endpoint, SECOND), **salt)
    assert usage(endpoint, again).cached == pages(usage(endpoint, again).prompt)


async def test_endpoints_share_what_they_read(asking: Asking) -> None:
    salt: dict[str, Any] = {"cache_salt": "shared", "temperature": 0}
    await asking.body("chat", **question("chat", FIRST), **salt)
    for endpoint in ENDPOINTS:
        body = await asking.body(endpoint, **question(endpoint, FIRST), **salt)
        told = usage(endpoint, body)
        assert told.cached == pages(told.prompt) > 250


async def test_salts_are_worlds_of_their_own(asking: Asking) -> None:
    """The same prompt under another salt is new, so that nobody learns what others asked."""
    for salt in ("one", "two"):
        fields = {**question("chat", FIRST), "temperature": 0, "cache_salt": salt}
        assert usage("chat", await asking.body("chat", **fields)).cached == 0
        assert usage("chat", await asking.body("chat", **fields)).cached > 0


async def test_choices_of_a_call_count_the_prompt_once(asking: Asking) -> None:
    fields = {**question("chat", FIRST), "temperature": 0, "n": 3, "cache_salt": "n"}
    told = [usage("chat", await asking.both("chat", **fields)) for _ in range(2)]
    assert told[0].prompt == told[1].prompt
    assert told[1].cached == pages(told[1].prompt)


async def test_logprobs_of_a_prompt_are_read_in_full(asking: Asking) -> None:
    """What is found in the cache has no logits: a prompt that is scored is read again."""
    fields: dict[str, Any] = {
        "prompt": FIRST.prompt,
        "echo": True,
        "max_tokens": 1,
        "temperature": 0,
    }
    plain = await asking.both("completions", **fields, logprobs=1)
    again = await asking.both("completions", **fields, logprobs=1)
    assert again["choices"][0]["logprobs"]["tokens"] == plain["choices"][0]["logprobs"]["tokens"]
    values = again["choices"][0]["logprobs"]["token_logprobs"]
    assert len(values) == usage("completions", again).prompt + 1
    assert all(value is not None for value in values[1:])
