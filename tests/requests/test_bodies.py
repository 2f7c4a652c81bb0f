"""What a right body becomes: defaults, forms that mean the same, and what is not part of it."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.errors import InvalidRequest
from antiphon.requests.chat import ChatRequest, parse_chat
from antiphon.requests.completions import CompletionRequest, parse_completion
from antiphon.requests.input_items import ReasoningItem, open_reasoning
from antiphon.requests.responses import ResponseRequest, parse_response, resource_tail
from antiphon.requests.tokenize import EncodeChat, EncodePrompt, parse_decode, parse_encode

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "well"}


def chat(**fields: Any) -> ChatRequest:
    return parse_chat({"model": "m", "messages": [USER], **fields})


def completion(**fields: Any) -> CompletionRequest:
    return parse_completion({"model": "m", "prompt": "hi", **fields})


def response(**fields: Any) -> ResponseRequest:
    return parse_response({"model": "m", "input": "hi", **fields})


def test_null_means_absent_and_is_never_listed() -> None:
    names = ("n", "stop", "max_tokens", "temperature", "seed", "tools", "functions", "user",
             "structured_outputs", "documents", "store", "thinking", "zork")  # fmt: skip
    nothing = chat(**dict.fromkeys(names))
    assert nothing == chat()
    assert (nothing.ignored, nothing.unknown) == ([], [])
    message = {**USER, "tool_calls": None, "function_call": None, "zork": None}
    assert chat(messages=[message]).unknown == []


def test_numbers_are_not_coerced_but_integers_are_numbers() -> None:
    assert isinstance(chat(temperature=1).temperature, float)


def test_unknown_fields_are_listed_with_their_paths() -> None:
    request = chat(
        zork=1,
        store=True,
        stream=True,
        stream_options={"frob": 1},
        tools=[{"type": "function", "foo": 1, "function": {"name": "f", "bar": 2}}],
        messages=[
            {**USER, "blah": 1},
            {"role": "user", "content": [{"type": "text", "text": "", "q": 0}]},
        ],
    )
    assert sorted(request.unknown) == [
        "messages[0].blah",
        "messages[1].content[0].q",
        "stream_options.frob",
        "tools[0].foo",
        "tools[0].function.bar",
        "zork",
    ]
    assert request.ignored == ["store"]


def test_prompt_forms() -> None:
    assert completion(prompt="a").prompts == ["a"]
    assert completion(prompt=["a", "b"]).prompts == ["a", "b"]
    assert completion(prompt=[1, 2]).prompts == [[1, 2]]
    assert completion(prompt=[[1], [2, 3]]).prompts == [[1], [2, 3]]


def test_nothing_is_generated_only_when_the_prompt_is_echoed() -> None:
    assert completion(max_tokens=0, echo=True).max_tokens == 0


def test_newer_token_limit_wins() -> None:
    assert chat(max_tokens=5, max_completion_tokens=7).token_limit == (7, "max_completion_tokens")
    assert chat(max_tokens=5).token_limit == (5, "max_tokens")


def test_least_tokens_count_against_the_limit_that_wins() -> None:
    assert chat(min_tokens=6, max_tokens=5, max_completion_tokens=7).min_tokens == 6


def test_continued_message_implies_no_generation_prompt() -> None:
    assert chat().add_generation_prompt
    request = chat(messages=[USER, SAID], continue_final_message=True)
    assert not request.add_generation_prompt
    explicit = chat(messages=[SAID], continue_final_message=True, add_generation_prompt=False)
    assert not explicit.add_generation_prompt


def test_reasoning_effort_in_either_form() -> None:
    assert chat(reasoning={"effort": "low"}).effort == "low"
    assert chat(reasoning={"effort": "low"}, reasoning_effort="low").effort == "low"
    assert chat(reasoning={}, reasoning_effort="high").effort == "high"


def test_stream_options_of_chunks() -> None:
    request = chat(
        stream=True, stream_options={"continuous_usage_stats": True, "include_obfuscation": True}
    )
    assert (request.wants_usage, request.wants_running_usage) == (False, True)
    assert request.wants_obfuscation
    assert not chat(stream=True, stream_options={}).wants_usage


@pytest.mark.parametrize(
    ("fields", "logprobs"),
    [
        ({}, None),
        ({"top_logprobs": 2}, 2),
        ({"include": ["message.output_text.logprobs"]}, 0),
        ({"include": ["reasoning.encrypted_content"]}, None),
    ],
)
def test_logprobs_of_responses(fields: dict[str, Any], logprobs: int | None) -> None:
    assert response(**fields).logprobs == logprobs


def envelope(content: list[Any], sealed: str | None = "sealed") -> dict[str, Any]:
    return {
        "type": "reasoning", "summary": [], "content": content, "encrypted_content": sealed
    }  # fmt: skip


def texts(items: list[Any]) -> list[list[str]]:
    return [[part.text for part in item.content] for item in items if type(item) is ReasoningItem]


def test_envelopes_are_opened_where_no_content_is_in_clear() -> None:
    clear = {"type": "reasoning_text", "text": "clear"}
    request = response(input=[USER, envelope([]), envelope([clear]), envelope([], None)])
    assert isinstance(request.input, list)
    open_reasoning(request.input, lambda sealed: f"opened {sealed}")
    assert texts(request.input) == [["opened sealed"], ["clear"], []]


def test_envelope_of_others_is_refused_with_its_path() -> None:
    def unseal(_: str) -> str:
        raise ValueError

    request = response(input=[USER, envelope([])])
    assert isinstance(request.input, list)
    with pytest.raises(InvalidRequest) as caught:
        open_reasoning(request.input, unseal)
    assert (caught.value.status, caught.value.code) == (400, "invalid_encrypted_content")
    assert caught.value.param == "input[1].encrypted_content"


def test_resource_tail_has_every_key_in_order() -> None:
    tail = resource_tail(response(metadata={"a": "b"}, reasoning={}))
    assert list(tail) == [
        "model", "previous_response_id", "instructions", "tools", "tool_choice",
        "parallel_tool_calls", "text", "reasoning", "truncation", "temperature", "top_p",
        "presence_penalty", "frequency_penalty", "top_logprobs", "max_output_tokens",
        "max_tool_calls", "store", "background", "service_tier", "metadata", "user",
        "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    ]  # fmt: skip
    assert tail["reasoning"] == {"effort": None, "summary": None}
    assert tail["text"] == {"format": {"type": "text"}}
    assert tail["store"] is False


def test_older_name_of_a_summary_is_echoed_as_the_summary() -> None:
    tail = resource_tail(response(reasoning={"generate_summary": "concise"}))
    assert tail["reasoning"] == {"effort": None, "summary": "concise"}


def test_bodies_of_tokenize() -> None:
    text = parse_encode({"prompt": "a", "model": None})
    assert text == EncodePrompt(prompt="a")
    talk = parse_encode({"messages": [USER, SAID], "continue_final_message": True})
    assert isinstance(talk, EncodeChat)
    assert not talk.add_generation_prompt
    assert parse_encode({"prompt": "a", "zork": 1}).unknown == ["zork"]
    assert parse_decode({"tokens": [5]}).tokens == [5]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_effort": "x" * 10_000},
        {"messages": [{"role": "user", "content": [{"type": "x" * 10_000}]}]},
        {"modalities": ["x" * 10_000]},
        {"logit_bias": {"x" * 10_000: 1}},
        {"functions": "x" * 10_000},
    ],
)
def test_messages_do_not_repeat_all_that_was_sent(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        chat(**fields)
    assert len(caught.value.message) < 300
