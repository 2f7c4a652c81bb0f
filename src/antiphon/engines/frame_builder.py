"""Building a ``StepFrame`` row by row: what engines do in each step."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import nan

import attrs

from antiphon.engines.port import (
    NO_STOP_ID,
    NOT_REPORTED,
    PAD_ID,
    EngineError,
    Finish,
    Gauges,
    PromptLogprobs,
    StepFrame,
    TokenSpelling,
)


@attrs.define
class FrameBuilder:
    """Collects the rows of one step and freezes them into a ``StepFrame``."""

    step: int
    top_n: int = 0
    _key: array[int] = attrs.field(factory=lambda: array("I"), init=False)
    _n_new: array[int] = attrs.field(factory=lambda: array("H"), init=False)
    _token: array[int] = attrs.field(factory=lambda: array("I"), init=False)
    _finish: array[int] = attrs.field(factory=lambda: array("B"), init=False)
    _stop_id: array[int] = attrs.field(factory=lambda: array("i"), init=False)
    _cached: array[int] = attrs.field(factory=lambda: array("i"), init=False)
    _error: dict[int, EngineError] = attrs.field(factory=dict, init=False)
    _logprob: array[float] = attrs.field(factory=lambda: array("f"), init=False)
    _has_logprobs: bool = attrs.field(default=False, init=False)
    _top_id: array[int] = attrs.field(factory=lambda: array("I"), init=False)
    _top_lp: array[float] = attrs.field(factory=lambda: array("f"), init=False)

    _prompt_lp: dict[int, PromptLogprobs] = attrs.field(factory=dict, init=False)
    _text: dict[int, str] = attrs.field(factory=dict, init=False)
    _spelling: dict[int, Sequence[TokenSpelling]] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._key)

    def row(
        self,
        key: int,
        tokens: Sequence[int] = (),
        *,
        finish: Finish = Finish.NONE,
        stop_id: int = NO_STOP_ID,
        cached: int = NOT_REPORTED,
        error: EngineError | None = None,
        logprobs: Sequence[float] | None = None,
        top: Sequence[Sequence[tuple[int, float]]] | None = None,
        text: str | None = None,
        spelling: Sequence[TokenSpelling] | None = None,
        prompt_lp: PromptLogprobs | None = None,
    ) -> None:
        """Append one row; ``logprobs`` and ``top`` are per token of the row, best first."""
        index = len(self._key)
        self._key.append(key)
        self._n_new.append(len(tokens))
        self._token.extend(tokens)
        self._finish.append(finish)
        self._stop_id.append(stop_id)
        self._cached.append(cached)
        if error is not None:
            self._error[index] = error
        if prompt_lp is not None:
            self._prompt_lp[index] = prompt_lp
        if text is not None:
            self._text[index] = text
        if spelling is not None:
            self._spelling[index] = spelling
        self._has_logprobs |= logprobs is not None
        self._logprob.extend(logprobs if logprobs is not None else [nan] * len(tokens))
        for position in range(len(tokens)):
            best = list(top[position])[: self.top_n] if top is not None else []
            padding = self.top_n - len(best)
            self._top_id.extend([token for token, _ in best] + [PAD_ID] * padding)
            self._top_lp.extend([value for _, value in best] + [float("-inf")] * padding)

    def columns(
        self,
        *,
        key: Iterable[int],
        n_new: Iterable[int],
        token: Sequence[int],
        finish: Iterable[int],
        stop_id: Iterable[int],
        cached: Iterable[int],
        logprob: Iterable[float] | None = None,
        top_id: Iterable[int] = (),
        top_lp: Iterable[float] = (),
        error: Mapping[int, EngineError] | None = None,
        prompt_lp: Mapping[int, PromptLogprobs] | None = None,
    ) -> None:
        """Append R rows with T tokens, as ``StepFrame`` has them.

        All in all there are ``T * top_n`` alternatives. ``error`` and ``prompt_lp`` go by the row,
        counted from the first that is appended here.
        """
        first = len(self._key)
        self._key.extend(key)
        self._n_new.extend(n_new)
        self._finish.extend(finish)
        self._stop_id.extend(stop_id)
        self._cached.extend(cached)
        self._token.extend(token)
        self._has_logprobs |= logprob is not None
        self._logprob.extend([nan] * len(token) if logprob is None else logprob)
        self._top_id.extend(top_id)
        self._top_lp.extend(top_lp)
        for row, reason in (error or {}).items():
            self._error[first + row] = reason
        for row, block in (prompt_lp or {}).items():
            self._prompt_lp[first + row] = block

    def build(self, t_ns: int, gauges: Gauges) -> StepFrame:
        """The finished frame; the builder must not be used again."""
        return StepFrame(
            step=self.step,
            t_ns=t_ns,
            key=self._key,
            n_new=self._n_new,
            token=self._token,
            finish=self._finish,
            stop_id=self._stop_id,
            cached=self._cached,
            error=self._error,
            logprob=self._logprob if self._has_logprobs else None,
            top_n=self.top_n,
            top_id=self._top_id if self.top_n else None,
            top_lp=self._top_lp if self.top_n else None,
            prompt_lp=self._prompt_lp,
            text=self._text,
            spelling=self._spelling,
            gauges=gauges,
        )
