"""From typed requests to prompts: what the model sees, and what does not fit."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from antiphon.errors import InvalidRequest
from antiphon.prompting.prompter import checked_ids
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.requests.chat import parse_chat
from antiphon.requests.completions import parse_completion
from antiphon.requests.responses import parse_response
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.prompts import (
    chat_prompt,
    completion_prompts,
    echoed_prompts,
    response_prompt,
    unused_settings,
)
from runs.scripted import Stage

TOOL = {"name": "f", "description": "Does.", "parameters": {"type": "object"}}


class WordPrompter(ReplayPrompter):
    """A prompt has a token for each word of its messages; what it was asked is kept."""

    takes_tools = True
    writes_prompts = True
    longest_token = 10_000

    def __init__(self, *known: str, first: str | None = None) -> None:
        super().__init__(1, "bytes")
        self._known = frozenset(known)
        self._first = first
        self.asked: list[Mapping[str, Any]] = []

    @property
    def variables(self) -> frozenset[str]:
        return self._known

    @property
    def takes_documents(self) -> bool:
        return "documents" in self._known

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> array[int]:
        self.asked.append({"messages": messages, **options})
        if self._first is not None and messages[0]["role"] != self._first:
            raise InvalidRequest("roles must alternate", param="messages")
        return array("I", [7] * sum(len(message["content"].split()) for message in messages))

    def text(self, prompt: str, *, add_special_tokens: bool = True) -> array[int]:
        return array("I", [1] * add_special_tokens + list(prompt.encode()))

    def ids(self, tokens: Sequence[int]) -> array[int]:
        return array("I", tokens)


class StrictPrompter(WordPrompter):
    """Knows bytes alone."""

    def ids(self, tokens: Sequence[int]) -> array[int]:
        return checked_ids(tokens, 256)


def served(prompter: WordPrompter, context: int = 100) -> ServedModel:
    model = Stage().model
    return attrs.evolve(
        model, prompter=prompter, info=attrs.evolve(model.info, context_length=context)
    )


def says(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def respond(items: Any, **fields: Any) -> Any:
    return parse_response({"model": "m", "input": items, **fields})


TALK = [
    says("user", "one two three"),
    says("assistant", "four five"),
    says("user", "six seven"),
]


def test_both_endpoints_show_the_same_tools() -> None:
    prompter = WordPrompter()
    model = served(prompter)
    of_chat = parse_chat(
        {
            "model": "m",
            "messages": [says("user", "Go")],
            "tools": [{"type": "function", "function": {**TOOL, "strict": True}}],
        }
    )
    chat_prompt(model, of_chat)
    response_prompt(model, respond("Go", tools=[{"type": "function", **TOOL}]))
    first, second = (asked["tools"] for asked in prompter.asked)
    assert first == second == [{"type": "function", "function": TOOL}]


def test_tools_that_may_not_be_called_are_not_shown() -> None:
    prompter = WordPrompter()
    request = respond("Go", tools=[{"type": "function", **TOOL}], tool_choice="none")
    response_prompt(served(prompter), request)
    assert prompter.asked[0]["tools"] is None


@pytest.mark.parametrize(
    ("context", "limit", "left"),
    [(8, None, 3), (7, None, 2), (8, 2, 2), (5, None, 2), (4, None, 1), (3, 1, 1)],
)
def test_the_oldest_items_go_until_the_answer_has_room(
    context: int, limit: int | None, left: int
) -> None:
    prompter = WordPrompter()
    request = respond(TALK, truncation="auto", max_output_tokens=limit)
    prompt = response_prompt(served(prompter, context), request)
    shown = [asked["messages"] for asked in prompter.asked if len(asked["messages"]) == left]
    assert shown[-1] == TALK[-left:]
    assert len(prompt) + (limit or 1) <= context


@pytest.mark.parametrize(("limit", "left"), [(6, 1), (7, 3), (9_000, 3)])
def test_a_limit_that_no_room_can_be_made_for_costs_no_item(limit: int, left: int) -> None:
    """Two words cannot go: with six tokens more they fit into eight, with seven they do not."""
    prompter = WordPrompter()
    request = respond(TALK, truncation="auto", max_output_tokens=limit)
    prompt = response_prompt(served(prompter, 8), request)
    assert len(prompt) == sum(len(item["content"].split()) for item in TALK[-left:])


def test_instructions_stay_when_items_go() -> None:
    prompter = WordPrompter()
    request = respond(TALK, truncation="auto", instructions="be brief")
    assert len(response_prompt(served(prompter, 5), request)) == 4
    assert any(
        [message["role"] for message in asked["messages"]] == ["system", "user"]
        for asked in prompter.asked
    )


@pytest.mark.parametrize("items", [TALK, "six seven"])
def test_what_cannot_be_made_to_fit_is_refused(items: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        response_prompt(served(WordPrompter(), 2), respond(items, truncation="auto"))
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")


def test_a_conversation_that_the_template_refuses_for_what_is_gone_is_cut_further() -> None:
    prompter = WordPrompter(first="user")
    assert len(response_prompt(served(prompter, 6), respond(TALK, truncation="auto"))) == 2


def test_a_conversation_that_the_template_refuses_whole_is_refused() -> None:
    request = respond([says("assistant", "a"), *TALK], truncation="auto")
    with pytest.raises(InvalidRequest, match="alternate") as caught:
        response_prompt(served(WordPrompter(first="user")), request)
    assert caught.value.param == "input"


def test_documents_reach_a_template_that_reads_them_and_no_other() -> None:
    prompter = WordPrompter("documents")
    request = parse_chat(
        {"model": "m", "messages": [says("user", "Go")], "documents": [{"text": "d"}]}
    )
    chat_prompt(served(prompter), request)
    assert prompter.asked[0]["extra"]["documents"] == [{"text": "d"}]
    with pytest.raises(InvalidRequest) as caught:
        chat_prompt(served(WordPrompter()), request)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "documents")


def test_a_message_is_continued_and_special_tokens_are_added_when_asked() -> None:
    prompter = WordPrompter()
    fields = {"continue_final_message": True, "add_special_tokens": True}
    request = parse_chat({"model": "m", "messages": TALK[:2], **fields})
    chat_prompt(served(prompter), request)
    asked = prompter.asked[0]
    assert (asked["continue_final"], asked["add_special_tokens"]) == (True, True)
    assert asked["add_generation_prompt"] is False


def test_what_the_template_does_not_read_is_named() -> None:
    request = parse_chat(
        {
            "model": "m",
            "messages": [says("user", "Go")],
            "reasoning_effort": "low",
            "verbosity": "high",
            "chat_template_kwargs": {"tone": 1, "style": 2},
        }
    )
    assert sorted(unused_settings(served(WordPrompter("thinking", "style")), request)) == [
        "chat_template_kwargs.tone",
        "verbosity",
    ]
    assert sorted(unused_settings(served(WordPrompter("verbosity")), request)) == [
        "chat_template_kwargs.style",
        "chat_template_kwargs.tone",
        "reasoning_effort",
    ]


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        ([9, 300], "prompt[1]"),
        ([[9], [300]], "prompt[1][0]"),
    ],
)
def test_a_prompt_that_is_wrong_is_named_by_its_place(prompt: Any, param: str) -> None:
    model = attrs.evolve(Stage().model, prompter=StrictPrompter())
    request = parse_completion({"model": "m", "prompt": prompt, "add_special_tokens": False})
    with pytest.raises(InvalidRequest) as caught:
        completion_prompts(model, request)
    assert (caught.value.param, caught.value.code) == (param, "invalid_value")


def test_an_echo_is_the_prompt_as_it_was_sent() -> None:
    model = served(WordPrompter())
    request = parse_completion({"model": "m", "prompt": ["Hé", "x"], "echo": True})
    prompts = completion_prompts(model, request)
    assert [(each.text, each.unseen) for each in echoed_prompts(model, request, prompts)] == [
        ("Hé", 1),
        ("x", 1),
    ]
    request = parse_completion({"model": "m", "prompt": list(b"Hi"), "echo": True})
    prompts = completion_prompts(model, request)
    assert [(each.text, each.unseen) for each in echoed_prompts(model, request, prompts)] == [
        ("Hi", 0)
    ]
