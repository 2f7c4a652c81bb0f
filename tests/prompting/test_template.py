"""Chat templates: the environment they expect, and every refusal a 400 in their own words."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from antiphon.errors import InvalidRequest, StartupError
from antiphon.prompting import template as template_module
from antiphon.prompting.template import ChatTemplate
from prompting.vocabularies import CHATML

HI = [{"role": "user", "content": "Hi"}]


def render(source: str, messages: list[dict[str, Any]] | None = None, **extra: Any) -> str:
    return ChatTemplate(source).render(messages or HI, extra=extra)


def test_a_conversation() -> None:
    template = ChatTemplate(CHATML)
    assert template.source == CHATML
    assert template.render(HI) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert template.render(HI, add_generation_prompt=False) == "<|im_start|>user\nHi<|im_end|>\n"


def test_blocks_are_trimmed() -> None:
    source = (
        "{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}"
    )
    assert render(source) == "Hi\n"


def test_loop_controls() -> None:
    source = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}"
    source += "{% break %}{% endif %}{{ i }}{% endfor %}"
    assert render(source) == "02"


def test_a_generation_block_is_its_content() -> None:
    assert render("a{% generation %}{{ messages[0].content }}{% endgeneration %}b") == "aHib"


def test_the_date_comes_from_the_clock_that_is_given() -> None:
    template = ChatTemplate(
        "{{ strftime_now('%d %b %Y') }}", now=lambda: datetime(1969, 7, 20, 20, 17)
    )
    assert template.render(HI) == "20 Jul 1969"


def test_json_is_readable_and_keeps_its_order() -> None:
    value = {"z": "<b> & 'é' 你好", "a": [1, None, True]}
    assert render("{{ v | tojson }}", v=value) == json.dumps(value, ensure_ascii=False)
    assert render("{{ v | tojson(indent=2) }}", v=value).startswith('{\n  "z"')
    assert render("{{ v | tojson(separators=(',', ':'), sort_keys=true) }}", v=value).startswith(
        '{"a":[1,null,true],'
    )
    assert json.loads(render("{{ v | tojson(ensure_ascii=true) }}", v=value)) == value
    assert (
        render("{{ v | tojson(ensure_ascii=true) }}", v="é🙂\udc01")
        == '"\\u00e9\\ud83d\\ude42\udc01"'
    )


def test_variables_of_the_model_the_request_and_the_server() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{{ style }}{{ tools[0].name }}{{ messages[0].content }}",
        variables={"bos_token": "<s>"},
    )
    extra = {"style": "x", "bos_token": "evil", "messages": [{"content": "evil"}]}
    assert template.render(HI, tools=[{"name": "f"}], extra=extra) == "<s>xfHi"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('Roles must alternate!') }}", "Roles must alternate!"),
        ("{{ guideline }}", "'guideline' is undefined"),
        ("{{ functions[0] }}", "'functions' is undefined"),
        ("{{ functions | tojson }}", "'functions' is undefined"),
        ("{{ [functions] | tojson }}", "'functions' is undefined"),
        ("{{ 'x' + functions }}", "'functions' is undefined"),
        ("{{ messages[0].content + none }}", "can only concatenate str"),
        ("{{ messages[7].content }}", "list object has no element 7"),
        ("{{ 1 // 0 }}", "division"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{{ messages.__class__.__mro__ }}", "__class__"),
        ("{{ range(1000000) }}", "Range too big"),
        ("{{ raise_exception }}{{ strftime_now }}{{ lipsum | tojson }}", "cannot be written"),
    ],
)
def test_what_a_template_refuses_or_stumbles_over_is_a_400(source: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refusal:
        render(source)
    assert (refusal.value.param, refusal.value.code) == ("messages", "invalid_value")


@pytest.mark.parametrize(
    "source",
    [
        "{% if tools %}x{% endif %}",
        "{{ messages[0].name }}",
        "{% for t in functions %}{% endfor %}",
    ],
)
def test_absence_may_be_asked_about(source: str) -> None:
    assert render(source) == ""


def test_a_prompt_has_a_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_module, "MAX_CHARACTERS", 1000)
    written = 0

    def count() -> str:
        nonlocal written
        written += 100
        return "x" * 100

    with pytest.raises(InvalidRequest, match="longer than 1000 characters"):
        render("{% for i in range(90000) %}{{ count() }}{% endfor %}", count=count)
    assert written < 2000  # stopped on the way, not measured at the end


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{% if x %}", "broken, line 1: Unexpected end of template"),
        ("a\n{{ x | nope }}", "broken, line 2: No filter named 'nope'"),
        ("{% generation %}", "broken, line 1"),
    ],
)
def test_a_broken_template_is_refused_at_the_start(source: str, words: str) -> None:
    with pytest.raises(StartupError, match=words) as refusal:
        ChatTemplate(source)
    assert "\n" not in str(refusal.value)


PARTS = [
    {"type": "text", "text": "one "},
    {"type": "refusal", "refusal": "two "},
    {"type": "input_text", "text": "three"},
]
ITERATES = "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}"
EITHER = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}"
)


def test_parts_are_joined_for_a_template_that_reads_text() -> None:
    for source in (CHATML, EITHER):
        template = ChatTemplate(source)
        assert template.content_form == "text"
        assert "one two three" in template.render([{"role": "user", "content": PARTS}])


def test_text_becomes_a_part_for_a_template_that_reads_parts() -> None:
    template = ChatTemplate(ITERATES)
    assert template.content_form == "parts"
    assert template.render(HI) == "[Hi]"
    assert template.render([{"role": "user", "content": [PARTS[0], PARTS[2]]}]) == "[one ][three]"


def test_content_that_is_no_text_is_the_templates_to_judge() -> None:
    source = "{% for m in messages %}{{ m.content is none }}{% endfor %}"
    assert render(source, [{"role": "assistant", "content": None}]) == "True"
    assert render("{{ messages[0].content is defined }}", [{"role": "assistant"}]) == "False"
