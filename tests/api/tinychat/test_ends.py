"""How an answer ends: stop strings, limits, end tokens, and what overrides them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import tokenizers
import torch

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
from api.tinychat.reference import biased, greedy
from known_replies import REPLIES

STORY = REPLIES["story-1.1"]
END, OF_TEXT = 2, 0


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("stop", ["rance", "capital of", "he capital", "s."])
async def test_a_stop_string_inside_and_across_tokens(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint, stop: str
) -> None:
    """The text ends before it, and no token after the one that completed it is counted."""
    given = [] if endpoint == "responses" else ["stop_reason"]
    body = await asking.greedily(endpoint, PARIS, stop=[stop, "never said"])
    answer = the_answer(endpoint, body)
    cut = PARIS.reply.index(stop)
    assert (answer.text, answer.finish) == (PARIS.reply[:cut], "stop")
    spans = tokenizer.encode(PARIS.reply).offsets
    needed = next(i for i, (_, end) in enumerate(spans, 1) if end >= cut + len(stop))
    assert usage(endpoint, body).completion == needed
    assert [body["choices"][0][key] for key in given] == [stop] * len(given)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_stop_string_can_be_shown(asking: Asking, endpoint: Endpoint) -> None:
    body = await asking.greedily(endpoint, PARIS, stop="capital", include_stop_str_in_output=True)
    assert the_answer(endpoint, body).text == "The capital"


async def test_a_stop_string_inside_a_character_of_several_tokens(asking: Asking) -> None:
    known = REPLIES["unicode-2.1"]
    assert known.reply == "こんにちは、世界！"
    body = await asking.greedily("chat", known, stop="世")
    assert the_answer("chat", body).text == "こんにちは、"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_a_limit_is_kept_to_the_token(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint, limit: int
) -> None:
    body = await asking.greedily(endpoint, STORY, **{LIMITS[endpoint]: limit})
    answer = the_answer(endpoint, body)
    said = tokenizer.encode(STORY.reply).ids[:limit]
    assert (answer.text, answer.finish) == (tokenizer.decode(said), "length")
    assert usage(endpoint, body).completion == limit


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_limit_inside_a_character_flushes_what_there_is(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    known = REPLIES["unicode-2.1"]
    spelled = [tokenizer.id_to_token(token) for token in tokenizer.encode(known.reply).ids]
    assert len(spelled) > len(known.reply), "characters span tokens"
    body = await asking.greedily(endpoint, known, **{LIMITS[endpoint]: 2})
    assert the_answer(endpoint, body).text == "�"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_answer_of_exactly_the_limit_ends_by_itself(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """The end of the turn is a token that has to fit as well."""
    count = len(tokenizer.encode(PARIS.reply).ids)
    for limit, finish in ((count, "length"), (count + 1, "stop")):
        body = await asking.greedily(endpoint, PARIS, **{LIMITS[endpoint]: limit})
        answer = the_answer(endpoint, body)
        assert (answer.text, answer.finish) == (PARIS.reply, finish)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_token_that_stops(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    ids = tokenizer.encode(PARIS.reply).ids
    body = await asking.greedily(endpoint, PARIS, stop_token_ids=[ids[3]])
    answer = the_answer(endpoint, body)
    assert (answer.text, answer.finish) == (tokenizer.decode(ids[:3]), "stop")
    assert usage(endpoint, body).completion == 4


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_the_end_can_be_ignored(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """What comes after the end is the model's own: the reference goes on the same way."""
    prompt = tokenizer.encode(PARIS.prompt).ids
    count = len(tokenizer.encode(PARIS.reply).ids) + 4
    ids = greedy(prompt, count)
    assert END in ids
    body = await asking.greedily(endpoint, PARIS, ignore_eos=True, **{LIMITS[endpoint]: count})
    answer = the_answer(endpoint, body)
    assert (answer.text, answer.finish) == (tokenizer.decode(ids), "length")
    assert usage(endpoint, body).completion == count


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_least_tokens(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """The end is no choice before; and an answer that is long enough by itself is not touched."""
    prompt = tokenizer.encode(PARIS.prompt).ids
    least = len(tokenizer.encode(PARIS.reply).ids) + 3

    def no_end(logits: torch.Tensor, output: Sequence[int]) -> torch.Tensor:
        return biased({END: -1e9, OF_TEXT: -1e9} if len(output) < least else {})(logits, output)

    ids = greedy(prompt, least + 4, no_end)
    body = await asking.greedily(
        endpoint, PARIS, min_tokens=least, ignore_eos=False, **{LIMITS[endpoint]: least + 4}
    )
    shown = ids[: ids.index(END)] if END in ids else ids
    assert the_answer(endpoint, body).text == tokenizer.decode(shown)
    assert usage(endpoint, body).completion == min(len(shown) + 1, least + 4) > least
    body = await asking.greedily(endpoint, PARIS, min_tokens=least - 4)
    assert the_answer(endpoint, body).text == PARIS.reply


async def test_what_does_not_fit_the_context_is_refused(asking: Asking) -> None:
    fields = {**question("chat", PARIS), "max_completion_tokens": 5_000}
    body = await asking.body("chat", 400, **fields)
    assert body["error"]["code"] == "context_length_exceeded"
    assert body["error"]["param"] == "max_completion_tokens"
