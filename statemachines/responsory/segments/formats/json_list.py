"""A list of JSON envelopes behind an opener, or as the whole answer."""

from __future__ import annotations

from collections.abc import Mapping

from responsory.commands import CallInput, Text
from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.phrase import SPACE, Phrase
from responsory.segments.formats.section import Section
from responsory.segments.formats.spec import Call, CallFormat, Mode, Spec

ITEM = JsonEnvelope("", lead="", between="")
"""An envelope that ends with its bracket."""


def json_list(
    item: JsonEnvelope = ITEM, *, lead: str = "[", closer: str = "", begun: bool = False
) -> Section:
    """``lead``: what a model writes before the first envelope; ``closer``: behind the list, if
    anything. ``begun``: the opener has the bracket of the list. Brackets and commas may have white
    space around them, and a comma may be missing."""
    bracket = Phrase(SPACE) if begun else Phrase(SPACE, "[")
    return Section(
        lead=bracket,
        form=item,
        write=("" if begun else lead, ", ", f"]{closer}"),
        again={",": item, "{": item.after_bracket()},
        ends=("]", closer) if closer else ("]",),
    )


def with_bare_calls(spec: Spec, openers: Mapping[str, CallFormat], *, after: str) -> Spec:
    """``spec`` with calls whose opener is known only where the answer begins, before any text.
    ``after``: the mode after a call, which is there already."""
    modes = dict(spec.modes)
    modes.setdefault("arguments", Mode(CallInput))
    calls = {opener: Call(form, after, "arguments") for opener, form in openers.items()}
    begins = {
        name: f"{name} begins"
        for name, mode in spec.modes.items()
        if mode.channel is Text and mode.then is None
    }
    for name, mode in spec.modes.items():
        markers = {marker: begins.get(then, then) for marker, then in mode.markers.items()}
        modes[name] = Mode(mode.channel, markers, mode.then, mode.phase, mode.calls)
    for name, begin in begins.items():
        mode = modes[name]
        modes[begin] = Mode(Text, mode.markers, name, mode.phase, {**calls, **mode.calls})
    return Spec(modes, begins.get(spec.start, spec.start), spec.prefilled)
