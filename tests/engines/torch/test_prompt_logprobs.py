"""The logprobs of prompts: right, sent once, and the same however a prompt is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from antiphon.engines.port import PAD_ID, EngineRequest, Finish, PromptLogprobs
from antiphon.engines.torch.inbox import Submit
from antiphon.engines.torch.loop import EngineLoop
from antiphon.engines.torch.pages import PagePool
from antiphon.engines.torch.runner import Runner
from antiphon.engines.torch.sampling.head import best_ids
from antiphon.engines.torch.sampling.logprobs import token_logprobs
from antiphon.engines.torch.sampling.prompt_scorer import ROWS
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.sequence import Sequence as RunningSequence
from antiphon.models.files import ModelFiles
from engines.frame_watch import FrameWatch
from engines.torch import reference
from engines.torch.harness import loaded, no_frames
from engines.torch.reference import Array
from engines.torch.requests import a_request
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf

POOL = 40
WIDE = {"pages": POOL, "step_tokens": 1_000, "max_running": 8}
OUTPUTS = st.sampled_from([0, 1, 40, 55])
PROMPTS = [
    [int(one) for one in np.random.default_rng(i).integers(3, 96, size)]
    for i, size in enumerate((1, 2, 16, 17, 33, 70, 150, 200))
]


@pytest.fixture(scope="module")
def engine(tiny: ModelFiles) -> EngineLoop:
    """An engine that no thread runs; its pool holds more pages than any test uses."""
    return loaded(tiny)


def run(engine: EngineLoop, *requests: EngineRequest, **scheduling: int) -> FrameWatch:
    """All requests at once, to their end, under a scheduler of these settings."""
    fitted: dict[str, Any] = WIDE | scheduling
    pool = PagePool(fitted.pop("pages"))
    engine.scheduler = Scheduler(pool, max_waiting=len(requests), **fitted)
    watch = FrameWatch(no_frames())
    engine.emit = watch.read
    for request in requests:
        engine.inbox.put(Submit(request))
    engine.turn()
    while engine.scheduler:
        engine.turn()
    assert all(watch[request.key].finish for request in requests)
    return watch


def block(watch: FrameWatch, key: int) -> PromptLogprobs:
    found = watch[key].prompt_lp
    assert found is not None
    return found


def exact(prompt: Sequence[int]) -> Array:
    """[len(prompt) - 1, vocab]: the logprobs of what may follow each token but the last."""
    logits = reference.logits(random_weights(Shape()), Shape(), prompt, reference.half_split)[:-1]
    result: Array = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return result


def same(one: PromptLogprobs, other: PromptLogprobs) -> None:
    """Equal up to the rounding of another order of sums."""
    assert one.top_n == other.top_n
    assert list(one.logprob) == pytest.approx(list(other.logprob), abs=1e-4)
    assert list(one.top_lp) == pytest.approx(list(other.top_lp), abs=1e-4)
    assert one.top_id == other.top_id


@pytest.mark.parametrize("max_tokens", [0, 3])
def test_they_are_those_of_the_model_itself(engine: EngineLoop, max_tokens: int) -> None:
    """Raw: whatever bends the drawing of the output leaves them alone."""
    prompt = PROMPTS[5]
    bent: dict[str, Any] = {"temperature": 0.3, "repetition": 1.5, "logit_bias": {9: 50.0}}
    request = a_request(1, prompt, max_tokens=max_tokens, prompt_logprobs=4, **bent)
    found = block(run(engine, request, step_tokens=16), 1)
    rows = exact(prompt)
    expected = [row[token] for row, token in zip(rows, prompt[1:], strict=True)]
    assert list(found.logprob) == pytest.approx(expected, abs=1e-3)
    best = np.argsort(-rows, axis=-1, kind="stable")[:, :4]
    assert list(found.top_id) == best.flatten().tolist()
    values = np.take_along_axis(rows, best, -1).flatten().tolist()
    assert list(found.top_lp) == pytest.approx(values, abs=1e-3)


@given(
    asking=st.lists(
        st.tuples(st.sampled_from(PROMPTS), st.none() | st.integers(0, 20), OUTPUTS),
        min_size=4,  # fewer seldom fill the pool
        max_size=8,
    ),
    pages=st.integers(16, 19),  # the longest needs 16
    step_tokens=st.integers(1, 90),
    max_running=st.sampled_from([1, 4, 8]),
)
@example(asking=[(one, 5, 55) for one in PROMPTS], pages=16, step_tokens=7, max_running=8)
@settings(max_examples=30, deadline=None)
def test_neither_chunks_nor_company_nor_preemption_change_them(
    engine: EngineLoop,
    asking: list[tuple[list[int], int | None, int]],
    pages: int,
    step_tokens: int,
    max_running: int,
) -> None:
    requests = [
        a_request(key, prompt, prompt_logprobs=count, max_tokens=max_tokens, seed=key)
        for key, (prompt, count, max_tokens) in enumerate(asking)
    ]
    together = run(engine, *requests, pages=pages, step_tokens=step_tokens, max_running=max_running)
    event(f"preemptions: {min(engine.scheduler.preemptions, 3)}")
    for request in requests:
        if request.prompt_logprobs is None:
            assert together[request.key].prompt_lp is None
            continue
        alone = run(engine, request)
        same(block(together, request.key), block(alone, request.key))
        assert together[request.key].tokens == alone[request.key].tokens


def test_what_was_scored_before_a_preemption_is_kept(
    engine: EngineLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt is thrown out halfway: the part read before is read, but not scored, again."""
    scored = 0

    def counted(*arguments: Any) -> Any:
        nonlocal scored
        scored += len(arguments[0])
        return token_logprobs(*arguments)

    where = "antiphon.engines.torch.sampling.prompt_scorer.token_logprobs"
    monkeypatch.setattr(where, counted)
    talker = a_request(1, PROMPTS[2][:14], max_tokens=60)
    reader = a_request(2, [*PROMPTS[7], *PROMPTS[7]], max_tokens=2, prompt_logprobs=3)
    halfway: list[tuple[int, int, int | None]] = []
    preempt = Scheduler._preempt

    def noted(self: Scheduler, sequence: RunningSequence) -> None:
        done = None if sequence.scores is None else sequence.scores.done
        halfway.append((sequence.key, sequence.drawn, done))
        preempt(self, sequence)

    monkeypatch.setattr(Scheduler, "_preempt", noted)
    crowded = run(engine, talker, reader, pages=27, step_tokens=1)
    assert halfway
    key, drawn, done = halfway[0]
    assert (key, drawn) == (2, 0)
    assert done is not None
    assert 0 < done < 399
    assert scored == 399, "each token once"
    same(block(crowded, 2), block(run(engine, reader), 2))


def test_a_preemption_after_they_were_sent_sends_nothing_again(engine: EngineLoop) -> None:
    """The watch of the frames would not take them twice."""
    requests = [a_request(key, PROMPTS[4], max_tokens=90, prompt_logprobs=1) for key in range(4)]
    watch = run(engine, *requests, pages=12)
    assert engine.scheduler.preemptions >= 2
    for key in range(1, 4):
        same(block(watch, key), block(watch, 0))


def test_they_are_there_by_the_first_token_or_the_end(engine: EngineLoop) -> None:
    prompt = PROMPTS[4]
    stop = a_request(2, prompt, stop_ids=tuple(range(96)), prompt_logprobs=0)
    nothing = a_request(3, prompt, max_tokens=0, prompt_logprobs=0)
    watch = run(engine, a_request(1, prompt, prompt_logprobs=0), stop, nothing, step_tokens=20)
    carriers = {
        frame.key[row]: (frame.n_new[row], frame.finish[row])
        for frame in watch.log
        for row in frame.prompt_lp
    }
    assert carriers == {1: (1, Finish.NONE), 2: (0, Finish.STOP), 3: (0, Finish.LENGTH)}


def test_a_prompt_of_one_token_has_an_empty_block(engine: EngineLoop) -> None:
    found = block(run(engine, a_request(1, [5], prompt_logprobs=2)), 1)
    assert (len(found.logprob), len(found.top_id), len(found.top_lp)) == (0, 0, 0)


def test_an_answer_scores_as_a_prompt_what_it_scored_when_it_was_drawn(engine: EngineLoop) -> None:
    drawn = run(engine, a_request(1, PROMPTS[3], max_tokens=30, logprobs=3, seed=4))[1]
    whole = [*PROMPTS[3], *drawn.tokens]
    found = block(run(engine, a_request(2, whole, max_tokens=0, prompt_logprobs=3)), 2)
    assert list(found.logprob[-30:]) == pytest.approx(drawn.logprobs, abs=1e-4)
    assert list(found.top_id[-90:]) == [token for top in drawn.tops for token, _ in top]


def test_logits_are_held_for_few_rows_at_a_time(
    engine: EngineLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(engine.runner, Runner)
    decoder, sizes = engine.runner.decoder, list[int]()
    real = decoder.logits

    def measured(states: torch.Tensor) -> torch.Tensor:
        sizes.append(len(states))
        return real(states)

    monkeypatch.setattr(decoder, "logits", measured)
    run(engine, a_request(1, PROMPTS[7], max_tokens=1, prompt_logprobs=20))
    assert sizes == [ROWS, ROWS, ROWS, 199 - 3 * ROWS, 1]
    sizes.clear()
    run(engine, a_request(1, PROMPTS[7], max_tokens=1))
    assert sizes == [1], "nobody asked"


def test_a_small_vocabulary_is_padded(tmp_path_factory: pytest.TempPathFactory) -> None:
    shape = Shape(vocab=12)
    path = tmp_path_factory.mktemp("models") / "small"
    small = loaded(write_hf(path, hf_config(shape), random_weights(shape)))
    request = a_request(1, [5, 7, 11], prompt_logprobs=15, logprobs=15, max_tokens=1)
    found = block(run(small, request), 1)
    for row in range(2):
        ids, values = (column[row * 15 : row * 15 + 15] for column in (found.top_id, found.top_lp))
        assert sorted(ids[:12]) == list(range(12))
        assert list(ids[12:]) == [PAD_ID] * 3
        assert list(values[12:]) == [-np.inf] * 3
        assert np.exp(values[:12]).sum() == pytest.approx(1, abs=1e-5)


@given(
    logits=st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-2, 2), min_size=4 * width, max_size=4 * width),
            min_size=1,
            max_size=4,
        )
    ),
    top=st.integers(0, 20),
)
def test_of_equals_the_lower_id_comes_first_in_every_row(logits: list[list[int]], top: int) -> None:
    rows = np.array(logits, dtype=np.float32)
    logprobs, ids, values = token_logprobs(rows, np.zeros(len(rows), dtype=np.int64), top)
    exact_rows = rows.astype(np.float64)
    exact_rows -= np.log(np.exp(exact_rows).sum(-1, keepdims=True))
    assert np.allclose(logprobs, exact_rows[:, 0], atol=1e-5)
    assert ids.shape == values.shape == (len(rows), top)
    for row, one in enumerate(logits):
        order = sorted(range(len(one)), key=lambda token: (-one[token], token))[:top]
        assert ids[row, : len(order)].tolist() == order
        assert best_ids(rows, top)[0][row].tolist() == ids[row].tolist()
        assert np.allclose(values[row, : len(order)], exact_rows[row, order], atol=1e-5)
        assert (ids[row, len(order) :] == PAD_ID).all()
