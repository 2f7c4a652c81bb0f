"""The matrix on templates written for it: what it passes, and that it tells what is wrong.

Those that others published are ``nox -s templates``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from antiphon.prompting.template import ChatTemplate
from known_replies import FILES
from prompting.vocabularies import CHATML
from templates import bare, matrix
from templates.conversations import CONVERSATIONS, Conversation
from templates.peer import MARKS, Asked
from templates.table import BY_REQUEST, BY_TEMPLATE, RENDERED, Table, reason

HI = {"role": "user", "content": "Hi"}
HERMES = (FILES.path / "chat_template.jinja").read_text(encoding="utf-8")
STERN = "{{ bos_token }}{% if messages[0].role != 'user' %}{{ raise_exception('Ask first!') }}"
STERN += "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"


def chosen(*names: str) -> list[Conversation]:
    return [each for each in CONVERSATIONS if each.name in names]


async def tried(source: str, conversations: Sequence[Conversation] = CONVERSATIONS) -> Table:
    return await matrix.try_all([("t", source)], conversations)


async def test_a_template_with_tools_takes_every_conversation() -> None:
    table = await tried(HERMES)
    assert table.faults == []
    assert table.broken == []
    states = {each.name: table.states["t", each.name] for each in CONVERSATIONS}
    assert {name for name, state in states.items() if state != RENDERED} == {
        "documents", "image", "output of no call", "picture and text",
    }  # fmt: skip
    assert table.compared > 100


async def test_a_template_without_tools_is_refused_where_they_matter() -> None:
    table = await tried(CHATML, chosen("question", "tools", "forced", "call, untold"))
    assert table.faults == []
    states = [table.states["t", name] for name in ("question", "forced", "tools", "call, untold")]
    assert states == [RENDERED, RENDERED, BY_REQUEST, RENDERED]


async def test_a_refusal_is_in_the_words_of_the_template() -> None:
    table = await tried(STERN, chosen("question", "system"))
    assert table.faults == []
    assert table.states["t", "question"] == RENDERED
    assert table.states["t", "system"] == BY_TEMPLATE
    assert table.words["Ask first!"]["t"] > 1


@pytest.mark.parametrize("source", ["{% for %}", "{{ 'a' | shout }}"])
async def test_a_template_that_cannot_be_loaded_is_named(source: str) -> None:
    table = await tried(source, chosen("question"))
    assert table.states == {}
    (line,) = table.broken
    assert line.startswith("t: The model's chat template is broken, ")
    assert "\n" not in line


async def test_a_crash_at_the_start_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(matrix, "formats_of", broken)
    assert (await tried(CHATML)).faults == ["t, at the start: raises KeyError('x')"]


async def test_a_variable_that_is_missing_is_a_fault_where_transformers_writes_nothing() -> None:
    table = await tried(CHATML + "{{ nothing }}", chosen("question"))
    assert any("refused, but transformers renders it" in fault for fault in table.faults)


async def test_a_text_of_another_kind_than_that_of_transformers_is_a_fault() -> None:
    class Otherwise(matrix.WatchedTemplate):
        def render(self, messages: Sequence[Mapping[str, Any]], **told: object) -> str:
            return super().render(messages) + "!"

    template = Otherwise(CHATML, variables=MARKS)
    table = Table()
    bare.try_bare(table, "t", template, "hi", Asked(messages=[HI]))
    assert table.faults == ["t, hi: ours '!', transformers ''"]


def test_what_is_no_refusal_is_a_fault() -> None:
    class Broken(ChatTemplate):
        def render(self, *_: object, **__: object) -> str:
            raise KeyError("x")

    table = Table()
    template = ChatTemplate(CHATML)
    template.__class__ = Broken
    bare.try_bare(table, "t", template, "hi", Asked(messages=[HI]))
    assert table.faults == ["t, hi: raises KeyError('x')"]


async def test_answers_that_differ_by_endpoint_are_a_fault() -> None:
    odd = Conversation("odd", {"messages": [HI]}, {"input": "Ho"})
    table = await tried(CHATML, [odd])
    (fault,) = table.faults
    assert fault.startswith("t, odd: chat and responses differ: [[")


async def test_a_request_that_should_be_refused_and_is_not_is_a_fault() -> None:
    odd = Conversation("odd", {"messages": [HI]}, None, refused=True)
    (fault,) = (await tried(CHATML, [odd])).faults
    assert "rendered, which it should not be" in fault


def test_tables_are_added_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = Table(["a"], ["q", "r"]), Table(["b"], ["q", "r"])
    one.rendered("a", "q")
    one.refused("a", "r", "No!", asked=True)
    other.refused("b", "q", "No!", asked=False)
    other.fault("b", "r", "hangs")
    one.add(other)
    one.print(1.0)
    printed = capsys.readouterr().out
    assert f"{'a':42}.x\n{'b':42}- \n" in printed
    assert "     2    2  No! (a, b)\n" in printed
    assert "b, r: hangs\n" in printed
    assert "3 cells: 1 rendered, 1 refused by the template, 1 before it" in printed


def test_conversations_have_names_of_their_own() -> None:
    names = Counter([each.name for each in CONVERSATIONS] + [name for name, _ in bare.BARE])
    assert {name for name, times in names.items() if times > 1} == set()


def test_names_that_are_there_twice_are_told_apart() -> None:
    assert matrix.told_apart([("a", "1"), ("b", "2"), ("a", "3")]) == [
        ("a", "1"), ("b", "2"), ("a #2", "3"),
    ]  # fmt: skip


def test_reasons_leave_out_what_differs_by_model() -> None:
    assert reason("The model's chat template cannot write these messages: No!") == "No!"
    assert reason("The model `library/x:1b` is " + json.dumps("y")) == 'The model … is "y"'
