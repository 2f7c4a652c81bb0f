"""Every reply on every endpoint, whole and streamed, with exact usage."""

from __future__ import annotations

import pytest
import tokenizers

from api.tinychat.asking import (
    ANSWERABLE,
    ENDPOINTS,
    Answer,
    Asking,
    Endpoint,
    Usage,
    answers,
    usage,
)
from known_replies import KnownReply

KINDS = sorted({known.kind for known in ANSWERABLE.values()})


def expected(endpoint: Endpoint, known: KnownReply) -> Answer:
    """The reply as the endpoint shows it: a completion is the raw text, markers and all.

    Elsewhere the white space around the markers belongs to them.
    """
    if endpoint == "completions" or not known.thinking:
        return Answer(known.reply, "", "stop")
    thought, _, rest = known.reply.removeprefix("<think>").partition("</think>")
    return Answer(rest.strip(), thought.strip(), "stop")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_every_reply(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint, kind: str
) -> None:
    """Usage counts the prompt as the template writes it, and the token that ends the turn."""
    for known in ANSWERABLE.values():
        if known.kind != kind:
            continue
        body = await asking.greedily(endpoint, known)
        assert answers(endpoint, body) == [expected(endpoint, known)], known.name
        prompt, reply = (len(tokenizer.encode(text).ids) for text in (known.prompt, known.reply))
        told = usage(endpoint, body)
        assert (told.prompt, told.completion) == (prompt, reply + 1), known.name


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_thought_is_counted_as_such(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    known = ANSWERABLE["thinking-3.1"]
    body = await asking.greedily(endpoint, known)
    name = "output_tokens_details" if endpoint == "responses" else "completion_tokens_details"
    thought = len(tokenizer.encode(known.reply.partition("</think>")[0]).ids)
    told = body["usage"][name]["reasoning_tokens"]
    # The markers may be counted on either side.
    assert told == 0 if endpoint == "completions" else thought - 1 <= told <= thought + 1


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_thought_can_be_left_out_or_in(asking: Asking, endpoint: Endpoint) -> None:
    known = ANSWERABLE["thinking-2.1"]
    full = expected(endpoint, known)
    left_out = await asking.greedily(endpoint, known, include_reasoning=False)
    assert answers(endpoint, left_out) == [Answer(full.text, "", "stop")]
    left_in = await asking.greedily(endpoint, known, separate_reasoning=False)
    assert answers(endpoint, left_in) == [Answer(known.reply, "", "stop")]


async def test_several_prompts_are_answered_in_order(
    asking: Asking, tokenizer: tokenizers.Tokenizer
) -> None:
    """As texts and as ids; usage is of them all."""
    known = [ANSWERABLE[name] for name in ("chat-5.1", "unicode-2.1", "json-4.1")]
    texts = [one.prompt for one in known]
    ids = [tokenizer.encode(text).ids for text in texts]
    replies = sum(len(tokenizer.encode(one.reply).ids) + 1 for one in known)
    for prompts in (texts, ids):
        body = await asking.both("completions", prompt=prompts, max_tokens=99, temperature=0)
        assert [one.text for one in answers("completions", body)] == [one.reply for one in known]
        told = usage("completions", body)
        assert told == Usage(sum(map(len, ids)), replies, told.cached)
