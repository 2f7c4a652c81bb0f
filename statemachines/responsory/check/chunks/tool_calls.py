"""Tool calls of a chat choice, from their fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.shapes import INDEX, OBJECT, STRING, Kind, Shape

if TYPE_CHECKING:
    from responsory.check.judge import Judge

INPUTS = {"function": "arguments", "custom": "input"}
"""The key of a call's input, by the call's type."""
FRAGMENT = Shape(
    {"index": INDEX},
    {},
    {"id": STRING, "type": STRING, "function": OBJECT, "custom": OBJECT},
    # Some servers send an empty type for none.
    {"type": Kind("a type", lambda value: value != "")},
)
BODIES = {key: Shape({}, {field: STRING}, {"name": STRING}) for key, field in INPUTS.items()}


class ToolCalls:
    """The calls of one choice, in index order."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._calls: list[dict[str, Any]] = []
        self._inputs: list[list[str]] = []
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, fragments: list[Any]) -> None:
        """The ``tool_calls`` of one delta."""
        for fragment in fragments:
            FRAGMENT.check(self._judge, fragment, "a tool call")
            index, known = fragment["index"], len(self._calls)
            if index > known:
                self._judge.broken("index-dense", f"tool call {index}", str(known))
            if index < known - 1:
                self._judge.broken("calls-serial", f"tool call {index} after {known - 1}")
            if index == known:
                self._open(fragment)
            else:
                self._go_on(fragment, index)

    def _open(self, fragment: dict[str, Any]) -> None:
        kind = fragment.get("type") or ("custom" if fragment.get("custom") else "function")
        if "type" not in fragment:
            self._judge.broken("exact-keys", "a tool call has no `type`")
        body = self._body(fragment, kind)
        lacks = [key for key, value in (("id", fragment.get("id")), ("name", body.get("name")))
                 if not value]  # fmt: skip
        if lacks:
            self._judge.broken(
                "tool-fragment-shape", f"the first fragment of a call without {lacks[0]}"
            )
        self._calls.append({"id": fragment["id"], "type": kind, kind: {"name": body["name"]}})
        self._inputs.append([body.get(INPUTS[kind]) or ""])
        if fragment["id"] in self._ids:
            self._judge.broken("call-id-unique", f"id {brief(fragment['id'])} again")
        self._ids.add(fragment["id"])

    def _go_on(self, fragment: dict[str, Any], index: int) -> None:
        call = self._calls[index]
        kind = call["type"]
        if fragment.get("type") not in (None, "", kind):
            self._judge.broken(
                "tool-fragment-shape", f"type {brief(fragment['type'])}", brief(kind)
            )
        body = self._body(fragment, kind)
        for key, value in (("id", fragment.get("id")), ("name", body.get("name"))):
            if value:
                self._judge.broken("tool-fragment-shape", f"the {key} of call {index} again")
        if len(fragment) != 2 or "name" in body:
            self._judge.broken("exact-keys", f"a later fragment with keys {brief(list(fragment))}")
        piece = body.get(INPUTS[kind]) or ""
        if not piece:
            self._judge.broken("no-empty-delta", "a fragment that carries nothing")
        self._inputs[index].append(piece)

    def _body(self, fragment: dict[str, Any], kind: str) -> dict[str, Any]:
        if kind not in INPUTS:
            self._judge.broken("tool-fragment-shape", f"type {brief(kind)}", "function or custom")
        body = fragment.get(kind)
        for other in INPUTS:
            if other != kind and fragment.get(other) is not None:
                self._judge.broken("tool-fragment-shape", f"`{other}` in a call of type {kind}")
        if body is None:
            self._judge.broken("tool-fragment-shape", f"a tool call without `{kind}`")
            return {}
        BODIES[kind].check(self._judge, body, f"`{kind}` of a tool call")
        found: dict[str, Any] = body
        return found

    def folded(self) -> list[dict[str, Any]]:
        """As the unary body has them."""
        return [
            {**call, call["type"]: {**call[call["type"]], INPUTS[call["type"]]: "".join(pieces)}}
            for call, pieces in zip(self._calls, self._inputs, strict=True)
        ]
