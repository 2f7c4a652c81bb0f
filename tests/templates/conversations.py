"""Conversations that a chat template is given: as a body of chat and, where it can, of Responses.

The two forms of one conversation give the same prompt.
"""

from __future__ import annotations

from typing import Any

import attrs

GET: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a “city”.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A city's name"},
            "days": {"type": "integer"},
        },
        "required": ["city"],
    },
}
PING: dict[str, Any] = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
ASK = {"role": "user", "content": "What is the weather in Zürich?"}
SYSTEM = {"role": "system", "content": "You are brief."}
DONE = {"role": "assistant", "content": "It rains."}
THANKS = {"role": "user", "content": "Thanks!"}
OSLO, ROME = '{"city": "Oslo", "days": 2}', '{"city": "Rome \\"x\\" <b>"}'


@attrs.frozen
class Conversation:
    """``chat`` and ``responses`` are fields of the bodies; None: the API has no such request.
    ``refused``: no template is asked, the request itself is wrong."""

    name: str
    chat: dict[str, Any] | None
    responses: dict[str, Any] | None
    refused: bool = False


QUOTED: dict[str, Any] = {
    "name": "note",
    "description": 'Takes "notes" in\n`any` <script> & {{ form }}, 你好 🙂 </tool_call>.',
    "parameters": {
        "type": "object",
        "properties": {
            'the "key"': {"type": "string", "enum": ["it's", 'a "b"', "c\\d"]},
            "größe": {"type": ["number", "null"], "default": None},
            "liste": {"type": "array", "items": {"type": "object", "properties": {}}},
        },
        "additionalProperties": False,
    },
}
NOTED = (
    '{"the \\"key\\"": "a \\"b\\"\\n{{ x }}", "größe": null, "liste": [{"é": 1.50}, []], "b": true}'
)


def _tools(*tools: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {"tools": [{"type": "function", "function": tool} for tool in tools]},
        {"tools": [{"type": "function", **tool} for tool in tools]},
    )


def _call(name: str, arguments: str, call_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    return (
        {"id": call_id, "type": "function", "function": function},
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
    )


def _output(call_id: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {"role": "tool", "tool_call_id": call_id, "content": text},
        {"type": "function_call_output", "call_id": call_id, "output": text},
    )


def _said(*messages: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain messages, which both write alike."""
    return {"messages": [*messages], **fields}, {"input": [*messages], **fields}


def _called(
    *calls: tuple[str, str, str],
    outputs: tuple[tuple[str, str], ...],
    text: str = "",
    thought: str = "",
    after: tuple[dict[str, Any], ...] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A question, calls, and their outputs."""
    chat_tools, tools = _tools(GET, PING)
    pairs = [_call(*call) for call in calls]
    told = [_output(*output) for output in outputs]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    message["tool_calls"] = [chat for chat, _ in pairs]
    items: list[dict[str, Any]] = [ASK]
    if thought:
        message["reasoning_content"] = thought
        content = [{"type": "reasoning_text", "text": thought}]
        items.append({"type": "reasoning", "summary": [], "content": content})
    if text:
        items.append({"role": "assistant", "content": text})
    items += [item for _, item in pairs]
    items += [item for _, item in told]
    return (
        {"messages": [ASK, message, *(chat for chat, _ in told), *after], **chat_tools},
        {"input": [*items, *after], **tools},
    )


def _untold(bodies: tuple[dict[str, Any], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same where the request declares no tools any more."""
    chat, responses = ({k: v for k, v in body.items() if k != "tools"} for body in bodies)
    return chat, responses


def _forced(bodies: tuple[dict[str, Any], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same where a call must come, which any model can be held to."""
    chat, responses = ({**body, "tool_choice": "required"} for body in bodies)
    return chat, responses


def _joined(
    *rounds: tuple[dict[str, Any], dict[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One conversation behind the other."""
    chats, others = zip(*rounds, strict=True)
    return (
        {**chats[0], "messages": [each for body in chats for each in body["messages"]]},
        {**others[0], "input": [each for body in others for each in body["input"]]},
    )


def _deep(levels: int) -> str:
    return '{"city":' * levels + '"x"' + "}" * levels


ONE, TWO = ("get_weather", OSLO, "call_one"), ("get_weather", ROME, "call_two")
RAIN, SUN = ("call_one", "rain"), ("call_two", '{"sky": "blue"}')
DEVELOPER = {"role": "developer", "content": "Be kind."}
THOUGHT = [
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
]

CONVERSATIONS = (
    Conversation("question", *_said(ASK)),
    Conversation("system", *_said(SYSTEM, ASK)),
    Conversation("developer", *_said(DEVELOPER, ASK)),
    Conversation("turns", *_said(SYSTEM, ASK, DONE, THANKS)),
    Conversation("assistant first", *_said(DONE, THANKS)),
    Conversation("assistant last", *_said(ASK, DONE)),
    Conversation("system last", *_said(ASK, DONE, SYSTEM)),
    Conversation("two in a row", *_said(ASK, THANKS)),
    Conversation("empty answer", *_said(ASK, {"role": "assistant", "content": ""}, THANKS)),
    Conversation(
        "parts",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "One "},
                                                   {"type": "text", "text": "two"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "One "},
                                                {"type": "input_text", "text": "two"}]}]},
    ),
    Conversation(
        "phases",
        *_said(
            ASK, {"role": "assistant", "content": "I look.", "phase": "commentary"},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "It rains.", "phase": "final_answer"}, THANKS,
        ),
    ),
    Conversation(
        "control text",
        *_said({"role": "user", "content": "<|im_end|>[INST]</s><|eot_id|>{{ x }}{% y %}"}),
    ),
    Conversation(
        "thought",
        {"messages": [ASK, {**DONE, "reasoning_content": "Hm."}, THANKS]},
        {"input": [ASK, *THOUGHT, DONE, THANKS]},
    ),
    Conversation(
        "effort",
        {"messages": [ASK], "reasoning_effort": "high"},
        {"input": [ASK], "reasoning": {"effort": "high"}},
    ),
    Conversation(
        "no thought",
        {"messages": [ASK], "chat_template_kwargs": {"enable_thinking": False}},
        {"input": [ASK], "chat_template_kwargs": {"enable_thinking": False}},
    ),
    Conversation(
        "tools",
        {"messages": [SYSTEM, ASK], **_tools(GET, PING)[0]},
        {"input": [SYSTEM, ASK], **_tools(GET, PING)[1]},
    ),
    Conversation(
        "forced",
        {"messages": [ASK], "tool_choice": "required", **_tools(GET)[0]},
        {"input": [ASK], "tool_choice": "required", **_tools(GET)[1]},
    ),
    Conversation(
        "tools and no choice",
        {"messages": [ASK], "tool_choice": "none", **_tools(GET)[0]},
        {"input": [ASK], "tool_choice": "none", **_tools(GET)[1]},
    ),
    Conversation("call", *_called(ONE, outputs=(RAIN,))),
    Conversation("call and text", *_called(ONE, outputs=(RAIN,), text="I look.")),
    Conversation("call and thought", *_called(ONE, outputs=(RAIN,), thought="Hm.")),
    Conversation("two calls", *_called(ONE, TWO, outputs=(RAIN, SUN))),
    Conversation("answered the other way round", *_called(ONE, TWO, outputs=(SUN, RAIN))),
    Conversation("call and answer", *_called(ONE, outputs=(RAIN,), after=(DONE, THANKS))),
    Conversation("no arguments", *_called(("ping", "{}", "call_p"), outputs=(("call_p", ""),))),
    Conversation("no object", *_called(("ping", "[1", "call_p"), outputs=(("call_p", "bad"),))),
    Conversation(
        "deep arguments", *_called(("ping", _deep(60), "call_p"), outputs=(("call_p", "ok"),))
    ),
    Conversation(
        "very deep arguments",
        *_called(("ping", _deep(1_000), "call_p"), outputs=(("call_p", "ok"),)),
    ),
    Conversation(
        "custom call",
        {
            "messages": [
                ASK,
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "call_c", "type": "custom",
                         "custom": {"name": "sh", "input": 'ls "a"\n'}}
                    ],
                },
                _output("call_c", "a")[0],
            ],
            "tools": [{"type": "custom", "custom": {"name": "sh"}}],
        },
        {
            "input": [
                ASK,
                {"type": "custom_tool_call", "call_id": "call_c", "name": "sh",
                 "input": 'ls "a"\n'},
                {"type": "custom_tool_call_output", "call_id": "call_c", "output": "a"},
            ],
            "tools": [{"type": "custom", "name": "sh"}],
        },
    ),
    Conversation("named", {"messages": [{**ASK, "name": 'Zoë "Q" 你'}]}, None),
    Conversation(
        "null answer", {"messages": [ASK, {"role": "assistant", "content": None}, THANKS]}, None
    ),
    Conversation("empty question", *_said({"role": "user", "content": ""})),
    Conversation("system and developer", *_said(SYSTEM, DEVELOPER, ASK)),
    Conversation("system alone", *_said(SYSTEM)),
    Conversation(
        "instructions",
        {"messages": [SYSTEM, ASK]},
        {"instructions": SYSTEM["content"], "input": ASK["content"]},
    ),
    Conversation(
        "refusal",
        {"messages": [ASK, {"role": "assistant", "content": [
            {"type": "refusal", "refusal": "No."}]}, THANKS]},
        {"input": [ASK, {"role": "assistant", "content": [
            {"type": "refusal", "refusal": "No."}]}, THANKS]},
    ),
    Conversation(
        "no effort",
        {"messages": [ASK], "reasoning_effort": "none"},
        {"input": [ASK], "reasoning": {"effort": "none"}},
    ),
    Conversation(
        "verbosity",
        {"messages": [ASK], "verbosity": "low"},
        {"input": [ASK], "text": {"verbosity": "low"}},
    ),
    Conversation(
        "variables",
        *_said(SYSTEM, ASK, chat_template_kwargs={
            "thinking": True, "enable_thinking": True, "date_string": "1 'Mai' é", "colour": [{}],
            "functions": "[]", "guideline": "Be kind.", "datetime": "today",
        }),
    ),
    Conversation(
        "documents", {"messages": [ASK], "documents": [{"title": 'é "q"', "text": "<b>"}]}, None
    ),
    Conversation(
        "quotes",
        {"messages": [SYSTEM, ASK], **_tools(QUOTED)[0]},
        {"input": [SYSTEM, ASK], **_tools(QUOTED)[1]},
    ),
    Conversation(
        "call of quotes", *_called(("note", NOTED, "call_n"), outputs=(("call_n", NOTED),))
    ),
    # Responses has a pattern for the names of calls, and chat has none.
    Conversation(
        "call of no name", _called(('a "ß"', "{}", "call_g"), outputs=(("call_g", "?"),))[0], None
    ),
    Conversation("call, then forced", *_forced(_called(ONE, outputs=(RAIN,)))),
    Conversation("two calls, then forced", *_forced(
        _called(ONE, TWO, outputs=(SUN, RAIN), text="So.", thought="Hm.", after=(DONE, THANKS)))),
    Conversation("call of another tool", *_called(("stop", "{}", "call_s"),
                 outputs=(("call_s", "no such tool"),))),
    Conversation("call, untold", *_untold(_called(ONE, outputs=(RAIN,)))),
    Conversation("two calls, untold", *_untold(_called(ONE, TWO, outputs=(SUN, RAIN), text="So."))),
    Conversation("thought and call, untold", *_untold(
        _called(ONE, outputs=(RAIN,), thought="Hm.", after=(DONE, THANKS)))),
    Conversation("unanswered call", *_called(ONE, outputs=())),
    Conversation("two rounds", *_joined(
        _called(ONE, outputs=(RAIN,), thought="First.", after=(DONE,)),
        _called(TWO, outputs=(SUN,), thought="Then."),
    )),
    Conversation("same id again", *_joined(
        _called(ONE, outputs=(RAIN,), after=(DONE,)), _called(ONE, outputs=(RAIN,)),
    )),
    Conversation(
        "thought of the end",
        {"messages": [*_called(ONE, outputs=(RAIN,), thought="Hm.")[0]["messages"],
                      {**DONE, "reasoning_content": "Rain, then."}, THANKS],
         **_tools(GET, PING)[0]},
        {"input": [*_called(ONE, outputs=(RAIN,), thought="Hm.")[1]["input"],
                   {"type": "reasoning", "summary": [], "content": [
                       {"type": "reasoning_text", "text": "Rain, "},
                       {"type": "reasoning_text", "text": "then."}]},
                   DONE, THANKS], **_tools(GET, PING)[1]},
    ),
    Conversation(
        "parts of an output",
        {"messages": [*_called(ONE, outputs=())[0]["messages"],
                      {"role": "tool", "tool_call_id": "call_one", "content": [
                          {"type": "text", "text": "ra"}, {"type": "text", "text": "in"}]}],
         **_tools(GET)[0]},
        {"input": [*_called(ONE, outputs=())[1]["input"],
                   {"type": "function_call_output", "call_id": "call_one", "output": [
                       {"type": "input_text", "text": "ra"},
                       {"type": "input_text", "text": "in"}]}],
         **_tools(GET)[1]},
    ),
    Conversation(
        "picture and text",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, {
            "type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "What?"}, {
            "type": "input_image", "image_url": "data:image/png;base64,AA"}]}]},
        refused=True,
    ),
    Conversation(
        "goes on",
        {"messages": [ASK, {"role": "assistant", "content": "It is"}],
         "continue_final_message": True, "add_generation_prompt": False},
        None,
    ),
    Conversation(
        "image",
        {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]},
        {"input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]},
        refused=True,
    ),
    Conversation("output of no call", None, {"input": [ASK, _output("call_x", "rain")[1]]}, True),
)  # fmt: skip
