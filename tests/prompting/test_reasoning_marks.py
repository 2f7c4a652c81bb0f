"""How a model marks its thought is told from its template, and from nothing else."""

from __future__ import annotations

import pytest

from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.reasoning_marks import reasoning_family, thinks_unasked
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import load_tokenizer
from known_replies import FILES
from prompting.vocabularies import CHATML
from responsory.segments.formats import REASONING

TURN = "{% for m in messages %}{{ m.role }}: "
THOUGHT = "{% if m.reasoning_content %}%s{{ m.reasoning_content }}%s{% endif %}"
END = "{{ m.content }}\n{% endfor %}"


def template(opener: str, closer: str, after: str = "") -> str:
    shown = THOUGHT.replace("%s", opener, 1).replace("%s", closer, 1)
    return TURN + shown + END + "{% if add_generation_prompt %}assistant: " + after + "{% endif %}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (template("<think>\n", "\n</think>\n"), "think"),
        (template("<think>", "</think>"), "think"),
        (template("[THINK]", "[/THINK]"), "mistral_think"),
        (template("", "", "<think>\n"), "think_prefilled"),
        (template("<think>", "</think>", "<think>\n\n</think>\n\n"), "think"),
        (template("<thought>", "</thought>"), "plain"),
        (template("<think>", ""), "plain"),
        (CHATML, "plain"),
        ("{{ raise_exception('no chats') }}", "plain"),
    ],
)
def test_the_template_tells(source: str, expected: str) -> None:
    assert expected in REASONING
    tokenizer = load_tokenizer(FILES)
    assert reasoning_family(TextPrompter(tokenizer, ChatTemplate(source))) == expected


def test_without_a_template_text_is_text() -> None:
    assert reasoning_family(TextPrompter(load_tokenizer(FILES), None)) == "plain"


def test_the_fixture_model_thinks() -> None:
    assert reasoning_family(TextPrompter.load(FILES)) == "think"


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
    prompter = TextPrompter(
        load_tokenizer(FILES), ChatTemplate(template("<think>", "</think>", after))
    )
    assert thinks_unasked(prompter) == expected


def test_the_fixture_model_thinks_only_if_it_is_asked() -> None:
    assert not thinks_unasked(TextPrompter.load(FILES))
