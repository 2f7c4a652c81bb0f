"""A part while its events come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.responses.shapes import same
from responsory.check.responses.vocabulary import OUTPUT_TEXT, Does, EventKind, PartKind
from responsory.check.shapes import check_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge


class OpenPart:
    """The part of one ``content_part.added`` (or of a summary's). ``kind`` is None for a type that
    is not known; ``by`` is the event that added it; ``place`` is its index, called ``index`` in its
    events."""

    def __init__(
        self, judge: Judge, kind: PartKind | None, by: EventKind, place: int, added: dict[str, Any]
    ) -> None:
        self.kind = kind
        self.index = by.index
        self._by = by
        self.place = place
        self._judge = judge
        self._added = added
        self._text: list[str] = [] if kind is None else [added[kind.text]]
        self._logprobs: list[Any] = list(added.get("logprobs") or ())
        self._annotations: list[Any] = list(added.get("annotations") or ())
        self._said: str | None = None

    def takes(self, kind: EventKind) -> bool:
        """Whether this event may come now: deltas and ``done`` until the text is whole, the end of
        the part after it."""
        if kind.does is Does.END_PART:
            paired = kind.index == self.index and kind.part is self._by.part
            return paired and (self._said is not None or self.kind is None)
        return kind.part is self.kind and self._said is None and kind.does in INSIDE

    def _check_place(self, data: Mapping[str, Any]) -> None:
        self._judge.equal("index-dense", self.index, data[self.index], self.place)

    def delta(self, data: Mapping[str, Any]) -> None:
        self._check_place(data)
        logprobs = data.get("logprobs") or ()
        if not data["delta"] and not logprobs:
            self._judge.broken("no-empty-delta", "an empty delta")
        if logprobs:
            check_entries(self._judge, data["logprobs"])
            self._logprobs += logprobs
        self._text.append(data["delta"])

    def annotate(self, data: Mapping[str, Any]) -> None:
        self._check_place(data)
        place = data.get("annotation_index")
        if place is not None:
            self._judge.equal("index-dense", "annotation_index", place, len(self._annotations))
        self._annotations.append(data["annotation"])

    def say(self, data: Mapping[str, Any]) -> None:
        """The part's own ``done``."""
        if self.kind is None:  # ``takes`` has been asked
            raise LookupError("a part of an unknown type has no text")
        self._check_place(data)
        text = data[self.kind.text]
        self._judge.equal("deltas-sum", f"`{self.kind.text}`", text, "".join(self._text))
        if self.kind is OUTPUT_TEXT:
            self._check_logprobs(data.get("logprobs"))
        self._said = text

    def end(self, data: Mapping[str, Any]) -> None:
        """The end of the part: what it shows is what was streamed."""
        self._check_place(data)
        part, judge = data["part"], self._judge
        judge.equal("done-equals-streamed", "a part of type", part["type"], self._added["type"])
        if self.kind is None:
            return
        text = self.kind.text
        judge.equal("done-equals-streamed", f"`{text}`", part[text], self._said)
        if self.kind is OUTPUT_TEXT:
            if self._annotations and not same(part.get("annotations"), self._annotations):
                judge.broken("done-equals-streamed",
                             f"annotations {brief(part.get('annotations'))}",
                             brief(self._annotations))  # fmt: skip
            if part.get("annotations") and not self._annotations:
                judge.broken("done-exact", f"annotations {brief(part['annotations'])}", "[]")
            self._check_logprobs(part.get("logprobs"))

    def _check_logprobs(self, found: Any) -> None:
        if not same(found, self._logprobs):
            self._judge.broken("logprobs-sum", f"logprobs {brief(found)}", brief(self._logprobs))


INSIDE = frozenset({Does.DELTA, Does.SAY, Does.ANNOTATE})
