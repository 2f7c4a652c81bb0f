"""Completions chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from responsory.check.chunks.call import (
    CHOICE,
    ENDS,
    EXACT,
    MORE,
    TOKEN_IDS,
    CallCheck,
    Choice,
    reason_of,
)
from responsory.check.judge import brief
from responsory.check.shapes import LIST, NUMBER, OBJECT, STRING, Kind, Shape, list_of
from responsory.ids import completion_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge

CHUNK = Shape(
    {**CHOICE, "text": STRING},
    {**ENDS, "logprobs": OBJECT.or_null()},
    {**MORE, "prompt_token_ids": LIST},
    {**EXACT, "prompt_token_ids": TOKEN_IDS},
)
NUMBERS = ("token_logprobs", "top_logprobs")
ARRAYS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
BEST = Kind(
    "an object of numbers",
    lambda value: type(value) is dict and all(map(NUMBER.fits, value.values())),
)
LOGPROBS = Shape(
    loose=dict.fromkeys(ARRAYS, LIST),
    exact={
        "tokens": list_of(STRING),
        "token_logprobs": list_of(NUMBER.or_null()),
        "top_logprobs": list_of(BEST.or_null()),
    },
)


class TextChoice(Choice):
    """One choice of a completions call: its text so far."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.text: list[str] = []
        self.chunks = 0
        self.logprobs: dict[str, list[Any]] | None = None
        self.prompt_ids: list[int] | None = None
        self._length = 0
        self._offset = 0

    def take(self, judge: Judge, choice: dict[str, Any]) -> None:
        """One chunk of it."""
        self.chunks += 1
        text, logprobs = choice["text"], choice.get("logprobs")
        arrays = {} if logprobs is None else self._check_arrays(judge, logprobs)
        if not (
            text or arrays.get("tokens") or choice.get("token_ids") or reason_of(judge, choice)
        ):
            judge.broken("no-empty-delta", "a chunk that carries nothing")
        length = self._length + len(text)
        offset = self._check_offsets(judge, arrays.get("text_offset", []), length)
        self.end(judge, choice, calls=False)
        self._length, self._offset = length, offset
        self.text.append(text)
        for key, values in arrays.items():
            self.logprobs = self.logprobs or {}
            self.logprobs.setdefault(key, []).extend(values)

    def _check_arrays(self, judge: Judge, logprobs: dict[str, Any]) -> dict[str, list[Any]]:
        LOGPROBS.check(judge, logprobs, "`logprobs`")
        arrays = {key: logprobs[key] for key in ARRAYS if logprobs.get(key) is not None}
        lengths = {key: len(values) for key, values in arrays.items()}
        if len(set(lengths.values())) > 1:
            judge.broken("logprobs-parallel", f"lengths {brief(lengths)}")
        if judge.keeps("exact-keys"):
            for at, row in enumerate(zip(*map(arrays.__getitem__, NUMBERS), strict=True)):
                self._check_numbers(judge, row, first=at == 0 and not self.logprobs)
        return arrays

    def _check_numbers(self, judge: Judge, row: tuple[Any, ...], *, first: bool) -> None:
        """Of one token. The first of an echoed prompt has no log probability."""
        if None in row and not (first and row == (None, None)):
            judge.broken("exact-keys", f"{' and '.join(NUMBERS)} {brief(list(row))}",
                         "numbers; null and null of a choice's first token")  # fmt: skip

    def _check_offsets(self, judge: Judge, offsets: list[Any], length: int) -> int:
        """The last of them, with those before it in order."""
        last = self._offset
        if not judge.keeps("text-offset"):
            return last
        for offset in offsets:
            if type(offset) is not int or not last <= offset <= length:
                judge.broken("text-offset", f"text_offset {brief(offset)}", f"{last} to {length}")
            last = offset
        return last


class CompletionsCheck(CallCheck):
    """A stream of ``text_completion``."""

    object_name: ClassVar[str] = "text_completion"
    unary_name: ClassVar[str] = "text_completion"
    id_prefix: ClassVar[str] = completion_id("")
    has_roles: ClassVar[bool] = False

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._choices: dict[int, TextChoice] = {}
        self._asked: bool | None = None
        """Whether chunks with text have logprobs."""

    def choices(self) -> Mapping[int, Choice]:
        return self._choices

    def _tell(self, choice: dict[str, Any], data: Mapping[str, Any]) -> None:
        if "prompt_token_ids" in data:
            self._judge.broken("token-ids-key", "`prompt_token_ids` of the call", "in each choice")
        known = self._choices[choice["index"]]
        self._asked_for.tell(choice, choice, first=known.chunks == 1)
        known.tell(choice)
        if known.prompt_ids is None:
            known.prompt_ids = choice.get("prompt_token_ids")

    def _begins(self) -> list[str]:
        return ["first text of a choice"]

    def _take_choice(self, choice: dict[str, Any]) -> None:
        judge = self._judge
        CHUNK.check(judge, choice, "a choice")
        index = choice["index"]
        known = self._choices.get(index) or TextChoice(index)
        if known.finish is not None:
            again = reason_of(judge, choice) is not None
            found = "a second finish reason" if again else "a chunk"
            judge.broken("finish-once", f"{found} of choice {index}, which has finished")
        asked = choice.get("logprobs") is not None
        if choice["text"] or asked:
            if self._asked is not None and asked != self._asked:
                judge.broken("logprobs-key", f"logprobs {brief(choice.get('logprobs'))}",
                             OBJECT.name if self._asked else "null")  # fmt: skip
            self._asked = asked
        known.take(judge, choice)
        self._choices[index] = known

    def _folded(self, choice: Any) -> dict[str, Any]:
        return {
            "index": choice.index,
            "text": "".join(choice.text),
            "logprobs": choice.logprobs,
            "finish_reason": choice.finish,
            "stop_reason": choice.stop,
            **({} if choice.prompt_ids is None else {"prompt_token_ids": choice.prompt_ids}),
            **choice.told(),
        }
