"""How a model marks its calls and its thought is told from its template, and from nothing else."""

from __future__ import annotations

import pytest

from antiphon.errors import StartupError
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import load_tokenizer
from antiphon.prompting.unasked_thought import thinks_unasked
from antiphon.runs.model_formats import (
    ModelFormats,
    call_family,
    formats_of,
    reasoning_family,
)
from known_replies import FILES
from prompting.vocabularies import CHATML
from responsory.segments import family

TURN = "{% for m in messages %}{{ m.role }}: "
THOUGHT = "{% if m.reasoning_content %}%s{{ m.reasoning_content }}%s{% endif %}"
END = "{{ m.content }}\n{% endfor %}"


def prompter(source: str) -> TextPrompter:
    return TextPrompter(load_tokenizer(FILES), ChatTemplate(source))


def template(opener: str, closer: str, after: str = "") -> str:
    shown = THOUGHT.replace("%s", opener, 1).replace("%s", closer, 1)
    return TURN + shown + END + "{% if add_generation_prompt %}assistant: " + after + "{% endif %}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (template("<think>\n", "\n</think>\n"), "think"),
        (template("<think>", "</think>"), "think"),
        (template("[THINK]", "[/THINK]"), "mistral_think"),
        (template("<|channel>thought\n", "<channel|>"), "gemma4_thought"),
        (template("◁think▷", "◁/think▷"), "kimi_vl"),
        (template("<|START_THINKING|>", "<|END_THINKING|>"), "cohere_thinking"),
        (template("Here is my thought process: ", " Here is my response: "), "granite_thinking"),
        (template("", "", "<think>\n"), "think_prefilled"),
        (template("<think>", "</think>", "<think>\n\n</think>\n\n"), "think"),
        (template("<think>", "</think>").replace("m.reasoning_content", "m.thinking"), "think"),
        # It leaves out the thought of earlier turns, and knows where that ends.
        (TURN + "{{ m.content.split('</think>')[-1] }}\n{% endfor %}", "think"),
        (template("<thought>", "</thought>"), "none"),
        (template("<think>", ""), "none"),
        (CHATML, "none"),
        ("{{ raise_exception('no chats') }}", "none"),
    ],
)
def test_the_template_tells_of_thought(source: str, expected: str) -> None:
    assert reasoning_family(prompter(source))[0] == expected


ARGUMENTS = "{{ c.function.arguments | tojson }}"
NAME = "{{ c.function.name }}"
ENVELOPE = '{"name": "' + NAME + '", "arguments": ' + ARGUMENTS + "}"
PARAMETERS = '{"name": "' + NAME + '", "parameters": ' + ARGUMENTS + "}"
EACH = "{% for k, v in c.function.arguments.items() %}"
PYTHON = NAME + "(" + EACH + "{{ k }}='{{ v }}'{% endfor %})"
DSML = "｜DSML｜"


def dsml(outer: str) -> str:
    return (
        f'<{DSML}{outer}>\n<{DSML}invoke name="{NAME}">\n{EACH}<{DSML}parameter name="{{{{ k }}}}" '
        f'string="true">{{{{ v }}}}</{DSML}parameter>\n{{% endfor %}}</{DSML}invoke>\n'
        f"</{DSML}{outer}>"
    )


CALLS = {
    "hermes": "<tool_call>\n" + ENVELOPE + "\n</tool_call>",
    "llama3_json": PARAMETERS,
    "mistral_array": "[TOOL_CALLS] [" + ENVELOPE + "]",
    "mistral_args": f"[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}",
    "deepseek_v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>" + NAME
    + "\n```json\n" + ARGUMENTS + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + NAME + "<｜tool▁sep｜>"
    + ARGUMENTS + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions." + NAME
    + ":0<|tool_call_argument_begin|>" + ARGUMENTS
    + "<|tool_call_end|><|tool_calls_section_end|>",
    "internlm": "<|action_start|><|plugin|>\n" + PARAMETERS + "<|action_end|>",
    "cohere": '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "' + NAME
    + '", "parameters": ' + ARGUMENTS + "}\n]<|END_ACTION|>",
    "granite": "<|tool_call|>[" + ENVELOPE + "]",
    "forced": "[" + PARAMETERS + "]",
    "qwen3_coder": "<tool_call>\n<function=" + NAME + ">\n" + EACH
    + "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>",
    "glm45": "<tool_call>" + NAME + "\n" + EACH
    + "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>",
    "glm47": "<tool_call>" + NAME + EACH
    + "<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>{% endfor %}</tool_call>",
    "hunyuan": "<tool_calls><tool_call>" + NAME + "<tool_sep>\n" + EACH
    + "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>\n"
    + "</tool_calls>",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="' + NAME + '">\n' + EACH
    + '<parameter name="{{ k }}">{{ v }}</parameter>\n{% endfor %}</invoke>\n'
    + "</minimax:tool_call>",
    "deepseek_v32": dsml("function_calls"),
    "deepseek_v4": dsml("tool_calls"),
    "step3": "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
    + '<steptml:invoke name="' + NAME + '">' + EACH
    + '<steptml:parameter name="{{ k }}">{{ v }}</steptml:parameter>{% endfor %}'
    + "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
    "pythonic": "[" + PYTHON + "]",
    "lfm2": "<|tool_call_start|>[" + PYTHON + "]<|tool_call_end|>",
    "gemma4": "<|tool_call>call:" + NAME + "{{ '{' }}" + EACH
    + '{{ k }}:<|"|>{{ v }}<|"|>{% endfor %}{{ \'}\' }}<tool_call|>',
    "harmony": " to=functions." + NAME + "<|channel|>commentary json<|message|>" + ARGUMENTS
    + "<|call|>",
}  # fmt: skip
"""How a template would write one call."""


def calling(call: str, told: str = "{{ tools | tojson }}") -> str:
    return (
        "{% if tools %}" + told + "{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}" + call + "{% endfor %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_template_tells_of_calls(name: str) -> None:
    assert call_family(prompter(calling(CALLS[name])))[0] == name


@pytest.mark.parametrize("name", ["mistral_array", "hermes"])
def test_a_template_that_wants_short_ids(name: str) -> None:
    wants = "{% if c.id | length != 9 %}{{ raise_exception('nine!') }}{% endif %}"
    model = prompter(calling(wants + CALLS[name]))
    assert call_family(model)[0] == name
    assert model.traits.short_ids


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("Call with <|tool_call|> and a JSON list. {{ tools | tojson }}", "granite"),
        ("Write <tool_call><function=f><parameter=p>…</parameter></function></tool_call>. "
         "{{ tools | tojson }}", "qwen3_coder"),
        ("Between <tool_call> and </tool_call>: {{ tools | tojson }}", "hermes"),
        ("{{ tools | tojson }}", "hermes"),  # the markers are tokens of the model
        ("There are tools.", "none"),
    ],
)  # fmt: skip
def test_a_template_that_shows_no_calls_may_name_the_markers(told: str, expected: str) -> None:
    assert call_family(prompter(calling("", told)))[0] == expected


def test_a_template_that_shows_no_tools_has_none() -> None:
    assert call_family(prompter(CHATML)) == ("none", "the template shows no tools")


def test_without_a_template_text_is_text() -> None:
    bare = TextPrompter(load_tokenizer(FILES), None)
    assert formats_of(bare).spec() == family("plain")


def test_the_fixture_model_thinks_and_calls() -> None:
    found = formats_of(TextPrompter.load(FILES))
    assert (found.reasoning, found.calls) == ("think", "hermes")
    assert found.spec() == family("think+hermes")
    assert found.forced() == family("think+forced")


def test_what_is_asked_for_is_what_is_read() -> None:
    model = TextPrompter.load(FILES)
    found = formats_of(model, tool_format="pythonic", reasoning_format="none")
    assert found.spec() == family("pythonic")
    assert formats_of(model, tool_format="none").spec() == family("think")
    assert formats_of(model, tool_format="harmony").spec() == family("harmony")


def test_channels_go_with_nothing_else() -> None:
    with pytest.raises(StartupError, match="do not go together"):
        formats_of(TextPrompter.load(FILES), tool_format="harmony", reasoning_format="think")
    with pytest.raises(StartupError, match="do not go together"):
        formats_of(TextPrompter.load(FILES), tool_format="hermes", reasoning_format="harmony")


def test_a_model_of_channels_is_forced_by_its_own_form() -> None:
    assert ModelFormats(reasoning="harmony", calls="harmony").forced() == family("forced")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("", True),
        ("{% if enable_thinking is false %}<think></think>{% endif %}", True),
        ("{% if enable_thinking %}/think {% endif %}", False),
        ("{% if not thinking %}</think>{% endif %}", False),
    ],
)  # fmt: skip
def test_whether_it_thinks_unasked_is_told_by_the_prompt(after: str, expected: bool) -> None:
    model = prompter(template("<think>", "</think>", after))
    assert thinks_unasked(model) == expected


def test_the_fixture_model_thinks_only_if_it_is_asked() -> None:
    assert not thinks_unasked(TextPrompter.load(FILES))
