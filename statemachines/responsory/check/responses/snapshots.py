"""The snapshots of a Responses stream: the response as ``created``, ``queued``, ``in_progress`` and
the terminal event show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.responses.shapes import RESPONSE, check_item, same
from responsory.check.shapes import RESPONSE_USAGE, check_usage
from responsory.ids import response_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge

STATUSES: Mapping[str, tuple[str, ...]] = {
    "response.created": ("in_progress", "queued"),
    "response.queued": ("queued",),
    "response.in_progress": ("in_progress",),
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed",),
}
CHANGING = ("status", "output", "usage", "error", "incomplete_details", "completed_at")
"""What the life of a response changes. All else echoes the request."""
PREFIX = response_id("")
REASONS = ("max_output_tokens", "content_filter")


class Snapshots:
    """``id``: of the response. ``status``: as the last snapshot's event tells it."""

    def __init__(self, judge: Judge) -> None:
        self.id = ""
        self.status = ""
        self._judge = judge
        self._first: Mapping[str, Any] = {}
        self._latest: Mapping[str, Any] = {}

    @property
    def tail(self) -> str:
        """What the ids of the items are derived from."""
        return self.id.removeprefix(PREFIX)

    def first(self, response: dict[str, Any]) -> None:
        """The one in ``response.created``."""
        self._check("response.created", response)
        if response["id"].removeprefix(PREFIX) in ("", response["id"]):
            self._judge.broken("ids-derived", f"id {brief(response['id'])}", f"{PREFIX}…")
        if self._judge.keeps("in-progress-due") and "background" in response:
            queued = response.get("status") == "queued"
            self._judge.equal("in-progress-due", "background", response["background"], queued)
        self.id = response["id"]
        self._first = response
        self._keep("response.created", response)

    def running(self, event: str, response: dict[str, Any]) -> None:
        """The one in ``response.queued`` or ``response.in_progress``."""
        self._check(event, response)
        self._check_same(response)
        self._keep(event, response)

    def last(self, event: str, response: dict[str, Any]) -> None:
        """The one in a terminal event; its ``output`` is for the caller to compare."""
        self._check(event, response)
        self._check_same(response)
        self._keep(event, response)

    def folded(self, output: list[Any], outcome: str) -> dict[str, Any]:
        """The last snapshot, with the items that were streamed and how it ended."""
        return {**self._latest, "output": output, "status": outcome}

    def _keep(self, event: str, response: dict[str, Any]) -> None:
        self._latest = response
        self.status = STATUSES[event][0]

    def _check(self, event: str, response: dict[str, Any]) -> None:
        judge = self._judge
        RESPONSE.check(judge, response, "the response")
        status = response.get("status")
        if status is not None and status not in STATUSES[event]:
            due = " or ".join(map(brief, STATUSES[event]))
            judge.broken("status-of-event", f"status {brief(status)} in {event}", due)
        ending = STATUSES[event][0]
        terminal = ending not in ("queued", "in_progress")
        if not terminal:
            for key in ("output", "usage"):
                if response.get(key):
                    judge.broken("output-at-end", f"`{key}` {brief(response[key])} in {event}")
            for item in response["output"]:
                check_item(judge, item)
        usage = response.get("usage")
        if usage is not None:
            check_usage(judge, usage, RESPONSE_USAGE)
        elif terminal:
            judge.broken("usage-on-terminal", f"usage null in {event}")
        if judge.keeps("terminal-details"):
            self._check_details(response, ending)

    def _check_details(self, response: dict[str, Any], ending: str) -> None:
        broken = self._judge.broken
        if response.get("error") is not None and ending != "failed":
            broken("terminal-details", f"error {brief(response['error'])}", "null")
        details = response.get("incomplete_details")
        if (details is not None) != (ending == "incomplete"):
            broken("terminal-details", f"incomplete_details {brief(details)}")
        if details is not None and (
            list(details) != ["reason"] or details["reason"] not in REASONS
        ):
            due = " or ".join(f'{{"reason": "{reason}"}}' for reason in REASONS)
            broken("terminal-details", f"incomplete_details {brief(details)}", due)
        if response.get("completed_at") is not None and ending != "completed":
            broken("terminal-details", f"completed_at {brief(response['completed_at'])}", "null")

    def _check_same(self, response: dict[str, Any]) -> None:
        self._judge.equal("ids-stable", "the response's id", response["id"], self.id)
        if not self._judge.keeps("echo-stable"):
            return
        first = self._first
        for key in {**first, **response}:
            if key not in CHANGING and not same(first.get(key, ...), response.get(key, ...)):
                self._judge.broken("echo-stable", f"`{key}` {brief(response.get(key))}",
                                   brief(first.get(key)))  # fmt: skip
