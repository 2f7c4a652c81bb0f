"""Where the options of a command come from: flags win over the environment."""

from __future__ import annotations

import re
from typing import Any

import click
from click.core import ParameterSource

from antiphon.config import DEFAULTS


def let_flags_win(options: dict[str, Any]) -> None:
    """Of ``--bind`` and what it replaces, forget in ``options`` what only the environment says."""
    if _is_flag("bind"):
        for name in ("host", "port"):
            if _is_variable(name):
                options[name] = getattr(DEFAULTS, name)
    elif _is_variable("bind") and (_is_flag("host") or _is_flag("port")):
        options["bind"] = ()


def with_sources(message: str) -> str:
    """``message``, and which of the options in it come from the environment."""
    named = re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", message)
    names = dict.fromkeys(flag.replace("-", "_") for flag in named)
    told = [
        f"--{name.replace('_', '-')} is ANTIPHON_{name.upper()}"
        for name in names
        if _is_variable(name)
    ]
    return f"{message} (Here {', '.join(told)}.)" if told else message


def _is_flag(name: str) -> bool:
    return _source(name) is ParameterSource.COMMANDLINE


def _is_variable(name: str) -> bool:
    return _source(name) is ParameterSource.ENVIRONMENT


def _source(name: str) -> ParameterSource | None:
    return click.get_current_context().get_parameter_source(name)
