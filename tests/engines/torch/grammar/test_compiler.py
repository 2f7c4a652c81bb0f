"""Forms are compiled once each, by another thread, and the last of them are kept."""

from __future__ import annotations

import gc
import json
import threading
from array import array
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import attrs
import pytest

from antiphon.engines.port import Capability, EngineError, EngineInfo, GrammarSpec
from antiphon.engines.torch.grammar import compiler as compiling
from antiphon.engines.torch.grammar.compiler import Compiled, Compiler
from antiphon.engines.torch.grammar.refused import GrammarRefused, GrammarUnavailable
from antiphon.engines.torch.grammar.trials import Trial
from antiphon.engines.torch.grammar.workers import Workers
from antiphon.engines.torch.intake import Intake
from antiphon.engines.torch.sequence import Sequence
from engines.torch.grammar.writing import vocabulary
from engines.torch.requests import a_request

DIGITS = GrammarSpec(kind="regex", text="[0-9]{2}")
WRONG = GrammarSpec(kind="regex", text="(")


class ByHand(Workers):
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Callable[[], None]] = []

    def put(self, work: Callable[[], None]) -> None:
        self.given.append(work)

    def do(self) -> None:
        work, self.given = self.given, []
        for one in work:
            one()


@attrs.define
class Stage:
    """An intake, its compiler, and what it was told."""

    workers: ByHand = attrs.field(factory=ByHand)
    told: list[tuple[GrammarSpec, Compiled]] = attrs.field(factory=list)
    compiler: Compiler = attrs.field(init=False)
    intake: Intake = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.compiler = Compiler(
            vocabulary(), lambda form, made: self.told.append((form, made)), self.workers
        )
        self.intake = Intake(INFO, self.compiler)

    def formed(self) -> dict[int, Sequence | EngineError]:
        """Let the compiler work, and the intake hear of it."""
        self.workers.do()
        news, self.told = self.told, []
        return dict(pair for one in news for pair in self.intake.formed(*one))


INFO = EngineInfo(
    name="torch", model_id="tiny", vocab_size=768, context_length=100, eos_ids=frozenset({0}),
    max_running=4, page_size=16, kv_pages=8, dtype="float32", device="cpu",
    capabilities=frozenset({Capability.GRAMMAR}),
)  # fmt: skip


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_siblings_compile_once_and_have_their_own_states(stage: Stage) -> None:
    for key in range(4):
        assert stage.intake.take(a_request(key, grammar=DIGITS)) is None
    assert len(stage.workers.given) == 1
    assert stage.intake.keys() == [0, 1, 2, 3]
    formed = stage.formed()
    assert list(formed) == [0, 1, 2, 3]
    assert not stage.intake
    grammars = [one.grammar for one in formed.values() if isinstance(one, Sequence)]
    assert len(grammars) == 4
    first = grammars[0]
    assert first is not None
    for digit in (b"1", b"2"):
        assert first.advance(vocabulary().ids[digit])
    assert [one is not None and one.finished for one in grammars] == [True, False, False, False]


def test_a_form_that_is_known_is_there_at_once(stage: Stage) -> None:
    stage.intake.take(a_request(1, grammar=DIGITS))
    stage.formed()
    behind = attrs.evolve(DIGITS, opener="<think>", closer="</think>")
    for key, spec in ((2, DIGITS), (3, behind)):
        assert isinstance(stage.intake.take(a_request(key, grammar=spec)), Sequence)
    assert not stage.workers.given


def test_what_does_not_compile_refuses_its_requests_and_no_other(stage: Stage) -> None:
    stage.intake.take(a_request(1, grammar=WRONG))
    stage.intake.take(a_request(2, grammar=DIGITS))
    formed = stage.formed()
    error = formed[1]
    assert isinstance(error, EngineError)
    assert error.code == "grammar_invalid"
    assert "unclosed group" in error.message
    assert isinstance(formed[2], Sequence)
    again = stage.intake.take(a_request(3, grammar=WRONG))
    assert again == error


def test_none_goes_past_a_sibling_that_is_held(stage: Stage) -> None:
    """The form may be there before the intake has heard of it."""
    stage.intake.take(a_request(1, grammar=DIGITS))
    stage.workers.do()
    assert stage.intake.take(a_request(2, grammar=DIGITS)) is None
    assert list(stage.formed()) == [1, 2]


def test_an_aborted_request_is_forgotten(stage: Stage) -> None:
    stage.intake.take(a_request(1, grammar=DIGITS))
    assert stage.intake.drop(1)
    assert not stage.intake.drop(1)
    assert stage.formed() == {}


def test_what_nobody_waits_for_is_not_compiled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(compiling, "compiled", lambda form, _: made.append(form.text))
    forms = [GrammarSpec(kind="regex", text=f"a{number}") for number in range(50)]
    for key, form in enumerate(forms):
        stage.intake.take(a_request(key, grammar=form))
        stage.intake.take(a_request(key + 100, grammar=form))
    for key in range(1, 50):
        assert stage.intake.drop(key)
        assert stage.intake.drop(key + 100)
    assert stage.intake.drop(0)  # a sibling still waits
    stage.workers.do()
    assert made == ["a0"]


def test_a_form_can_be_wanted_again_that_was_left(stage: Stage) -> None:
    stage.intake.take(a_request(1, grammar=DIGITS))
    stage.intake.drop(1)
    assert stage.intake.take(a_request(2, grammar=DIGITS)) is None
    assert list(stage.formed()) == [2]


def test_a_trial_is_told_that_nobody_waits() -> None:
    """It is under way when its last request leaves."""
    slow = GrammarSpec(kind="json_schema", text=json.dumps({"multipleOf": 7}))
    stage = Stage()

    class Leaving:
        def bytes_of(self, form: GrammarSpec, trial: Trial) -> int:
            assert not trial.left
            stage.intake.drop(1)
            assert trial.left
            raise GrammarUnavailable("nobody waits")

    stage.compiler._trials = Leaving()
    stage.intake.take(a_request(1, grammar=slow))
    stage.workers.do()
    assert not stage.told


def test_the_queue_is_bounded(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_WAITING", 3)
    forms = [GrammarSpec(kind="regex", text=f"a{number}") for number in range(4)]
    taken = [stage.intake.take(a_request(key, grammar=form)) for key, form in enumerate(forms)]
    assert taken[:3] == [None] * 3
    refused = taken[3]
    assert isinstance(refused, EngineError)
    assert refused.code == "engine_overloaded"
    # It is not remembered: there is room later.
    stage.formed()
    assert stage.intake.take(a_request(4, grammar=forms[3])) is None


def test_what_is_too_large_to_keep_is_given_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_KEPT_BYTES", 100)
    stage = Stage()
    stage.intake.take(a_request(1, grammar=DIGITS))
    assert isinstance(stage.formed()[1], Sequence)
    assert stage.intake.take(a_request(2, grammar=DIGITS)) is None


def test_a_request_that_cannot_run_is_refused_before_anything_is_compiled(stage: Stage) -> None:
    refused = stage.intake.take(a_request(1, array("I", [1] * 200), grammar=DIGITS))
    assert isinstance(refused, EngineError)
    assert refused.code == "context_length_exceeded"
    assert not stage.workers.given


def test_a_form_that_can_begin_with_no_allowed_id_is_refused(stage: Stage) -> None:
    digit, letter = (vocabulary().ids[one] for one in (b"1", b"a"))
    stage.intake.take(a_request(1, grammar=DIGITS, allowed_ids=(letter,)))
    stage.intake.take(a_request(2, grammar=DIGITS, allowed_ids=(letter, digit)))
    formed = stage.formed()
    refused = formed[1]
    assert isinstance(refused, EngineError)
    assert refused.code == "grammar_invalid"
    assert isinstance(formed[2], Sequence)


def test_without_a_vocabulary_forms_are_refused() -> None:
    refused = Intake(INFO).take(a_request(1, grammar=DIGITS))
    assert isinstance(refused, EngineError)
    assert refused.code == "unsupported"


def test_the_least_used_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_KEPT", 2)
    stage = Stage()
    forms = [GrammarSpec(kind="regex", text=text) for text in ("a", "b", "c")]
    for form in (forms[0], forms[1], forms[0], forms[2]):
        stage.compiler.want(form)
        stage.workers.do()
    assert stage.compiler.want(forms[0]) is not None
    assert stage.compiler.want(forms[2]) is not None
    assert stage.compiler.want(forms[1]) is None


def test_a_compiler_that_fails_is_an_answer_as_well(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(compiling, "compiled", fail)
    stage.compiler.want(DIGITS)
    stage.workers.do()
    [(form, made)] = stage.told
    assert form == DIGITS
    assert isinstance(made, GrammarRefused)
    assert "no more" in str(made)
    assert "could not be compiled" in caplog.text


def test_another_thread_compiles() -> None:
    outcome: Future[Compiled] = Future()
    compiler = Compiler(vocabulary(), lambda _, made: outcome.set_result(made))
    assert compiler.want(DIGITS) is None
    assert not isinstance(outcome.result(20), GrammarRefused)
    assert compiler.want(DIGITS) is outcome.result()


def test_its_threads_end_with_it() -> None:
    workers = Workers(1)
    threads: Future[threading.Thread] = Future()
    workers.put(lambda: threads.set_result(threading.current_thread()))
    thread = threads.result(20)
    assert thread.is_alive()
    del workers
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_without_a_thread_a_form_cannot_be_had_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    compiler = Compiler(vocabulary(), lambda form, made: None)
    spec = GrammarSpec(kind="regex", text="[ab]")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        assert isinstance(compiler.want(spec), GrammarUnavailable)
    assert compiler.want(spec) is None  # it is tried anew
