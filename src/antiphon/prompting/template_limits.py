"""What keeps a chat template from running for ever, or writing more than any model can read.

A template comes with a model, and what it loops over comes with a request. A thread cannot be
stopped from outside, so a template looks at the clock itself: at every turn of a loop, at every
call of a macro, function, method, filter or test, and at every value that a filter gives one by
one. What a single call would make or walk through is measured before it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import GeneratorType
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import (
    ImmutableSandboxedEnvironment,
    SandboxedEscapeFormatter,
    SandboxedFormatter,
)
from jinja2.utils import Namespace, _PassArg, generate_lorem_ipsum
from markupsafe import Markup

from antiphon.prompting.template_clock import look, looked_at, require_room, require_size
from antiphon.prompting.template_sizes import (
    check_filter,
    check_method,
    check_operator,
    check_test,
    weight,
)

_WORDS, _LONGEST_WORD = 100, 16
_BUILT_IN = (str, bytes, int, float, list, tuple, dict)
_CONTAINERS: tuple[type, ...] = (
    *(list, tuple, dict, set, frozenset, Namespace),
    *(type({}.values()), type({}.items())),
)


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox, with these limits for what ``limited`` made of a template."""

    intercepted_binops = frozenset({"*", "+", "%", "**"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, finalize=self.written)
        self.globals["lipsum"] = _lipsum

    def limit_calls(self) -> None:
        """Put every filter and test that there is under the limits."""
        for table, check in ((self.filters, check_filter), (self.tests, check_test)):
            for name, function in [*table.items()]:
                table[name] = _limited(self, name, function, check)

    def tick(self) -> str:
        """Raises ``TooMuch`` when the time of the present rendering is over."""
        look()
        return ""

    def weighed(self, value: Any) -> Any:
        """The value, if it is not too long to be written, compared or looked up."""
        if isinstance(value, _CONTAINERS):
            weight(value)
        return value

    def written(self, value: Any) -> Any:
        """The value, if there is room for it: a macro and a block keep what they write."""
        require_room(weight(value))
        return value

    def call(self, context: Context, called: Any, /, *arguments: Any, **named: Any) -> Any:
        look()
        owner = getattr(called, "__self__", None)
        if isinstance(owner, _BUILT_IN) or owner is dict or called is dict:
            if called.__name__ == "join" and arguments:
                arguments = (_whole(arguments[0]), *arguments[1:])
            check_method(owner, called.__name__, arguments, named)
        return super().call(context, called, *arguments, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        check_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return super().getitem(obj, self.weighed(argument))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is None:
            return None
        text: str = value.__self__
        str_type = type(text)
        kind = _EscapeFormatter if isinstance(text, Markup) else _Formatter
        escaping = {"escape": text.escape} if isinstance(text, Markup) else {}
        whole = value.__name__ == "format"

        def form(*arguments: Any, **named: Any) -> str:
            formatter = kind(self, **escaping)
            if not whole:
                (named,) = arguments
                arguments = ()
            return str_type(formatter.vformat(text, arguments, named))

        return form

    def concat_limited(self, *parts: Any) -> str:
        """The ``~`` of the template language."""
        return self.concat([str(self.weighed(part)) for part in parts])

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """What a macro or a block wrote, as one text."""
        texts = [*pieces]
        require_room(sum(map(len, texts)))
        return "".join(texts)


def _lipsum(n: int = 5, html: bool = True, *words: int, **between: int) -> str:
    """Jinja's own, which writes as many words as it is asked to."""
    most = max((_WORDS, *words, *between.values()))
    require_size(n * most * _LONGEST_WORD)
    return generate_lorem_ipsum(n, html, *words, **between)


class _Measuring(SandboxedFormatter):
    """Looks at each field of ``str.format`` before and after it is written."""

    _length = 0

    def format_field(self, value: Any, format_spec: str) -> Any:
        look()
        weight(value)
        digits = "".join(c if c.isdigit() else " " for c in format_spec).split()
        require_size(max((10 ** min(len(number), 9) for number in digits), default=0))
        written = super().format_field(value, format_spec)
        self._length += len(written)
        require_room(len(written))
        require_size(self._length)
        return written


class _Formatter(_Measuring):
    pass


class _EscapeFormatter(_Measuring, SandboxedEscapeFormatter):
    pass


def _limited(
    environment: LimitedEnvironment,
    name: str,
    function: Callable[..., Any],
    check: Callable[..., None],
) -> Callable[..., Any]:
    """The filter or test, within the limits.

    It takes the context, so that Jinja leaves it to the rendering where its arguments are known.
    """
    wants = _PassArg.from_obj(function)

    @pass_context
    def called(context: Context, value: Any, /, *arguments: Any, **named: Any) -> Any:
        look()
        if name == "join":
            value = _whole(value)
        check(name, value, arguments, named)
        first: Mapping[_PassArg | None, Sequence[Any]] = {
            None: (),
            _PassArg.context: (context,),
            _PassArg.eval_context: (context.eval_ctx,),
            _PassArg.environment: (environment,),
        }
        result = function(*first[wants], value, *arguments, **named)
        return looked_at(result) if isinstance(result, GeneratorType) else result

    return called


def _whole(values: Any) -> Any:
    """Values that come one by one, as a list that can be measured."""
    if not isinstance(values, GeneratorType):
        return values
    kept = []
    size = 0
    for value in values:
        kept.append(value)
        size += 1 + weight(value)
        require_size(size)
    return kept


def limited(template: nodes.Template) -> nodes.Template:
    """The template, looking at the clock where it could go on for long, and at what grows."""
    looping: list[Any] = [*template.find_all((nodes.For, nodes.Macro, nodes.CallBlock))]
    for node in looping:
        node.body.insert(0, nodes.ExprStmt(_call("tick", []), lineno=node.lineno))
        if isinstance(node, nodes.For) and node.test is not None:
            node.test = nodes.And(nodes.Not(_call("tick", [])), node.test)
    _replace(template)
    return template


def _replace(node: nodes.Node) -> None:
    for name, value in [*node.iter_fields()]:
        if isinstance(value, nodes.Node):
            _replace(value)
            setattr(node, name, _replaced(value))
        elif isinstance(value, list):
            for child in value:
                if isinstance(child, nodes.Node):
                    _replace(child)
            setattr(node, name, [_replaced(child) for child in value])


def _replaced(node: Any) -> Any:
    if isinstance(node, nodes.Concat):
        return _call("concat_limited", node.nodes)
    if isinstance(node, nodes.Compare):
        sides: list[Any] = [node, *node.ops]
        if not any(isinstance(side.expr, nodes.Const) for side in sides):
            for side in sides:
                side.expr = _call("weighed", [side.expr])
    if isinstance(node, nodes.Pair) and not isinstance(node.key, nodes.Const):
        node.key = _call("weighed", [node.key])
    return node


def _call(method: str, arguments: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)
