"""What chat and completions chunks share: the call around the choices.

A chunk has the call's head (id, object, created, model), choices, and perhaps the usage. The
stream ends with a chunk of usage alone, where it was asked for, and ``[DONE]``; an error chunk ends
it too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from responsory.check.chunks.asked import Asked
from responsory.check.chunks.notes import NOTE, is_note
from responsory.check.ending import DONE, END
from responsory.check.judge import brief
from responsory.check.shapes import (
    ANY,
    CHUNK_USAGE,
    INDEX,
    INTEGER,
    LIST,
    NAME,
    OBJECT,
    STRING,
    Kind,
    Shape,
    check_usage,
    list_of,
)

if TYPE_CHECKING:
    from responsory.check.judge import Judge

TOKEN_IDS = list_of(INDEX)
HEAD = Shape(
    {"choices": LIST},
    {"id": NAME, "object": STRING, "created": INTEGER, "model": STRING},
    {"usage": OBJECT.or_null(), "obfuscation": STRING, "prompt_token_ids": LIST},
    {"created": INDEX, "prompt_token_ids": TOKEN_IDS, "obfuscation": NAME},
)
ERROR = Shape({"error": OBJECT})
ERROR_BODY = Shape(
    {"message": STRING},
    {"type": STRING, "param": STRING.or_null(), "code": ANY},
    exact={"code": STRING},
)
CHOICE: Mapping[str, Kind] = {"index": INDEX}
ENDS: Mapping[str, Kind] = {"finish_reason": STRING.or_null()}
MORE: Mapping[str, Kind] = {"token_ids": LIST, "stop_reason": ANY}
EXACT: Mapping[str, Kind] = {
    "token_ids": TOKEN_IDS,
    "stop_reason": Kind("a string, an integer or null",
                        lambda value: value is None or type(value) in (str, int)),
}  # fmt: skip


class Choice:
    """One choice of a call, so far. ``finish`` is its finish reason, None while it runs."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.token_ids: list[int] | None = None
        """None where chunks do not tell them."""
        self.finish: str | None = None
        self.stop: str | int | None = None

    def tell(self, choice: Mapping[str, Any]) -> None:
        """Takes the token ids of a chunk."""
        if choice.get("token_ids") is not None:
            self.token_ids = [*(self.token_ids or ()), *choice["token_ids"]]

    def told(self) -> dict[str, Any]:
        """The key of the unary body, where it was asked for."""
        return {} if self.token_ids is None else {"token_ids": self.token_ids}

    def end(self, judge: Judge, choice: Mapping[str, Any], *, calls: bool) -> None:
        """Takes the finish reason of a chunk, where it has one."""
        reason = reason_of(judge, choice)
        if reason is None:
            if "stop_reason" in choice:
                judge.broken("exact-keys", "`stop_reason` on a chunk without a finish reason")
            return
        if "stop_reason" not in choice:
            judge.broken("exact-keys", "no `stop_reason` beside the finish reason")
        due = ("length", "content_filter", "tool_calls" if calls else "stop")
        if reason not in due:
            judge.broken("finish-reason", f"finish_reason {brief(reason)}", " or ".join(due))
        self.finish = reason
        self.stop = choice.get("stop_reason")


def reason_of(judge: Judge, choice: Mapping[str, Any]) -> str | None:
    """The finish reason of a choice in a chunk. Some servers send an empty one for none."""
    reason: str | None = choice.get("finish_reason")
    return reason if reason or judge.keeps("finish-reason") else None


class CallCheck(ABC):
    """Feed it every event with ``take``, then ``end``. ``result`` is the folded object."""

    object_name: ClassVar[str]
    unary_name: ClassVar[str]
    id_prefix: ClassVar[str]
    has_roles: ClassVar[bool]
    """Chunks with roles come before all else."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._asked_for = Asked(judge)
        self._head: dict[str, Any] = {}
        self._keyed = False
        """Whether chunks have the key ``usage``; ``_counted``: with counts on every chunk."""
        self._counted = False
        self._usage: dict[str, Any] | None = None
        self._usage_came = False
        """The chunk without choices that has the usage."""
        self._error: dict[str, Any] | None = None

    # --- for each API ---------------------------------------------------------------------------

    @abstractmethod
    def choices(self) -> Mapping[int, Choice]:
        """The choices so far, by index."""

    @abstractmethod
    def _take_choice(self, choice: dict[str, Any]) -> None:
        """One choice of a chunk."""

    @abstractmethod
    def _tell(self, choice: dict[str, Any], data: Mapping[str, Any]) -> None:
        """The token ids of a choice that was taken; ``data`` is its chunk."""

    @abstractmethod
    def _begins(self) -> list[str]:
        """What could begin another choice now."""

    @abstractmethod
    def _folded(self, choice: Any) -> dict[str, Any]:
        """A choice as the unary body has it."""

    # --- the stream -----------------------------------------------------------------------------

    @property
    def legal(self) -> tuple[str, ...]:
        """What may come next."""
        end = (DONE,) if self._judge.keeps("done-due") else (DONE, END)
        if self._error is not None or self._usage_came:
            return end
        choices, keeps = self.choices(), self._judge.keeps
        legal = [*self._begins()]
        if self.has_roles and not choices and keeps("roles-first"):
            return tuple(legal)
        running = [choice for choice in choices.values() if choice.finish is None]
        for choice in running:
            legal += [f"delta of choice {choice.index}", f"finish of choice {choice.index}"]
        if not (keeps("finish-due") and (running or not choices)):
            if self._keyed or not (self._head and keeps("usage-key")):
                legal.append("usage chunk")
            if not (self._owes_usage() and keeps("usage-due")):
                legal += end
        return (*legal, "error chunk")

    @property
    def outcome(self) -> str:
        if self._error is not None:
            return "failed"
        choices = sorted(self.choices().items())
        return ", ".join(choice.finish or "cancelled" for _, choice in choices) or "cancelled"

    @property
    def result(self) -> dict[str, Any]:
        if self._error is not None:
            return {"error": self._error}
        head = self._head
        return {
            "id": head.get("id"),
            "object": self.unary_name,
            "created": head.get("created"),
            "model": head.get("model"),
            "choices": [self._folded(choice) for _, choice in sorted(self.choices().items())],
            "usage": self._usage,
        }

    def _owes_usage(self) -> bool:
        """Every chunk so far had the key and told nothing in it: the last one will."""
        return self._keyed and self._usage is None

    def take(self, name: str | None, data: dict[str, Any]) -> None:
        """One event. Raises RuleBroken."""
        if name is not None:
            self._judge.broken("event-line", f"the line `event: {name!a}`", "no such line")
        if self._error is not None:
            self._judge.broken("error-last", "a chunk after the error")
        if "error" in data and "choices" not in data:
            self._fail(data)
            return
        if not self._judge.keeps("exact-keys") and is_note(data):
            self._take_note(data["choices"])
            return
        HEAD.check(self._judge, data, "a chunk")
        if len(data["choices"]) > 1:
            self._judge.broken("one-choice-per-chunk", f"{len(data['choices'])} choices")
        usage = data.get("usage")
        if not data["choices"] and usage is None and not self._judge.keeps("exact-keys"):
            return  # about the request, not the answer: content filters of some servers
        if self._usage_came:
            self._judge.broken("usage-last", "a chunk after the usage")
        self._check_head(data)
        self._check_usage(data)
        if usage is not None:
            check_usage(self._judge, usage, CHUNK_USAGE, running=bool(data["choices"]))
        self._asked_for.take(data)
        if not data["choices"]:
            self._check_begun("the usage chunk")
            self._check_finished("the usage chunk")
            self._usage_came = True
        self._keep_first(data)
        for choice in data["choices"]:
            self._take_choice(choice)
            self._tell(choice, data)
        self._usage = usage or self._usage

    def end(self, *, marked: bool) -> None:
        """The end of the stream, with ``[DONE]`` or without. Raises RuleBroken."""
        found = DONE if marked else "the stream ends"
        if self._error is None:
            self._check_begun(found)
            self._check_finished(found)
            if self._owes_usage() and not self._usage_came:
                self._judge.broken("usage-due", f"{found} before the usage chunk")
        if not marked:
            self._judge.broken("done-due", found, DONE)

    def _take_note(self, choices: list[Any]) -> None:
        for choice in choices:
            NOTE.check(self._judge, choice, "a choice")
            reason = reason_of(self._judge, choice)
            known = self.choices().get(choice["index"])
            if reason is None or known is None:
                continue
            if known.finish not in (None, reason):
                self._judge.broken("finish-once", f"finish_reason {brief(reason)}",
                                   brief(known.finish))  # fmt: skip
            known.finish = reason

    def _check_begun(self, found: str) -> None:
        if self.has_roles and not self.choices():
            self._judge.broken("roles-first", f"{found} before any role")

    def _fail(self, data: dict[str, Any]) -> None:
        ERROR.check(self._judge, data, "the error chunk")
        ERROR_BODY.check(self._judge, data["error"], "`error`")
        self._check_begun("an error")
        self._error = data["error"]

    def _check_head(self, data: Mapping[str, Any]) -> None:
        judge, head = self._judge, self._head
        judge.equal("object-name", "object", data.get("object"), self.object_name)
        if not head:
            tail = str(data.get("id")).removeprefix(self.id_prefix)
            if tail in ("", data.get("id")):
                judge.broken("ids-derived", f"id {brief(data.get('id'))}", f"{self.id_prefix}…")
            return
        judge.equal("ids-stable", "id", data.get("id"), head["id"])
        for key in ("created", "model"):
            judge.equal("head-stable", key, data.get(key), head[key])

    def _keep_first(self, data: Mapping[str, Any]) -> None:
        if not self._head:
            self._head = {key: data.get(key) for key in ("id", "object", "created", "model")}
            self._keyed = "usage" in data
            self._counted = data.get("usage") is not None

    def _check_usage(self, data: Mapping[str, Any]) -> None:
        broken, keyed = self._judge.broken, "usage" in data
        if not data["choices"]:
            if data.get("usage") is None:
                broken("exact-keys", "a chunk without choices and without usage")
            if self._head and not self._keyed:
                broken("usage-key", "usage at the end", "`usage` on every chunk, or on none")
            return
        if self._head and keyed != self._keyed:
            broken("usage-key", f"`usage` {'there' if keyed else 'absent'}",
                   f"`usage` {'there' if self._keyed else 'absent'}")  # fmt: skip
        counted = data.get("usage") is not None
        if self._head and counted != self._counted:
            broken("usage-key", f"usage {brief(data.get('usage'))}",
                   "counts" if self._counted else "null")  # fmt: skip

    def _check_finished(self, found: str) -> None:
        if not self._judge.keeps("finish-due"):
            return
        choices = self.choices()
        for index in range(max(choices, default=-1) + 1):
            if index not in choices or choices[index].finish is None:
                self._judge.broken("finish-due", f"{found} while choice {index} has not finished")
        if not choices:
            self._judge.broken("finish-due", f"{found} before any choice")
