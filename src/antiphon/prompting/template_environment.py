"""The Jinja environment chat templates are written for, in a sandbox.

What published templates rely on is set by the ``transformers`` library (its chat template
documentation): trimmed blocks, loop controls, ``raise_exception``, ``strftime_now``, a ``tojson``
that leaves text readable, and a ``generation`` block that only training uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, Undefined, nodes
from jinja2.exceptions import UndefinedError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.utils import missing

from antiphon.prompting.template_limits import LimitedEnvironment

_NOT_ASCII = re.compile("[^\x00-\x7f\udc00-\udfff]")


class StrictVariable(Undefined):
    """An undefined variable may be tested, but not written; an undefined attribute may be both.

    Templates ask ``if tools`` of a variable nobody set, and write ``message.content`` of a message
    without one. A variable that is missing where it is written is a prompt with a hole in it.
    """

    __slots__ = ()

    def __str__(self) -> str:
        if self._undefined_obj is missing:  # a variable, not an attribute of something
            self._fail_with_undefined_error()
        return super().__str__()


class GenerationBlock(Extension):
    """``{% generation %}…{% endgeneration %}``: its content, as if the block were not there."""

    tags = {"generation"}  # noqa: RUF012 - the base class's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def make_environment(now: Callable[[], datetime]) -> LimitedEnvironment:
    """A new environment; ``now`` is the clock behind ``strftime_now``."""
    environment = LimitedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[LoopControlExtension, GenerationBlock],
        undefined=StrictVariable,
    )
    environment.filters["tojson"] = _to_json
    environment.limit_calls()
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    return environment


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as a person would write it: no HTML escapes, keys in their own order."""
    text = json.dumps(
        value,
        ensure_ascii=False,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_refuse_undefined,
    )
    # Lone surrogates stay: in a prompt they stand for something else, until it is encoded.
    return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text) if ensure_ascii else text


def _refuse_undefined(value: Any) -> NoReturn:
    if isinstance(value, Undefined):
        raise UndefinedError(value._undefined_message)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
