"""Forms, compiled once each, off the engine's thread."""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeAlias

import attrs
from llguidance import LLMatcher

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import NAMES, compiled
from antiphon.engines.torch.grammar.harmless import harmless
from antiphon.engines.torch.grammar.kept import Kept
from antiphon.engines.torch.grammar.nodes import placed_forms
from antiphon.engines.torch.grammar.refused import GrammarRefused, GrammarUnavailable
from antiphon.engines.torch.grammar.trials import Trial, Trials
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.engines.torch.grammar.workers import Workers

log = logging.getLogger(__name__)

MOST_KEPT = 64
MOST_KEPT_BYTES = 256 * 2**20
MOST_WAITING = 64
"""Forms that wait to be compiled, of each of the two kinds."""
FIXED_BYTES, BYTES_A_BYTE = 256 * 1024, 64
"""What a form takes of which that is not measured: so much, and so often its text (rounded up)."""

Compiled: TypeAlias = LLMatcher | GrammarRefused | GrammarUnavailable
"""A matcher at the start of a text, to be copied; or why there is none."""


class Tries(Protocol):
    """Where forms are tried."""

    def bytes_of(self, form: GrammarSpec, trial: Trial) -> int:
        """As ``Trials.bytes_of``."""
        ...


@attrs.define(eq=False)
class _Job:
    """A form that is wanted."""

    form: GrammarSpec
    trial: Trial = attrs.field(factory=Trial)


class _Lane:
    """Forms in order of arrival, and threads to compile them."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.waiting: OrderedDict[GrammarSpec, _Job] = OrderedDict()


class Compiler:
    """Compiles each form once, and keeps the last of them.

    ``ready`` is called by another thread with each form and what has become of it, once, unless
    nobody waits for it any more. Forms that may be dear are tried in a process of its own first,
    and hold up none that are not. Markers of reasoning are no part of a form.
    """

    def __init__(
        self,
        vocabulary: GrammarVocabulary,
        ready: Callable[[GrammarSpec, Compiled], None],
        workers: Workers | None = None,
        trials: Tries | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self._ready = ready
        self._trials = trials or Trials(vocabulary)
        self._plain = _Lane(workers or Workers(1))
        self._tried = _Lane(workers or Workers())
        self._lock = threading.Lock()
        self._kept: Kept[LLMatcher | GrammarRefused] = Kept(MOST_KEPT, MOST_KEPT_BYTES)
        self._coming: dict[GrammarSpec, _Job] = {}
        """Wanted, and not there yet."""

    def want(self, spec: GrammarSpec) -> Compiled | None:
        """The form, if it is there or cannot be had; else None: it will be told when it is."""
        form = form_of(spec)
        with self._lock:
            found = self._kept.get(form)
            if found is not None or form in self._coming:
                return found
        lane = self._plain if harmless(form) else self._tried
        with self._lock:
            if len(lane.waiting) >= MOST_WAITING:
                return GrammarUnavailable("too many forms wait to be compiled")
            self._coming[form] = lane.waiting[form] = _Job(form)
        try:
            lane.workers.put(lambda: self._work(lane))
        except RuntimeError as failure:  # the system has no thread left
            self.leave(form)
            return GrammarUnavailable(f"no thread compiles forms: {failure}")
        return None

    def leave(self, spec: GrammarSpec) -> None:
        """Nobody waits for the form any more: it is not compiled, if it is not there yet."""
        form = form_of(spec)
        with self._lock:
            job = self._coming.pop(form, None)
            if job is not None:
                job.trial.left = True
                self._plain.waiting.pop(form, None)
                self._tried.waiting.pop(form, None)

    def _work(self, lane: _Lane) -> None:
        """Compile what waits longest; it may have been left meanwhile."""
        with self._lock:
            if not lane.waiting:
                return
            _, job = lane.waiting.popitem(last=False)
        made, size = self._made(job, tried=lane is self._tried)
        with self._lock:
            if job.trial.left:
                return
            del self._coming[job.form]
            if not isinstance(made, GrammarUnavailable):
                self._kept.put(job.form, made, size)
        self._ready(job.form, made)

    def _made(self, job: _Job, *, tried: bool) -> tuple[Compiled, int]:
        """What becomes of a form, and the bytes that it takes."""
        form, size = job.form, 0
        try:
            if tried:
                size = self._trials.bytes_of(form, job.trial)
            return compiled(form, self.vocabulary), size or _estimate(form)
        except GrammarRefused as refusal:
            # Without the frames that it came through.
            return GrammarRefused(_named(form, str(refusal))), _estimate(form)
        except GrammarUnavailable as failure:
            if not job.trial.left:
                log.error("a form was not compiled: %s", failure)
            return GrammarUnavailable(str(failure)), 0
        except BaseException as failure:  # a library's panic is no Exception; somebody waits
            log.exception("a form could not be compiled")
            words = f"{NAMES[form.kind]} cannot be compiled: {failure!r}"
            return GrammarRefused(words), _estimate(form)


def form_of(spec: GrammarSpec) -> GrammarSpec:
    """The spec without what is said of the thought before the answer."""
    return attrs.evolve(spec, opener="", closer="", barred="[]", budget=None)


def _estimate(form: GrammarSpec) -> int:
    return FIXED_BYTES + BYTES_A_BYTE * len(form.text)


def _named(form: GrammarSpec, reason: str) -> str:
    """A trial that ended says no more than why."""
    if form.kind == "calls" and any(
        reason.startswith(f"{place}: ") for place, _ in placed_forms(json.loads(form.text))
    ):
        return reason
    name = NAMES[form.kind]
    return reason if reason.startswith(name) else f"{name} {reason.removeprefix('it ')}"
