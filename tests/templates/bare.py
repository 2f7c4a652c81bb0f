"""Messages given to a template as they stand, whatever the endpoints would say of them.

Each conversation of the matrix, whether the model is offered tools or not; and messages that no
body of a request becomes, which a template must survive all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.prompting.conversation import as_shown, chat_messages
from antiphon.prompting.template import ChatTemplate
from antiphon.requests.chat import parse_chat
from templates.conversations import CONVERSATIONS, GET
from templates.peer import Asked, by_transformers, difference, in_form
from templates.table import Table, reason

ASK = {"role": "user", "content": "Hi"}
TOOLS = [{"type": "function", "function": GET}]
PICTURE = {"type": "image", "image": "data:image/png;base64,AA"}


def called(arguments: Any, **fields: Any) -> Asked:
    """A call of these arguments, answered."""
    call = {"id": "abcdefghi", "type": "function"}
    function = {"name": "get_weather", "arguments": arguments}
    message = {"role": "assistant", "content": "", "tool_calls": [{**call, "function": function}]}
    answer = {"role": "tool", "name": "get_weather", "content": "ok", "tool_call_id": "abcdefghi"}
    return Asked(messages=[ASK, {**message, **fields}, answer], tools=TOOLS)


def deep(levels: int) -> dict[str, Any]:
    """An object in an object, and so on."""
    value: dict[str, Any] = {"a": 1}
    for _ in range(levels):
        value = {"a": value}
    return value


def _bodies() -> Iterator[tuple[str, Asked]]:
    for conversation in CONVERSATIONS:
        if conversation.chat is None or conversation.refused:
            continue
        request = parse_chat({"model": "m", **conversation.chat})
        yield (
            f"bare: {conversation.name}",
            Asked(
                messages=chat_messages(request.messages),
                tools=as_shown(request.tools),
                add_generation_prompt=request.add_generation_prompt,
                extra=request.chat_template_kwargs,
            ),
        )


BARE: tuple[tuple[str, Asked], ...] = (
    *_bodies(),
    ("bare: no messages", Asked(messages=[])),
    ("bare: null content", Asked(messages=[ASK, {"role": "assistant", "content": None}, ASK])),
    ("bare: null content of a user", Asked(messages=[{"role": "user", "content": None}])),
    ("bare: no content", Asked(messages=[{"role": "user"}])),
    ("bare: picture", Asked(messages=[{"role": "user", "content": [PICTURE]}])),
    (
        "bare: picture and text",
        Asked(messages=[{"role": "user", "content": [PICTURE, {"type": "text", "text": "Hi"}]}]),
    ),
    ("bare: unknown role", Asked(messages=[{"role": "critic", "content": "Hi"}])),
    ("bare: call, null content", called({"city": "Oslo"}, content=None)),
    ("bare: arguments as text", called('{"city": "Oslo"}')),
    ("bare: arguments as a list", called([1, "é"])),
    ("bare: arguments as a number", called(1)),
    ("bare: null arguments", called(None)),
    ("bare: arguments 1,000 deep", called(deep(1_000))),
    ("bare: arguments 100,000 deep", called(deep(100_000))),
    (
        "bare: documents that it is told of",
        Asked(messages=[ASK], extra={"documents": [{"title": "é \"q\"", "text": "<b>"}]}),
    ),
    ("bare: tools without a schema", Asked(messages=[ASK], tools=[{"type": "function",
     "function": {"name": "now"}}])),
    ("bare: tools in another form", Asked(messages=[ASK], tools=[GET])),
    ("bare: tools of no form", Asked(messages=[ASK], tools=[{}])),
)  # fmt: skip


def try_bare(table: Table, label: str, template: ChatTemplate, name: str, asked: Asked) -> None:
    """The cell: what the template writes of it, beside what it writes with ``transformers``."""
    try:
        text = template.render(
            asked.messages,
            add_generation_prompt=asked.add_generation_prompt,
            tools=asked.tools,
            extra=asked.extra,
        )
    except InvalidRequest as refusal:
        text = None
        words = reason(refusal.message)
        table.refused(label, name, words, asked=True)
        if not words or refusal.param != "messages":
            table.fault(label, name, f"refused without words or a param: {refusal!r}")
    except Exception as failure:  # what would be an answer of 500
        table.fault(label, name, f"raises {failure!r}")
        return
    theirs = by_transformers(template.source, in_form(template, asked))
    if text is None:
        if not isinstance(theirs, Exception):
            table.fault(label, name, "refused, but transformers renders it")
        return
    table.rendered(label, name)
    if isinstance(theirs, RecursionError):  # it copies what a template does not even look at
        return
    table.compared += 1
    if isinstance(theirs, Exception):
        table.fault(label, name, f"rendered, but transformers refuses it: {theirs!r}")
    elif fault := difference(text, theirs):
        table.fault(label, name, fault)
