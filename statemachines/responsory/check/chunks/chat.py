"""Chat Completions chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from responsory.check.chunks.call import (
    CHOICE,
    ENDS,
    EXACT,
    MORE,
    CallCheck,
    Choice,
    reason_of,
)
from responsory.check.chunks.tool_calls import ToolCalls
from responsory.check.judge import brief
from responsory.check.shapes import (
    LIST,
    NAME,
    NULL,
    OBJECT,
    STRING,
    Kind,
    Shape,
    check_entries,
    constant,
)
from responsory.ids import chat_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge

CHUNK = Shape({**CHOICE, "delta": OBJECT}, ENDS, {**MORE, "logprobs": OBJECT.or_null()}, EXACT)
LOGPROBS = Shape({}, {"content": LIST, "refusal": LIST.or_null()}, exact={"refusal": NULL})
TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
REASONING = ("reasoning_content", "reasoning")
ROLE = constant("assistant")
DELTA = Shape(
    more={
        # Some servers send an empty role for none.
        "role": Kind(ROLE.name, lambda value: value in ("assistant", "")),
        **{key: STRING.or_null() for key in TEXTS},
        "tool_calls": LIST,
    },
    exact={
        "role": ROLE,
        "content": STRING,
        "refusal": NAME,
        "reasoning_content": NAME.or_null(),
        "reasoning": NAME.or_null(),
        "tool_calls": Kind(
            "an array of one", lambda value: type(value) is list and len(value) == 1
        ),
    },
)


class ChatChoice(Choice):
    """One choice of a chat call: its message so far."""

    def __init__(self, judge: Judge, index: int) -> None:
        super().__init__(index)
        self._judge = judge
        self._texts: dict[str, list[str]] = {key: [] for key in TEXTS}
        self._names: tuple[str, ...] = ()
        """What reasoning was called."""
        self._calls = ToolCalls(judge)
        self.logprobs: list[Any] | None = None

    def take(self, choice: dict[str, Any]) -> None:
        """One chunk of it, its role apart."""
        delta, judge = choice["delta"], self._judge
        channels = self._channels(delta)
        ends = reason_of(judge, choice) is not None
        if delta.get("content") == "":  # with log probabilities alone
            channels.insert(0, "content")
        if len(channels) > 1:
            judge.broken("one-channel-per-delta", f"a delta with {' and '.join(channels)}")
        if "reasoning_content" in delta and "reasoning" in delta:
            judge.equal("exact-keys", "`reasoning`", delta["reasoning"],
                              delta["reasoning_content"])  # fmt: skip
        if ends and channels:
            judge.broken("finish-alone", f"a finish reason beside {channels[0]}")
        entries = self._entries(choice, text="content" in delta)
        carries = channels and delta.get("content") != ""
        if not (entries or ends or carries or choice.get("token_ids")):
            judge.broken("no-empty-delta", "a delta that carries nothing")
        self._calls.take(delta.get("tool_calls") or [])
        for key in TEXTS:
            self._texts[key].append(delta.get(key) or "")
        if entries is not None:
            self.logprobs = self.logprobs or []
            self.logprobs += entries
        self.end(judge, choice, calls=bool(self._calls))

    def name(self, delta: dict[str, Any]) -> None:
        """Takes what a delta calls reasoning."""
        names = tuple(name for name in REASONING if name in delta)
        if not names:
            self._judge.broken(
                "exact-keys", "a delta has no `reasoning_content`", "a string or null"
            )
        if self._names not in ((), names):
            self._judge.broken("reasoning-names", f"a delta with {' and '.join(names)}",
                               " and ".join(self._names))  # fmt: skip
        self._names = names or self._names

    def _channels(self, delta: dict[str, Any]) -> list[str]:
        """What the delta carries. ``reasoning`` is another name of ``reasoning_content``."""
        self.name(delta)
        carried = [
            "reasoning_content" if key == "reasoning" else key for key in TEXTS if delta.get(key)
        ]
        if delta.get("tool_calls"):
            carried.append("tool_calls")
        return list(dict.fromkeys(carried))

    def _entries(self, choice: dict[str, Any], *, text: bool) -> list[Any] | None:
        logprobs = choice.get("logprobs")
        if logprobs is None:
            return None
        if not text:
            self._judge.broken("logprobs-key", "logprobs on a chunk without content", "null")
        LOGPROBS.check(self._judge, logprobs, "`logprobs`")
        entries: list[Any] = logprobs.get("content") or []
        check_entries(self._judge, entries)
        return entries

    def message(self) -> dict[str, Any]:
        """As the unary body has it."""
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        calls = self._calls.folded()
        reasoning = texts["reasoning_content"] or texts["reasoning"] or None
        message: dict[str, Any] = {
            "role": "assistant",
            "content": texts["content"] or (None if calls else ""),
            "refusal": texts["refusal"] or None,
            **dict.fromkeys(self._names or REASONING[:1], reasoning),
        }
        return {**message, "tool_calls": calls} if calls else message


class ChatCheck(CallCheck):
    """A stream of ``chat.completion.chunk``."""

    object_name: ClassVar[str] = "chat.completion.chunk"
    unary_name: ClassVar[str] = "chat.completion"
    id_prefix: ClassVar[str] = chat_id("")
    has_roles: ClassVar[bool] = True

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._choices: dict[int, ChatChoice] = {}
        self._asked: bool | None = None
        """Whether choices have the key ``logprobs``."""
        self._begun = False
        """More than roles has come."""
        self._first = True
        """No chunk has come."""
        self._prompt_ids: list[int] | None = None

    def choices(self) -> Mapping[int, Choice]:
        return self._choices

    @property
    def result(self) -> dict[str, Any]:
        told = self._prompt_ids is not None and self._error is None
        return {**super().result, **({"prompt_token_ids": self._prompt_ids} if told else {})}

    def _tell(self, choice: dict[str, Any], data: Mapping[str, Any]) -> None:
        self._asked_for.tell(choice, data, first=self._first)
        self._first = False
        self._choices[choice["index"]].tell(choice)
        if self._prompt_ids is None:
            self._prompt_ids = data.get("prompt_token_ids")

    def _begins(self) -> list[str]:
        if self._begun and self._judge.keeps("roles-first"):
            return []
        if not self._judge.keeps("choices-dense"):
            return ["role of another choice"]
        return [f"role of choice {len(self._choices)}"]

    def _take_choice(self, choice: dict[str, Any]) -> None:
        judge = self._judge
        CHUNK.check(judge, choice, "a choice")
        delta, index = choice["delta"], choice["index"]
        DELTA.check(judge, delta, "a delta")
        known = self._choices.get(index)
        if known is not None and known.finish is not None:
            again = reason_of(judge, choice) is not None
            found = "a second finish reason" if again else "a chunk"
            judge.broken("finish-once", f"{found} of choice {index}, which has finished")
        self._check_logprobs(choice)
        if known is None:
            judge.equal("choices-dense", "a new choice", index, len(self._choices))
            if not delta.get("role"):
                judge.broken("role-due", f"choice {index} begins without a role", '"assistant"')
            self._check_role_chunk(choice)
            known = ChatChoice(judge, index)
            known.name(delta)
            if not judge.keeps("roles-first"):
                known.take(choice)
            self._choices[index] = known
        else:
            if delta.get("role") is not None:
                judge.broken("role-once", f"the role of choice {index} again")
            known.take(choice)
            self._begun = True

    def _check_role_chunk(self, choice: dict[str, Any]) -> None:
        judge, delta = self._judge, choice["delta"]
        if self._begun:
            judge.broken("roles-first", f"the role of choice {choice['index']} after other deltas")
        for key, value in delta.items():
            if key not in ("role", "content") and value:
                judge.broken("roles-first", f"`{key}` beside the role", "null")
        for key in ("logprobs", "stop_reason"):
            if choice.get(key) is not None:
                judge.broken("roles-first", f"`{key}` beside the role")
        if choice.get("token_ids"):
            judge.broken("roles-first", f"token_ids {brief(choice['token_ids'])} beside the role",
                         "[]")  # fmt: skip
        if "stop_reason" in choice:
            judge.broken("exact-keys", "`stop_reason` on a chunk without a finish reason")
        if delta.get("content") != "" or choice.get("finish_reason") is not None:
            judge.broken(
                "roles-first", f"content {brief(delta.get('content'))} beside the role", '""'
            )

    def _check_logprobs(self, choice: dict[str, Any]) -> None:
        """The key is on every chunk or on none; with text it holds something, else null."""
        keyed, delta = "logprobs" in choice, choice["delta"]
        if self._asked is not None and keyed != self._asked:
            self._judge.broken("logprobs-key", f"`logprobs` {'there' if keyed else 'absent'}",
                               f"`logprobs` {'there' if self._asked else 'absent'}")  # fmt: skip
        empty = keyed and choice["logprobs"] is None
        if "content" in delta and delta.get("role") is None and empty:
            self._judge.broken("logprobs-key", "logprobs null beside content", OBJECT.name)
        self._asked = keyed

    def _folded(self, choice: Any) -> dict[str, Any]:
        entries = choice.logprobs
        return {
            "index": choice.index,
            "message": choice.message(),
            "logprobs": None if entries is None else {"content": entries, "refusal": None},
            "finish_reason": choice.finish,
            "stop_reason": choice.stop,
            **choice.told(),
        }
