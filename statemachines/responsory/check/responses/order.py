"""The order of a Responses stream: where it stands, what may follow, and which rule says so."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from responsory.check.ending import DONE, END
from responsory.check.judge import brief
from responsory.check.responses.vocabulary import BEATS, CALLS, Does, EventKind, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from responsory.check.judge import Judge
    from responsory.check.responses.items import OpenItem


class Phase(Enum):
    """Between which events of the response itself the stream stands."""

    START = "start"
    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    ERRORED = "errored"
    ENDED = "ended"
    """After the terminal event."""


class Order:
    """What has come, as far as the order asks."""

    def __init__(self, judge: Judge) -> None:
        self.names: Mapping[str, EventKind] = vocabulary(judge.profile)
        self.phase = Phase.START
        self.queues = False
        """The status in ``response.created`` is ``queued``."""
        self.items = 0
        self.open: dict[int, OpenItem] = {}
        self.last: tuple[str, str] | None = None
        """Type and status of the item that was done last."""
        self._judge = judge

    # --- what may follow ------------------------------------------------------------------------

    def legal(self) -> tuple[str, ...]:
        """The event types that may come next; ``[DONE]`` and the end of the stream too."""
        phase, keeps = self.phase, self._judge.keeps
        if phase is Phase.START:
            return ("response.created",) if keeps("own-events") else ("response.created", *BEATS)
        if phase is Phase.ENDED:
            return (DONE,) if keeps("done-due") else (DONE, END)
        if phase is Phase.ERRORED:
            failed = ("response.failed",)
            return failed if keeps("error-then-failed") else (*failed, DONE, END)
        if keeps("in-progress-due") and phase is not Phase.RUNNING:
            if phase is Phase.CREATED:
                return ("response.queued" if self.queues else "response.in_progress",)
            return ("response.in_progress", "error", DONE)
        return tuple(self._running())

    def _running(self) -> Iterator[str]:
        keeps = self._judge.keeps
        if self.phase is not Phase.RUNNING and not self.items:
            yield from ("response.in_progress",)
            if self.phase is Phase.CREATED:
                yield "response.queued"
        inside: dict[str, None] = {}
        for item in self.open.values():
            inside.update(dict.fromkeys(item.legal(self.names)))
        yield from inside
        if not keeps("own-events"):
            yield from (name for name, kind in self.names.items() if kind.does in PASSES)
        if not self.open:
            yield from self._idle()
            return
        if not keeps("items-serial"):
            yield "response.output_item.added"
        if not keeps("failure-closes"):
            yield from ("error", "response.failed")

    def _idle(self) -> Iterator[str]:
        """No item is open."""
        keeps, last = self._judge.keeps, self.last
        strict = keeps("item-status")
        if not (strict and last and last[1] == "incomplete"):
            yield "response.output_item.added"
        whole = strict and last is not None and last[0] not in CALLS and last[1] == "completed"
        if self.items or not keeps("output-not-empty"):
            if not (strict and last and last[1] == "incomplete"):
                yield "response.completed"
            if not whole:
                yield "response.incomplete"
        if whole:
            return
        yield "error"
        if not keeps("error-then-failed"):
            yield "response.failed"
        if not keeps("terminal-due"):
            yield DONE

    # --- why not --------------------------------------------------------------------------------

    def check(self, name: str, kind: EventKind, item: OpenItem | None) -> None:
        """Breaks the rule that forbids the event here, if one does. ``item``: the open item that
        the event names, for events inside an item."""
        phase, does, broken = self.phase, kind.does, self._judge.broken
        if does is Does.CREATE or phase is Phase.START:
            if phase is not Phase.START:
                broken("created-first", f"{name} again")
            elif does not in (Does.CREATE, Does.BEAT):
                broken("created-first", f"{name} as the first event")
            return
        if phase is Phase.ENDED:
            broken("one-terminal", f"{name} after the terminal event")
        if phase is Phase.ERRORED:
            if does is not Does.FAIL:
                broken("error-last", f"{name} after `error`")
            return
        if does is Does.STATUS:
            self._check_status(name)
        elif does in ENDINGS:
            self._check_ending(name, does)
        elif does not in PASSES:
            self._check_item(name, kind, item)

    def _check_status(self, name: str) -> None:
        broken = self._judge.broken
        if self.items or self.phase is Phase.RUNNING:
            broken("status-order", f"{name} after the response began")
        if name == "response.queued" and self.phase is Phase.QUEUED:
            broken("status-order", f"{name} again")
        if self.phase is Phase.CREATED:
            due = "response.queued" if self.queues else "response.in_progress"
            if name != due:
                broken("in-progress-due", f"{name} after response.created", due)

    def _check_begun(self, name: str) -> None:
        if self.phase is not Phase.RUNNING:
            self._judge.broken("in-progress-due", f"{name} before response.in_progress")

    def _check_ending(self, name: str, does: Does) -> None:
        broken = self._judge.broken
        if does is Does.FAIL:
            broken("error-then-failed", f"{name} without `error` before it")
        failing = does is not Does.END
        if not (failing and self.phase is Phase.QUEUED):
            self._check_begun(name)
        if self.open:
            broken("failure-closes" if failing else "items-paired",
                   f"{name} while item {next(iter(self.open))} is open")  # fmt: skip
        if not failing and not self.items:
            broken("output-not-empty", f"{name} without any item")
        self._check_last(name, completes=name == "response.completed")

    def _check_last(self, name: str, *, completes: bool) -> None:
        """The last item's status against the ending."""
        if self.last is None:
            return
        kind, status = self.last
        if completes and status == "incomplete":
            self._judge.broken("item-status", f"{name} after an item that is incomplete")
        if not completes and status == "completed" and kind not in CALLS:
            self._judge.broken("item-status", f"{name} after a {kind} item that is completed")

    def _check_item(self, name: str, kind: EventKind, item: OpenItem | None) -> None:
        broken = self._judge.broken
        self._check_begun(name)
        if kind.does is Does.ADD_ITEM:
            if self.open:
                broken("items-serial", f"{name} while item {next(iter(self.open))} is open")
            if self.last and self.last[1] == "incomplete":
                broken("item-status", f"{name} after an item that is incomplete")
            return
        if item is None:
            broken("items-paired", f"{name} for an item that is not open")
            return
        if not item.takes(kind):
            wrong = item.lacks_part if kind.does is Does.END_ITEM else item.full
            rule = "part-due" if wrong and kind.does in AROUND else "parts-paired"
            broken(rule, f"{name} here in an item of type {brief(item.type)}")

    def end(self, *, marked: bool) -> None:
        """The end of the stream, with ``[DONE]`` or without."""
        broken, phase = self._judge.broken, self.phase
        found = DONE if marked else "the stream ends"
        if phase is Phase.START:
            broken("created-first", f"{found} before any event of a response")
        if phase is Phase.ERRORED:
            broken("error-then-failed", f"{found} after `error`")
        elif phase is not Phase.ENDED:
            broken("terminal-due", f"{found} before the terminal event")
            if not marked:
                broken("one-terminal", f"{found} before the terminal event")
            if phase is Phase.CREATED:
                broken("in-progress-due", f"{found} after response.created")
            if self.open:
                broken("cancel-closes", f"{found} while item {next(iter(self.open))} is open")
            if self.last is not None and self.last[1] == "completed" and self.last[0] not in CALLS:
                broken("cancel-closes", f"{found} after a {self.last[0]} item that is completed")
        if not marked:
            broken("done-due", found, DONE)


PASSES = frozenset({Does.PASS, Does.BEAT})
ENDINGS = frozenset({Does.END, Does.FAIL, Does.ERROR})
AROUND = frozenset({Does.ADD_PART, Does.END_ITEM})
