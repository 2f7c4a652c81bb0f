"""The two converters: the fast one takes exactly what the detailed one takes.

Bodies are rich and right, and then one place in them is changed, removed or added to.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from cattrs import Converter
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import AntiphonError, InvalidRequest
from antiphon.requests import converter
from antiphon.requests.body import Body
from antiphon.requests.chat import ChatRequest, parse_chat
from antiphon.requests.class_hook import strangers
from antiphon.requests.completions import CompletionRequest, parse_completion
from antiphon.requests.responses import ResponseRequest, parse_response
from antiphon.requests.tokenize import Decode, EncodeChat, parse_decode, parse_encode

SAMPLING = {
    "model": "m", "stream": True, "temperature": 0.5, "top_p": 1, "seed": 7, "stop": ["a", "b"],
    "logit_bias": {"7": 1.5, "8": -100}, "user": "u", "top_k": 5, "min_tokens": 1,
    "stop_token_ids": [1, 2], "allowed_token_ids": [0, 1], "priority": -1, "cache_salt": "s",
    "return_token_ids": False, "structured_outputs": {"choice": ["a", "b"]},
}  # fmt: skip
RICH_CHAT = {
    **SAMPLING,
    "stream_options": {"include_usage": True},
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "t"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "r",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "t"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": [1]}}}],
    "tool_choice": {"type": "allowed_tools", "allowed_tools": {
        "mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
    "response_format": {"type": "text"},
    "documents": [{"title": "t"}],
    "reasoning": {"effort": "low"},
    "modalities": ["text"],
}  # fmt: skip
RICH_RESPONSE = {
    **{name: value for name, value in SAMPLING.items() if name != "return_token_ids"},
    "stream_options": {"include_obfuscation": True},
    "input": [
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "t"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}],
         "content": [{"type": "reasoning_text", "text": "r"}], "encrypted_content": "e"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_text", "text": "t"}]},
        {"role": "assistant", "status": "completed", "phase": "final_answer", "content": [
            {"type": "output_text", "text": "t", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "no"}]},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"a": [1]}, "strict": True}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"k": "v"},
}  # fmt: skip
RICH: list[tuple[type[Body], Any, dict[str, Any]]] = [
    (ChatRequest, parse_chat, RICH_CHAT),
    (ResponseRequest, parse_response, {**RICH_RESPONSE, "structured_outputs": None}),
    (CompletionRequest, parse_completion, {**SAMPLING, "prompt": [[1, 2], [3]], "echo": True}),
    (EncodeChat, parse_encode,
     {name: RICH_CHAT[name] for name in ("model", "messages", "tools", "documents")}),
    (Decode, parse_decode, {"tokens": [0, 1, 5]}),
]  # fmt: skip

LEAVES = [
    None, True, False, 0, 1, -1, 0.5, 1.0, 2**64, "", "auto", "text", "function", "user", "x" * 65,
    [], {}, [None], ["a"], [1], [True], {"type": "text"}, {"type": 1}, {"a": 1},
]  # fmt: skip


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in inner:
        yield from (
            places(below, (*path, key)) if isinstance(below, dict | list) else [(*path, key)]
        )


def changed(body: Any, path: tuple[str | int, ...], how: str, value: Any) -> Any:
    body = copy.deepcopy(body)
    holder = body
    for key in path[:-1]:
        holder = holder[key]
    if how == "remove":
        del holder[path[-1]]
    elif how == "set":
        holder[path[-1]] = value
    elif isinstance(holder, dict):
        holder["stranger"] = value
    else:
        holder.append(value)
    return body


def outcome(of: Converter, body: Any, cls: type[Body]) -> str | None:
    """What it makes of the body, or None; ``repr`` because ``1 == True``."""
    token = strangers.set([])
    try:
        return repr(of.structure(body, cls))
    except (InvalidRequest, KeyError, ExceptionGroup):
        return None
    finally:
        strangers.reset(token)


@pytest.mark.parametrize(("cls", "parse", "body"), RICH, ids=[cls.__name__ for cls, *_ in RICH])
@given(data=st.data())
def test_converters_agree(cls: type[Body], parse: Any, body: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(places(body))))
    how = data.draw(st.sampled_from(["set", "set", "set", "remove", "add"]))
    mutant = changed(body, path, how, data.draw(st.sampled_from(LEAVES)))
    fast = outcome(converter._fast, mutant, cls)
    assert fast == outcome(converter._detailed, mutant, cls)
    if fast is not None:
        return
    with pytest.raises(InvalidRequest) as caught:
        converter.structure(mutant, cls)
    assert caught.value.param is not None
    # Of the changed object, or of something in it: nothing else was wrong.
    assert caught.value.param.startswith(spelled(path[:-1]).removesuffix("."))


@pytest.mark.parametrize(("cls", "parse", "body"), RICH, ids=[cls.__name__ for cls, *_ in RICH])
@given(data=st.data())
def test_parsing_raises_refusals_alone(
    cls: type[Body], parse: Any, body: Any, data: st.DataObject
) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(body))))
        how = data.draw(st.sampled_from(["set", "remove", "add"]))
        body = changed(body, path, how, data.draw(st.sampled_from(LEAVES)))
        if not body:
            break
    try:
        request = parse(body)
    except AntiphonError as error:
        refused = error
    else:
        assert isinstance(request, Body)
        return
    assert refused.status == 400
    assert refused.param


@pytest.mark.parametrize(("cls", "parse", "body"), RICH, ids=[cls.__name__ for cls, *_ in RICH])
def test_rich_bodies_are_right_and_hold_no_stranger(cls: Any, parse: Any, body: Any) -> None:
    request = parse(body)
    assert (request.ignored, request.unknown) == ([], [])


@given(data=st.data())
@pytest.mark.parametrize(("cls", "parse", "body"), RICH, ids=[cls.__name__ for cls, *_ in RICH])
def test_a_stranger_is_named_with_its_path(
    cls: type[Body], parse: Any, body: Any, data: st.DataObject
) -> None:
    objects = [(), *(path for path in places(body) if isinstance(at(body, path), dict))]
    path = data.draw(st.sampled_from([p for p in objects if not FREE & set(p)]))
    value = data.draw(st.sampled_from(LEAVES))
    request = parse(changed(body, (*path, "stranger"), "set", value))
    expected = [] if value is None else [f"{spelled(path)}stranger"]
    assert (request.ignored, request.unknown) == ([], expected)


FREE = {"logit_bias", "parameters", "documents", "metadata"}
"""Objects whose fields are the client's own."""


def at(body: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


def spelled(path: tuple[str | int, ...]) -> str:
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join([*steps, "."]).removeprefix(".") if path else ""
