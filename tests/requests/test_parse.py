"""Request bodies: what is taken, and which error names what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from antiphon.errors import AntiphonError
from antiphon.requests.chat import parse_chat
from antiphon.requests.completions import parse_completion
from antiphon.requests.generation import GenerationRequest
from antiphon.requests.responses import parse_response, resource_tail

Parse = Callable[[Mapping[str, Any]], GenerationRequest]

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f"}}


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER], **fields}


def completion(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": "hi", **fields}


def response(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", **fields}


def refusal(parse: Parse, body: Mapping[str, Any]) -> tuple[int, str, str | None]:
    with pytest.raises(AntiphonError) as caught:
        parse(body)
    return caught.value.status, caught.value.code, caught.value.param


# One row per kind of violation: the field, its value, the code and the param.
SHARED = [
    ("model", 1, "invalid_type", "model"),
    ("model", "", "invalid_value", "model"),
    ("stream", 1, "invalid_type", "stream"),
    ("stream", "true", "invalid_type", "stream"),
    ("temperature", "1", "invalid_type", "temperature"),
    ("temperature", True, "invalid_type", "temperature"),
    ("temperature", 2.01, "decimal_above_max_value", "temperature"),
    ("temperature", -0.1, "decimal_below_min_value", "temperature"),
    ("temperature", 10**400, "invalid_value", "temperature"),
    ("top_p", 1.5, "decimal_above_max_value", "top_p"),
    ("presence_penalty", -2.5, "decimal_below_min_value", "presence_penalty"),
    ("repetition_penalty", 0, "decimal_below_min_value", "repetition_penalty"),
    ("seed", 1.0, "invalid_type", "seed"),
    ("seed", 2**63, "integer_above_max_value", "seed"),
    ("seed", -(2**63) - 1, "integer_below_min_value", "seed"),
    ("stop", 5, "invalid_type", "stop"),
    ("stop", "", "invalid_value", "stop"),
    ("stop", ["a", ""], "invalid_value", "stop[1]"),
    ("stop", ["a"] * 5, "array_above_max_length", "stop"),
    ("stop", [], "empty_array", "stop"),
    ("logit_bias", {"7": 101}, "decimal_above_max_value", "logit_bias.7"),
    ("logit_bias", {"x": 1}, "invalid_value", "logit_bias.x"),
    ("logit_bias", [1], "invalid_type", "logit_bias"),
    ("top_k", -2, "integer_below_min_value", "top_k"),
    ("stop_token_ids", [-1], "integer_below_min_value", "stop_token_ids[0]"),
    ("stream_options", {}, "invalid_value", "stream_options"),
    ("guided_json", {}, "unsupported_parameter", "guided_json"),
    ("spaces_between_special_tokens", False, "unsupported_value", "spaces_between_special_tokens"),
]


@pytest.mark.parametrize(
    ("parse", "make"),
    [(parse_chat, chat), (parse_completion, completion), (parse_response, response)],
    ids=["chat", "completions", "responses"],
)
@pytest.mark.parametrize(("field", "value", "code", "param"), SHARED)
def test_shared_field_is_refused(
    parse: Parse,
    make: Callable[..., dict[str, Any]],
    field: str,
    value: Any,
    code: str,
    param: str,
) -> None:
    assert refusal(parse, make(**{field: value})) == (400, code, param)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"messages": []}, "empty_array", "messages"),
        ({"messages": "hi"}, "invalid_type", "messages"),
        ({"messages": [1]}, "invalid_type", "messages[0]"),
        ({"messages": [{}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": "robot"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
        (
            {"messages": [USER, {"role": "function", "content": "x"}]},
            "unsupported_value",
            "messages[1].role",
        ),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            "missing_required_parameter",
            "messages[0].tool_call_id",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "unsupported_value",
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": 3}]}]},
            "invalid_type",
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
            "missing_required_parameter",
            "messages[0].content[0].type",
        ),
        ({"n": 0}, "integer_below_min_value", "n"),
        ({"n": 129}, "integer_above_max_value", "n"),
        ({"max_tokens": 0}, "integer_below_min_value", "max_tokens"),
        ({"top_logprobs": 2}, "invalid_value", "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "integer_above_max_value", "top_logprobs"),
        ({"functions": []}, "unsupported_parameter", "functions"),
        ({"function_call": "auto"}, "unsupported_parameter", "function_call"),
        ({"tool_choice": "required"}, "invalid_value", "tool_choice"),
        ({"tools": [TOOL, TOOL]}, "invalid_value", "tools[1].function.name"),
        (
            {"tools": [{"type": "web_search", "function": {"name": "f"}}]},
            "unsupported_value",
            "tools[0].type",
        ),
        ({"modalities": ["audio"]}, "unsupported_value", "modalities[0]"),
        ({"echo": True}, "unsupported_value", "echo"),
        ({"verbosity": "huge"}, "invalid_value", "verbosity"),
        ({"chat_template_kwargs": {"tools": 1}}, "invalid_value", "chat_template_kwargs.tools"),
        (
            {"reasoning_effort": "low", "reasoning": {"effort": "high"}},
            "conflicting_parameters",
            "reasoning",
        ),
    ],
)
def test_chat_is_refused(fields: dict[str, Any], code: str, param: str) -> None:
    assert refusal(parse_chat, chat(**fields)) == (400, code, param)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"prompt": []}, "empty_array", "prompt"),
        ({"prompt": 5}, "invalid_type", "prompt"),
        ({"prompt": ["a", 1]}, "invalid_type", "prompt[1]"),
        ({"prompt": [1, -1]}, "integer_below_min_value", "prompt[1]"),
        ({"prompt": [[1], []]}, "empty_array", "prompt[1]"),
        ({"prompt": [[1], [True]]}, "invalid_type", "prompt[1][0]"),
        ({"prompt": ["a"] * 64, "n": 128}, "integer_above_max_value", "n"),
        ({"best_of": 2}, "unsupported_value", "best_of"),
        ({"suffix": "x"}, "unsupported_parameter", "suffix"),
        ({"logprobs": True}, "invalid_type", "logprobs"),
    ],
)
def test_completion_is_refused(fields: dict[str, Any], code: str, param: str) -> None:
    assert refusal(parse_completion, completion(**fields)) == (400, code, param)


@pytest.mark.parametrize(
    ("fields", "status", "code", "param"),
    [
        ({"input": []}, 400, "empty_array", "input"),
        ({"input": ""}, 400, "invalid_value", "input"),
        ({"input": [{"type": "computer_call"}]}, 400, "unsupported_value", "input[0].type"),
        (
            {"input": [{"type": "message", "role": "robot", "content": "x"}]},
            400,
            "invalid_value",
            "input[0].role",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            400,
            "unsupported_value",
            "input[0].content[0].type",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            400,
            "invalid_function_call_output",
            "input[0].call_id",
        ),
        (
            {"input": [{"type": "item_reference", "id": "msg_1"}]},
            400,
            "unsupported_value",
            "input[0].type",
        ),
        ({"previous_response_id": "x"}, 400, "invalid_value", "previous_response_id"),
        (
            {"previous_response_id": "resp_1"},
            404,
            "previous_response_not_found",
            "previous_response_id",
        ),
        ({"background": True}, 400, "unsupported_value", "background"),
        ({"include": ["nothing"]}, 400, "invalid_value", "include[0]"),
        ({"metadata": {"k": 1}}, 400, "invalid_type", "metadata.k"),
        ({"metadata": {"k": "v" * 513}}, 400, "string_above_max_length", "metadata.k"),
        ({"metadata": {"k" * 65: "v"}}, 400, "string_above_max_length", f"metadata.{'k' * 65}"),
        (
            {"metadata": {str(i): "" for i in range(17)}},
            400,
            "object_above_max_properties",
            "metadata",
        ),
        ({"reasoning": {"effort": "huge"}}, 400, "invalid_value", "reasoning.effort"),
        ({"reasoning": {"mode": "x"}}, 400, "unsupported_parameter", "reasoning.mode"),
        ({"reasoning": {"context": {}}}, 400, "unsupported_parameter", "reasoning.context"),
        ({"tools": [{"type": "mcp", "name": "f"}]}, 400, "unsupported_value", "tools[0].type"),
        ({"conversation": "conv_1"}, 400, "unsupported_parameter", "conversation"),
        ({"max_output_tokens": 0}, 400, "integer_below_min_value", "max_output_tokens"),
    ],
)
def test_response_is_refused(fields: dict[str, Any], status: int, code: str, param: str) -> None:
    assert refusal(parse_response, response(**fields)) == (status, code, param)


@pytest.mark.parametrize(
    ("parse", "body", "param"),
    [
        (parse_chat, {"messages": [USER]}, "model"),
        (parse_chat, {"model": "m"}, "messages"),
        (parse_completion, {"model": "m"}, "prompt"),
        (parse_response, {"model": "m"}, "input"),
        (parse_response, {"model": "m", "input": None}, "input"),
    ],
)
def test_required_field_is_missing(parse: Parse, body: dict[str, Any], param: str) -> None:
    status, code, named = refusal(parse, body)
    assert status == 400
    assert code in ("missing_required_parameter", "invalid_type")
    assert named == param


def test_null_means_absent() -> None:
    nothing = dict.fromkeys(
        ("n", "stop", "max_tokens", "temperature", "seed", "tools", "functions", "user")
    )
    assert parse_chat(chat(**nothing)) == parse_chat(chat())


def test_numbers_are_not_coerced_but_integers_are_numbers() -> None:
    assert parse_chat(chat(temperature=1)).temperature == 1.0
    assert isinstance(parse_chat(chat(temperature=1)).temperature, float)


def test_unknown_fields_are_listed_with_their_paths() -> None:
    body = chat(
        zork=1,
        stream=True,
        stream_options={"frob": 1},
        messages=[
            {**USER, "blah": 1},
            {"role": "user", "content": [{"type": "text", "text": "", "q": 0}]},
        ],
    )
    assert sorted(parse_chat(body).unknown) == [
        "messages[0].blah",
        "messages[1].content[0].q",
        "stream_options.frob",
        "zork",
    ]


def test_prompt_forms() -> None:
    assert parse_completion(completion(prompt="a")).prompts == ["a"]
    assert parse_completion(completion(prompt=["a", "b"])).prompts == ["a", "b"]
    assert parse_completion(completion(prompt=[1, 2])).prompts == [[1, 2]]
    assert parse_completion(completion(prompt=[[1], [2, 3]])).prompts == [[1], [2, 3]]


def test_newer_token_limit_wins() -> None:
    request = parse_chat(chat(max_tokens=5, max_completion_tokens=7))
    assert request.token_limit == (7, "max_completion_tokens")


def test_resource_tail_has_every_key_in_order() -> None:
    tail = resource_tail(parse_response(response(metadata={"a": "b"}, reasoning={})))
    assert list(tail) == [
        "model", "previous_response_id", "instructions", "tools", "tool_choice",
        "parallel_tool_calls", "text", "reasoning", "truncation", "temperature", "top_p",
        "presence_penalty", "frequency_penalty", "top_logprobs", "max_output_tokens",
        "max_tool_calls", "store", "background", "service_tier", "metadata", "user",
        "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    ]  # fmt: skip
    assert tail["reasoning"] == {"effort": None, "summary": None}
    assert tail["store"] is False
