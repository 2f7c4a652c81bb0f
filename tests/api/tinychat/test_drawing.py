"""Several choices, seeds, and everything that steers a draw, held against other code."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import tokenizers

from api.tinychat.asking import (
    ENDPOINTS,
    LIMITS,
    PARIS,
    Asking,
    Endpoint,
    answers,
    question,
    the_answer,
    usage,
)
from api.tinychat.reference import Steer, among, biased, greedy, penalised, repeated_less
from known_replies import REPLIES

GUARD_S = 30
LOOSE = "Once the lamp"
"""A text that the model was never told how to go on with, so that it is in doubt."""
FREE: dict[str, Any] = {
    "prompt": LOOSE,
    "max_tokens": 16,
    "temperature": 1.8,
    "return_token_ids": True,
}


def drawn(body: dict[str, Any]) -> list[list[int]]:
    """The ids of each choice of a completion."""
    return [choice["token_ids"] for choice in body["choices"]]


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_four_choices_of_what_is_certain_are_the_same(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """The prompt counts once, and every choice with its own end."""
    known = REPLIES["turns-1.3"]
    body = await asking.greedily(endpoint, known, n=4)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert [one.text for one in answers(endpoint, body)] == [known.reply] * 4
    prompt, reply = (len(tokenizer.encode(text).ids) for text in (known.prompt, known.reply))
    told = usage(endpoint, body)
    assert (told.prompt, told.completion) == (prompt, 4 * (reply + 1))


async def test_choice_i_draws_with_seed_plus_i(asking: Asking) -> None:
    together = drawn(await asking.both("completions", **FREE, seed=40, n=4))
    apart = [drawn(await asking.body("completions", **FREE, seed=40 + i))[0] for i in range(4)]
    assert together == apart
    assert len({tuple(ids) for ids in together}) > 1


async def test_a_seed_gives_the_same_in_any_company(asking: Asking) -> None:
    alone = [drawn(await asking.body("completions", **FREE, seed=seed)) for seed in range(6)]
    found: dict[int, list[list[int]]] = {}

    async def ask(seed: int) -> None:
        found[seed] = drawn(await asking.body("completions", **FREE, seed=seed))

    async with anyio.create_task_group() as tasks:
        for seed in range(6):
            tasks.start_soon(ask, seed)
    assert [found[seed] for seed in range(6)] == alone


async def test_without_a_seed_answers_differ(asking: Asking) -> None:
    ids = [drawn(await asking.body("completions", **FREE))[0] for _ in range(4)]
    assert len({tuple(one) for one in ids}) > 1


@pytest.mark.parametrize(
    "narrow", [{"top_k": 1}, {"top_p": 0.0}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 0}]
)
async def test_what_leaves_one_token_is_greedy(
    asking: Asking, tokenizer: tokenizers.Tokenizer, narrow: dict[str, float]
) -> None:
    best = greedy(tokenizer.encode(LOOSE).ids, 16)
    assert drawn(await asking.both("completions", **{**FREE, **narrow, "seed": 9})) == [best]


FORBIDDEN, WISHED = 738, 265
"""The third token of what the model says by itself, and one that it does not think of."""
STEERED: list[tuple[dict[str, Any], Steer]] = [
    ({"presence_penalty": 2.0}, penalised(presence=2.0)),
    ({"frequency_penalty": 1.5}, penalised(frequency=1.5)),
    ({"presence_penalty": -1.0, "frequency_penalty": 2.0}, penalised(-1.0, 2.0)),
    (
        {"logit_bias": {str(FORBIDDEN): -100, str(WISHED): 2.5}},
        biased({FORBIDDEN: -100, WISHED: 2.5}),
    ),
    ({"allowed_token_ids": list(range(300, 400))}, among(range(300, 400))),
]


@pytest.mark.parametrize(("fields", "steer"), STEERED)
async def test_the_draw_is_steered(
    asking: Asking, tokenizer: tokenizers.Tokenizer, fields: dict[str, Any], steer: Steer
) -> None:
    prompt, count = tokenizer.encode(LOOSE).ids, 32
    expected = greedy(prompt, count, steer)
    assert expected != greedy(prompt, count)
    given = {**FREE, "temperature": 0, "ignore_eos": True, "max_tokens": count, **fields}
    assert drawn(await asking.both("completions", **given)) == [expected]


async def test_repetition_is_of_prompt_and_output(
    asking: Asking, tokenizer: tokenizers.Tokenizer
) -> None:
    prompt = tokenizer.encode(LOOSE).ids
    expected = greedy(prompt, 16, repeated_less(1.6, prompt))
    given = {**FREE, "temperature": 0, "ignore_eos": True, "repetition_penalty": 1.6}
    assert drawn(await asking.both("completions", **given)) == [expected]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_bias_forces_a_token_and_forbids_another(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    first = tokenizer.encode("Hello").ids[0]
    body = await asking.greedily(
        endpoint, PARIS, logit_bias={str(first): 100}, **{LIMITS[endpoint]: 1}
    )
    assert the_answer(endpoint, body).text == tokenizer.decode([first])
    start = tokenizer.encode(PARIS.reply).ids[0]
    body = await asking.greedily(endpoint, PARIS, logit_bias={str(start): -100})
    assert not the_answer(endpoint, body).text.startswith("The")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_only_what_is_allowed_is_said(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    """Allowed are the tokens of the reply and its end: the reply comes as it is."""
    allowed = sorted({*tokenizer.encode(PARIS.reply).ids, 2})
    body = await asking.greedily(endpoint, PARIS, allowed_token_ids=allowed)
    assert the_answer(endpoint, body).text == PARIS.reply


async def test_the_urgent_come_first(asking: Asking) -> None:
    """With all places taken, who waits is let in by priority and not by arrival."""
    ended: list[str] = []
    fanout = asking.service.fanout

    async def ask(name: str, tokens: int, priority: int = 0) -> None:
        fields: dict[str, Any] = {
            "prompt": LOOSE,
            "max_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
        }
        await asking.body("completions", **fields, priority=priority)
        ended.append(name)

    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as tasks:
            for index in range(8):
                # Places come free one after another, each long before the next.
                tasks.start_soon(ask, "", 250 + 40 * index)
            while fanout.load[0] < 8:
                await anyio.lowlevel.checkpoint()
            for waiting, (name, priority) in enumerate(
                (("patient", 5), ("usual", 0), ("urgent", -5)), 1
            ):
                tasks.start_soon(ask, name, 20, priority)
                while fanout.load[1] < waiting:
                    await anyio.lowlevel.checkpoint()
    assert [name for name in ended if name] == ["urgent", "usual", "patient"]


@pytest.mark.parametrize("temperature", [0, 1e-5, 2])
@pytest.mark.parametrize("repetition", [5e-324, 2])
@pytest.mark.parametrize("penalty", [-2, 2])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_settings_at_their_ends_give_an_answer(
    asking: Asking, endpoint: Endpoint, temperature: float, repetition: float, penalty: float
) -> None:
    settings = {
        "temperature": temperature,
        "repetition_penalty": repetition,
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "logit_bias": {"70": 100, "71": -100},
        "ignore_eos": True,
        LIMITS[endpoint]: 40,
    }
    body = await asking.both(endpoint, **{**question(endpoint, PARIS), **settings}, seed=4)
    assert usage(endpoint, body).completion == 40


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_repetition_penalty_of_nothing_is_refused_by_name(
    asking: Asking, endpoint: Endpoint
) -> None:
    asked = {**question(endpoint, PARIS), "repetition_penalty": 0}
    error = (await asking.body(endpoint, 400, **asked))["error"]
    assert error["param"] == "repetition_penalty"
    assert error["code"] == "decimal_below_min_value"
