"""Several calls behind one opener.

The first is read behind the opener and what leads to it. After each call the text is in a mode of
its own, in which another call of the section may begin or the section may end, if that comes before
any other text; else the answer goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from responsory.commands import CallClosed, CallInput, Text
from responsory.immutable import immutable
from responsory.segments.formats.phrase import Phrase
from responsory.segments.formats.spec import (
    Call,
    CallFormat,
    CallReader,
    Mode,
    Part,
    Spec,
    Verdict,
    with_calls,
)
from responsory.segments.written import Exactly, InOrder, Rule, Rules, Times

if TYPE_CHECKING:
    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written

ONE = "one_call"


@immutable
class Section(CallFormat):
    """``lead``: the phrase between the opener and the first call. ``form``: that of each call.

    ``write``: what a model writes before the first call, between two, and behind the last.
    ``again``: what a further call begins with, and the form behind that; ``ends``: what ends the
    section, one after another, each of which may be missing.
    """

    lead: Phrase
    form: CallFormat
    write: tuple[str, str, str]
    again: Mapping[str, CallFormat] = attrs.field(hash=False)
    ends: tuple[str, ...] = ()

    @property
    def closer(self) -> str:
        return self.form.closer

    @property
    def several(self) -> bool:
        return True

    def reader(self, tools: Tools) -> CallReader:
        return LedReader(self.lead, self.form.reader(tools))

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:
        lead, between, tail = self.write
        one = Rule(ONE)
        more = Times(InOrder((Exactly(between), one)), 0, None if most is None else most - 1)
        calls = InOrder((Exactly(lead), one, more, Exactly(tail)))
        return Rules(calls, {ONE: self.form.written(tools, most=1)})


class LedReader(CallReader):
    """A phrase, and then what ``inner`` reads."""

    __slots__ = ("_inner", "_lead", "_seen")

    def __init__(self, lead: Phrase, inner: CallReader) -> None:
        super().__init__()
        self._lead: Phrase | None = lead
        self._inner = inner
        self._seen = ""

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        return self._inner.glance

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """See ``CallReader``."""
        lead = self._lead
        if lead is not None:
            before = len(self._seen)
            self._seen += text[at:]
            found = lead.match(self._seen, 0)
            if found is None:
                if not lead.may_come(self._seen, 0):
                    self.verdict = Verdict.PROSE
                return len(text), ()
            self._lead, at = None, at + found.end() - before
        at, parts = self._inner.read(text, at)
        self.verdict = self._inner.verdict
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """See ``CallReader``."""
        return self._inner.finish(cut=cut)


def with_section(
    spec: Spec,
    opener: str,
    section: Section,
    *,
    after: str = "answer",
    name: str = "section",
    broken: str = "arguments",
) -> Spec:
    """``spec`` with sections of calls behind ``opener`` in each of its modes; see ``add_section``
    for the names of the modes that it adds."""
    spec = add_section(spec, section, after=after, name=name, broken=broken)
    return with_calls(spec, opener, section, after=name, broken=broken)


def add_section(
    spec: Spec,
    section: Section,
    *,
    after: str = "answer",
    name: str = "section",
    broken: str = "arguments",
) -> Spec:
    """``spec`` with a mode ``name`` for what comes behind a call of the section, and ``broken`` for
    arguments that break; ``after``: the mode behind the section."""
    calls = {again: Call(form, name, broken) for again, form in section.again.items()}
    modes = dict(spec.modes)
    modes[name] = Mode(Text, {}, after, calls=calls)
    for index, end in enumerate(section.ends):
        mode = f"{name} {index}" if index else name
        following = f"{name} {index + 1}" if end != section.ends[-1] else after
        modes[mode] = Mode(Text, {end: following}, after, calls={} if index else calls)
    modes[broken] = Mode(CallInput, {section.closer: after} if section.closer else {})
    return Spec(modes, spec.start, spec.prefilled)
