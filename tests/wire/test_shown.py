"""Parameters that decide what an answer shows: of its text, its tokens and its stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.sse import chunks, events
from wire.told import Told

ENDPOINTS = ("chat", "completions", "responses")
THOUGHT = "<think>why</think>so"


def text(endpoint: str, body: Any) -> str:
    """The visible text of a body with one choice."""
    if endpoint == "responses":
        items = [item for item in body["output"] if item["type"] == "message"]
        return "".join(part["text"] for item in items for part in item["content"])
    choice = body["choices"][0]
    return str(choice["text"] if endpoint == "completions" else choice["message"]["content"])


def logged(endpoint: str, body: Any) -> list[str]:
    """The tokens of the logprobs of a body with one choice."""
    if endpoint == "responses":
        return [entry["token"] for entry in body["output"][-1]["content"][0]["logprobs"]]
    choice = body["choices"][0]["logprobs"]
    return (
        choice["tokens"]
        if endpoint == "completions"
        else [entry["token"] for entry in choice["content"]]
    )


ASK_LOGPROBS: dict[str, dict[str, Any]] = {
    "chat": {"logprobs": True, "top_logprobs": 2},
    "completions": {"logprobs": 2},
    "responses": {"top_logprobs": 2},
}


@pytest.mark.wire("param:*.stop", "param:*.include_stop_str_in_output", "C10")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_stop_string_cuts_text_ids_and_logprobs_at_one_place(
    app: Told, endpoint: str
) -> None:
    fields = ASK_LOGPROBS[endpoint]
    if endpoint != "responses":
        fields = {**fields, "return_token_ids": True}
    for stop in ("tem", ["zz", "tem"]):
        body = await app.post(endpoint, says="A system message", stop=stop, **fields)
        assert text(endpoint, body) == "A sys"
        assert "".join(logged(endpoint, body)).startswith("A sys")
        assert app.engine.aborted == [app.engine.requests[0].key]
        if endpoint != "responses":
            choice = body["choices"][0]
            assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "tem")
            assert len(choice["token_ids"]) == len(logged(endpoint, body))
            assert app.prompter.decode(choice["token_ids"]).startswith("A sys")
    body = await app.post(
        endpoint, says="A system message", stop="tem", include_stop_str_in_output=True
    )
    assert text(endpoint, body) == "A system"


@pytest.mark.wire("param:*.skip_special_tokens")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_special_tokens_are_shown_when_asked(app: Told, endpoint: str) -> None:
    says = "a<|im_end|>b"
    assert text(endpoint, await app.post(endpoint, says=says)) == "ab"
    shown = await app.post(endpoint, says=says, skip_special_tokens=False)
    assert text(endpoint, shown) == says


@pytest.mark.wire("param:chat.return_token_ids", "param:completions.return_token_ids", "K14")
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_token_ids(app: Told, endpoint: str) -> None:
    body = await app.post(endpoint, says="A system message", return_token_ids=True)
    choice = body["choices"][0]
    assert choice["token_ids"] == list(app.engine.says)
    prompt = app.engine.requests[0].prompt.tolist()
    assert (body if endpoint == "chat" else choice)["prompt_token_ids"] == prompt
    stream = chunks(
        (
            await app.post(endpoint, says="A system message", return_token_ids=True, stream=True)
        ).encode()
    )
    parts = [part for chunk in stream for part in chunk["choices"]]
    assert [token for part in parts for token in part.get("token_ids", ())] == choice["token_ids"]
    assert all(type(token) is int for part in parts for token in part.get("token_ids", ()))
    first = stream[0] if endpoint == "chat" else parts[0]
    assert first["prompt_token_ids"] == prompt
    assert "token_ids" not in json.dumps(await app.post(endpoint))


@pytest.mark.wire("param:*.return_tokens_as_token_ids")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_tokens_as_their_ids(app: Told, endpoint: str) -> None:
    body = await app.post(endpoint, return_tokens_as_token_ids=True, **ASK_LOGPROBS[endpoint])
    assert logged(endpoint, body) == [f"token_id:{token}" for token in app.engine.says]


@pytest.mark.wire("param:chat.logprobs", "param:chat.top_logprobs", "S11")
async def test_logprobs_of_chat(app: Told) -> None:
    body = await app.post("chat", logprobs=True, top_logprobs=2)
    assert app.engine.requests[0].logprobs == 2
    entries = body["choices"][0]["logprobs"]["content"]
    assert [entry["logprob"] for entry in entries] == [-0.5] * len(app.engine.says)
    assert all(len(entry["top_logprobs"]) == 2 for entry in entries)
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == b"Hello"
    body = await app.post("chat", logprobs=True)
    assert [entry["top_logprobs"] for entry in body["choices"][0]["logprobs"]["content"]] == [
        [] for _ in app.engine.says
    ]
    assert (await app.post("chat"))["choices"][0]["logprobs"] is None
    assert await app.refused("chat", top_logprobs=2) == ("top_logprobs", "invalid_value")


@pytest.mark.wire("param:completions.logprobs", "S4", "S11")
async def test_logprobs_of_completions(app: Told) -> None:
    body = await app.post("completions", says="A system message", logprobs=1)
    logprobs = body["choices"][0]["logprobs"]
    assert {len(values) for values in logprobs.values()} == {len(app.engine.says)}
    offset = 0
    for token, at in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert at == offset
        offset += len(token)
    assert (await app.post("completions"))["choices"][0]["logprobs"] is None


@pytest.mark.wire("param:responses.top_logprobs", "param:responses.include", "S11", "S24")
async def test_logprobs_of_responses(app: Told) -> None:
    body = await app.post("responses", include=["message.output_text.logprobs"])
    assert app.engine.requests[0].logprobs == 0
    assert len(body["output"][0]["content"][0]["logprobs"]) == len(app.engine.says)
    body = await app.post("responses", top_logprobs=1)
    assert body["top_logprobs"] == 1
    (part,) = body["output"][0]["content"]
    assert all(len(entry["top_logprobs"]) == 1 for entry in part["logprobs"])
    pairs = events((await app.post("responses", top_logprobs=1, stream=True)).encode())
    told = {name: value for name, value in pairs if name is not None}
    deltas = [value for name, value in pairs if name == "response.output_text.delta"]
    entries = [entry for delta in deltas for entry in delta["logprobs"]]
    assert entries == told["response.output_text.done"]["logprobs"] == part["logprobs"]
    assert told["response.content_part.done"]["part"] == part
    assert (await app.post("responses"))["output"][0]["content"][0]["logprobs"] == []


@pytest.mark.wire("param:responses.include")
async def test_what_may_be_included(app: Told) -> None:
    await app.post(
        "responses", include=["file_search_call.results", "message.output_text.logprobs"]
    )
    assert app.headers["antiphon-ignored-fields"] == "include[0]"
    assert await app.refused("responses", include=["message.output_text.logprobs", "x"]) == (
        "include[1]",
        "invalid_value",
    )
    body = await app.post("responses", says=THOUGHT)
    assert "encrypted_content" not in body["output"][0]
    body = await app.post("responses", says=THOUGHT, include=["reasoning.encrypted_content"])
    assert list(body["output"][0])[-1] == "encrypted_content"


@pytest.mark.wire("param:*.include_reasoning", "S17")
async def test_reasoning_can_be_hidden(app: Told) -> None:
    body = await app.post("completions", says=THOUGHT, include_reasoning=False, max_tokens=99)
    assert text("completions", body) == "so"
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    for endpoint in ("chat", "responses"):
        shown = await app.post(endpoint, says=THOUGHT)
        hidden = await app.post(endpoint, says=THOUGHT, include_reasoning=False)
        assert text(endpoint, shown) == text(endpoint, hidden) == "so"
        assert "why" in json.dumps(shown)
        assert "why" not in json.dumps(hidden)
        assert shown["usage"] == hidden["usage"]
    assert [item["id"][:3] for item in hidden["output"]] == ["msg"]
    stream = events(
        (await app.post("responses", says=THOUGHT, include_reasoning=False, stream=True)).encode()
    )
    assert "reasoning" not in "".join(name or "" for name, _ in stream)


@pytest.mark.wire("param:*.include_reasoning")
async def test_where_thought_begins_is_as_the_prompt_has_left_it(app: Told) -> None:
    """Behind an opener it has begun, behind a closer it is over."""
    hidden: dict[str, Any] = {"include_reasoning": False, "max_tokens": 99}
    for prompt, says, shown in (
        ("Hm? <think>\n", "why</think> so", "so"),
        ("Hm? <think>\n", "why", ""),
        ("Hm? <think>\n\n</think>\n\n", "so", "so"),
        ("Hm?", "<think>why</think>so", "so"),
    ):
        body = await app.post("completions", says=says, prompt=prompt, **hidden)
        assert text("completions", body) == shown
    history = [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": "<think>"}]
    body = await app.post("chat", says="why</think>so", messages=history,
                          continue_final_message=True)  # fmt: skip
    said = body["choices"][0]["message"]
    assert (said["reasoning_content"], said["content"]) == ("why", "so")


@pytest.mark.wire("param:*.thinking_token_budget")
async def test_a_budget_of_thought_needs_thought_and_an_engine_that_keeps_it(
    app: Told, free: Told
) -> None:
    for endpoint in ENDPOINTS:
        await app.post(endpoint, thinking_token_budget=5)
        assert "antiphon-ignored-fields" not in app.headers
        assert await free.refused(endpoint, thinking_token_budget=5) == (
            "thinking_token_budget",
            "unsupported_parameter",
        )
        assert await app.refused(endpoint, thinking_token_budget=-1) == (
            "thinking_token_budget",
            "integer_below_min_value",
        )
    await app.post("chat", thinking_token_budget=5, reasoning_effort="none")
    assert app.headers["antiphon-ignored-fields"] == "thinking_token_budget"


@pytest.mark.wire("param:*.separate_reasoning")
async def test_reasoning_can_stay_in_the_text(app: Told) -> None:
    for endpoint in ("chat", "responses"):
        body = await app.post(endpoint, says=THOUGHT, separate_reasoning=False)
        assert text(endpoint, body) == THOUGHT
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    tools = [{"type": "function", "name": "add"}]
    body = await app.post("responses", says=THOUGHT + call, separate_reasoning=False, tools=tools)
    assert [item["type"] for item in body["output"]] == ["message", "function_call"]


async def test_reasoning_that_is_left_out_is_not_left_in_the_text(app: Told) -> None:
    both = {"include_reasoning": False, "separate_reasoning": False}
    for endpoint in ("chat", "responses"):
        assert text(endpoint, await app.post(endpoint, says=THOUGHT, **both)) == "so"


@pytest.mark.wire("param:completions.separate_reasoning")
async def test_a_completion_is_raw_text_in_any_case(app: Told) -> None:
    for separate in (True, False):
        body = await app.post(
            "completions", says=THOUGHT, separate_reasoning=separate, max_tokens=99
        )
        assert text("completions", body) == THOUGHT


@pytest.mark.wire("param:completions.echo", "S8")
async def test_the_prompt_is_echoed_as_text(app: Told) -> None:
    ids = app.prompter.text("hello", add_special_tokens=False).tolist()
    for prompt in ("hello", ids):
        for stream in (False, True):
            got = await app.post(
                "completions", says=" there", prompt=prompt, echo=True, stream=stream
            )
            if stream:
                shown = "".join(
                    part["text"] for chunk in chunks(got.encode()) for part in chunk["choices"]
                )
            else:
                shown = text("completions", got)
            assert shown == "hello there"
    assert text("completions", await app.post("completions", says=" there")) == " there"


@pytest.mark.wire("param:completions.echo", "param:completions.logprobs", "S4")
async def test_an_echoed_prompt_has_logprobs_too(app: Told) -> None:
    """Nothing stands before the first token of a prompt, so it has none. Offsets go on."""
    ids = app.prompter.text("hello", add_special_tokens=False).tolist()
    for grouped in (1, 100):
        body = await app.post(
            "completions", says=" there", prompt=ids, echo=True, logprobs=1, grouped=grouped
        )
        logprobs = body["choices"][0]["logprobs"]
        assert "".join(logprobs["tokens"]) == body["choices"][0]["text"] == "hello there"
        assert len(logprobs["tokens"]) == len(ids) + len(app.engine.says)
        assert logprobs["token_logprobs"] == (
            [None] + [-1.0] * (len(ids) - 1) + [-0.5] * len(app.engine.says)
        )
        assert [top is None for top in logprobs["top_logprobs"]].count(True) == 1
        assert logprobs["top_logprobs"][0] is None
        ends = [sum(map(len, logprobs["tokens"][:count])) for count in range(len(ids) + 9)]
        assert logprobs["text_offset"] == ends[: len(logprobs["tokens"])]


@pytest.mark.wire("param:completions.max_tokens", "param:completions.echo")
async def test_a_prompt_alone_can_be_asked_for(app: Told) -> None:
    body = await app.post("completions", prompt="hello", echo=True, max_tokens=0)
    assert text("completions", body) == "hello"
    assert body["usage"]["completion_tokens"] == 0
    assert await app.refused("completions", max_tokens=0) == (
        "max_tokens",
        "integer_below_min_value",
    )


@pytest.mark.wire("param:*.parallel_tool_calls", "P21")
async def test_calls_can_be_one_at_most(app: Told) -> None:
    call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    for endpoint, tool in (
        ("chat", {"type": "function", "function": {"name": "add"}}),
        ("responses", {"type": "function", "name": "add"}),
    ):
        for parallel, count in ((True, 2), (False, 1)):
            body = await app.post(
                endpoint, says=call * 2, tools=[tool], parallel_tool_calls=parallel
            )
            if endpoint == "chat":
                calls = body["choices"][0]["message"]["tool_calls"]
            else:
                calls = [item for item in body["output"] if item["type"] == "function_call"]
                assert body["parallel_tool_calls"] is parallel
            assert len(calls) == count
            assert (app.engine.aborted != []) is not parallel


@pytest.mark.wire("param:*.tool_choice.none")
async def test_markers_are_text_where_no_call_is_looked_for(app: Told) -> None:
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    tool = {"type": "function", "function": {"name": "add"}}
    asked: list[dict[str, Any]] = [{}, {"tools": [tool], "tool_choice": "none"}]
    for fields in asked:
        body = await app.post("chat", says=call, **fields)
        assert text("chat", body) == call
        assert body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.wire("param:*.stream", "F1", "F2", "F3")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_stream_is_asked_for(app: Told, endpoint: str) -> None:
    await app.post(endpoint, stream=False)
    assert app.headers["content-type"] == "application/json"
    data = (await app.post(endpoint, stream=True)).encode()
    assert app.headers["content-type"] == "text/event-stream; charset=utf-8"
    names = [name for name, _ in events(data)][:-1]
    if endpoint == "responses":
        assert names == [value["type"] for _, value in events(data)[:-1]]
    else:
        assert set(names) == {None}


@pytest.mark.wire("param:*.stream_options.include_usage", "C8", "C11", "C18", "K13", "P22")
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_usage_in_a_stream(app: Told, endpoint: str) -> None:
    unary = (await app.post(endpoint))["usage"]
    for options in (None, {}, {"include_usage": False}):
        got = chunks((await app.post(endpoint, stream=True, stream_options=options)).encode())
        assert all("usage" not in chunk for chunk in got)
    asked = await app.post(endpoint, stream=True, stream_options={"include_usage": True})
    *before, last = chunks(asked.encode())
    assert all(chunk["usage"] is None for chunk in before)
    assert (last["choices"], last["usage"]) == ([], unary)
    assert await app.refused(endpoint, stream_options={}) == ("stream_options", "invalid_value")


@pytest.mark.wire("param:*.stream_options.continuous_usage_stats")
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_usage_so_far(app: Told, endpoint: str) -> None:
    options = {"continuous_usage_stats": True}
    got = chunks((await app.post(endpoint, stream=True, stream_options=options)).encode())
    told = [chunk["usage"]["completion_tokens"] for chunk in got]
    assert told == sorted(told)
    assert told[-1] == len(app.engine.says)
    prompt = len(app.engine.requests[0].prompt)
    assert {chunk["usage"]["prompt_tokens"] for chunk in got} == {prompt}


@pytest.mark.wire("param:*.stream_options.include_obfuscation")
async def test_deltas_can_be_padded(app: Told) -> None:
    options = {"include_obfuscation": True}
    for endpoint in ENDPOINTS:
        padded = await app.post(endpoint, stream=True, stream_options=options)
        plain = await app.post(endpoint, stream=True)
        assert '"obfuscation":"' in padded
        assert "obfuscation" not in plain


@pytest.mark.wire("param:*.request_id", "param:*.rid", "I1", "I3", "I4", "S20")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_the_request_names_the_answer(app: Told, endpoint: str) -> None:
    prefix = {"chat": "chatcmpl-", "completions": "cmpl-", "responses": "resp_"}[endpoint]
    for name in ("request_id", "rid"):
        fields: dict[str, Any] = {name: "abc"}
        body = await app.post(endpoint, **fields)
        assert body["id"] == f"{prefix}abc"
        assert app.engine.requests[0].id == "abc-0"
        assert app.headers["x-request-id"] == "abc"
    if endpoint == "responses":
        assert body["output"][0]["id"] == "msg_abc_0"
