"""A whole answer with calls as a grammar: text, the openers in it, and a right call behind each.

It is made of the modes that the segmenter reads by, so whatever is generated is read as calls, and
nothing else is. Calls that must come stand alone; calls that may come stand anywhere in the text,
or, where an opener is known only at the beginning, there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.commands import Text
from responsory.segments.formats.spec import Call, Mode, Spec
from responsory.segments.written import (
    Exactly,
    InOrder,
    OneOf,
    Rule,
    Rules,
    TextWithout,
    Times,
)

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written

CALL = "call"


def answer_written(
    spec: Spec,
    tools: Sequence[Tool],
    *,
    forced: bool,
    most: int | None = None,
    instead: Written | None = None,
) -> Written:
    """What a model of the family may answer once its reasoning, if there is any, is over.

    ``tools``: those that may be called, at least one. ``forced``: one to ``most`` calls (None:
    without end) and no other text. Else any text in which calls are written as they should be; or,
    with ``instead``, either calls alone or exactly that. Raises NotImplementedError for a family
    that does not tell how it writes calls, and ValueError for one that has none.
    """
    begin = spec.modes[_beginning(spec)]
    anywhere = spec.modes[_settled(spec, begin)].calls
    bare = {opener: call for opener, call in begin.calls.items() if opener not in anywhere}
    if not begin.calls:
        raise ValueError("the family has no calls")
    if forced or instead is not None:
        calls = _calls(begin, tools, most)
        return calls if instead is None else OneOf((calls, instead))
    return _among_text(tools, anywhere, bare, most)


def openers(spec: Spec) -> tuple[str, ...]:
    """What begins a call anywhere in a text of the family."""
    return tuple(spec.modes[_settled(spec, spec.modes[_beginning(spec)])].calls)


def begins_bare(spec: Spec) -> bool:
    """Whether some call has an opener that is known only where the answer begins."""
    return len(spec.modes[_beginning(spec)].calls) > len(openers(spec))


def _beginning(spec: Spec) -> str:
    """The mode in which the answer begins, behind the reasoning if it begins with that."""
    name = spec.start
    if spec.modes[name].channel is Text:
        return name
    after = spec.modes[name].markers.values()
    return next((one for one in after if spec.modes[one].channel is Text), name)


def _settled(spec: Spec, mode: Mode) -> str:
    """The mode of text that has begun."""
    name = _beginning(spec)
    while mode.then is not None:
        name, mode = mode.then, spec.modes[mode.then]
    return name


def _calls(begin: Mode, tools: Sequence[Tool], most: int | None) -> Written:
    """One to ``most`` calls with nothing before them."""
    opener, call = next(iter(begin.calls.items()))
    form = call.format
    if form.several:
        return InOrder((Exactly(opener), form.written(tools, most=most)))
    one = InOrder((Exactly(opener), form.written(tools, most=1)))
    more = Times(
        InOrder((Exactly(form.between), Rule(CALL))), 0, None if most is None else most - 1
    )
    # A marker between two may stand before the first as well, behind a thought.
    lead = (Times(Exactly(form.between), 0, 1),) if form.between in begin.markers else ()
    return Rules(InOrder((*lead, Rule(CALL), more)), {CALL: one})


def _among_text(
    tools: Sequence[Tool],
    anywhere: Mapping[str, Call],
    bare: Mapping[str, Call],
    most: int | None,
) -> Written:
    stops, starts = tuple(anywhere), tuple(bare)
    # Each form is written once, and referred to behind each of its openers.
    forms = list(dict.fromkeys(call.format for call in (*anywhere.values(), *bare.values())))
    names = {form: f"calls_{chr(ord('a') + at)}" for at, form in enumerate(forms)}

    def called(starts: tuple[str, ...]) -> list[Written]:
        """A text and the calls that it leads to."""
        text = TextWithout(stops, starts, marks=True)
        return [
            InOrder((text, Exactly(opener), Rule(names[call.format])))
            for opener, call in anywhere.items()
        ]

    rest: list[Written] = [TextWithout(stops, marks=True)]
    if anywhere:
        rest.insert(0, Times(OneOf(tuple(called(()))), 0, None))
    start: Written = InOrder(tuple(rest))
    if bare:
        begun = [
            InOrder((Exactly(opener), Rule(names[call.format]))) for opener, call in bare.items()
        ]
        ways = [InOrder((one, *rest)) for one in (*begun, *called(starts))]
        start = OneOf((*ways, TextWithout(stops, starts, marks=True)))
    return Rules(start, {names[form]: form.written(tools, most=most) for form in forms})
