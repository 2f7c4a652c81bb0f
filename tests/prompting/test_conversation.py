"""A history is the same list of messages, whichever endpoint it came through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.errors import InvalidRequest
from antiphon.prompting.conversation import Message, chat_messages, response_messages
from antiphon.requests.chat import parse_chat
from antiphon.requests.responses import parse_response


def of_chat(*messages: dict[str, Any]) -> list[Message]:
    return chat_messages(parse_chat({"model": "m", "messages": list(messages)}).messages)


def of_response(*items: dict[str, Any], **fields: Any) -> list[Message]:
    return response_messages(parse_response({"model": "m", "input": list(items), **fields}))


def call(arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize("depth", [2, 199, 200, 201, 490, 990, 100_000])
def test_arguments_of_any_depth_are_shown(depth: int) -> None:
    """Beyond the depth of a body they are text: templates recurse through what they are given."""
    arguments = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    (message,) = of_chat({"role": "assistant", "tool_calls": [call(arguments)]})
    shown = message["tool_calls"][0]["function"]["arguments"]
    assert shown == (arguments if depth > 200 else json.loads(arguments))


def test_a_tool_turn_is_the_same_through_chat_and_responses() -> None:
    arguments = '{"city": "Oslo"}'
    through_chat = of_chat(
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Wea"}, {"type": "text", "text": "ther?"}],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [call(arguments)],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    )
    through_responses = of_response(
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        instructions="Be brief.",
    )
    assert through_chat == through_responses
    assert through_chat[0] == {"role": "system", "content": "Be brief."}
    assert through_chat[2]["tool_calls"][0]["function"]["arguments"] == {"city": "Oslo"}


def thought(text: str) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "summary": [], "content": content}


def called(call_id: str, name: str = "f", arguments: str = '{"b": 1, "a": 2}') -> Any:
    """A call as chat has it, and as an item."""
    function = {"name": name, "arguments": arguments}
    return (
        {"id": call_id, "type": "function", "function": function},
        {"type": "function_call", "call_id": call_id, **function},
    )


def custom(call_id: str, text: str) -> Any:
    return (
        {"id": call_id, "type": "custom", "custom": {"name": "sh", "input": text}},
        {"type": "custom_tool_call", "call_id": call_id, "name": "sh", "input": text},
    )


def output(call_id: str, text: Any, kind: str = "function_call") -> Any:
    return (
        {"role": "tool", "tool_call_id": call_id, "content": text},
        {"type": f"{kind}_output", "call_id": call_id, "output": text},
    )


def said(text: str | None, *calls: Any, **fields: Any) -> dict[str, Any]:
    of_message = {"tool_calls": [chat for chat, _ in calls]} if calls else {}
    return {"role": "assistant", "content": text, **of_message, **fields}


def wrote(text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **fields}


ASKED = {"role": "user", "content": "Go"}
ONE, TWO, RUN, BARE = (
    called("1"),
    called("2", "g", "[1]"),
    custom("3", 'a\n"b"'),
    called("4", "h", ""),
)
OUT_1, OUT_2, OUT_3 = output("1", "one"), output("2", "two"), output("3", "x", "custom_tool_call")
PAIRS: dict[str, tuple[list[Any], list[Any]]] = {
    "text": ([said("Hi")], [wrote("Hi")]),
    "text in a string": ([said("Hi")], [{"role": "assistant", "content": "Hi"}]),
    "phases": (
        [said("Hm", phase="commentary"), said("Hi", phase="final_answer")],
        [wrote("Hm", phase="commentary"), wrote("Hi", phase="final_answer")],
    ),
    "reasoning": ([said("Hi", reasoning_content="a")], [thought("a"), wrote("Hi")]),
    "a call without text": ([said(None, ONE)], [ONE[1]]),
    "a call beside text": ([said("Hi", ONE)], [wrote("Hi"), ONE[1]]),
    "a call with a phase": (
        [said("Hi", ONE, phase="commentary")],
        [wrote("Hi", phase="commentary"), ONE[1]],
    ),
    "a call before text": ([said("Hi", ONE)], [ONE[1], wrote("Hi")]),
    "a call between texts": ([said("Hi there", ONE)], [wrote("Hi "), ONE[1], wrote("there")]),
    "reasoning before a call": ([said(None, ONE, reasoning="a")], [thought("a"), ONE[1]]),
    "reasoning in between": (
        [said("Hi", ONE, TWO, reasoning_content="abc")],
        [thought("a"), wrote("Hi"), thought("b"), ONE[1], thought("c"), TWO[1]],
    ),
    "reasoning at the end": (
        [said("Hi", ONE, reasoning_content="ab"), OUT_1[0]],
        [thought("a"), wrote("Hi"), ONE[1], thought("b"), OUT_1[1]],
    ),
    "outputs in order": (
        [said(None, ONE, TWO), OUT_1[0], OUT_2[0]],
        [ONE[1], TWO[1], OUT_1[1], OUT_2[1]],
    ),
    "outputs in another order": (
        [said(None, ONE, TWO, RUN), OUT_3[0], OUT_2[0], OUT_1[0]],
        [ONE[1], TWO[1], RUN[1], OUT_2[1], OUT_3[1], OUT_1[1]],
    ),
    "one call after the other": (
        [said(None, ONE), OUT_1[0], said("Hm", TWO), OUT_2[0]],
        [ONE[1], OUT_1[1], wrote("Hm"), TWO[1], OUT_2[1]],
    ),
    "custom": ([said(None, RUN), OUT_3[0]], [RUN[1], OUT_3[1]]),
    "no arguments": ([said(None, BARE)], [BARE[1]]),
    "output in parts": (
        [said(None, ONE), {**OUT_1[0], "content": [{"type": "text", "text": "x"}] * 2}],
        [ONE[1], {**OUT_1[1], "output": [{"type": "input_text", "text": "x"}] * 2}],
    ),
    "a refusal": (
        [{"role": "assistant", "refusal": "No"}],
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PAIRS)
def test_what_was_said_is_the_same_through_both(what: str) -> None:
    messages, items = PAIRS[what]
    history = of_chat(ASKED, *messages, ASKED)
    assert history == of_response(ASKED, *items, ASKED)
    assert [message["role"] for message in history].count("user") == 2


def test_outputs_follow_their_calls_and_know_the_names_of_the_tools() -> None:
    history = of_chat(ASKED, *PAIRS["outputs in another order"][0])
    told = [(each["name"], each["content"]) for each in history if each["role"] == "tool"]
    assert told == [("f", "one"), ("g", "two"), ("sh", "x")]
    called_with = [call["function"]["arguments"] for call in history[1]["tool_calls"]]
    assert list(called_with[0].items()) == [("b", 1), ("a", 2)]
    assert called_with[1:] == ["[1]", {"input": 'a\n"b"'}]
    # A name that was sent stays.
    history = of_chat(ASKED, said(None, ONE), {**OUT_1[0], "name": "mine"})
    assert history[2]["name"] == "mine"


@pytest.mark.parametrize("before", [[], [said(None, ONE)]])
def test_an_output_without_a_call_is_refused_as_on_responses(before: list[Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        of_chat(ASKED, *before, OUT_2[0])
    assert refused.value.param == f"messages[{len(before) + 1}].tool_call_id"
    assert refused.value.code == "invalid_function_call_output"


def test_calls_without_text_share_one_assistant_message() -> None:
    items = [
        {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"}
        for i in range(2)
    ]
    history = of_response({"role": "user", "content": "x"}, *items)
    assert [message["role"] for message in history] == ["user", "assistant"]
    assert [made["id"] for made in history[1]["tool_calls"]] == ["c0", "c1"]


def test_reasoning_belongs_to_what_follows_it() -> None:
    thought = {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    made = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    history = of_response({"role": "user", "content": "x"}, thought, made)
    assert history[1]["reasoning_content"] == "Hm."
    history = of_response(thought, {"role": "user", "content": "x"})
    assert "reasoning_content" not in history[0]


@pytest.mark.parametrize(
    "arguments",
    ["not json", "[1]", "1", "{", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000],
)
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    (message,) = of_chat({"role": "assistant", "tool_calls": [call(arguments)]})
    assert message["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("arguments", ["", " \n", "null"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    (message,) = of_chat({"role": "assistant", "tool_calls": [call(arguments)]})
    assert message["tool_calls"][0]["function"]["arguments"] == {}


def test_a_phase_reaches_the_template() -> None:
    (message,) = of_response({"role": "assistant", "content": "x", "phase": "commentary"})
    assert message["phase"] == "commentary"
