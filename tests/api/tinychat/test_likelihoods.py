"""Log probabilities of answers and of echoed prompts, held against other code of the model."""

from __future__ import annotations

import math
from typing import Any

import pytest
import tokenizers
import torch

from api.tinychat.asking import PARIS, Asking
from api.tinychat.reference import logprobs

LOOSE = "Once the lamp"
"""A text that the model was never told how to go on with, so that it is in doubt."""
NEAR: dict[str, Any] = {"abs": 2e-3, "rel": 1e-3}


def told(chat: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of the first choice of a chat body."""
    entries: list[dict[str, Any]] = chat["choices"][0]["logprobs"]["content"]
    return entries


async def test_of_a_chat(asking: Asking, tokenizer: tokenizers.Tokenizer) -> None:
    """Each entry is of the token that was drawn; the alternatives are the best of all, in order."""
    body = await asking.greedily("chat", PARIS, logprobs=True, top_logprobs=4)
    prompt, reply = (tokenizer.encode(text).ids for text in (PARIS.prompt, PARIS.reply))
    scores = logprobs([*prompt, *reply])[len(prompt) - 1 :]
    entries = told(body)
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == PARIS.reply
    for entry, token, row in zip(entries, reply, scores, strict=False):
        assert entry["logprob"] == pytest.approx(float(row[token]), **NEAR)
        best = row.topk(4)
        shown = [tokenizer.decode([int(index)]) for index in best.indices]
        assert [one["token"] for one in entry["top_logprobs"]][:1] == shown[:1]
        assert [one["logprob"] for one in entry["top_logprobs"]] == pytest.approx(
            best.values.tolist(), **NEAR
        )


@pytest.mark.parametrize("top", [0, 1, 20])
async def test_as_many_alternatives_as_asked(asking: Asking, top: int) -> None:
    body = await asking.greedily("chat", PARIS, logprobs=True, top_logprobs=top)
    assert {len(entry["top_logprobs"]) for entry in told(body)} == {top}
    for entry in told(body):
        values = [one["logprob"] for one in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)


async def test_of_tokens_that_were_drawn_by_chance(
    asking: Asking, tokenizer: tokenizers.Tokenizer
) -> None:
    """They are of the model's own distribution, whatever the temperature draws from."""
    fields: dict[str, Any] = {
        "prompt": LOOSE,
        "max_tokens": 12,
        "seed": 3,
        "temperature": 1.7,
        "top_k": 50,
    }
    body = await asking.both("completions", **fields, logprobs=3, return_token_ids=True)
    (choice,) = body["choices"]
    prompt = tokenizer.encode(LOOSE).ids
    assert choice["prompt_token_ids"] == prompt
    scores = logprobs([*prompt, *choice["token_ids"]])[len(prompt) - 1 : -1]
    wanted = [float(row[token]) for row, token in zip(scores, choice["token_ids"], strict=True)]
    assert min(wanted) < -1, "it was in doubt"
    assert choice["logprobs"]["token_logprobs"] == pytest.approx(wanted, **NEAR)
    for shown, row in zip(choice["logprobs"]["top_logprobs"], scores, strict=True):
        best = row.topk(3).values.tolist()
        assert sorted(shown.values(), reverse=True)[:3] == pytest.approx(best, **NEAR)


async def test_of_an_echoed_prompt(asking: Asking, tokenizer: tokenizers.Tokenizer) -> None:
    """The first token has none; nothing is generated with a limit of 0."""
    ids = tokenizer.encode(PARIS.prompt + PARIS.reply).ids
    fields: dict[str, Any] = {"prompt": ids, "echo": True, "logprobs": 2, "temperature": 0}
    body = await asking.both("completions", **fields, max_tokens=0)
    (choice,) = body["choices"]
    assert choice["text"] == PARIS.prompt + PARIS.reply
    assert body["usage"]["completion_tokens"] == 0
    first, *rest = choice["logprobs"]["token_logprobs"]
    scores = logprobs(ids)
    wanted = [float(row[token]) for row, token in zip(scores, ids[1:], strict=False)]
    assert first is None
    assert rest == pytest.approx(wanted, **NEAR)
    assert choice["logprobs"]["text_offset"] == [0, *_offsets(tokenizer, ids)]


def _offsets(tokenizer: tokenizers.Tokenizer, ids: list[int]) -> list[int]:
    """Where each token but the first starts."""
    starts = range(1, len(ids))
    return [len(tokenizer.decode(ids[:start], skip_special_tokens=False)) for start in starts]


async def test_an_echo_goes_on_into_the_answer(
    asking: Asking, tokenizer: tokenizers.Tokenizer
) -> None:
    fields: dict[str, Any] = {"prompt": PARIS.prompt, "echo": True, "logprobs": 0, "temperature": 0}
    body = await asking.both("completions", **fields, max_tokens=50)
    (choice,) = body["choices"]
    assert choice["text"] == PARIS.prompt + PARIS.reply
    prompt, reply = (tokenizer.encode(text).ids for text in (PARIS.prompt, PARIS.reply))
    values = choice["logprobs"]["token_logprobs"]
    scores = logprobs([*prompt, *reply])
    wanted = [float(row[token]) for row, token in zip(scores, [*prompt, *reply][1:], strict=False)]
    assert values[1 : len(prompt) + len(reply)] == pytest.approx(wanted, **NEAR)


async def test_of_responses(asking: Asking) -> None:
    include = ["message.output_text.logprobs"]
    body = await asking.greedily("responses", PARIS, include=include, top_logprobs=2)
    (part,) = body["output"][0]["content"]
    assert "".join(entry["token"] for entry in part["logprobs"]) == PARIS.reply
    assert all(math.exp(entry["logprob"]) > 0.999 for entry in part["logprobs"])
    assert {len(entry["top_logprobs"]) for entry in part["logprobs"]} == {2}


async def test_they_are_cut_where_the_text_is(asking: Asking) -> None:
    body = await asking.greedily("chat", PARIS, logprobs=True, stop=" France")
    assert "".join(entry["token"] for entry in told(body)) == "The capital of"


def test_the_reference_is_a_distribution(tokenizer: tokenizers.Tokenizer) -> None:
    total = logprobs(tokenizer.encode(LOOSE).ids).exp().sum(-1)
    assert torch.allclose(total, torch.ones_like(total))
