"""Answers that are held to a form, from a true model, on every endpoint, whole and streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]
import pytest

from api.tinychat.asking import (
    ENDPOINTS,
    LIMITS,
    PARIS,
    Asking,
    Endpoint,
    answers,
    question,
    the_answer,
    usage,
)
from known_replies import REPLIES

CARD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["maps", "plums"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


def held(endpoint: Endpoint, schema: Any, *, strict: bool = True) -> dict[str, Any]:
    """The fields that hold the endpoint's answer to a schema."""
    named = {"name": "card", "schema": schema, "strict": strict}
    if endpoint == "responses":
        return {"text": {"format": {"type": "json_schema", **named}}}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


PARAMS = {
    "chat": "response_format.json_schema.schema",
    "completions": "response_format.json_schema.schema",
    "responses": "text.format.schema",
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_reply_that_holds_anyway_stays_as_it_is(asking: Asking, endpoint: Endpoint) -> None:
    known = REPLIES["json-3.1"]
    body = await asking.greedily(endpoint, known, **held(endpoint, CARD))
    assert the_answer(endpoint, body).text == known.reply


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_answer_to_something_else_is_made_to_hold(
    asking: Asking, endpoint: Endpoint, seed: int
) -> None:
    fields = {**question(endpoint, PARIS), **held(endpoint, CARD)}
    body = await asking.both(endpoint, **fields, temperature=1.5, seed=seed)
    answer = the_answer(endpoint, body)
    assert answer.finish == "stop"
    jsonschema.validate(json.loads(answer.text), CARD)


FORMS = [
    ({"regex": r"\d{3}-\d{4}"}, r"[0-9]{3}-[0-9]{4}"),
    ({"structured_outputs": {"choice": ["left", "right", 'né/"x"']}}, r'left|right|né/"x"'),
    ({"structured_outputs": {"grammar": 'start: "a" B\nB: /[xyz]{3}/'}}, r"a[xyz]{3}"),
    ({"structured_outputs": {"grammar": 'root ::= "a" b\nb ::= [xyz] [0-9]?'}}, r"a[xyz][0-9]?"),
    ({"ebnf": 'root ::= ("no" | "yes") "!"'}, r"(no|yes)!"),
    ({"json_schema": '{"enum":["a",7,null]}'}, r'"a"|7|null'),
    ({"structured_outputs": {"json": {"const": {"a": [1]}}}}, r'\{\s*"a"\s*:\s*\[\s*1\s*\]\s*\}'),
]


@pytest.mark.parametrize(("form", "pattern"), FORMS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_every_kind_of_form(
    asking: Asking, endpoint: Endpoint, form: Mapping[str, Any], pattern: str
) -> None:
    fields = {**question(endpoint, PARIS), **form}
    body = await asking.both(endpoint, **fields, temperature=1, seed=5)
    answer = the_answer(endpoint, body)
    assert re.fullmatch(pattern, answer.text)
    assert answer.finish == "stop"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_any_object(asking: Asking, endpoint: Endpoint) -> None:
    kind = {"type": "json_object"}
    form = {"text": {"format": kind}} if endpoint == "responses" else {"response_format": kind}
    known = REPLIES["json-5.1"]
    body = await asking.greedily(endpoint, known, **form)
    assert the_answer(endpoint, body).text == known.reply


async def test_siblings_are_each_held(asking: Asking) -> None:
    fields = question("chat", PARIS)
    body = await asking.both("chat", **fields, **held("chat", CARD), n=4, temperature=1.5, seed=9)
    texts = [answer.text for answer in answers("chat", body)]
    for text in texts:
        jsonschema.validate(json.loads(text), CARD)
    assert len(set(texts)) > 1


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_limit_cuts_a_form_as_any_text(asking: Asking, endpoint: Endpoint) -> None:
    fields = {**question(endpoint, REPLIES["json-3.1"]), **held(endpoint, CARD)}
    body = await asking.both(endpoint, **(fields | {LIMITS[endpoint]: 5}), temperature=0)
    answer = the_answer(endpoint, body)
    assert answer.finish == "length"
    assert usage(endpoint, body).completion == 5


@pytest.mark.parametrize(
    "fields",
    [
        {"ignore_eos": True},
        {"min_tokens": 30},
        {"min_tokens": 30, "ignore_eos": True},
        {"allowed_token_ids": None, "logit_bias": {"0": 100, "1": 100, "2": 100}},
        {"stop": ["zzz"]},
        {"stop_token_ids": [1, 2]},
        {"presence_penalty": 2, "repetition_penalty": 2, "top_k": 1, "min_p": 1},
    ],
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_the_form_wins_over_what_would_go_on_or_beyond(
    asking: Asking, endpoint: Endpoint, fields: dict[str, Any]
) -> None:
    body = await asking.both(
        endpoint, **question(endpoint, PARIS), regex="[ab]{4}", seed=3, **fields
    )
    answer = the_answer(endpoint, body)
    assert re.fullmatch("[ab]{4}", answer.text)
    assert answer.finish == "stop"


async def test_a_bias_does_not_bring_back_what_the_form_excludes(asking: Asking) -> None:
    [token] = await asking_ids(asking, "c")
    fields = {**question("chat", PARIS), "temperature": 0, "logit_bias": {str(token): 100}}
    body = await asking.body("chat", **fields, regex="[ab]{4}c")
    assert re.fullmatch("[ab]{4}c", the_answer("chat", body).text)


async def asking_ids(asking: Asking, text: str) -> list[int]:
    given = {"model": "tinychat", "prompt": text, "add_special_tokens": False}
    response = await asking.client.post("/tokenize", json=given)
    tokens: list[int] = (await response.get_json())["tokens"]
    return tokens


async def test_a_stop_string_ends_a_form(asking: Asking) -> None:
    fields = {**question("chat", PARIS), "regex": "abcdef", "stop": ["cd"], "seed": 1}
    assert the_answer("chat", await asking.both("chat", **fields)).text == "ab"


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_a_thought_is_free_and_the_answer_held(asking: Asking, endpoint: Endpoint) -> None:
    known = REPLIES["thinking-1.1"]
    thought, _, reply = known.reply.removeprefix("<think>\n").partition("\n</think>\n")
    form = {"structured_outputs": {"regex": r"[0-9]{2} feet\."}}
    body = await asking.greedily(endpoint, known, **form)
    answer = the_answer(endpoint, body)
    assert (answer.reasoning, answer.text) == (thought, reply.replace("legs", "feet"))


async def test_without_a_thought_the_form_holds_at_once(asking: Asking) -> None:
    body = await asking.greedily("chat", PARIS, regex="Paris|Rome")
    answer = the_answer("chat", body)
    assert answer.reasoning == ""
    assert answer.text in ("Paris", "Rome")


BAD: list[tuple[Any, str]] = [
    ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type"),
    ({"properties": {"a": {"$ref": "#/$defs/x"}}}, "/properties/a/$ref"),
    ({"items": {"type": "string", "format": "zz"}}, "/items/format"),
    ({"$ref": "#"}, "ever ends"),
]


@pytest.mark.parametrize(("schema", "place"), BAD)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_schema_that_does_not_compile(
    asking: Asking, endpoint: Endpoint, stream: bool, schema: Any, place: str
) -> None:
    fields = {**question(endpoint, PARIS), **held(endpoint, schema), "stream": stream}
    error = (await asking.body(endpoint, 400, **fields))["error"]
    assert (error["code"], error["param"]) == ("invalid_schema", PARAMS[endpoint])
    assert place in error["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"regex": "("}, "regex"),
        ({"regex": "a" * 1_000_000}, "regex"),
        ({"ebnf": "root ::= ((("}, "ebnf"),
        ({"structured_outputs": {"grammar": "start: ??"}}, "structured_outputs.grammar"),
        ({"structured_outputs": {"json": "{" + '"items":{' * 900 + "}" * 901}},
         "structured_outputs.json"),
    ],
)  # fmt: skip
async def test_other_forms_that_do_not_compile(
    asking: Asking, fields: dict[str, Any], param: str
) -> None:
    error = (await asking.body("chat", 400, **question("chat", PARIS), **fields))["error"]
    assert (error["code"], error["param"]) == ("invalid_schema", param)


@pytest.mark.parametrize(
    ("choice", "param"), [(["a", ""], "choice[1]"), (["a", "b", "a"], "choice[2]"), ([], "choice")]
)
async def test_choices_that_are_none(asking: Asking, choice: list[str], param: str) -> None:
    fields = {**question("chat", PARIS), "structured_outputs": {"choice": choice}}
    error = (await asking.body("chat", 400, **fields))["error"]
    assert error["param"] == f"structured_outputs.{param}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_no_token_is_left(asking: Asking, endpoint: Endpoint) -> None:
    """Told at once, be it the form that leaves none or the least length."""
    [token] = await asking_ids(asking, "c")
    fields = {**question(endpoint, PARIS), "allowed_token_ids": [token]}
    error = (await asking.body(endpoint, 400, **fields, regex="[ab]"))["error"]
    assert (error["code"], error["param"]) == ("invalid_schema", "regex")
    fields |= {"min_tokens": 2, "stop_token_ids": [token]}
    error = (await asking.body(endpoint, 400, **fields))["error"]
    assert (error["code"], error["param"]) == ("conflicting_parameters", "allowed_token_ids")


async def test_only_a_strict_schema_is_refused_for_a_format(asking: Asking) -> None:
    schema = {"type": "string", "format": "zz", "maxLength": 3}
    fields = {**question("chat", PARIS), **held("chat", schema, strict=False)}
    assert len(json.loads(the_answer("chat", await asking.body("chat", **fields)).text)) <= 3


async def test_others_go_on_while_forms_are_compiled_and_refused(asking: Asking) -> None:
    """Sixteen at once: held, free, and refused."""
    free: list[str] = []

    async def one(number: int) -> None:
        if number % 4 == 0:
            body = await asking.greedily("chat", PARIS)
            free.append(the_answer("chat", body).text)
        elif number % 4 == 1:
            await asking.body(
                "chat", 400, **question("chat", PARIS), regex=f"(x{{1000}}){{{number}00}}("
            )
        else:
            schema = {**CARD, "description": f"form {number}"}
            fields = {**question("chat", PARIS), **held("chat", schema)}
            body = await asking.body("chat", **fields, temperature=1, seed=number)
            jsonschema.validate(json.loads(the_answer("chat", body).text), CARD)

    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(one, number)
    assert free == [PARIS.reply] * 4
