"""Answers held to a form: what the model would say anyway passes as it is, all else is bent."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import tokenizers

from api.tinychat.asking import ENDPOINTS, PARIS, Asking, Endpoint, the_answer
from known_replies import REPLIES, KnownReply

CAT = REPLIES["json-1.1"]
CAT_SCHEMA = {
    "type": "object",
    "properties": {
        "animal": {"type": "string", "maxLength": 12},
        "legs": {"type": "integer", "minimum": 0, "maximum": 8},
        "wild": {"type": "boolean"},
    },
    "required": ["animal", "legs", "wild"],
    "additionalProperties": False,
}


def schema(endpoint: Endpoint, value: dict[str, Any]) -> dict[str, Any]:
    """The field that asks for it."""
    named = {"name": "cat", "schema": value, "strict": True}
    if endpoint == "responses":
        return {"text": {"format": {"type": "json_schema", **named}}}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def json_object(endpoint: Endpoint) -> dict[str, Any]:
    kind = {"type": "json_object"}
    return {"text": {"format": kind}} if endpoint == "responses" else {"response_format": kind}


async def held(asking: Asking, endpoint: Endpoint, known: KnownReply, **form: Any) -> str:
    """The text, whole and streamed."""
    body = await asking.greedily(endpoint, known, **form)
    answer = the_answer(endpoint, body)
    assert answer.finish == "stop", answer
    return answer.text


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_schema_that_the_reply_satisfies(asking: Asking, endpoint: Endpoint) -> None:
    assert await held(asking, endpoint, CAT, **schema(endpoint, CAT_SCHEMA)) == CAT.reply


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", ["json-1.1", "json-3.1", "json-5.1", "json-6.1"])
async def test_any_object_that_the_reply_is(asking: Asking, endpoint: Endpoint, name: str) -> None:
    """Nested, with lists, numbers, null and escapes."""
    known = REPLIES[name]
    assert await held(asking, endpoint, known, **json_object(endpoint)) == known.reply


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_schema_that_bends_the_reply(asking: Asking, endpoint: Endpoint) -> None:
    """The model says false of a cat, and is not let; the rest of it stays."""
    bent = json.loads(json.dumps(CAT_SCHEMA))
    bent["properties"]["wild"] = {"const": True}
    text = await held(asking, endpoint, CAT, **schema(endpoint, bent))
    assert json.loads(text) == {**json.loads(CAT.reply), "wild": True}


async def test_a_question_that_has_nothing_to_do_with_it(asking: Asking) -> None:
    """The form holds even where the model thinks of something else at every token."""
    found = json.loads(await held(asking, "chat", PARIS, **schema("chat", CAT_SCHEMA)))
    assert found.keys() == {"animal", "legs", "wild"}
    assert len(found["animal"]) <= 12
    assert 0 <= found["legs"] <= 8
    assert isinstance(found["wild"], bool)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_expression(asking: Asking, endpoint: Endpoint) -> None:
    date = REPLIES["choice-2.1"]
    text = await held(asking, endpoint, date, regex=r"\d{4}-\d{2}-\d{2}")
    assert text == date.reply == "2031-07-15"
    bent = await held(asking, endpoint, date, regex=r"19\d{2}/\d{2}")
    assert re.fullmatch(r"19\d{2}/\d{2}", bent)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_choice(
    asking: Asking, tokenizer: tokenizers.Tokenizer, endpoint: Endpoint
) -> None:
    known = REPLIES["choice-1.1"]
    fields = {"structured_outputs": {"choice": ["positive", "negative", "neutral"]}}
    assert await held(asking, endpoint, known, **fields) == known.reply == "negative"
    # Neither is what the model thinks of: it would rather think first, and is not let.
    opening = [token for text, token in tokenizer.get_vocab().items() if text.startswith("<")]
    bias = dict.fromkeys(map(str, opening), -100)
    other = {"structured_outputs": {"choice": ["good", "bad"]}, "logit_bias": bias}
    assert await held(asking, endpoint, known, **other) in ("good", "bad")


async def test_a_choice_of_characters_that_span_tokens(asking: Asking) -> None:
    fields = {"structured_outputs": {"choice": ["你好，世界！", "你好", "世界"]}}
    known = REPLIES["unicode-3.1"]
    assert await held(asking, "chat", known, **fields) == known.reply == "你好，世界！"


async def test_four_choices_under_one_form(asking: Asking) -> None:
    """Each goes its own way through the form."""
    body = await asking.both(
        "completions",
        prompt="Once the lamp",
        n=4,
        seed=3,
        temperature=1.5,
        max_tokens=40,
        regex="(yes|no|maybe), [a-z]{3,8}",
    )
    texts = [choice["text"] for choice in body["choices"]]
    assert all(re.fullmatch("(yes|no|maybe), [a-z]{3,8}", text) for text in texts), texts
    assert len(set(texts)) > 1


async def test_a_form_that_is_cut_by_the_limit_says_so(asking: Asking) -> None:
    body = await asking.greedily("chat", CAT, **schema("chat", CAT_SCHEMA), max_completion_tokens=5)
    answer = the_answer("chat", body)
    assert answer.finish == "length"
    assert CAT.reply.startswith(answer.text)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (schema("chat", {"type": "objekt"}), "response_format.json_schema.schema"),
        ({"regex": "(unclosed"}, "regex"),
    ],
)
async def test_what_does_not_compile_is_named(
    asking: Asking, fields: dict[str, Any], param: str
) -> None:
    asked = {"messages": list(PARIS.messages), **fields}
    error = (await asking.body("chat", 400, **asked))["error"]
    assert (error["param"], error["code"]) == (param, "invalid_schema")


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_thought_is_free_and_the_answer_is_held(asking: Asking, endpoint: Endpoint) -> None:
    known = REPLIES["thinking-2.1"]
    thought, _, answer = known.reply.removeprefix("<think>").partition("</think>")
    choices = {"structured_outputs": {"choice": [answer.strip(), "Yes."]}}
    told = the_answer(endpoint, await asking.greedily(endpoint, known, **choices))
    assert (told.reasoning, told.text) == (thought.strip(), answer.strip())
    other = the_answer(endpoint, await asking.greedily(endpoint, known, regex="Yes|No"))
    assert (other.reasoning, other.text) == (thought.strip(), "No")
