"""Where a raw text begins: inside a thought or outside, as its prompt has left it.

A chat template may open the block of thought, close it at once where none is asked for, or leave it
to the model; and a client may write the end of a prompt itself. So it is the prompt that tells, and
the family's own beginning holds where it tells nothing.
"""

from __future__ import annotations

from responsory.commands import Reasoning, Text
from responsory.segments import Spec


def begun(spec: Spec, end: str, *, within: bool = False) -> Spec:
    """``spec`` for the raw text behind a prompt that ends in ``end``.

    ``within``: the prompt ends inside a text, and not where a chat template has it begin.
    """
    end = end.rstrip()
    for marker, after in _marks(spec).items():
        if end.endswith(marker):
            # White space at the start touches the marker.
            return _from(spec, after, prefilled=True)
    if within and spec.prefilled:
        answer = _answer(spec)
        return spec if answer is None else _from(spec, answer, prefilled=False)
    return spec


def _from(spec: Spec, start: str, *, prefilled: bool) -> Spec:
    if (spec.start, spec.prefilled) == (start, prefilled):
        return spec
    return Spec(spec.modes, start, prefilled)


def _marks(spec: Spec) -> dict[str, str]:
    """The openers and closers of thought, each with the mode behind it."""
    modes = spec.modes
    return {
        marker: after
        for mode in modes.values()
        for marker, after in mode.markers.items()
        if {mode.channel, modes[after].channel} == {Text, Reasoning}
    }


def _answer(spec: Spec) -> str | None:
    """The mode of text in which thought can begin."""
    for name, mode in spec.modes.items():
        after = (spec.modes[each].channel for each in mode.markers.values())
        if mode.channel is Text and Reasoning in after:
            return name
    return None
