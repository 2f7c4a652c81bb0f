"""Every parameter: the values that are taken, and for those that are not the code and the path.

Test ids read ``<endpoint>-<param>-<value>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest

from antiphon.errors import AntiphonError
from antiphon.requests.body import Body
from antiphon.requests.chat import ChatRequest, parse_chat
from antiphon.requests.completions import CompletionRequest, parse_completion
from antiphon.requests.refusals import CHAT, COMPLETIONS, DETOKENIZED, NEUTRAL, RESPONSES
from antiphon.requests.responses import ResponseRequest, parse_response
from antiphon.requests.tokenize import (
    Decode,
    EncodeChat,
    EncodePrompt,
    parse_decode,
    parse_encode,
)

Fields = dict[str, Any]

USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "well"}
TOOL = {"type": "function", "function": {"name": "f"}}
FLAT = {"type": "function", "name": "f"}
CALL = {"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}
SCHEMA = {"type": "object"}
BIG = 2**63

ENDPOINTS: Mapping[str, tuple[Callable[[Fields], Body], Fields]] = {
    "chat": (parse_chat, {"model": "m", "messages": [USER]}),
    "completions": (parse_completion, {"model": "m", "prompt": "hi"}),
    "responses": (parse_response, {"model": "m", "input": "hi"}),
    "tokenize": (parse_encode, {}),
    "detokenize": (parse_decode, {}),
}
ALL = ("chat", "completions", "responses")
CHUNKED = ("chat", "completions")
TALKING = ("chat", "responses")

TYPE, VALUE, EMPTY = "invalid_type", "invalid_value", "empty_array"
LOW, HIGH = "integer_below_min_value", "integer_above_max_value"
UNDER, OVER = "decimal_below_min_value", "decimal_above_max_value"
LONG_TEXT, LONG_LIST = "string_above_max_length", "array_above_max_length"
MISSING = "missing_required_parameter"
NO_PARAM, NO_VALUE = "unsupported_parameter", "unsupported_value"
CONFLICT, NO_SCHEMA = "conflicting_parameters", "invalid_schema"


def parsed(endpoint: str, fields: Fields) -> Any:
    parse, least = ENDPOINTS[endpoint]
    return parse({**least, **fields})


def label(value: Any) -> str:
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", json.dumps(value)).strip("_")[:30] or "empty"


def row(endpoints: tuple[str, ...], param: str, fields: Any, *rest: Any) -> Iterator[Any]:
    """One case per endpoint; ``fields`` that are no dict of fields are the value of ``param``."""
    if not isinstance(fields, Row):
        fields = Row({param: fields})
    shown = label(fields.get(re.split(r"[.\[]", param)[0]))
    for endpoint in endpoints:
        yield pytest.param(endpoint, param, dict(fields), *rest, id=f"{endpoint}-{param}-{shown}")


class Row(Fields):
    """Several fields of a body, where one value does not tell the case."""


def with_(**fields: Any) -> Row:
    return Row(fields)


BOOLEANS = (
    (ALL, "stream ignore_eos include_stop_str_in_output skip_special_tokens "
     "return_tokens_as_token_ids separate_reasoning add_special_tokens"),
    (CHUNKED, "return_token_ids"),
    (ALL, "include_reasoning"),
    (TALKING, "parallel_tool_calls"),
    (("chat",), "logprobs add_generation_prompt"),
    (("completions",), "echo"),
    (("responses",), "store"),
)  # fmt: skip

# (endpoints, param, value, what the typed request holds: the value itself unless given)
ACCEPTED: list[tuple[Any, ...]] = [
    (ALL, "model", "m"),
    *((ALL, "temperature", value) for value in (0, 1, 2.0, 0.7)),
    *((ALL, "top_p", value) for value in (0, 1, 0.5)),
    *((ALL, "presence_penalty", value) for value in (-2, 2, 0.5)),
    *((ALL, "frequency_penalty", value) for value in (-2, 2, 0.5)),
    *((ALL, "seed", value) for value in (0, -1, BIG - 1, -BIG)),
    *((ALL, "stop", value) for value in ("END", ["a"], ["a", "b", "c", "d"])),
    (ALL, "logit_bias", {"7": -100, "50256": 100.0}),
    (ALL, "logit_bias", {}),
    (ALL, "user", "u" * 512),
    *((ALL, "top_k", value) for value in (-1, 0, 1, 50)),
    *((ALL, "min_p", value) for value in (0, 1, 0.05)),
    *((ALL, "repetition_penalty", value) for value in (5e-324, 0.0099, 1, 2)),
    (ALL, "min_tokens", 0),
    (ALL, "min_tokens", 16),
    (ALL, "stop_token_ids", []),
    (ALL, "stop_token_ids", [0, 1, 2**32 - 1]),
    (ALL, "allowed_token_ids", list(range(200))),
    (ALL, "spaces_between_special_tokens", True),
    (ALL, "return_hidden_states", False),
    (ALL, "stream_reasoning", True),
    *((ALL, "priority", value) for value in (0, -(2**31), 2**31 - 1)),
    *((ALL, "cache_salt", value) for value in ("s", "s" * 256)),
    (ALL, "request_id", "r-1"),
    (ALL, "rid", "r-1"),
    (TALKING, "chat_template_kwargs", {"custom": [1, {"a": None}]}),
    (TALKING, "tools", []),
    *((("chat",), "n", value) for value in (1, 128)),
    *((("completions",), "n", value) for value in (1, 128)),
    (("completions",), "best_of", 1),
    *((("completions",), "logprobs", value) for value in (0, 20)),
    *((("completions",), "max_tokens", value) for value in (1, 4096)),
    *((("completions",), "prompt", value)
      for value in ("", "a", ["a", "b"], [0, 1], [[1], [2, 3]])),
    *((ALL, "thinking_token_budget", value) for value in (0, 1, 2**31 - 1)),
    *((("chat",), "max_tokens", value) for value in (1, 100_000)),
    *((("chat",), "max_completion_tokens", value) for value in (1, 100_000)),
    *((("chat",), "reasoning_effort", value)
      for value in ("none", "minimal", "low", "medium", "high", "xhigh", "max")),
    *((("chat",), "verbosity", value) for value in ("low", "medium", "high")),
    (("chat",), "modalities", ["text"]),
    (("chat",), "echo", False),
    (("chat",), "documents", [{"title": "t", "text": "x"}]),
    (("responses",), "instructions", "Be brief."),
    (("responses",), "max_output_tokens", 1),
    (("responses",), "max_tool_calls", 1),
    *((("responses",), "top_logprobs", value) for value in (0, 20)),
    (("responses",), "include", ["reasoning.encrypted_content", "message.output_text.logprobs"]),
    *((("responses",), "truncation", value) for value in ("auto", "disabled")),
    (("responses",), "background", False),
    (("responses",), "metadata", {"k" * 64: "v" * 512}),
    (("responses",), "metadata", {str(index): "" for index in range(16)}),
    *((("responses",), "service_tier", value)
      for value in ("auto", "default", "flex", "priority", "scale")),
    (("responses",), "prompt_cache_key", "k" * 64),
    (("responses",), "prompt_cache_retention", "24h"),
    (("responses",), "safety_identifier", "s" * 128),
    (("tokenize",), "prompt", ""),
    (("detokenize",), "tokens", []),
    (("detokenize",), "tokens", [0, 1, 2]),
]  # fmt: skip
ACCEPTED += [
    (endpoints, name, value)
    for endpoints, names in BOOLEANS
    for name in names.split()
    for value in (True, False)
]


@pytest.mark.wire("param:<endpoint>.<param>")
@pytest.mark.parametrize(
    ("endpoint", "param", "fields"), [case for line in ACCEPTED for case in row(*line)]
)
def test_accepted(endpoint: str, param: str, fields: Fields) -> None:
    request = parsed(endpoint, fields)
    assert getattr(request, param) == fields[param]
    assert type(getattr(request, param)) is (
        float if isinstance(fields[param], int) and param in FLOATS else type(fields[param])
    )
    assert (request.ignored, request.unknown) == ([], [])


FLOATS = {"temperature", "top_p", "presence_penalty", "frequency_penalty", "min_p",
          "repetition_penalty"}  # fmt: skip


def messages(*values: Any) -> Row:
    return with_(messages=list(values))


def parts(*values: Any) -> Row:
    return messages({"role": "user", "content": list(values)})


def items(*values: Any) -> Row:
    return with_(input=list(values))


ANSWER = {"type": "function_call_output", "call_id": "c", "output": "x"}
CALLED = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}

# (endpoints, param, value or fields, code)
REFUSED: list[tuple[Any, ...]] = [
    (ALL, "model", 1, TYPE),
    (ALL, "model", None, TYPE),
    (ALL, "model", "", VALUE),
    (ALL, "stream", 1, TYPE),
    (ALL, "stream", "true", TYPE),
    (ALL, "temperature", "1", TYPE),
    (ALL, "temperature", True, TYPE),
    (ALL, "temperature", 3, OVER),
    (ALL, "temperature", 2.01, OVER),
    (ALL, "temperature", -0.1, UNDER),
    (ALL, "temperature", 10**400, OVER),
    (ALL, "temperature", -(10**400), UNDER),
    (ALL, "repetition_penalty", 10**400, OVER),
    (ALL, "top_p", 1.5, OVER),
    (ALL, "top_p", -0.5, UNDER),
    (ALL, "presence_penalty", -2.5, UNDER),
    (ALL, "presence_penalty", 2.5, OVER),
    (ALL, "frequency_penalty", -2.5, UNDER),
    (ALL, "frequency_penalty", 2.5, OVER),
    (ALL, "seed", 1.0, TYPE),
    (ALL, "seed", True, TYPE),
    (ALL, "seed", BIG, HIGH),
    (ALL, "seed", -BIG - 1, LOW),
    (ALL, "stop", 5, TYPE),
    (ALL, "stop", "", VALUE),
    (ALL, "stop", [], EMPTY),
    (ALL, "stop", ["a"] * 5, LONG_LIST),
    (ALL, "stop[1]", with_(stop=["a", ""]), VALUE),
    (ALL, "stop[1]", with_(stop=["a", 1]), TYPE),
    (ALL, "logit_bias", [1], TYPE),
    (ALL, "logit_bias.7", with_(logit_bias={"7": 101}), OVER),
    (ALL, "logit_bias.7", with_(logit_bias={"7": "1"}), TYPE),
    (ALL, "logit_bias.x", with_(logit_bias={"x": 1}), VALUE),
    (ALL, "logit_bias.-1", with_(logit_bias={"-1": 1}), VALUE),
    (ALL, "logit_bias", {str(i): 1 for i in range(1025)}, "object_above_max_properties"),
    (ALL, "user", "u" * 513, LONG_TEXT),
    (ALL, "top_k", -2, LOW),
    (ALL, "top_k", 1.5, TYPE),
    (ALL, "min_p", 1.1, OVER),
    *((ALL, "repetition_penalty", value, UNDER) for value in (0, -1, -5e-324)),
    (ALL, "repetition_penalty", 2.1, OVER),
    (ALL, "min_tokens", -1, LOW),
    (("chat",), "min_tokens", with_(min_tokens=9, max_tokens=8), HIGH),
    (("completions",), "min_tokens", 17, HIGH),
    (("responses",), "min_tokens", with_(min_tokens=9, max_output_tokens=8), HIGH),
    (ALL, "ignore_eos", "no", TYPE),
    (ALL, "stop_token_ids", [1] * 65, LONG_LIST),
    (ALL, "stop_token_ids[0]", with_(stop_token_ids=[-1]), LOW),
    (ALL, "stop_token_ids[1]", with_(stop_token_ids=[1, True]), TYPE),
    (ALL, "stop_token_ids[1]", with_(stop_token_ids=[1, 2**32]), HIGH),
    (ALL, "allowed_token_ids", [], EMPTY),
    (ALL, "allowed_token_ids[0]", with_(allowed_token_ids=["1"]), TYPE),
    (ALL, "include_stop_str_in_output", 0, TYPE),
    (ALL, "skip_special_tokens", 0, TYPE),
    (ALL, "spaces_between_special_tokens", False, NO_VALUE),
    (CHUNKED, "return_token_ids", 1, TYPE),
    (("responses",), "return_token_ids", True, NO_PARAM),
    (ALL, "return_tokens_as_token_ids", 1, TYPE),
    (ALL, "return_hidden_states", True, NO_VALUE),
    (ALL, "include_reasoning", 0, TYPE),
    (ALL, "thinking_token_budget", -1, LOW),
    (ALL, "thinking_token_budget", 2**31, HIGH),
    (ALL, "thinking_token_budget", 1.0, TYPE),
    (ALL, "separate_reasoning", 0, TYPE),
    (ALL, "stream_reasoning", False, NO_VALUE),
    (ALL, "add_special_tokens", 0, TYPE),
    (ALL, "priority", 2**31, HIGH),
    (ALL, "priority", -(2**31) - 1, LOW),
    (ALL, "priority", 1.0, TYPE),
    (ALL, "cache_salt", "", VALUE),
    (ALL, "cache_salt", "s" * 257, LONG_TEXT),
    (ALL, "request_id", 5, TYPE),
    (ALL, "rid", ["a"], TYPE),
    (ALL, "stream_options", {}, VALUE),
    (ALL, "stream_options", with_(stream=True, stream_options=1), TYPE),
    (ALL, "stream_options.include_obfuscation",
     with_(stream=True, stream_options={"include_obfuscation": 1}), TYPE),
    (CHUNKED, "stream_options.include_usage",
     with_(stream=True, stream_options={"include_usage": 1}), TYPE),
    (CHUNKED, "stream_options.continuous_usage_stats",
     with_(stream=True, stream_options={"continuous_usage_stats": 1}), TYPE),
    (TALKING, "chat_template_kwargs", [], TYPE),
    (TALKING, "chat_template_kwargs", {str(i): 1 for i in range(1025)},
     "object_above_max_properties"),
    *((TALKING, f"chat_template_kwargs.{name}", with_(chat_template_kwargs={name: 1}), VALUE)
      for name in ("messages", "tools", "documents", "add_generation_prompt", "bos_token",
                   "eos_token")),
    (TALKING, "parallel_tool_calls", "no", TYPE),
    (("chat",), "messages", [], EMPTY),
    (("chat",), "messages", "hi", TYPE),
    (("chat",), "messages[0]", messages(1), TYPE),
    (("chat",), "messages[0].role", messages({}), MISSING),
    (("chat",), "messages[0].role", messages({"role": "robot", "content": "x"}), VALUE),
    (("chat",), "messages[1].role", messages(USER, {"role": "function", "content": "x"}), NO_VALUE),
    (("chat",), "messages[0].function_call",
     messages({"role": "assistant", "function_call": {"name": "f"}}), NO_VALUE),
    (("chat",), "messages[0].content", messages({"role": "user"}), MISSING),
    (("chat",), "messages[0].content", messages({"role": "user", "content": []}), EMPTY),
    (("chat",), "messages[0].content", messages({"role": "user", "content": {}}), TYPE),
    (("chat",), "messages[0].audio", messages({**SAID, "audio": {"id": "a"}}), NO_PARAM),
    (("chat",), "messages[0].tool_call_id", messages({"role": "tool", "content": "x"}), MISSING),
    (("chat",), "messages[0].tool_calls", messages({**USER, "tool_calls": [CALL]}), VALUE),
    (("chat",), "messages[0].tool_calls", messages({**SAID, "tool_calls": []}), EMPTY),
    (("chat",), "messages[0].tool_calls[0].type",
     messages({**SAID, "tool_calls": [{**CALL, "type": "mcp"}]}), NO_VALUE),
    (("chat",), "messages[0].tool_calls[0].function.arguments",
     messages({**SAID, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
     TYPE),
    *((("chat",), "messages[0].content[0].type", parts({"type": kind}), NO_VALUE)
      for kind in ("image_url", "input_audio", "file", "video_url")),
    (("chat",), "messages[0].content[0].type", parts({"type": 3}), TYPE),
    (("chat",), "messages[0].content[0].type", parts({"text": "x"}), MISSING),
    (("chat",), "messages[0].content[1].text",
     parts({"type": "text", "text": "x"}, {"type": "text"}), MISSING),
    (("chat",), "max_completion_tokens", 0, LOW),
    (("chat",), "max_tokens", 0, LOW),
    (("chat",), "max_tokens", 1.0, TYPE),
    (CHUNKED, "n", 0, LOW),
    (CHUNKED, "n", 129, HIGH),
    (CHUNKED, "n", True, TYPE),
    (("chat",), "logprobs", 1, TYPE),
    (("chat",), "top_logprobs", 2, VALUE),
    (("chat",), "top_logprobs", with_(logprobs=True, top_logprobs=21), HIGH),
    (("chat",), "top_logprobs", with_(logprobs=True, top_logprobs=-1), LOW),
    (("chat",), "modalities[0]", with_(modalities=["audio"]), NO_VALUE),
    (("chat",), "modalities", [], EMPTY),
    (("chat",), "echo", True, NO_VALUE),
    (("chat",), "documents", {}, TYPE),
    (("chat",), "documents[0]", with_(documents=["x"]), TYPE),
    (("chat",), "verbosity", "huge", VALUE),
    (("chat",), "reasoning_effort", "huge", VALUE),
    (("chat",), "reasoning.effort", with_(reasoning={"effort": "huge"}), VALUE),
    (("chat",), "reasoning", with_(reasoning_effort="low", reasoning={"effort": "high"}), CONFLICT),
    (("chat",), "continue_final_message",
     with_(messages=[SAID], continue_final_message=True, add_generation_prompt=True), CONFLICT),
    (("chat",), "continue_final_message", True, VALUE),
    (("chat",), "continue_final_message",
     with_(messages=[{**SAID, "tool_calls": [CALL]}], continue_final_message=True), VALUE),
    (("chat",), "continue_final_message",
     with_(messages=[{"role": "assistant"}], continue_final_message=True), VALUE),
    (("completions",), "prompt", 5, TYPE),
    (("completions",), "prompt", [], EMPTY),
    (("completions",), "prompt[0]", with_(prompt=[True]), TYPE),
    (("completions",), "prompt[1]", with_(prompt=["a", 1]), TYPE),
    (("completions",), "prompt[1]", with_(prompt=[1, "a"]), TYPE),
    (("completions",), "prompt[1]", with_(prompt=[1, True]), TYPE),
    (("completions",), "prompt[1]", with_(prompt=[1, -1]), LOW),
    (("completions",), "prompt[1]", with_(prompt=[1, 2**32]), HIGH),
    (("completions",), "prompt[1]", with_(prompt=[[1], []]), EMPTY),
    (("completions",), "prompt[1][0]", with_(prompt=[[1], [True]]), TYPE),
    (("completions",), "prompt", ["a"] * 4097, LONG_LIST),
    (("completions",), "n", with_(prompt=["a"] * 64, n=128), HIGH),
    (("completions",), "max_tokens", -1, LOW),
    (("completions",), "max_tokens", 0, LOW),
    (("completions",), "best_of", 2, NO_VALUE),
    (("completions",), "best_of", 21, HIGH),
    (("completions",), "echo", "yes", TYPE),
    (("completions",), "logprobs", True, TYPE),
    (("completions",), "logprobs", 21, HIGH),
    (("responses",), "input", [], EMPTY),
    (("responses",), "input", "", VALUE),
    (("responses",), "input", None, TYPE),
    *((("responses",), "input[0].type", items({"type": kind}), NO_VALUE)
      for kind in ("computer_call", "mcp_call", "compaction",
                   "web_search_call", "local_shell_call", "image_generation_call")),
    (("responses",), "input[0].type", items({"type": 1}), TYPE),
    (("responses",), "input[0].type", items({"type": "item_reference", "id": "msg_1"}), NO_VALUE),
    (("responses",), "input[0].role", items({"role": "robot", "content": "x"}), VALUE),
    (("responses",), "input[0].role", items({"content": "x"}), MISSING),
    (("responses",), "input[0].content", items({"role": "user"}), MISSING),
    *((("responses",), "input[0].content[0].type",
       items({"role": "user", "content": [{"type": kind}]}), NO_VALUE)
      for kind in ("input_image", "input_file", "input_audio")),
    (("responses",), "input[0].content[0].text",
     items({"role": "user", "content": [{"type": "input_text", "text": 5}]}), TYPE),
    (("responses",), "input[0].phase", items({**SAID, "phase": "prologue"}), VALUE),
    (("responses",), "input[0].status", items({**SAID, "status": "done"}), VALUE),
    (("responses",), "input[0].call_id", items(ANSWER), "invalid_function_call_output"),
    (("responses",), "input[0].call_id", items({**CALLED, "call_id": ""}), VALUE),
    (("responses",), "input[0].call_id", items({**CALLED, "call_id": "c" * 65}), LONG_TEXT),
    (("responses",), "input[0].name", items({**CALLED, "name": "a b"}), VALUE),
    (("responses",), "input[0].arguments", items({**CALLED, "arguments": {}}), TYPE),
    (("responses",), "input[1].output[0].type",
     items(CALLED, {**ANSWER, "output": [{"type": "input_image"}]}), NO_VALUE),
    (("responses",), "input[0].summary", items({"type": "reasoning"}), MISSING),
    (("responses",), "input[0].content[0].type",
     items({"type": "reasoning", "summary": [], "content": [{"type": "text"}]}), NO_VALUE),
    (("responses",), "max_output_tokens", 0, LOW),
    (("responses",), "max_tool_calls", 0, LOW),
    (("responses",), "top_logprobs", 21, HIGH),
    (("responses",), "include", "reasoning.encrypted_content", TYPE),
    (("responses",), "include[0]", with_(include=["nothing"]), VALUE),
    (("responses",), "previous_response_id", "x", VALUE),
    (("responses",), "store", "yes", TYPE),
    (("responses",), "background", True, NO_VALUE),
    (("responses",), "truncation", "some", VALUE),
    (("responses",), "metadata.k", with_(metadata={"k": 1}), TYPE),
    (("responses",), "metadata.k", with_(metadata={"k": "v" * 513}), LONG_TEXT),
    (("responses",), f"metadata.{'k' * 65}", with_(metadata={"k" * 65: "v"}), LONG_TEXT),
    (("responses",), "metadata", {str(i): "" for i in range(17)}, "object_above_max_properties"),
    (("responses",), "reasoning.effort", with_(reasoning={"effort": "huge"}), VALUE),
    (("responses",), "reasoning.summary", with_(reasoning={"summary": "long"}), VALUE),
    (("responses",), "reasoning.generate_summary",
     with_(reasoning={"generate_summary": "long"}), VALUE),
    (("responses",), "reasoning.mode", with_(reasoning={"mode": "x"}), NO_PARAM),
    (("responses",), "reasoning.context", with_(reasoning={"context": {}}), NO_PARAM),
    (("responses",), "text.verbosity", with_(text={"verbosity": "huge"}), VALUE),
    (("responses",), "service_tier", "fastest", VALUE),
    (("responses",), "prompt_cache_key", "k" * 65, LONG_TEXT),
    (("responses",), "prompt_cache_retention", 24, TYPE),
    (("responses",), "safety_identifier", "s" * 129, LONG_TEXT),
    (("responses",), "instructions", [], TYPE),
    (("tokenize",), "prompt", with_(), MISSING),
    (("tokenize",), "prompt", 5, TYPE),
    (("tokenize",), "model", with_(prompt="x", model=""), VALUE),
    (("tokenize",), "messages", with_(prompt="x", messages=[USER]), CONFLICT),
    (("tokenize",), "messages[0].content", messages({"role": "user"}), MISSING),
    (("tokenize",), "return_token_strs", with_(prompt="x", return_token_strs=1), TYPE),
    (("tokenize",), "continue_final_message",
     with_(messages=[USER], continue_final_message=True), VALUE),
    (("tokenize",), "tools[1].function.name", with_(messages=[USER], tools=[TOOL, TOOL]), VALUE),
    (("tokenize",), "chat_template", with_(messages=[USER], chat_template="x"), NO_PARAM),
    (("tokenize",), "chat_template_kwargs.tools",
     with_(messages=[USER], chat_template_kwargs={"tools": []}), VALUE),
    (("detokenize",), "tokens", with_(), MISSING),
    (("detokenize",), "tokens", "1", TYPE),
    (("detokenize",), "tokens[1]", with_(tokens=[1, 1.0]), TYPE),
    (("detokenize",), "tokens[0]", with_(tokens=[-1]), LOW),
]  # fmt: skip
REFUSED += [
    ((endpoint,), name, {"any": "value"}, NO_PARAM)
    for endpoint, table in (("chat", CHAT), ("completions", COMPLETIONS), ("responses", RESPONSES))
    for name in table
]


def refusal(endpoint: str, fields: Fields) -> tuple[int, str, str | None]:
    with pytest.raises(AntiphonError) as caught:
        parsed(endpoint, fields)
    return caught.value.status, caught.value.code, caught.value.param


@pytest.mark.wire("param:<endpoint>.<param>", "error:<code>")
@pytest.mark.parametrize(
    ("endpoint", "param", "fields", "code"), [case for line in REFUSED for case in row(*line)]
)
def test_refused(endpoint: str, param: str, fields: Fields, code: str) -> None:
    assert refusal(endpoint, fields) == (400, code, param)


def test_responses_previous_response_id_is_not_found_without_a_store() -> None:
    found = refusal("responses", {"previous_response_id": "resp_1"})
    assert found == (404, "previous_response_not_found", "previous_response_id")


@pytest.mark.wire("param:<endpoint>.<param>", "error:missing_required_parameter")
@pytest.mark.parametrize(
    ("endpoint", "param"),
    [(endpoint, param) for endpoint in ALL for param in ENDPOINTS[endpoint][1]],
)
def test_required_field_is_missing(endpoint: str, param: str) -> None:
    parse, least = ENDPOINTS[endpoint]
    with pytest.raises(AntiphonError) as caught:
        parse({name: value for name, value in least.items() if name != param})
    assert (caught.value.code, caught.value.param) == (MISSING, param)


BODIES: Mapping[str, type[Body]] = {
    "chat": ChatRequest,
    "completions": CompletionRequest,
    "responses": ResponseRequest,
    "tokenize a chat": EncodeChat,
    "tokenize a prompt": EncodePrompt,
    "detokenize": Decode,
}
TELLING = {"messages", "prompt"}
"""By these the two bodies of tokenize are told apart."""


def fields_of(cls: type[Body]) -> set[str]:
    return {field.name for field in attrs.fields(cls) if field.init}


def told(cls: type[Body]) -> set[str]:
    return {name for name in cls.without_effect if "." not in name}


KNOWN = {name for cls in BODIES.values() for name in fields_of(cls) | told(cls) | {*cls.refused}}


@pytest.mark.parametrize("endpoint", BODIES)
def test_no_parameter_of_another_endpoint_is_unknown(endpoint: str) -> None:
    cls = BODIES[endpoint]
    either = TELLING if endpoint.startswith("tokenize") else set()
    assert sorted(KNOWN - fields_of(cls) - told(cls) - {*cls.refused} - either) == []


@pytest.mark.parametrize("endpoint", BODIES)
def test_no_parameter_is_offered_and_refused_at_once(endpoint: str) -> None:
    cls = BODIES[endpoint]
    assert sorted(fields_of(cls) & ({*cls.refused} | told(cls))) == []


def test_what_is_used_instead_is_offered() -> None:
    for cls in BODIES.values():
        for name, hint in cls.refused.items():
            for instead in re.findall(r"Use `([a-z_]+)", hint):
                assert instead in fields_of(cls) | TELLING, (cls, name)


@pytest.mark.parametrize(
    ("endpoint", "name", "value"),
    [
        (endpoint, name, value)
        for name, value in NEUTRAL.items()
        for endpoint, table in (("chat", CHAT), ("completions", COMPLETIONS),
                                ("responses", RESPONSES))
        if name in table
    ],
)  # fmt: skip
def test_a_value_that_asks_for_nothing_is_told_as_ignored(
    endpoint: str, name: str, value: Any
) -> None:
    request = parsed(endpoint, {name: value})
    assert (request.ignored, request.unknown) == ([name], [])
    for other in (not value, str(value), [value], 2):
        assert refusal(endpoint, {name: other}) == (400, NO_PARAM, name)


def test_a_truth_is_no_number_that_asks_for_nothing() -> None:
    assert refusal("responses", {"n": True}) == (400, NO_PARAM, "n")
    assert refusal("responses", {"n": 1.0}) == (400, NO_PARAM, "n")
    assert refusal("responses", {"echo": 0}) == (400, NO_PARAM, "echo")


TOKENIZED: Mapping[str, Fields] = {
    "tokenize a chat": {"messages": [USER]},
    "tokenize a prompt": {"prompt": "x"},
}


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [(endpoint, name) for endpoint in TOKENIZED for name in BODIES[endpoint].refused],
)
def test_what_would_change_a_prompt_is_no_parameter_of_tokenize(endpoint: str, name: str) -> None:
    assert refusal("tokenize", {**TOKENIZED[endpoint], name: "x"}) == (400, NO_PARAM, name)


@pytest.mark.parametrize("name", DETOKENIZED)
def test_what_would_change_a_text_is_no_parameter_of_detokenize(name: str) -> None:
    assert refusal("detokenize", {"tokens": [1], name: "x"}) == (400, NO_PARAM, name)


def test_the_body_of_a_chat_can_be_tokenized_as_it_is() -> None:
    request = parsed("tokenize", {"model": "m", "messages": [USER], "stream": True, "n": 2,
                                  "temperature": 0.5, "max_tokens": 5})  # fmt: skip
    assert (request.ignored, request.unknown) == (["max_tokens", "n", "stream", "temperature"], [])


@pytest.mark.wire("param:<endpoint>.<name>")
@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        (endpoint, name)
        for endpoint in ALL
        for name in sorted(told(BODIES[endpoint]))
    ],
)  # fmt: skip
def test_field_without_effect_is_listed_and_not_unknown(endpoint: str, name: str) -> None:
    request = parsed(endpoint, {name: {"any": "value"}})
    assert (request.ignored, request.unknown) == ([name], [])
    assert parsed(endpoint, {name: None}).ignored == []


def test_usage_of_a_responses_stream_is_listed() -> None:
    options = {"include_usage": True, "include_obfuscation": True}
    request = parsed("responses", {"stream": True, "stream_options": options})
    assert request.ignored == ["stream_options.include_usage"]
    assert request.wants_obfuscation


def test_includes_of_other_servers_are_listed() -> None:
    include = ["web_search_call.results", "reasoning.encrypted_content"]
    request = parsed("responses", {"include": include})
    assert request.ignored == ["include[0]"]
    assert request.wants_envelope
