"""Arguments between tags come back as the values that were written, typed by the schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.segments import Piece, Segmenter, Tool, Tools, family
from responsory.segments.formats.value_types import ALL, property_types

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def written(value: object) -> str:
    """A value as templates write it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def qwen(arguments: dict[str, Any]) -> str:
    inside = "".join(
        f"<parameter={key}>\n{written(value)}\n</parameter>\n" for key, value in arguments.items()
    )
    return f"<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>"


def glm(line: str) -> Callable[[dict[str, Any]], str]:
    def of(arguments: dict[str, Any]) -> str:
        inside = "".join(
            f"<arg_key>{key}</arg_key>{line}<arg_value>{written(value)}</arg_value>{line}"
            for key, value in arguments.items()
        )
        return f"<tool_call>f{line}{inside}</tool_call>"

    return of


def minimax(arguments: dict[str, Any]) -> str:
    inside = "".join(
        f'<parameter name="{key}">{written(value)}</parameter>\n'
        for key, value in arguments.items()
    )
    return f'<minimax:tool_call>\n<invoke name="f">\n{inside}</invoke>\n</minimax:tool_call>'


def dsml(arguments: dict[str, Any]) -> str:
    inside = "".join(
        f'<｜DSML｜parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
        f"{written(value)}</｜DSML｜parameter>\n"
        for key, value in arguments.items()
    )
    return (
        f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n{inside}</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>"
    )


WRITTEN = {
    "qwen3_coder": qwen,
    "glm45": glm("\n"),
    "glm47": glm(""),
    "minimax_m2": minimax,
    "deepseek_v32": dsml,
}


def arguments_of(name: str, pieces: list[str], schema: dict[str, Any] | None) -> str:
    segmenter = Segmenter(family(name), tools=Tools([Tool("f", parameters=schema)]))
    segments = []
    for piece in pieces:
        seen = segmenter.glance(piece)
        segments += segmenter.feed([Piece(piece, (1,))]) if seen is None else [seen]
    segments += segmenter.finish()
    assert segments[0] == CallOpened("function", "f")
    assert segments[-1] == CallClosed()
    assert {type(segment) for segment in segments[1:-1]} <= {CallInput}
    return "".join(segment.text for segment in segments if isinstance(segment, CallInput))


texts = st.text(
    st.sampled_from('ab<>/{}[]"\\ ,:\n\té😀1') | st.characters(codec="utf-8"), max_size=12
).filter(lambda text: "</" not in text)
leaves = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
KIND = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRITTEN))
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_was_written_comes_back(name: str, data: st.DataObject) -> None:
    keys = st.text("abc_", min_size=1, max_size=4)
    arguments = data.draw(st.dictionaries(keys, values, max_size=4))
    properties = {key: {"type": KIND[type(value)]} for key, value in arguments.items()}
    text = WRITTEN[name](arguments)
    schema = {"type": "object", "properties": properties}
    whole = arguments_of(name, [text], schema)
    assert json.loads(whole) == arguments
    assert arguments_of(name, list(text), schema) == whole
    at = data.draw(st.integers(0, len(text)))
    assert arguments_of(name, [text[:at], text[at:]], schema) == whole


@pytest.mark.parametrize(
    ("text", "types", "shown"),
    [
        ("5", "string", '"5"'),
        ("5", "integer", "5"),
        ("five", "integer", '"five"'),
        ("True", "boolean", "true"),
        ("None", ["string", "null"], "null"),
        ("null", "string", '"null"'),
        ("5", ["string", "integer"], "5"),
        ("['a', True]", "array", '["a", true]'),
        ("{'a': 1}", "object", '{"a": 1}'),
        ("[1, 2", "string", '"[1, 2"'),
        ("nothing", "array", '"nothing"'),
        (" a ", "string", '" a "'),
        ("", "string", '""'),
    ],
)
def test_a_value_is_of_the_type_of_its_schema(text: str, types: Any, shown: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": types}}}
    raw = f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>"
    assert arguments_of("glm47", [raw], schema) == f'{{"a": {shown}}}'
    assert arguments_of("glm47", list(raw), schema) == f'{{"a": {shown}}}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [("5", "5"), ("true", "true"), ("[1]", "[1]"), ('{"a": 1}', '{"a": 1}'), ("x y", '"x y"')],
)
def test_without_a_schema_json_is_json_and_all_else_a_string(text: str, shown: str) -> None:
    raw = f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>"
    assert arguments_of("glm47", [raw], None) == f'{{"a": {shown}}}'


def test_the_types_of_a_property() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "a": {"$ref": "#/$defs/b"},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "d": {"enum": ["x", 1]},
            "e": {"const": True},
            "f": {"type": "number"},
            "g": {"properties": {}},
            "h": {"$ref": "#/properties/h"},
            "i": {"allOf": [{"type": ["string", "integer"]}, {"type": "integer"}]},
        },
        "$defs": {"b": {"type": "array"}},
    }
    expected = {
        "a": {"array"}, "c": {"string", "null"}, "d": {"string", "integer"}, "e": {"boolean"},
        "f": {"number", "integer"}, "g": {"object"}, "h": ALL, "i": {"integer"}, "z": ALL,
    }  # fmt: skip
    assert {name: property_types(schema, name) for name in expected} == expected
    assert property_types(None, "a") == ALL
