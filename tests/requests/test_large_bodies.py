"""Bodies of megabytes: no work on what is refused anyway, and no collector in between."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.api.uncollected import uncollected
from antiphon.errors import InvalidRequest
from antiphon.requests.chat import parse_chat
from antiphon.requests.responses import parse_response

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"model": "m", "input": "hi"}
MANY: dict[str, Any] = {str(index): [] for index in range(5000)}
"""Entries of which each is wrong: what is told is what was looked at first."""


@pytest.mark.parametrize(
    ("parse", "body", "code", "param"),
    [
        (parse_chat, {**CHAT, "logit_bias": MANY}, "object_above_max_properties", "logit_bias"),
        (parse_chat, {**CHAT, "stop": [1] * 5000}, "array_above_max_length", "stop"),
        (parse_chat, {**CHAT, "tools": [1] * 5000}, "array_above_max_length", "tools"),
        (parse_chat, {**CHAT, "stop_token_ids": ["x"] * 5000}, "array_above_max_length",
         "stop_token_ids"),
        (parse_response, {**RESPONSE, "metadata": MANY}, "object_above_max_properties",
         "metadata"),
    ],
)  # fmt: skip
def test_lengths_come_before_entries(parse: Any, body: Any, code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_of_many_includes_without_effect_the_first_are_named_and_all_are_counted() -> None:
    include = ["message.output_text.logprobs", *["web_search_call.results"] * 3000]
    request = parse_response({**RESPONSE, "include": include, "prediction": {}})
    assert sorted([*(f"include[{index}]" for index in range(1, 21)), "prediction"])[:20] == (
        request.ignored
    )
    assert request.unnamed == 3001 - 20


@pytest.fixture
def collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_the_collector_is_off_until_the_last_is_out() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with uncollected():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with uncollected():
        thread.start()
        assert entered.wait(10)
        assert not gc.isenabled()
    assert not gc.isenabled()
    leave.set()
    thread.join(10)


@pytest.mark.usefixtures("collecting")
def test_the_collector_is_back_after_a_failure_and_has_nothing_young_to_walk() -> None:
    kept: list[list[int]] = []
    with pytest.raises(ZeroDivisionError), uncollected():
        kept.extend([1 // (9_999 - index)] for index in range(10_000))
    assert gc.get_count()[0] < 5000
    assert len(kept) == 9_999


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected(), uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
