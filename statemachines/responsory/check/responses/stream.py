"""One Responses stream: every event against the rules, folded to the final response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.padding import Padding
from responsory.check.responses.items import OpenItem
from responsory.check.responses.order import Order, Phase
from responsory.check.responses.shapes import (
    ERROR_BODY,
    OPAQUE,
    RESPONSE_ERROR,
    check_item,
    is_zero,
    same,
    without_ciphertext,
)
from responsory.check.responses.snapshots import Snapshots
from responsory.check.responses.vocabulary import (
    CALLS,
    ITEMS,
    RESERVED,
    SIGN,
    Does,
    EventKind,
)
from responsory.ids import ITEM_PREFIX, item_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from responsory.check.judge import Judge

ZEROS = ("content", "summary", "arguments", "input", "encrypted_content")
PASSING = EventKind(Does.BEAT, SIGN, own=False)


class ResponsesCheck:
    """Feed it every event with ``take``, then ``end``. ``result`` is the folded response."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._order = Order(judge)
        self._snapshots = Snapshots(judge)
        self._padding = Padding(judge)
        self._sequence: int | None = 0
        """The number that is due; None where the stream does without."""
        self._output: list[dict[str, Any]] = []
        """Items as they were added, and as they were once they are done."""
        self._call_ids: set[str] = set()
        self._item_ids: set[str] = set()
        self._error: dict[str, Any] | None = None
        self._outcome = ""

    @property
    def legal(self) -> tuple[str, ...]:
        """What may come next."""
        return self._order.legal()

    @property
    def outcome(self) -> str:
        return self._outcome

    @property
    def result(self) -> dict[str, Any]:
        return self._snapshots.folded(self._output, self._outcome)

    def take(self, name: str | None, data: dict[str, Any]) -> None:
        """One event: its ``event:`` name and its data. Raises RuleBroken, changing nothing."""
        OPAQUE.check(self._judge, data, "an event")
        type_ = data["type"]
        if name is None:
            self._judge.broken("event-line", f"no `event:` line before {brief(type_)}")
        else:
            self._judge.equal("event-name", "the event's name", name, type_)
        kind = self._order.names.get(type_)
        if kind is None:
            self._unknown(data)
            return
        if not kind.own:
            self._judge.broken("own-events", type_)
        kind.shape.check(self._judge, data, type_)
        if kind.padded:
            self._padding.take(data)
        self._check_sequence(data)
        item = None if kind.does in ACTS else self._order.open.get(data["output_index"])
        self._order.check(type_, kind, item)
        self._inside(kind, data, item)
        self._count(data)

    def end(self, *, marked: bool) -> None:
        """The end of the stream, with ``[DONE]`` or without. Raises RuleBroken."""
        self._order.end(marked=marked)
        if not self._outcome:
            self._outcome = "failed" if self._error else "cancelled"

    # --- numbers and unknown events -------------------------------------------------------------

    def _check_sequence(self, data: Mapping[str, Any]) -> None:
        number = data.get("sequence_number")
        if self._order.phase is Phase.START and number is None:
            return
        if number != self._sequence:
            due = "none" if self._sequence is None else str(self._sequence)
            self._judge.broken("seq-dense", f"sequence_number {brief(number)}", due)

    def _count(self, data: Mapping[str, Any]) -> None:
        number = data.get("sequence_number")
        self._sequence = None if number is None else number + 1

    def _unknown(self, data: dict[str, Any]) -> None:
        """An event that only its item can explain, or a server's own."""
        type_ = data["type"]
        inside = self._is_inside_opaque(data)
        if not inside and (not type_ or type_.startswith(RESERVED)):
            self._judge.broken("event-known", f"an event of type {brief(type_)}")
        self._judge.broken("own-events", brief(type_))
        SIGN.check(self._judge, data, "the event")
        self._check_sequence(data)
        self._order.check(brief(type_), PASSING, None)
        if inside:
            self._order.open[data["output_index"]].check_id(data)
        self._count(data)

    def _is_inside_opaque(self, data: Mapping[str, Any]) -> bool:
        index = data.get("output_index")
        item = self._order.open.get(index) if type(index) is int else None
        return data["type"].startswith(RESERVED) and item is not None and item.in_opaque

    # --- one method for each thing that an event does -------------------------------------------

    def _inside(self, kind: EventKind, data: dict[str, Any], item: OpenItem | None) -> None:
        act = ACTS.get(kind.does)
        if act is not None:
            act(self, data)
        elif item is not None:
            item.check_id(data)
            if kind.does is Does.END_ITEM:
                self._end_item(data, item)
            else:
                INSIDE[kind.does](item, kind, data)

    def create(self, data: dict[str, Any]) -> None:
        self._snapshots.first(data["response"])
        self._order.queues = data["response"].get("status") == "queued"
        self._order.phase = Phase.CREATED

    def status(self, data: dict[str, Any]) -> None:
        self._snapshots.running(data["type"], data["response"])
        queued = data["type"] == "response.queued"
        self._order.phase = Phase.QUEUED if queued else Phase.RUNNING

    def finish(self, data: dict[str, Any]) -> None:
        response = data["response"]
        self._snapshots.last(data["type"], response)
        self._compare_output("final-equals-streamed", response["output"])
        for item, final in zip(self._output, response["output"], strict=True):
            if "encrypted_content" in item:
                # Equal but for this: a server may encrypt it anew for each event.
                item["encrypted_content"] = final["encrypted_content"]
        self._finish()

    def fail(self, data: dict[str, Any]) -> None:
        response = data["response"]
        self._snapshots.last(data["type"], response)
        error = response.get("error")
        if error is None:
            self._judge.broken("failed-has-error", "`error` of the failed response null")
        else:
            RESPONSE_ERROR.check(self._judge, error, "`error` of the response")
        if self._error is not None:
            told = {key: self._error.get(key) for key in ("code", "message")}
            if not same(error, told):
                self._judge.broken("error-then-failed", f"error {brief(error)}", brief(told))
        if self._judge.keeps("failure-closes"):
            self._compare_output("failure-closes", response["output"])
        else:
            for item in response["output"]:
                check_item(self._judge, item)
            self._output = response["output"]
        self._finish()

    def _finish(self) -> None:
        self._order.phase = Phase.ENDED
        self._outcome = self._snapshots.status

    def _compare_output(self, rule: str, output: list[Any]) -> None:
        self._judge.equal(rule, "number of items in `output`", len(output), len(self._output))
        for index, (final, streamed) in enumerate(zip(output, self._output, strict=True)):
            if same(final, streamed):
                continue
            if same(without_ciphertext(final), without_ciphertext(streamed)):
                self._judge.broken("ciphertext-stable", f"encrypted_content of output[{index}]")
                continue
            found, due = brief(final), brief(streamed)
            if isinstance(final, dict):
                key = next(
                    key
                    for key in {**streamed, **final}
                    if not same(final.get(key, ...), streamed.get(key, ...))
                )
                found, due = (
                    f"`{key}` {brief(item[key])}" if key in item else f"no `{key}`"
                    for item in (final, streamed)
                )
            self._judge.broken(rule, f"output[{index}] with {found}", due)

    def errored(self, data: dict[str, Any]) -> None:
        flat = {key: data.get(key) for key in ("code", "message", "param")}
        if isinstance(data.get("error"), dict):
            nested = data["error"]
            if self._judge.keeps("exact-keys"):
                ERROR_BODY.check(self._judge, nested, "`error`")
                told = {key: nested[key] for key in flat}
                if not same(told, flat):
                    self._judge.broken("error-then-failed", f"error {brief(told)}", brief(flat))
            flat = {key: flat[key] or nested.get(key) for key in flat}
        if type(flat["message"]) is not str:
            self._judge.broken("object-keys", f"the error's message {brief(flat['message'])}",
                               "a string")  # fmt: skip
        self._error = flat
        self._order.phase = Phase.ERRORED

    def add_item(self, data: dict[str, Any]) -> None:
        item, index, judge = data["item"], data["output_index"], self._judge
        check_item(judge, item)
        judge.equal("index-dense", "output_index", index, self._order.items)
        if item["type"] in ITEM_PREFIX:
            self._check_item_id(item, index)
        self._check_item_id_unique(item)
        if item["type"] in ITEMS:
            filled = is_zero(item, ZEROS)
            if filled:
                judge.broken("zero-values", f"`{filled}` of an added item {brief(item[filled])}")
            if item.get("status") != "in_progress":
                judge.broken("zero-values", f"status {brief(item.get('status'))}", '"in_progress"')
        if item["type"] in CALLS:
            if item["call_id"] in self._call_ids:
                judge.broken("call-id-unique", f"call_id {brief(item['call_id'])} again")
            self._call_ids.add(item["call_id"])
        self._order.open[index] = OpenItem(judge, index, item)
        self._order.items += 1
        self._output.append(item)

    def _check_item_id(self, item: Mapping[str, Any], index: int) -> None:
        due = item_id(item["type"], self._snapshots.tail, index)
        self._judge.equal("ids-derived", "the item's id", item.get("id"), due)

    def _check_item_id_unique(self, item: Mapping[str, Any]) -> None:
        own = item.get("id")
        if isinstance(own, str):
            if own in self._item_ids:
                self._judge.broken("item-id-unique", f"an item with id {brief(own)} again")
            self._item_ids.add(own)

    def _end_item(self, data: dict[str, Any], item: OpenItem) -> None:
        done, judge = data["item"], self._judge
        OPAQUE.check(judge, done, "an item")
        item.end(done)
        status = done.get("status")
        if status not in ("completed", "incomplete"):
            judge.broken("item-status", f"status {brief(status)}", '"completed" or "incomplete"')
        del self._order.open[item.index]
        self._order.last = (item.type, status)
        self._output[item.index] = done


ACTS: Mapping[Does, Callable[[ResponsesCheck, dict[str, Any]], None]] = {
    Does.CREATE: ResponsesCheck.create,
    Does.STATUS: ResponsesCheck.status,
    Does.END: ResponsesCheck.finish,
    Does.FAIL: ResponsesCheck.fail,
    Does.ERROR: ResponsesCheck.errored,
    Does.ADD_ITEM: ResponsesCheck.add_item,
    Does.PASS: lambda *_: None,
    Does.BEAT: lambda *_: None,
}
INSIDE: Mapping[Does, Callable[[OpenItem, EventKind, dict[str, Any]], None]] = {
    Does.ADD_PART: OpenItem.add_part,
    Does.DELTA: OpenItem.delta,
    Does.SAY: OpenItem.say,
    Does.ANNOTATE: lambda item, _, data: item.annotate(data),
    Does.END_PART: lambda item, _, data: item.end_part(data),
}
