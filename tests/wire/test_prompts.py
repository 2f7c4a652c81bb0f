"""What reaches the model: the engine's prompt, for every parameter that is part of it."""

from __future__ import annotations

from typing import Any

import pytest

from wire.told import BOS, CONTEXT, Told

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "add", "description": "sums", "parameters": {"type": "object"}}
SHOWN = (
    '|tools=[{"type": "function", "function": {"name": "add", "description": "sums", '
    '"parameters": {"type": "object"}}}]'
)
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALL = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "4"}


def message(role: str, content: Any = "x", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        pytest.param(messages, prompt, marks=pytest.mark.wire(f"param:chat.messages.{role}"))
        for role, messages, prompt in [
            ("user", [message("user")], "<user:x>|go"),
            (
                "user",
                [message("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
                "<user:ab>|go",
            ),
            ("system", [message("system"), USER], "<system:x><user:hi>|go"),
            ("developer", [message("developer"), USER], "<system:x><user:hi>|go"),
            ("assistant", [USER, message("assistant"), USER], "<user:hi><assistant:x><user:hi>|go"),
            (
                "assistant",
                [USER, message("assistant", reasoning_content="why"), USER],
                "<user:hi><assistant:x|thought=why><user:hi>|go",
            ),
            (
                "assistant",
                [USER, message("assistant", reasoning="why"), USER],
                "<user:hi><assistant:x|thought=why><user:hi>|go",
            ),
            (
                "tool",
                [
                    USER,
                    {"role": "assistant", "tool_calls": [CHAT_CALL]},
                    message("tool", "4", tool_call_id="call_1"),
                ],
                '<user:hi><assistant:|calls=[{"id": "call_1", "type": "function", "function": '
                '{"name": "add", "arguments": {}}}]><tool:4>|go',
            ),
        ]
    ],
)
async def test_messages(app: Told, messages: list[Any], prompt: str) -> None:
    assert await app.prompt("chat", messages=messages) == prompt


@pytest.mark.wire("param:chat.messages.function", "S3")
async def test_the_old_role_is_refused(app: Told) -> None:
    for old, param in (
        (message("function", name="f"), "messages[1].role"),
        (message("assistant", function_call={"name": "f"}), "messages[1].function_call"),
    ):
        assert await app.refused("chat", messages=[USER, old]) == (param, "unsupported_value")


@pytest.mark.parametrize(
    ("items", "prompt"),
    [
        pytest.param(items, prompt, marks=pytest.mark.wire(f"param:responses.{row}"))
        for row, items, prompt in [
            ("input", "text", "<user:text>|go"),
            ("input.message", [message("user")], "<user:x>|go"),
            ("input.message", [message("developer"), USER], "<system:x><user:hi>|go"),
            (
                "input.message",
                [{"type": "message", **message("user", [{"type": "input_text", "text": "a"}])}],
                "<user:a>|go",
            ),
            (
                "input.message",
                [
                    {
                        "type": "message",
                        "phase": "commentary",
                        **message("assistant", [{"type": "output_text", "text": "a"}]),
                    },
                    USER,
                ],
                "<assistant:a|phase=commentary><user:hi>|go",
            ),
            (
                "input.reasoning",
                [
                    USER,
                    {
                        "type": "reasoning",
                        "summary": [],
                        "content": [{"type": "reasoning_text", "text": "why"}],
                    },
                    message("assistant"),
                    USER,
                ],
                "<user:hi><assistant:x|thought=why><user:hi>|go",
            ),
        ]
    ],
)
async def test_items(app: Told, items: Any, prompt: str) -> None:
    assert await app.prompt("responses", input=items) == prompt


@pytest.mark.wire(
    "param:responses.input.function_call", "param:responses.input.function_call_output", "S25"
)
async def test_a_call_and_its_output_are_the_same_from_both_endpoints(app: Told) -> None:
    chat = await app.prompt(
        "chat",
        messages=[
            USER,
            {"role": "assistant", "tool_calls": [CHAT_CALL]},
            message("tool", "4", tool_call_id="call_1"),
        ],
    )
    responses = await app.prompt("responses", input=[USER, CALL, OUTPUT])
    assert chat == responses
    assert "<tool:4>" in chat


@pytest.mark.wire(
    "param:responses.input.custom_tool_call", "param:responses.input.custom_tool_call_output", "S25"
)
async def test_a_call_of_a_tool_that_takes_text_is_that_of_a_function_of_one(app: Told) -> None:
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": 'say "é"'}
    output = [{"type": "input_text", "text": "4"}, {"type": "input_text", "text": "2"}]
    responses = await app.prompt(
        "responses",
        input=[
            USER,
            call,
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": output},
        ],
    )
    custom = {"name": "run", "input": 'say "é"'}
    chat = await app.prompt(
        "chat",
        messages=[
            USER,
            {
                "role": "assistant",
                "tool_calls": [{"id": "call_1", "type": "custom", "custom": custom}],
            },
            message("tool", "42", tool_call_id="call_1"),
        ],
    )
    assert chat == responses
    assert '"name": "run", "arguments": {"input": "say \\"é\\""}' in chat
    assert "<tool:42>" in chat


@pytest.mark.wire("S25", "param:responses.include", "param:responses.input.reasoning")
async def test_an_answer_that_is_sent_back_is_the_history_it_was(app: Told) -> None:
    """Reasoning comes back sealed, and its call and output as they were."""
    body = await app.post(
        "responses",
        says='<think>why</think><tool_call>{"name": "add", "arguments": {}}</tool_call>',
        tools=[{"type": "function", **TOOL}],
        include=["reasoning.encrypted_content"],
    )
    reasoning, call = body["output"]
    sealed = {**reasoning, "content": []}
    output = {**OUTPUT, "call_id": call["call_id"]}
    prompt = await app.prompt("responses", input=[USER, sealed, call, output])
    assert "|thought=why|calls=" in prompt
    assert prompt == await app.prompt("responses", input=[USER, reasoning, call, output])


@pytest.mark.wire("S25")
@pytest.mark.parametrize(
    "says",
    [
        "<think>why</think>Both.<tool_call>{0}</tool_call>\n<tool_call>{1}</tool_call>",
        "<tool_call>{0}</tool_call>and<tool_call>{1}</tool_call>so",
        "<think>a</think><tool_call>{1}</tool_call><think>b</think><tool_call>{0}</tool_call>",
    ],
)
async def test_an_answer_is_the_same_history_whichever_api_gave_it(app: Told, says: str) -> None:
    """Each client sends back what it was given, and its outputs from the last to the first."""
    function = '{"name": "add", "arguments": {"b": 1.50, "a": []}}'
    custom = '{"name": "run", "arguments": {"input": "ls\\n"}}'
    says = says.replace("{0}", function).replace("{1}", custom)
    run = {"name": "run"}
    nested = [{"type": "function", "function": TOOL}, {"type": "custom", "custom": run}]
    flat = [{"type": "function", **TOOL}, {"type": "custom", **run}]
    answer = (await app.post("chat", says=says, tools=nested))["choices"][0]["message"]
    results = [
        message("tool", f"of {call['type']}", tool_call_id=f"call_{index}")
        for index, call in enumerate(answer["tool_calls"])
    ]
    for index, call in enumerate(answer["tool_calls"]):
        call["id"] = f"call_{index}"  # else the ids alone would tell the two apart
    chat = await app.prompt("chat", messages=[USER, answer, *reversed(results)], tools=nested)

    items = (await app.post("responses", says=says, tools=flat))["output"]
    calls = [item for item in items if "call_id" in item]
    for index, call in enumerate(calls):
        call["call_id"] = f"call_{index}"
    outputs = [
        {
            "type": f"{call['type']}_output" if "custom" in call["type"] else OUTPUT["type"],
            "call_id": call["call_id"],
            "output": "of custom" if "custom" in call["type"] else "of function",
        }
        for call in calls
    ]
    responses = await app.prompt("responses", input=[USER, *items, *reversed(outputs)], tools=flat)
    assert chat == responses
    first, second = (call["type"] for call in answer["tool_calls"])
    assert f"<tool:of {first}><tool:of {second}>" in chat


@pytest.mark.wire("param:responses.input.item_reference", "S14")
async def test_without_a_store_nothing_can_be_referred_to(app: Told) -> None:
    reference = {"type": "item_reference", "id": "msg_1"}
    assert await app.refused("responses", input=[reference]) == (
        "input[0].type",
        "unsupported_value",
    )


@pytest.mark.wire("param:responses.instructions")
async def test_instructions_come_first(app: Told) -> None:
    prompt = await app.prompt("responses", instructions="be", input=[message("system"), USER])
    assert prompt == "<system:be><system:x><user:hi>|go"


@pytest.mark.wire("param:*.tools", "param:*.tool_choice.auto", "param:*.tool_choice.none", "S15")
async def test_tools_are_shown_unless_none_may_be_called(app: Told) -> None:
    for endpoint, tool in (
        ("chat", {"type": "function", "function": TOOL}),
        ("responses", {"type": "function", **TOOL}),
    ):
        assert await app.prompt(endpoint, tools=[tool]) == f"<user:hi>{SHOWN}|go"
        auto = await app.prompt(endpoint, tools=[tool], tool_choice="auto")
        assert auto == f"<user:hi>{SHOWN}|go"
        none = await app.prompt(endpoint, tools=[tool], tool_choice="none")
        assert none == "<user:hi>|go"
        for kind in ("web_search", "shell", "mcp"):
            assert await app.refused(endpoint, tools=[tool, {**tool, "type": kind}]) == (
                "tools[1].type",
                "unsupported_value",
            )


@pytest.mark.wire(
    "param:chat.reasoning_effort",
    "param:chat.reasoning.effort",
    "param:responses.reasoning.effort",
    "S16",
)
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
async def test_the_effort(app: Told, effort: str) -> None:
    on = effort != "none"
    expected = f"<user:hi>|enable_thinking={on}|thinking={on}|effort={effort}|go"
    for endpoint, fields in (
        ("chat", {"reasoning_effort": effort}),
        ("chat", {"reasoning": {"effort": effort}}),
        ("responses", {"reasoning": {"effort": effort}}),
    ):
        assert await app.prompt(endpoint, **fields) == expected
        assert "antiphon-ignored-fields" not in app.headers


@pytest.mark.wire("param:chat.verbosity", "param:responses.text.verbosity")
async def test_the_verbosity(app: Told) -> None:
    expected = "<user:hi>|verbosity=low|go"
    assert await app.prompt("chat", verbosity="low") == expected
    assert await app.prompt("responses", text={"verbosity": "low"}) == expected


@pytest.mark.wire("param:*.chat_template_kwargs")
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_variables_of_the_template(app: Told, endpoint: str) -> None:
    prompt = await app.prompt(endpoint, chat_template_kwargs={"colour": "red", "unread": 1})
    assert prompt == "<user:hi>|colour=red|go"
    assert app.headers["antiphon-ignored-fields"] == "chat_template_kwargs.unread"
    for name in ("messages", "tools", "documents", "add_generation_prompt", "bos_token"):
        assert await app.refused(endpoint, chat_template_kwargs={name: 1}) == (
            f"chat_template_kwargs.{name}",
            "invalid_value",
        )


@pytest.mark.wire("param:chat.documents")
async def test_documents(app: Told) -> None:
    prompt = await app.prompt("chat", documents=[{"title": "T"}])
    assert prompt == '<user:hi>|documents=[{"title": "T"}]|go'


@pytest.mark.wire("param:chat.add_generation_prompt", "param:chat.continue_final_message")
async def test_where_a_prompt_ends(app: Told) -> None:
    history = [USER, message("assistant", "Once upon")]
    assert await app.prompt("chat", messages=history, add_generation_prompt=False) == (
        "<user:hi><assistant:Once upon>"
    )
    assert await app.prompt("chat", messages=history, continue_final_message=True) == (
        "<user:hi><assistant:Once upon"
    )
    assert await app.refused(
        "chat", messages=history, continue_final_message=True, add_generation_prompt=True
    ) == ("continue_final_message", "conflicting_parameters")


@pytest.mark.wire("param:*.add_special_tokens")
async def test_marks_of_the_tokenizer(app: Told) -> None:
    for endpoint, text, default in (
        ("chat", "<user:hi>|go", False),
        ("responses", "<user:hi>|go", False),
        ("completions", "hi", True),
    ):
        for asked in (None, True, False):
            marked = default if asked is None else asked
            prompt = await app.prompt(endpoint, add_special_tokens=asked)
            assert prompt == (BOS + text if marked else text)


@pytest.mark.wire("param:completions.prompt")
async def test_prompts_of_text_and_of_ids(app: Told) -> None:
    ids = app.prompter.text("hello", add_special_tokens=False).tolist()
    for prompt, expected in (
        ("hi", [f"{BOS}hi"]),
        (["hi", "ho"], [f"{BOS}hi", f"{BOS}ho"]),
        (ids, ["hello"]),
        ([ids, ids[:1]], ["hello", app.prompter.decode(ids[:1])]),
    ):
        await app.post("completions", prompt=prompt)
        asked = [request.prompt.tolist() for request in app.engine.requests]
        assert list(map(app.prompter.decode, asked)) == expected
    refused: list[tuple[Any, str, str]] = [
        ([], "prompt", "empty_array"),
        ([[]], "prompt[0]", "empty_array"),
        (["a", 1], "prompt[1]", "invalid_type"),
        ([1, "a"], "prompt[1]", "invalid_type"),
        ([10**6], "prompt[0]", "invalid_value"),
    ]
    for wrong, param, code in refused:
        assert await app.refused("completions", prompt=wrong) == (param, code)


@pytest.mark.wire("param:responses.truncation", "S19")
async def test_the_oldest_items_go_and_nothing_else(app: Told) -> None:
    old, new = message("user", "o" * CONTEXT), message("user", "new")
    assert await app.refused("responses", input=[old, new]) == ("input", "context_length_exceeded")
    prompt = await app.prompt("responses", input=[old, new], instructions="be", truncation="auto")
    assert prompt == "<system:be><user:new>|go"
    body = await app.post("responses", input=[old, new], truncation="auto")
    assert body["truncation"] == "auto"
    prompt = await app.prompt("responses", input=[USER, new], truncation="auto")
    assert prompt == "<user:hi><user:new>|go"
    assert await app.refused("responses", input=[new, old], truncation="auto") == (
        "input",
        "context_length_exceeded",
    )


@pytest.mark.wire("param:*.model", "S7")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
async def test_a_model_is_named_and_known(app: Told, endpoint: str, stream: bool) -> None:
    assert (await app.asked(endpoint, stream=stream)).model == "m"
    assert await app.refused(endpoint, stream=stream, model="nope") == ("model", "model_not_found")
    assert await app.refused(endpoint, stream=stream, model=None) == (
        "model",
        "missing_required_parameter",
    )
