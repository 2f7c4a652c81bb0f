"""The command's options are the settings, with their names, defaults and choices."""

from __future__ import annotations

import typing
from typing import Any, Literal, get_args, get_origin

import attrs
import click
import pytest

from antiphon.cli.serve import serve
from antiphon.config import Config

PARAMETERS = {each.name: each for each in serve.params}
HINTS = typing.get_type_hints(Config)


def test_every_setting_is_an_option_or_the_argument() -> None:
    assert set(PARAMETERS) == {field.name for field in attrs.fields(Config)}


def test_what_is_not_given_is_the_default() -> None:
    given: dict[str, Any] = serve.make_context("serve", []).params
    assert Config(**given) == Config()


@pytest.mark.parametrize("name", [name for name in HINTS if get_origin(HINTS[name]) is Literal])
def test_choices_are_what_the_setting_can_be(name: str) -> None:
    kind = PARAMETERS[name].type
    assert isinstance(kind, click.Choice)
    assert tuple(kind.choices) == get_args(HINTS[name])
    for value in get_args(HINTS[name]):
        flag = f"--{name.replace('_', '-')}"
        assert serve.make_context("serve", [flag, str(value)]).params[name] == value
