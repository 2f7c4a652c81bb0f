"""Which control tokens of an answer are read: those that a family marks its parts with.

Control tokens are no text, and are not shown. Some of them say where a thought ends, or that a call
begins: the reader of the answer must see those, and shows none of what it takes for markup.
"""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.runs.call_example import TOOL
from responsory.segments import Mode, Spec
from responsory.segments.written import Exactly, InOrder, OneOf, Rules, Times, Written

_known: dict[int, tuple[Spec, str]] = {}
"""By the identity of a spec; there are a few for each model that is served."""
MOST_KNOWN = 256


def markup(spec: Spec, *, calls: bool) -> str:
    """All that a reader of the family knows as markup, in one text: a control token that is in it
    is for the reader to see. ``calls``: those of calls too."""
    spec = spec if calls else spec.without_calls
    known = _known.get(id(spec))
    if known is None or known[0] is not spec:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        known = _known[id(spec)] = (spec, "\0".join(_texts(spec)))
    return known[1]


def _texts(spec: Spec) -> Iterator[str]:
    for mode in _reached(spec):
        yield from mode.known
        for call in mode.calls.values():
            yield call.format.closer
            yield from _fixed(call.format.written([TOOL], most=1))


def _reached(spec: Spec) -> Iterator[Mode]:
    """The modes that a text can come to: without calls, those of sections are left over."""
    waiting, seen = [spec.start], {spec.start}
    while waiting:
        mode = spec.modes[waiting.pop()]
        yield mode
        after = {*mode.markers.values(), *((mode.then,) if mode.then is not None else ())}
        for call in mode.calls.values():
            after |= {call.then, call.broken}
        waiting += after - seen
        seen |= after


def _fixed(node: Written) -> Iterator[str]:
    match node:
        case Exactly(text):
            yield text
        case InOrder(parts) | OneOf(parts):
            for part in parts:
                yield from _fixed(part)
        case Times(part, _, _):
            yield from _fixed(part)
        case Rules(start, rules):
            yield from _fixed(start)
            for rule in rules.values():
                yield from _fixed(rule)
