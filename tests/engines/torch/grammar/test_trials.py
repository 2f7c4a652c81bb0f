"""Forms that may be dear are tried in a process that can be ended."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar import trials as trying
from antiphon.engines.torch.grammar.compiler import Compiled, Compiler
from antiphon.engines.torch.grammar.refused import GrammarRefused, GrammarUnavailable
from antiphon.engines.torch.grammar.trials import Trial, Trials
from engines.torch.grammar.writing import vocabulary

PLAIN = GrammarSpec(kind="regex", text="[0-9]{2}")
WITHOUT_END = GrammarSpec(
    kind="json_schema",
    text=json.dumps({"allOf": [{"type": "string", "pattern": f"a.{{{i}}}b"} for i in range(40)]}),
)
"""Its intersection has a state for every set of places: 2^40."""
LONGEST_S = 40.0


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    yield Trials(vocabulary())
    gc.collect()


def pid(trials: Trials) -> int:
    """Of the process that waits for the next form."""
    [process] = trials._idle
    return process._popen.pid


def test_a_process_is_used_again(trials: Trials) -> None:
    assert trials.bytes_of(PLAIN, Trial()) >= 0
    first = pid(trials)
    with pytest.raises(GrammarRefused, match="unclosed group"):
        trials.bytes_of(GrammarSpec(kind="regex", text="("), Trial())
    assert pid(trials) == first


def test_what_never_ends_is_refused_and_the_next_is_tried(trials: Trials) -> None:
    with pytest.raises(GrammarRefused, match="it takes too"):
        trials.bytes_of(WITHOUT_END, Trial())
    assert trials.bytes_of(PLAIN, Trial()) >= 0


def test_what_takes_longer_than_the_clock_allows_is_refused(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process itself does not notice."""
    monkeypatch.setattr(trying, "WALL_S", 0.1)
    with pytest.raises(GrammarRefused, match="too long"):
        trials.bytes_of(WITHOUT_END, Trial())


def test_a_process_that_was_ended_by_others_is_replaced(trials: Trials) -> None:
    trials.bytes_of(PLAIN, Trial())
    process = trials._idle[0]
    os.kill(pid(trials), signal.SIGKILL)
    process._popen.wait()
    assert trials.bytes_of(PLAIN, Trial()) >= 0


def test_the_terminals_signals_do_not_end_it(trials: Trials) -> None:
    trials.bytes_of(PLAIN, Trial())
    first = pid(trials)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(first, number)
    trials.bytes_of(PLAIN, Trial())
    assert pid(trials) == first
    assert os.getpgid(first) != os.getpgid(0)


def test_a_trial_that_nobody_waits_for_ends(trials: Trials) -> None:
    trial = Trial()
    trials.bytes_of(PLAIN, Trial())
    outcome: Future[BaseException] = Future()

    def run() -> None:
        try:
            trials.bytes_of(WITHOUT_END, trial)
        except BaseException as failure:
            outcome.set_result(failure)

    threading.Thread(target=run, daemon=True).start()
    trial.left = True
    assert isinstance(outcome.result(LONGEST_S), GrammarUnavailable)


def test_the_process_ends_with_its_trials() -> None:
    trials = Trials(vocabulary())
    trials.bytes_of(PLAIN, Trial())
    process = trials._idle[0]
    del trials
    gc.collect()
    assert not process.alive


def test_it_ends_with_whoever_started_it_in_the_middle_of_a_form() -> None:
    trials = Trials(vocabulary())
    trials.bytes_of(PLAIN, Trial())
    popen = trials._idle[0]._popen
    assert popen.stdin is not None
    form = {"kind": WITHOUT_END.kind, "text": WITHOUT_END.text}
    popen.stdin.write(json.dumps(form).encode() + b"\n")
    popen.stdin.close()
    assert popen.wait(LONGEST_S) == 0
    assert popen.stdout is not None
    popen.stdout.close()


def test_an_ordinary_form_does_not_wait_for_dear_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that could hold it up: as many forms without an end as there are threads for such."""
    monkeypatch.setattr(trying, "WALL_S", 1.0)
    told: dict[GrammarSpec, Compiled] = {}
    there, all_there = threading.Event(), threading.Event()

    def ready(form: GrammarSpec, made: Compiled) -> None:
        told[form] = made
        there.set()
        if len(told) == 3:
            all_there.set()

    compiler = Compiler(vocabulary(), ready)
    dear = [GrammarSpec(kind="json_schema", text=WITHOUT_END.text + " " * i) for i in range(2)]
    for form in (*dear, PLAIN):
        compiler.want(form)
    assert there.wait(LONGEST_S)
    assert next(iter(told)) == PLAIN
    assert all_there.wait(LONGEST_S)
    for form in dear:
        made = told[form]
        assert isinstance(made, GrammarRefused)
        assert str(made).startswith("the schema takes too ")
    assert not isinstance(told[PLAIN], GrammarRefused)
