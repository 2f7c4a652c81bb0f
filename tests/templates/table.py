"""What became of the cells of the matrix, and how it is shown."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence

import attrs

RENDERED, BY_TEMPLATE, BY_REQUEST = ".", "x", "-"
FAULTS = 40
"""So many are printed."""
NAMES = 4
"""So many templates are named beside a reason."""


def _no_words() -> defaultdict[str, Counter[str]]:
    return defaultdict(Counter)


@attrs.define
class Table:
    """Templates × requests."""

    templates: list[str] = attrs.field(factory=list)
    requests: list[str] = attrs.field(factory=list)
    """The columns, in order."""
    states: dict[tuple[str, str], str] = attrs.field(factory=dict)
    words: defaultdict[str, Counter[str]] = attrs.field(factory=_no_words)
    """Why cells were refused, and of which templates."""
    compared: int = 0
    """Texts that were held against those of ``transformers``."""
    broken: list[str] = attrs.field(factory=list)
    """Templates that cannot be loaded, and why."""
    faults: list[str] = attrs.field(factory=list)
    formats: Counter[str] = attrs.field(factory=Counter)

    def add(self, other: Table) -> None:
        """The rows of a table with the same columns."""
        self.templates += other.templates
        self.requests = other.requests
        self.states |= other.states
        for words, templates in other.words.items():
            self.words[words] += templates
        self.compared += other.compared
        self.broken += other.broken
        self.faults += other.faults
        self.formats += other.formats

    def rendered(self, template: str, request: str) -> None:
        """The cell came to a prompt."""
        self.states[template, request] = RENDERED

    def refused(self, template: str, request: str, words: str, *, asked: bool) -> None:
        """The cell was refused; ``asked``: by the template, and not before it."""
        self.states[template, request] = BY_TEMPLATE if asked else BY_REQUEST
        self.words[words][template] += 1

    def fault(self, template: str, request: str, what: str) -> None:
        """Something that must not be."""
        self.faults.append(f"{template}, {request}: {what}"[:600])

    def count(self, state: str) -> int:
        """Cells of this state."""
        return sum(each == state for each in self.states.values())

    def print(self, took: float) -> None:
        """For people."""
        for line in [*self._rows(), *self._columns(), *self._reasons(), *self._told()]:
            sys.stdout.write(line + "\n")
        cells, rendered = len(self.states), self.count(RENDERED)
        sys.stdout.write(
            f"\n{len(self.templates)} templates, {len(self.broken)} of them cannot be loaded; "
            f"{cells} cells: {rendered} rendered, {self.count(BY_TEMPLATE)} refused by the "
            f"template, {self.count(BY_REQUEST)} before it; {self.compared} texts compared; "
            f"{took:.0f} s\n{cells} passed, {len(self.faults)} failed\n"
        )

    def _rows(self) -> Sequence[str]:
        """A character for each request, in the order of the columns below."""
        rows = [
            "each template × the requests below: rendered (.), refused by it (x), before it (-)"
        ]
        for name in self.templates:
            states = "".join(self.states.get((name, request), " ") for request in self.requests)
            rows.append(f"{name:42}{states}")
        return rows

    def _columns(self) -> Sequence[str]:
        rows = ["", f"{'request':34}{'rendered':>9}{'refused':>9}{'before':>9}"]
        for number, request in enumerate(self.requests, 1):
            states = Counter(self.states.get((name, request)) for name in self.templates)
            counts = (states[state] for state in (RENDERED, BY_TEMPLATE, BY_REQUEST))
            rows.append(f"{number:3} {request:30}" + "".join(f"{count:9}" for count in counts))
        return rows

    def _reasons(self) -> Sequence[str]:
        rows = ["", "why refused: cells, templates, words"]
        for words, templates in sorted(self.words.items(), key=lambda each: -each[1].total()):
            named = "" if len(templates) > NAMES else f" ({', '.join(templates)})"
            rows.append(f"{templates.total():6}{len(templates):5}  {words}{named}")
        return rows

    def _told(self) -> Sequence[str]:
        formats = [f"{times:6}  {name}" for name, times in self.formats.most_common()]
        more = len(self.faults) - FAULTS
        return [
            *("", "families (reasoning, calls):", *formats),
            *self.broken,
            *self.faults[:FAULTS],
            *([f"and {more} more"] if more > 0 else []),
        ]


def reason(message: str) -> str:
    """Why something was refused, without what differs by model."""
    words = message.rpartition(": ")[2] if "chat template" in message else message
    return re.sub(r"`library/[^`]*`|'[^']*call_[^']*'", "…", words)[:90]
