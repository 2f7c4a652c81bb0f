"""Forms in a running engine: in company, preempted, held, aborted, and where they fail."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from antiphon.engines.port import Capability, EngineRequest, Finish, GrammarSpec
from antiphon.engines.torch.grammar.trials import Trials
from antiphon.prompting.tokenizer import load_tokenizer
from engines.torch.grammar.writing import vocabulary
from engines.torch.harness import running
from engines.torch.requests import a_request
from known_replies import FILES

FORM = GrammarSpec(kind="regex", text="([a-z]{6} ){12}")


@cache
def spelt_out() -> str:
    return load_tokenizer(FILES).table().to_text()


def asked(key: int, grammar: GrammarSpec = FORM, **changes: Any) -> EngineRequest:
    """A long answer of random tokens."""
    settings = {"max_tokens": 200, "temperature": 1.5, "seed": key, "group": 1} | changes
    return a_request(key, grammar=grammar, **settings)


def text(tokens: list[int]) -> str:
    return b"".join(map(vocabulary().spelt, tokens)).decode()


async def test_preempted_texts_hold_and_are_those_that_they_would_have_been() -> None:
    keys = range(6)
    stories = []
    for pages in (64, 14):
        page = 16 * kv_bytes_of_a_token()
        settings = {"kv_bytes": pages * page, "max_running": 6, "vocabulary": spelt_out()}
        async with running(FILES, **settings) as (engine, watch):
            for key in keys:
                engine.submit(asked(key))
            await watch.finished(*keys)
            stories.append([watch[key].tokens for key in keys])
            assert (watch.log[-1].gauges.preemptions > 0) == (pages == 14)
            assert {watch[key].finish for key in keys} == {Finish.STOP}
    assert stories[0] == stories[1]
    for tokens in stories[0]:
        assert re.fullmatch(FORM.text, text(tokens))


def kv_bytes_of_a_token() -> int:
    config = json.loads((FILES.path / "config.json").read_text())
    heads, width = config["num_key_value_heads"], config["head_dim"]
    return 2 * int(config["num_hidden_layers"]) * int(heads) * int(width) * 4


async def test_held_and_free_requests_in_one_step() -> None:
    digits = GrammarSpec(kind="regex", text="[0-9]{12}")
    async with running(FILES, vocabulary=spelt_out()) as (engine, watch):
        for key in range(6):
            grammar = digits if key % 2 else None
            engine.submit(a_request(key, max_tokens=30, temperature=1.0, seed=key, grammar=grammar))
        await watch.finished(*range(6))
        for key in (1, 3, 5):
            assert re.fullmatch("[0-9]{12}", text(watch[key].tokens))
            assert watch[key].finish is Finish.STOP
        for key in (0, 2, 4):
            assert len(watch[key].tokens) == 30


async def test_a_request_that_waits_for_its_form_can_be_aborted_and_others_go_on() -> None:
    slow = GrammarSpec(kind="json_schema", text=json.dumps({"multipleOf": 99_991}))
    async with running(FILES, vocabulary=spelt_out()) as (engine, watch):
        engine.submit(asked(1, slow))
        engine.submit(a_request(2, max_tokens=3))
        engine.abort([1])
        await watch.finished(1, 2)
        assert watch[1].finish in (Finish.ABORT, Finish.LENGTH, Finish.STOP)
        assert watch[2].finish is Finish.LENGTH


async def test_an_engine_that_drains_ends_what_waits_for_its_form() -> None:
    async with running(FILES, vocabulary=spelt_out()) as (engine, watch):
        engine.submit(asked(1, max_tokens=4))
        await engine.stop(30)
        await watch.end()
        assert watch[1].finish is Finish.LENGTH


async def test_a_form_that_fails_while_it_is_followed_is_an_error_and_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its matcher leaves the end token alone then, which would look like an answer."""
    # Tried, it would be refused before.
    monkeypatch.setattr(Trials, "bytes_of", lambda *_: 0)
    forever = GrammarSpec(kind="regex", text="[ab]{3}(x{1000}){1000}")
    async with running(FILES, vocabulary=spelt_out()) as (engine, watch):
        engine.submit(asked(1, forever))
        engine.submit(a_request(2, max_tokens=20))
        await watch.finished(1, 2)
        error = watch[1].error
        assert error is not None
        assert error.code == "grammar_invalid"
        assert len(watch[2].tokens) == 20


async def test_without_a_vocabulary_the_engine_does_not_offer_forms() -> None:
    async with running(FILES) as (engine, watch):
        engine.submit(asked(1))
        await watch.finished(1)
        error = watch[1].error
        assert error is not None
        assert error.code == "unsupported"
    async with running(FILES, vocabulary=spelt_out()) as (engine, _):
        assert engine._engine is not None
        assert Capability.GRAMMAR in engine._engine.info.capabilities
