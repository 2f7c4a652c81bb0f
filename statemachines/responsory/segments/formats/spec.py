"""What a spec says about a model family: data, read by the segmenter.

Raw text is always in one mode. A mode says which command its text becomes and which markers end it;
a marker is never shown, and leads to the next mode. It also says which openers begin a call there.

A call is read by a *reader*, which a family's ``Call`` makes for each opener. It takes the raw text
from behind the opener and tells in *parts* how much of it is certain and what that is: a call
opened, a piece of its arguments, a call closed, or only markup. Until a call has opened nothing is
certain: a reader that finds no header says PROSE, and the opener was text. So a family is one class
that makes readers (its data), one reader for each way to write a call, and an opener.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, TypeAlias

import attrs

from responsory.checks import one_of, valid
from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.immutable import immutable
from responsory.segments.tools import Tool, Tools
from responsory.segments.written import Written
from responsory.values import Phase

Channel: TypeAlias = type[Text] | type[Reasoning] | type[CallInput]
"""The command that plain text of a mode becomes."""


class Verdict(Enum):
    """What a reader thinks of the text behind an opener."""

    READING = auto()
    PROSE = auto()
    """No header follows: the opener is text. Only while no call has opened."""
    BROKEN = auto()
    """The arguments are not written as they should be: what comes is of them, up to the closer."""
    OVER = auto()
    """Closed, and the rest is not of the call."""


@immutable
class Part:
    """Raw text up to ``end`` (an index into the text that was read) that is certain, and what it
    says; None where it is markup. Text of arguments need not be the raw text."""

    end: int
    says: CallOpened | CallInput | CallClosed | None = None


class CallReader(ABC):
    """Reads what stands behind one opener: a call, or several."""

    __slots__ = ("verdict",)

    def __init__(self) -> None:
        self.verdict = Verdict.READING

    @abstractmethod
    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """The parts that ``text`` makes certain from ``at`` on, and how far it was read. What is
        left unread while the verdict is READING comes again, with more text; before a call has
        opened nothing may be left."""

    @abstractmethod
    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """What the end of the text says of a call that has opened. ``cut``: the engine did not stop
        by itself, so a call without its closer stays open."""

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """What takes text at a glance, until something is read: it gives what all of the text is of
        the arguments of the open call, or None, and then nothing was taken and ``read`` is due.
        None where there are no arguments now, or a look tells nothing."""
        return None


class CallFormat(ABC):
    """How a family writes a call behind its opener: data, its reader, and the same as a grammar.

    ``closer`` ends a call whose arguments broke; it may be empty. ``several``: behind one opener
    more than one call may stand. ``between``: what a model writes between two calls that have an
    opener each.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def closer(self) -> str: ...

    @property
    def several(self) -> bool:
        return False

    @property
    def between(self) -> str:
        return ""

    @abstractmethod
    def reader(self, tools: Tools) -> CallReader:
        """For what stands behind one opener. ``tools``: what is known of those that are called."""

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:
        """What a model writes behind the opener, closer included: one call of one of ``tools`` or,
        in a form of several, one to ``most`` of them. Raises NotImplementedError where the form
        does not tell."""
        raise NotImplementedError


@immutable
class Call:
    """What an opener means in a mode. ``then``: the mode after the call. ``broken``: the mode of
    arguments that the reader could not read; its text is CallInput, and a marker ends the call."""

    format: CallFormat
    then: str
    broken: str


def _check_markers(mode: Mode, __: object, ___: object) -> None:
    known = [*mode.markers, *mode.calls]
    for marker in known:
        if not marker or marker != marker.strip():
            raise ValueError(f"a marker neither is empty nor begins or ends in space: {marker!r}")
    if mode.then is not None:
        return  # there a marker stands in one place alone, and the longest one is meant
    for one, other in itertools.permutations(known, 2):
        if one in other:
            raise ValueError(f"the marker {one!r} is inside the marker {other!r}")


def _any_of(markers: Sequence[str]) -> re.Pattern[str] | None:
    longest = sorted(markers, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest))) if markers else None


def _told(mode: Mode) -> Callable[[str], Text | Reasoning | CallInput]:
    phase = mode.phase
    if mode.channel is Text and phase is not None:
        return lambda text: Text(text, phase=phase)
    return mode.channel


def derived(of: Callable[[Any], Any]) -> Any:
    """A field that is computed from the others."""
    return attrs.field(init=False, eq=False, repr=False, default=attrs.Factory(of, takes_self=True))


@immutable
class Mode:
    """``channel``: what its text becomes. ``markers``: each marker that is known here, and the mode
    after it. ``then``: the mode that its first character begins, where markers are known only
    before any text. ``phase``: that of its text, where the family tells. ``calls``: what each
    opener of a call means here.

    White space that touches a marker belongs to it. Raises ValueError for a marker inside another,
    since which of the two was meant could depend on where the text is cut.
    """

    channel: Channel = attrs.field(validator=valid(one_of(Text, Reasoning, CallInput)))
    markers: Mapping[str, str] = attrs.field(factory=dict)
    then: str | None = None
    phase: Phase | None = None
    calls: Mapping[str, Call] = attrs.field(factory=dict, repr=False, validator=_check_markers)
    known: tuple[str, ...] = derived(lambda mode: (*mode.markers, *mode.calls))
    """The markers and the openers."""
    pattern: re.Pattern[str] | None = derived(lambda mode: _any_of(mode.known))
    """Finds the first of these; None where there are none."""
    starts: tuple[str, ...] = derived(lambda mode: tuple({m[:1] for m in mode.known}))
    """The characters with which one begins."""
    told: Callable[[str], Text | Reasoning | CallInput] = derived(lambda mode: _told(mode))
    """Makes the command of text in it."""
    longest: int = derived(lambda mode: max(map(len, mode.known), default=0))
    """Characters of the longest one."""


@immutable
class Spec:
    """``modes`` by name, ``start`` the first one. ``prefilled``: the prompt ended in a marker, so
    white space at the very start touches one.

    Raises ValueError for a mode that is named and not there, for a `then` that leads back to
    itself, and for arguments that broke in a mode of other text.
    """

    modes: Mapping[str, Mode]
    start: str
    prefilled: bool = False
    without_calls: Spec = derived(lambda spec: spec.forget_calls())
    """The same family where no call is looked for: openers are text."""

    def __attrs_post_init__(self) -> None:
        named = {self.start}
        for mode in self.modes.values():
            named.update(mode.markers.values())
            if mode.then is not None:
                named.add(mode.then)
            for call in mode.calls.values():
                named.update((call.then, call.broken))
        missing = sorted(named - set(self.modes))
        if missing:
            raise ValueError(f"no such mode: {', '.join(missing)}")
        for name, mode in self.modes.items():
            if self._settles_in(name) is None:
                raise ValueError(f"`then` of the mode {name} never leads to a mode without one")
            for opener, call in mode.calls.items():
                if self.modes[call.broken].channel is not CallInput:
                    raise ValueError(f"what breaks behind {opener!r} is not read as CallInput")

    def forget_calls(self) -> Spec:
        """This spec, or one without its openers."""
        if not any(mode.calls for mode in self.modes.values()):
            return self
        modes = {
            name: Mode(mode.channel, mode.markers, mode.then, mode.phase)
            for name, mode in self.modes.items()
        }
        return Spec(modes, self.start, self.prefilled)

    def _settles_in(self, name: str) -> str | None:
        """The mode in which text that begins in mode ``name`` stays; None for a circle."""
        for _ in self.modes:
            after = self.modes[name].then
            if after is None:
                return name
            name = after
        return None


def with_calls(
    spec: Spec, opener: str, form: CallFormat, *, after: str = "answer", broken: str = "arguments"
) -> Spec:
    """``spec`` with calls behind ``opener`` in each of its modes: a call ends reasoning too. The
    mode ``after`` follows a call, and ``broken`` is added for arguments that break; without a
    closer they go on to the end of the text."""
    call = Call(form, after, broken)
    modes = {
        name: mode
        if mode.channel is CallInput
        else Mode(mode.channel, mode.markers, mode.then, mode.phase, {**mode.calls, opener: call})
        for name, mode in spec.modes.items()
    }
    modes[broken] = Mode(CallInput, {form.closer: after} if form.closer else {})
    return Spec(modes, spec.start, spec.prefilled)
