"""Histories in the shape that a template can show."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import load_tokenizer
from known_replies import FILES

SHELL = (
    "{{% if tools %}}{{{{ tools | tojson }}}}{{% endif %}}"
    "{{% for m in messages %}}<|im_start|>{{{{ m.role }}}}\n{{{{ m.content or '' }}}}"
    "{{% for c in m.tool_calls or [] %}}<tool_call>{{{{ c.function.name }}}} {call}</tool_call>"
    "{{% endfor %}}<|im_end|>\n{{% endfor %}}"
    "{{% if add_generation_prompt %}}<|im_start|>assistant\n{{% endif %}}"
)
LISTS = "{% for k, v in c.function.arguments | items %}{{ k }}={{ v | tojson }};{% endfor %}"
SPELLS = "{{ c.function.arguments | tojson }}"
TELLS = (
    "{{ c.function.arguments if c.function.arguments is string else "
    "c.function.arguments | tojson }}"
)
CUT = '{"city": "Os'
CALL: dict[str, Any] = {"id": "c1", "type": "function",
                        "function": {"name": "get", "arguments": {"city": "Oslo"}}}  # fmt: skip
BROKEN: dict[str, Any] = {"id": "c2", "type": "function",
                          "function": {"name": "put", "arguments": CUT}}  # fmt: skip


def prompt(call: str, *calls: dict[str, Any], content: str = "") -> str:
    prompter = TextPrompter(load_tokenizer(FILES), ChatTemplate(SHELL.format(call=call)))
    said = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    return prompter.decode(prompter.chat([{"role": "user", "content": "Hi"}, said]))


@pytest.mark.parametrize("call", [LISTS, SPELLS])
def test_a_call_that_broke_off_is_shown_in_words_where_it_cannot_be_one(call: str) -> None:
    text = prompt(call, CALL, BROKEN, content="I look.")
    assert f"I look.\nput {CUT}<tool_call>get" in text
    assert text.count("<tool_call>") == 1
    assert f"put {CUT}<|im_end|>" in prompt(call, BROKEN)


def test_it_is_shown_as_it_stands_where_the_template_does_that() -> None:
    text = prompt(TELLS, CALL, BROKEN)
    assert f'<tool_call>get {{"city": "Oslo"}}</tool_call><tool_call>put {CUT}</tool_call>' in text


def test_a_call_without_arguments_is_one() -> None:
    nothing = {**CALL, "function": {"name": "get", "arguments": {}}}
    assert "<tool_call>get </tool_call>" in prompt(LISTS, nothing)
