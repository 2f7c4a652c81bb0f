"""What a value may be, one check at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from responsory import Usage, checks


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    """A value of that many levels."""
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def in_a_dict(value: Any) -> Any:
    return {"a": value}


def in_a_list(value: Any) -> Any:
    return [value]


@pytest.mark.parametrize("wrap", [in_a_dict, in_a_list])
def test_an_echo_is_256_levels_deep_at_most(wrap: Callable[[Any], Any]) -> None:
    deep = {"a": nested(255, wrap)}
    assert checks.echo(deep) == deep
    with pytest.raises(ValueError, match=r"^is nested more than 256 levels deep$"):
        checks.echo({"a": nested(256, wrap)})


def test_an_echo_is_a_copy_of_plain_json() -> None:
    value = {"a": [1, {"b": None}], "c": (True, 0.5, "d"), "e": MappingProxyType({"f": 10**300})}
    copied = checks.echo(MappingProxyType(value))
    assert copied == {"a": [1, {"b": None}], "c": [True, 0.5, "d"], "e": {"f": 10**300}}
    assert [type(copied), type(copied["c"]), type(copied["e"])] == [dict, list, dict]
    value["a"].append(2)  # type: ignore[attr-defined]  # the list
    assert copied["a"] == [1, {"b": None}]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, {1}, b"a", object()])
def test_what_is_not_json_is_named(value: Any) -> None:
    for echo in ({"a": value}, {"a": [value]}, {"a": {"b": value}}):
        with pytest.raises(ValueError, match=r"^holds .*, which is not JSON$"):
            checks.echo(echo)


@pytest.mark.parametrize("value", [None, [], "a", 1])
def test_an_echo_is_an_object(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^cannot be "):
        checks.echo(value)


@pytest.mark.parametrize("key", [1, None, "\ud800"])
def test_keys_are_text(key: Any) -> None:
    for echo in ({key: 1}, {"a": {key: 1}}, {"a": [{key: 1}]}):
        with pytest.raises(ValueError, match=r"^(cannot be|holds half a surrogate pair)"):
            checks.echo(echo)


def test_a_choice_is_refused_with_what_is_known() -> None:
    check = checks.one_of(None, "a", "b")
    assert [check(value) for value in (None, "a", "b")] == [None, "a", "b"]
    with pytest.raises(ValueError, match=r"^cannot be 'c'; known: 'a', 'b'$"):
        check("c")


def test_a_name_is_text_that_is_not_empty() -> None:
    assert checks.name("f") == "f"
    with pytest.raises(ValueError, match=r"^cannot be empty$"):
        checks.name("")
    with pytest.raises(ValueError, match=r"^cannot be None$"):
        checks.name(None)


def test_a_failure_is_told_whatever_it_says() -> None:
    assert checks.printable("a\U0001f600\ud800b\udc00") == "a\U0001f600\ufffdb\ufffd"
    with pytest.raises(ValueError, match=r"^cannot be 1$"):
        checks.printable(1)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (-0.5, -0.5), (-2, -2.0), (0, 0.0), (1.7e308, 1.7e308),
        (math.nan, -math.inf), (math.inf, -math.inf), (-math.inf, -math.inf),
        (-(10**400), -math.inf),
    ],
)  # fmt: skip
def test_a_log_probability_is_a_float_or_minus_infinity(value: float, kept: float) -> None:
    assert checks.log_probability(value) == kept
    assert type(checks.log_probability(value)) is float


@pytest.mark.parametrize("field", ["input", "output", "cached", "reasoning", "cache_write"])
def test_a_usage_is_made_of_counts(field: str) -> None:
    counts = dict.fromkeys(("input_tokens", "output_tokens"), 0)
    assert getattr(Usage(**{**counts, f"{field}_tokens": 3}), f"{field}_tokens") == 3
    for value in (-1, 1.0, True, None):
        with pytest.raises(ValueError, match=rf"^{field}_tokens cannot be {value}$"):
            Usage(**{**counts, f"{field}_tokens": value})  # type: ignore[arg-type]  # the point
