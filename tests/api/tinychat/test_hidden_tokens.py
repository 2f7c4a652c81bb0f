"""Special tokens that are drawn and not shown: each keeps its logprob, on every endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import tokenizers

from api.tinychat.asking import (
    ENDPOINTS,
    LIMITS,
    PARIS,
    Asking,
    Endpoint,
    question,
    the_answer,
    usage,
)
from api.tinychat.reference import logprobs as scores_of

OF_TEXT, END = 0, 2
SPECIAL = "<|endoftext|>"
ASKED: dict[Endpoint, dict[str, Any]] = {
    "chat": {"logprobs": True, "top_logprobs": 1, "return_token_ids": True},
    "completions": {"logprobs": 1, "return_token_ids": True},
    "responses": {"include": ["message.output_text.logprobs"], "top_logprobs": 1},
}
NEAR: dict[str, Any] = {"abs": 2e-3, "rel": 1e-3}


def tokens_of(endpoint: Endpoint, body: dict[str, Any]) -> list[tuple[str, float]]:
    """The entries of an answer: token and logprob of each."""
    if endpoint == "responses":
        (item,) = body["output"]
        entries = item["content"][0]["logprobs"]
    elif endpoint == "chat":
        entries = body["choices"][0]["logprobs"]["content"]
    else:
        shown = body["choices"][0]["logprobs"]
        assert all(len(each) == len(shown["tokens"]) for each in shown.values())
        return list(zip(shown["tokens"], shown["token_logprobs"], strict=True))
    for entry in entries:
        assert bytes(entry["bytes"]).decode(errors="replace") == entry["token"]
    return [(entry["token"], entry["logprob"]) for entry in entries]


async def ask(asking: Asking, endpoint: Endpoint, count: int, **fields: Any) -> dict[str, Any]:
    """A body that its stream adds up to, of ``count`` tokens whatever ends there are."""
    return await asking.greedily(
        endpoint, PARIS, **{LIMITS[endpoint]: count}, ignore_eos=True, **ASKED[endpoint], **fields
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_of_nothing_but_hidden_tokens(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    count = 16
    body = await ask(asking, endpoint, count, logit_bias={str(OF_TEXT): 100, str(END): -100})
    assert the_answer(endpoint, body).text == ""
    assert usage(endpoint, body).completion == count
    entries = tokens_of(endpoint, body)
    assert [token for token, _ in entries] == [SPECIAL] * count
    prompt = tokenizer.encode(PARIS.prompt).ids
    rows = scores_of([*prompt, *[OF_TEXT] * count])[len(prompt) - 1 : -1]
    wanted = [float(row[OF_TEXT]) for row in rows]
    assert [value for _, value in entries] == pytest.approx(wanted, **NEAR)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("more", [1, 4])
async def test_at_the_end_and_in_the_midst(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint, more: int
) -> None:
    """The end token is drawn, hidden and gone over."""
    reply = tokenizer.encode(PARIS.reply).ids
    count = len(reply) + more
    hidden = await ask(asking, endpoint, count)
    shown = await ask(asking, endpoint, count, skip_special_tokens=False)
    entries = tokens_of(endpoint, hidden)
    assert len(entries) == usage(endpoint, hidden).completion == count
    assert entries[len(reply)][0] == "<|im_end|>"
    assert [token for token, _ in entries] == [token for token, _ in tokens_of(endpoint, shown)]
    values = [value for _, value in tokens_of(endpoint, shown)]
    assert [value for _, value in entries] == pytest.approx(values, **NEAR)
    if endpoint == "completions":
        (choice,) = hidden["choices"]
        assert choice["logprobs"]["text_offset"] == _places(tokenizer, choice["token_ids"])
    if endpoint != "responses":
        assert len(hidden["choices"][0]["token_ids"]) == count


def _places(tokenizer: tokenizers.Tokenizer, ids: Sequence[int]) -> list[int]:
    """Where each token starts in the text that is shown."""
    return [len(tokenizer.decode(ids[:end])) for end in range(len(ids))]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_end_token_that_ended_the_answer_has_none(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    body = await asking.greedily(endpoint, PARIS, **ASKED[endpoint])
    assert the_answer(endpoint, body).finish == "stop"
    spelled = [tokenizer.decode([token]) for token in tokenizer.encode(PARIS.reply).ids]
    assert [token for token, _ in tokens_of(endpoint, body)] == spelled


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_chunk_of_the_stream_has_the_hidden_tokens(
    asking: Asking, endpoint: Endpoint
) -> None:
    """They are in the frames themselves, not made up by the sum."""
    asked = {LIMITS[endpoint]: 16, **ASKED[endpoint], "ignore_eos": True, "temperature": 0}
    data = await asking.frames(
        endpoint, **{**question(endpoint, PARIS), **asked}, logit_bias={str(OF_TEXT): 100}
    )
    name = b'"tokens":["<|endoftext|>"' if endpoint == "completions" else b'"logprobs":'
    assert any(name in line and SPECIAL.encode() in line for line in data.splitlines())
