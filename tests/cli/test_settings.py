"""The command's options are the settings, with their names, defaults and choices."""

from __future__ import annotations

import typing
from typing import Any, Literal, get_args, get_origin

import attrs
import click
import pytest

from antiphon.cli.limit_options import OPTIONS, take_limits
from antiphon.cli.serve import serve
from antiphon.config import Config
from antiphon.errors import StartupError
from antiphon.transport.limits import DEFAULT_LIMITS, Limits

PARAMETERS = {each.name: each for each in serve.params}
HINTS = typing.get_type_hints(Config)


def test_every_setting_is_an_option_or_the_argument() -> None:
    settings = {field.name for field in attrs.fields(Config)} - {"limits"}
    assert set(PARAMETERS) == settings | set(OPTIONS)


# A window has no flag: it is what the rate beside it is averaged over.
WITHOUT_FLAG = {"body_rate_window"}


def test_every_limit_of_the_transport_is_an_option() -> None:
    assert set(OPTIONS) == {field.name for field in attrs.fields(Limits)} - WITHOUT_FLAG


def test_what_is_not_given_is_the_default() -> None:
    given: dict[str, Any] = serve.make_context("serve", []).params
    assert Config(limits=take_limits(given), **given) == Config()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_limit_that_is_given_is_that_of_the_transport(name: str) -> None:
    value = getattr(DEFAULT_LIMITS, name) + 1
    flag = f"--{name.replace('_', '-')}"
    given: dict[str, Any] = serve.make_context("serve", [flag, str(value)]).params
    assert take_limits(given) == attrs.evolve(DEFAULT_LIMITS, **{name: value})


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("value", ["0", "-1", "many", str(2**31)])
def test_limits_that_cannot_be(name: str, value: str) -> None:
    if value == str(2**31) and "window" not in name:
        return
    with pytest.raises(click.BadParameter):
        serve.make_context("serve", [f"--{name.replace('_', '-')}", value])


NUMBERS = [
    each.name for each in serve.params if isinstance(each.type, click.IntRange | click.FloatRange)
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e300", str(2**63)])
def test_numbers_that_would_break_connections(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(click.BadParameter):
        serve.make_context("serve", [f"--{name.replace('_', '-')}", value])
    monkeypatch.setenv(f"ANTIPHON_{name.upper()}", value)
    with pytest.raises(click.BadParameter):
        serve.make_context("serve", [], auto_envvar_prefix="ANTIPHON")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--stall-timeout", "86401"),  # TCP_USER_TIMEOUT is milliseconds in 31 bits
        ("--h2-max-concurrent-streams", str(2**32)),
        ("--max-header-bytes", str(2**32)),
        ("--backlog", "65536"),
        ("--h2-initial-window", "65534"),
        ("--connection-high", "1"),
        ("--stream-high", "1"),
        ("--stream-low", "1"),
        ("--max-header-fields", "1"),
        ("--sse-ping-interval", "1e-9"),
    ],
)
def test_numbers_that_are_too_large_or_too_small(flag: str, value: str) -> None:
    with pytest.raises(click.BadParameter):
        serve.make_context("serve", [flag, value])


@pytest.mark.parametrize("name", [name for name in HINTS if get_origin(HINTS[name]) is Literal])
def test_choices_are_what_the_setting_can_be(name: str) -> None:
    kind = PARAMETERS[name].type
    assert isinstance(kind, click.Choice)
    assert tuple(kind.choices) == get_args(HINTS[name])
    for value in get_args(HINTS[name]):
        flag = f"--{name.replace('_', '-')}"
        assert serve.make_context("serve", [flag, str(value)]).params[name] == value


@pytest.mark.parametrize("name", ["", " ", " a", "a\nb", "\x1b[31m", "\ud800", "x" * 257])
def test_a_model_s_public_name_can_be_read(name: str) -> None:
    with pytest.raises(StartupError, match="--served-model-name is ") as refusal:
        Config(served_model_name=("m", name)).check()
    assert str(refusal.value).isprintable()
    Config(served_model_name=("org/Größe 7B:x", "x" * 256)).check()
