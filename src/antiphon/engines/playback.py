"""One request that plays one recorded choice: which row comes next, and when. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.pace import Pace
from antiphon.engines.port import NOT_REPORTED, Finish, TokenSpelling
from antiphon.engines.recording import RecordedChoice, spelled_bytes
from antiphon.engines.recording_rows import StepRow


@attrs.define(kw_only=True)
class Playback:
    """Plays ``choice`` under ``key`` from ``start_ns`` on.

    At ``max_tokens`` tokens the playback ends with ``LENGTH``, whatever the recording goes on with.
    A step that crosses the limit loses the ids beyond it. Its text is cut with them where the
    token borders are known (a spelled choice; an incomplete character becomes U+FFFD) and is
    dropped or kept whole where they are not: kept if any of its ids remains.

    ``logprobs`` is the request's: with a number, a spelled choice gives the spelling of its tokens
    with at most that many alternatives; a choice recorded without gives its tokens alone.
    """

    key: int
    choice: RecordedChoice
    pace: Pace
    start_ns: int
    max_tokens: int
    logprobs: int | None = None
    _steps: Sequence[StepRow] = attrs.field(init=False)
    _position: int = attrs.field(default=0, init=False)
    _tokens: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = list(self.pace.join(self.choice.steps))

    @property
    def due_ns(self) -> int | None:
        """When the next row is due; None while only an abort can end the request."""
        if self.max_tokens <= 0:
            return self.start_ns
        if self._position < len(self._steps):
            ms = self._steps[self._position].ms
        elif self.choice.holds:
            return None
        else:
            ms = self.choice.end_ms
        return self.pace.due_ns(self.start_ns, self._position, ms)

    def play(self, frame: FrameBuilder) -> bool:
        """Add the next row to ``frame``; True when it is the terminal one."""
        if self.max_tokens <= 0:
            frame.row(self.key, finish=Finish.LENGTH, cached=0)
            return True
        if self._position == len(self._steps):
            cached = NOT_REPORTED if self._tokens else 0
            frame.row(self.key, finish=self.choice.finish, error=self.choice.error, cached=cached)
            return True
        step, room = self._steps[self._position], self.max_tokens - self._tokens
        self._position += 1
        first = step.ids and not self._tokens
        self._tokens += len(step.ids)
        finish = Finish.NONE
        if len(step.ids) > room or (len(step.ids) == room and not self._token_goes_on):
            step, finish = self._cut(step, room), Finish.LENGTH
        elif self._ends_with_last_step and self._position == len(self._steps):
            finish = self.choice.finish
        spelling = self._spelling(step)
        frame.row(
            self.key,
            step.ids,
            finish=finish,
            cached=0 if first else NOT_REPORTED,
            text=step.text,
            spelling=spelling,
            logprobs=None if spelling is None else [token.logprob for token in spelling],
        )
        return finish is not Finish.NONE

    @property
    def _token_goes_on(self) -> bool:
        """Whether the next step holds only more text of the last token."""
        return self._position < len(self._steps) and not self._steps[self._position].ids

    @property
    def _ends_with_last_step(self) -> bool:
        """Whether the finish rides on the last tokens, as it does in an engine that just stops."""
        return (
            not self.choice.holds
            and self.choice.finish is not Finish.ERROR
            and self.choice.end_ms == self._steps[-1].ms
        )

    def _cut(self, step: StepRow, room: int) -> StepRow:
        """The first ``room`` tokens (at least one) of the step that has just been taken."""
        if step.spelling is None:
            return attrs.evolve(step, ids=step.ids[:room])
        kept = attrs.evolve(step, ids=step.ids[:room], spelling=step.spelling[:room])
        if step.text is None:
            return kept
        before = self._steps[: self._position - 1]
        whole = spelled_bytes([*before, kept]).decode("utf-8", "replace")
        said = sum(len(earlier.text or "") for earlier in before)
        return attrs.evolve(kept, text=whole[said:])

    def _spelling(self, step: StepRow) -> tuple[TokenSpelling, ...] | None:
        count = self.logprobs
        if count is None or step.spelling is None:
            return None
        if all(len(token.top) <= count for token in step.spelling):
            return step.spelling
        return tuple(attrs.evolve(token, top=token.top[:count]) for token in step.spelling)
