"""Markers that are control tokens of the model: read as markers, and shown to nobody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from wire.told import Told, told

TOOL: dict[str, Any] = {
    "name": "get_time",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": TOOL}],
    "responses": [{"type": "function", **TOOL}],
}
CALL = '{"city": "Oslo"}'
STRAY = "<|stray|>"
FAMILIES = {
    "mistral_think+mistral_args": (
        ("[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"),
        "[THINK]Hm.[/THINK]I look.[TOOL_CALLS]get_time[ARGS]" + CALL,
    ),
    "mistral_array": (
        ("[TOOL_CALLS]",),
        'I look.[TOOL_CALLS] [{"name": "get_time", "arguments": ' + CALL + "}]",
    ),
    "cohere_thinking+cohere": (
        ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>",
         "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>I look.<|END_RESPONSE|>"
        '<|START_ACTION|>[{"tool_name": "get_time", "parameters": ' + CALL + "}]<|END_ACTION|>",
    ),
    "kimi_k2": (
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
         "<|tool_call_end|>", "<|tool_calls_section_end|>"),
        "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:0"
        f"<|tool_call_argument_begin|>{CALL}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "harmony": (
        ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|constrain|>", "<|call|>"),
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary"
        "<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.get_time "
        f"<|constrain|>json<|message|>{CALL}<|call|>",
    ),
    "think+hermes": (
        ("<think>", "</think>", "<tool_call>", "</tool_call>"),
        "<think>Hm.</think>I look.<tool_call>\n"
        '{"name": "get_time", "arguments": ' + CALL + "}\n</tool_call>",
    ),
    "gemma4": (
        ("<|tool_call>", "<tool_call|>", '<|"|>'),
        'I look.<|tool_call>call:get_time{city:<|"|>Oslo<|"|>}<tool_call|>',
    ),
}  # fmt: skip
THINKS = {"mistral_think+mistral_args", "cohere_thinking+cohere", "harmony", "think+hermes"}


@asynccontextmanager
async def app_of(folder: Path, form: str) -> AsyncIterator[Told]:
    markers = (*FAMILIES[form][0], STRAY)
    async for app in told(folder, form=form, markers=markers):
        for marker in markers:
            (token,) = app.prompter.text(marker, add_special_tokens=False)
            assert app.prompter.table.special >= {token}
        yield app


def chat_stream(text: str) -> tuple[str, str, str]:
    """Content, reasoning and arguments of a chat stream."""
    content = reasoning = arguments = ""
    for line in text.splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                delta = choice["delta"]
                content += delta.get("content") or ""
                reasoning += delta.get("reasoning_content") or ""
                for call in delta.get("tool_calls", []):
                    arguments += call["function"].get("arguments", "")
    return content, reasoning, arguments


@pytest.mark.parametrize("form", FAMILIES)
async def test_they_are_read_and_not_shown(tmp_path: Path, form: str) -> None:
    says = FAMILIES[form][1]
    thought = "Hm." if form in THINKS else ""
    async with app_of(tmp_path, form) as app:
        body = await app.post("chat", says=says, tools=TOOLS["chat"])
        message = body["choices"][0]["message"]
        assert message["content"] == "I look."
        assert (message["reasoning_content"] or "") == thought
        ((called,)) = [call["function"] for call in message["tool_calls"]]
        assert (called["name"], json.loads(called["arguments"])) == ("get_time", {"city": "Oslo"})
        stream = await app.post("chat", says=says, tools=TOOLS["chat"], stream=True)
        content, reasoning, arguments = chat_stream(stream)
        assert (content, reasoning) == ("I look.", thought)
        assert json.loads(arguments) == {"city": "Oslo"}
        body = await app.post("responses", says=says, tools=TOOLS["responses"])
        kinds = [item["type"] for item in body["output"]]
        assert kinds == ["reasoning"] * bool(thought) + ["message", "function_call"]


@pytest.mark.parametrize("form", FAMILIES)
async def test_other_control_tokens_are_not_shown(tmp_path: Path, form: str) -> None:
    async with app_of(tmp_path, form) as app:
        body = await app.post("chat", says=f"One {STRAY}two.", tools=TOOLS["chat"])
        assert body["choices"][0]["message"]["content"] == "One two."


@pytest.mark.parametrize("form", sorted(FAMILIES.keys() - {"harmony", "cohere_thinking+cohere"}))
async def test_where_no_call_is_looked_for_its_markers_are_not_shown(
    tmp_path: Path, form: str
) -> None:
    markers, says = FAMILIES[form]
    async with app_of(tmp_path, form) as app:
        without: list[dict[str, Any]] = [{}, {"tools": TOOLS["chat"], "tool_choice": "none"}]
        for fields in without:
            body = await app.post("chat", says=says, **fields)
            message = body["choices"][0]["message"]
            assert message["content"].startswith("I look.")
            assert not [one for one in markers if one in message["content"]]
            assert "tool_calls" not in message
        body = await app.post("completions", says=says, max_tokens=200)
        assert not [one for one in markers if one in body["choices"][0]["text"]]
        shown: dict[str, Any] = {"max_tokens": 200, "skip_special_tokens": False}
        body = await app.post("completions", says=says, **shown)
        assert body["choices"][0]["text"] == says


@pytest.mark.parametrize("form", sorted(THINKS))
async def test_thought_that_is_left_in_the_text_keeps_its_markers(
    tmp_path: Path, form: str
) -> None:
    says = FAMILIES[form][1]
    text = says[: says.index("I look.")] + "I look."
    together = {"separate_reasoning": False}
    async with app_of(tmp_path, form) as app:
        message = (await app.post("chat", says=text, **together))["choices"][0]["message"]
        assert message["content"] == text
        assert not message.get("reasoning_content")
        content, reasoning, _ = chat_stream(
            await app.post("chat", says=text, stream=True, **together)
        )
        assert (content, reasoning) == (text, "")
        ((item,)) = (await app.post("responses", says=text, **together))["output"]
        assert item["content"][0]["text"] == text
        body = await app.post("chat", says=says, tools=TOOLS["chat"], **together)
        message = body["choices"][0]["message"]
        assert message["content"].startswith(text)
        (call,) = message["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
        hidden = await app.post("chat", says=text, include_reasoning=False, **together)
        assert hidden["choices"][0]["message"]["content"] == "I look."
