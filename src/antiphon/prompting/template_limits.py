"""What keeps a chat template from running for ever, or writing more than any model can read.

A template comes with a model, and what it loops over comes with a request. A thread cannot be
stopped from outside, so a template looks at the clock itself: at the start of every turn of a loop
and of every macro. Texts that grow by an operator are measured before they are made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_CHARACTERS = 1 << 24
"""Longest prompt a template may write; far above any context length."""
MAX_SECONDS = 5.0
"""Longest a template may take; published ones take milliseconds for a long conversation."""

_MAX_EXPONENT = 64
_WIDTH = re.compile(r"%[^%a-zA-Z]*?(\d{6,}|\*)")
_end: ContextVar[tuple[Callable[[], float], float] | None] = ContextVar("end", default=None)


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox, with these limits for what ``limited`` made of a template."""

    intercepted_binops = frozenset({"*", "+", "%", "**"})

    def tick(self) -> str:
        """Raises ``TemplateError`` when the time of the present rendering is over."""
        end = _end.get()
        if end is not None and end[0]() > end[1]:
            raise TemplateError("it takes too long")
        return ""

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if _size(operator, left, right) > MAX_CHARACTERS:
            raise TemplateError(f"a value is longer than {MAX_CHARACTERS} characters")
        return super().call_binop(context, operator, left, right)

    def concat_limited(self, *parts: Any) -> str:
        """The ``~`` of the template language."""
        texts = [str(part) for part in parts]
        if sum(map(len, texts)) > MAX_CHARACTERS:
            raise TemplateError(f"a value is longer than {MAX_CHARACTERS} characters")
        return "".join(texts)


@contextmanager
def time_limit(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """What is rendered inside has ``MAX_SECONDS`` by this clock."""
    token = _end.set((clock, clock() + MAX_SECONDS))
    try:
        yield
    finally:
        _end.reset(token)


def limited(template: nodes.Template) -> nodes.Template:
    """The template, looking at the clock where it could go on for long, and at what grows."""
    looping: list[Any] = [*template.find_all((nodes.For, nodes.Macro, nodes.CallBlock))]
    for node in looping:
        node.body.insert(0, nodes.ExprStmt(_call("tick", []), lineno=node.lineno))
    _replace_concats(template)
    return template


def _replace_concats(node: nodes.Node) -> None:
    for name, value in [*node.iter_fields()]:
        if isinstance(value, nodes.Node):
            _replace_concats(value)
            setattr(node, name, _without_concat(value))
        elif isinstance(value, list):
            for child in value:
                if isinstance(child, nodes.Node):
                    _replace_concats(child)
            setattr(node, name, [_without_concat(child) for child in value])


def _without_concat(node: Any) -> Any:
    return _call("concat_limited", node.nodes) if isinstance(node, nodes.Concat) else node


def _call(method: str, arguments: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)


def _size(operator: str, left: Any, right: Any) -> int:
    """At least the length of what the operator would make, as far as it can be told."""
    if operator == "*":
        for text, count in ((left, right), (right, left)):
            if isinstance(text, str | list | tuple) and isinstance(count, int):
                return len(text) * count
    elif operator == "+":
        if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            return len(left) + len(right)
    elif operator == "%":
        if isinstance(left, str) and _WIDTH.search(left):
            return MAX_CHARACTERS + 1
    elif isinstance(right, int | float) and abs(right) > _MAX_EXPONENT:
        return MAX_CHARACTERS + 1
    return 0
