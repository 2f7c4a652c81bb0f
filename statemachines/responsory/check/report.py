"""What a check says: accepted with the folded object, or the first rule broken and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from responsory.check.rules import RULES, UNREADABLE
from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.check.profiles import ProfileName

Api: TypeAlias = Literal["responses", "chat", "completions"]


@immutable
class Violation:
    """``event`` counts the events of the stream from 1, ``[DONE]`` too and comments not; at the end
    of the stream it is the number that the missing event would have had. ``line`` is the event's
    first line. ``sequence_number`` is the event's own, where it has one. ``due`` is the value that
    was due (may be empty), ``legal`` the events that could have stood here."""

    rule: str
    event: int
    line: int
    sequence_number: int | None
    found: str
    due: str
    legal: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The rule in words."""
        return RULES[self.rule].sentence

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "sentence": self.sentence,
            "event": self.event,
            "line": self.line,
            "sequence_number": self.sequence_number,
            "found": self.found,
            "due": self.due,
            "legal": list(self.legal),
        }


@immutable
class Report:
    """``events``: how many were read, the broken one included. ``outcome``: how the answer ended
    (``completed``, ``incomplete``, ``failed``, ``cancelled``; for chunks the finish reasons), empty
    when refused. ``result``: the stream folded to the final object, None when refused."""

    profile: ProfileName
    api: Api | None
    events: int
    outcome: str
    result: dict[str, Any] | None
    violation: Violation | None

    @property
    def accepted(self) -> bool:
        return self.violation is None

    @property
    def readable(self) -> bool:
        """False where the bytes hold no stream of events at all."""
        return self.violation is None or self.violation.rule not in UNREADABLE

    def as_json(self) -> dict[str, Any]:
        return {
            "accepted": self.accepted,
            "profile": self.profile,
            "api": self.api,
            "events": self.events,
            "outcome": self.outcome,
            "violation": None if self.violation is None else self.violation.as_json(),
            "result": self.result,
        }

    def __str__(self) -> str:
        """A few lines for a terminal: what a stream holds is shown without control characters."""
        broken = self.violation
        if broken is None:
            noun = "event" if self.events == 1 else "events"
            return printable(f"accepted: {self.events} {noun}, {self.outcome}{self._hint}")
        where = f"event {broken.event}, line {broken.line}"
        if broken.sequence_number is not None:
            where += f", sequence_number {broken.sequence_number}"
        lines = [f"refused: {broken.rule} at {where}", f"  rule: {broken.sentence}"]
        lines.append(f"  found: {broken.found}")
        if broken.due:
            lines.append(f"  due: {broken.due}")
        if broken.legal:
            lines.append(f"  legal: {', '.join(broken.legal)}")
        return "\n".join(map(printable, lines))

    @property
    def _hint(self) -> str:
        """What "cancelled" was concluded from, since a lost ending looks the same."""
        if "cancelled" not in self.outcome or self.profile in RULES["terminal-due"].profiles:
            return ""
        missing = "terminal event" if self.api == "responses" else "finish reason"
        return f" (no {missing} came)"


def printable(text: str) -> str:
    """The text, with control characters, line breaks among them, written as escapes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
