"""An item while its events come: what may follow in it, and the item built up from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.responses.parts import OpenPart
from responsory.check.responses.shapes import (
    check_item,
    check_part,
    is_zero,
    parts_of,
    same,
    without_ciphertext,
)
from responsory.check.responses.vocabulary import CALLS, ITEMS, PARTS, Does, EventKind
from responsory.check.shapes import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from responsory.check.judge import Judge


class OpenItem:
    """The item of one ``output_item.added``. ``item`` is what its events add up to so far."""

    def __init__(self, judge: Judge, index: int, added: Mapping[str, Any]) -> None:
        self.index = index
        self.type: str = added["type"]
        self.item = {
            key: list(value) if isinstance(value, list) else value for key, value in added.items()
        }
        self.opaque = self.type not in ITEMS
        self._judge = judge
        self._call = CALLS.get(self.type)
        self._part: OpenPart | None = None
        self._input: list[str] = []
        self._said = False
        """A call's ``done`` has come."""
        if self._call is not None:
            self._input.append(added[self._call.text])

    # --- what may follow ------------------------------------------------------------------------

    def legal(self, names: Mapping[str, EventKind]) -> Iterator[str]:
        """The event types of ``names`` that may come next in this item."""
        own = self._judge.keeps("own-events")
        for name, kind in names.items():
            if (kind.own or not own) and self.takes(kind):
                yield name
        if self.in_opaque:
            yield f"response.* of item {self.index}"

    def takes(self, kind: EventKind) -> bool:
        """Whether an event that is about this item, or a part of it, may come now."""
        if kind.does is Does.END_ITEM:
            return self._whole and not self.lacks_part
        if kind.does is Does.ADD_PART:
            return self._may_add(kind) and not (kind.index == "content_index" and self.full)
        if kind.call is not None:
            return kind.call is self._call and not self._said
        return self._part is not None and self._part.takes(kind)

    def _may_add(self, kind: EventKind) -> bool:
        if self._call is not None or self.opaque or self._part is not None:
            return False
        return kind.part is None or kind.part.item == self.type

    @property
    def _whole(self) -> bool:
        """Nothing is open in it."""
        return self._said if self._call is not None else self._part is None

    @property
    def lacks_part(self) -> bool:
        """It must have a part yet."""
        closed = self._call is not None or self.opaque or self.item.get("content")
        return not closed and self._judge.keeps("part-due")

    @property
    def full(self) -> bool:
        """It can have no other part."""
        one = self.type == "reasoning" and self._part is None and bool(self.item.get("content"))
        return one and self._judge.keeps("part-due")

    @property
    def in_opaque(self) -> bool:
        """Events of unknown types may come."""
        return self.opaque or (self._part is not None and self._part.kind is None)

    # --- its events -----------------------------------------------------------------------------

    def check_id(self, data: Mapping[str, Any]) -> None:
        if "id" in self.item and "item_id" in data:
            self._judge.equal("ids-stable", "item_id", data["item_id"], self.item["id"])

    def add_part(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        part = data["part"]
        check_part(self._judge, part, self.type)
        part_kind = PARTS.get(part["type"])
        ours = part_kind is None or (part_kind.item == self.type and part_kind.index == kind.index)
        if not ours:
            self._judge.broken("parts-paired", f"a part of type {brief(part['type'])}",
                               f"a part of a {self.type} item")  # fmt: skip
        list_key = "summary" if kind.index == "summary_index" else "content"
        parts = self.item.get(list_key) or []
        self._judge.equal("index-dense", kind.index, data[kind.index], len(parts))
        filled = is_zero(part, ("text", "refusal", "annotations", "logprobs"))
        if filled:
            self._judge.broken("zero-values", f"`{filled}` of an added part {brief(part[filled])}")
        self.item[list_key] = parts
        self._part = OpenPart(self._judge, part_kind, kind, len(parts), part)
        parts.append(part)

    def delta(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        if kind.call is None:
            self._open().delta(data)
            return
        if not data["delta"]:
            self._judge.broken("no-empty-delta", "an empty delta")
        self._input.append(data["delta"])

    def say(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        if kind.call is None:
            self._open().say(data)
            return
        text = kind.call.text
        self._judge.equal("deltas-sum", text, data[text], "".join(self._input))
        if data.get("name") is not None:
            self._judge.equal("call-id-stable", "name", data["name"], self.item["name"])
        self.item[text] = data[text]
        self._said = True

    def annotate(self, data: Mapping[str, Any]) -> None:
        self._open().annotate(data)

    def end_part(self, data: Mapping[str, Any]) -> None:
        part = self._open()
        check_part(self._judge, data["part"], self.type)
        part.end(data)
        parts = self.item["summary" if part.index == "summary_index" else "content"]
        parts[part.place] = data["part"]
        self._part = None

    def _open(self) -> OpenPart:
        if self._part is None:  # ``takes`` has been asked
            raise LookupError("no part is open")
        return self._part

    def end(self, done: dict[str, Any]) -> None:
        """``output_item.done``: the item as it was streamed, ended."""
        judge, item = self._judge, self.item
        judge.equal("done-equals-streamed", "an item of type", done["type"], self.type)
        if "id" in item:
            judge.equal("ids-stable", "the item's id", done.get("id"), item["id"])
        check_item(judge, done)
        if done.get("status") == "in_progress":
            judge.broken("item-ended", 'status "in_progress" in output_item.done')
        if self.opaque:
            return
        if self._call is not None:
            text = self._call.text
            for key in ("call_id", "name"):
                judge.equal("call-id-stable", key, done[key], item[key])
            judge.equal("done-equals-streamed", text, done[text], item[text])
        self._compare_parts(done)
        self._check_sealed(done)
        # A sealed item has its encrypted content once it is done.
        found, due = ({**without_ciphertext(each), "status": None} for each in (done, item))
        if not same(found, due):
            key = next(key for key in {**item, **done} if not same(done.get(key), item.get(key)))
            judge.broken("done-exact", f"`{key}` of the item {brief(done.get(key))}",
                         brief(item.get(key)))  # fmt: skip

    def _check_sealed(self, done: Mapping[str, Any]) -> None:
        if done.get("encrypted_content") == "":
            self._judge.broken("done-exact", '`encrypted_content` of the item ""', NAME.name)

    def _compare_parts(self, done: dict[str, Any]) -> None:
        """The kind and text of every part. Reasoning that came without any part may be told whole
        in its ``done``, as summaries are by some servers; a message may not."""
        streamed, shown = parts_of(self.item), parts_of(done)
        if not streamed and self.type == "reasoning" and not self._judge.keeps("done-exact"):
            return
        self._judge.equal("done-equals-streamed", "number of parts", len(shown), len(streamed))
        for part, due in zip(shown, streamed, strict=True):
            self._judge.equal("done-equals-streamed", "a part of type", part["type"], due["type"])
            kind = PARTS.get(due["type"])
            if kind is not None:
                text = kind.text
                self._judge.equal("done-equals-streamed", f"`{text}`", part[text], due[text])
