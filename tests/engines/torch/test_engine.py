"""What the torch engine does beyond the contract, through the port, on a tiny random model."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import numpy as np
import pytest

from antiphon.engines.port import (
    NOT_REPORTED,
    Capability,
    EngineRequest,
    Finish,
    GrammarSpec,
)
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.admission import CAPABILITIES
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.runner import Runner
from antiphon.models.files import ModelFiles
from engines.frame_watch import Story
from engines.torch import reference
from engines.torch.harness import running
from engines.torch.requests import a_request
from engines.torch.tiny_models import (
    EOS,
    Shape,
    hf_config,
    random_weights,
    write_gguf,
    write_hf,
)

PROMPTS = [
    [int(one) for one in np.random.default_rng(i).integers(3, 96, 3 + 9 * i)] for i in range(8)
]
PAGE_BYTES = 2 * 2 * 16 * 32 * 4


async def ask(files: ModelFiles, *requests: EngineRequest, **settings: Any) -> list[Story]:
    """All requests at once on a fresh engine."""
    async with running(files, **settings) as (engine, watch):
        for request in requests:
            engine.submit(request)
        await watch.finished(*(request.key for request in requests))
        return [watch[request.key] for request in requests]


async def test_info(tiny: ModelFiles) -> None:
    engine = TorchEngine(EngineOptions(files=tiny, device="cpu", dtype="float32", max_running=3))
    info = await engine.start()
    assert (info.model_id, info.name, info.vocab_size) == ("tiny", "torch", 96)
    assert (info.dtype, info.device, info.max_running) == ("float32", "cpu", 3)
    assert (info.context_length, info.page_size, info.kv_pages) == (2048, 16, 3 * 128)
    assert info.eos_ids == {EOS}
    assert {Capability.PROMPT_LOGPROBS, Capability.PRIORITY} <= info.capabilities
    await engine.stop(0)
    assert not info.healthy


async def test_greedy_tokens_are_those_of_the_reference(tiny: ModelFiles) -> None:
    shape, weights = Shape(), random_weights(Shape())
    (story,) = await ask(tiny, a_request(1, PROMPTS[2], temperature=0.0, max_tokens=12))
    ids = list(PROMPTS[2])
    for _ in range(12):
        ids.append(int(reference.logits(weights, shape, ids, reference.half_split)[-1].argmax()))
    assert story.tokens == ids[len(PROMPTS[2]) :]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_tokens_do_not_depend_on_the_batch(tiny: ModelFiles, temperature: float) -> None:
    requests = [
        a_request(key, prompt, max_tokens=24, seed=key * 31, temperature=temperature, top_p=0.95)
        for key, prompt in enumerate(PROMPTS)
    ]
    together = await ask(tiny, *requests)
    small_steps = await ask(tiny, *requests, max_running=3, step_tokens=5)
    for request, one, other in zip(requests, together, small_steps, strict=True):
        (alone,) = await ask(tiny, request)
        assert alone.tokens == one.tokens == other.tokens
        assert len(alone.tokens) == 24


async def test_seeds_differ_and_repeat(tiny: ModelFiles) -> None:
    seeds = [1, 2, 1, 2**64 - 1]
    stories = await ask(
        tiny, *(a_request(key, seed=seed, max_tokens=16) for key, seed in enumerate(seeds))
    )
    assert stories[0].tokens == stories[2].tokens
    assert len({tuple(story.tokens) for story in stories}) == 3


async def test_stop_ids_end_the_output_and_are_not_part_of_it(tiny: ModelFiles) -> None:
    plain = a_request(1, temperature=0.0, max_tokens=16)
    (story,) = await ask(tiny, plain)
    stop = story.tokens[5]
    first = story.tokens.index(stop)
    (stopped,) = await ask(tiny, attrs.evolve(plain, stop_ids=(stop,)))
    assert stopped.finish is Finish.STOP
    assert stopped.stop_id == stop
    assert stopped.tokens == story.tokens[:first]


async def test_eos_ends_the_output_unless_ignored(tmp_path: Path, tiny: ModelFiles) -> None:
    request = a_request(1, temperature=0.0, max_tokens=16)
    (story,) = await ask(tiny, request)
    eos, shape = story.tokens[3], Shape()
    path = tmp_path / "eos"
    files = write_hf(path, hf_config(shape, eos_token_id=[95, eos]), random_weights(shape))
    heeded, ignored = await ask(
        files, attrs.evolve(request, ignore_eos=False), attrs.evolve(request, key=2)
    )
    assert (heeded.finish, heeded.stop_id) == (Finish.STOP, eos)
    assert heeded.tokens == story.tokens[: story.tokens.index(eos)]
    assert (ignored.finish, ignored.tokens) == (Finish.LENGTH, story.tokens)


async def test_a_turn_ends_by_the_ids_of_the_configuration_and_of_the_tokenizer(
    tmp_path: Path,
) -> None:
    shape, end = Shape(), "<|im_end|>"
    files = write_hf(tmp_path / "m", hf_config(shape, eos_token_id=0), random_weights(shape))
    tokenizer = {"added_tokens": [{"id": 7, "content": end}], "model": {"vocab": {}}}
    (files.path / "tokenizer.json").write_text(json.dumps(tokenizer))
    (files.path / "tokenizer_config.json").write_text(json.dumps({"eos_token": end}))
    stories = await ask(
        files, *(a_request(key, logit_bias={key: 100.0}, ignore_eos=False) for key in (0, 7, 8))
    )
    assert [story.finish for story in stories] == [Finish.STOP, Finish.STOP, Finish.LENGTH]
    assert [story.stop_id for story in stories[:2]] == [0, 7]


async def test_a_gguf_file_names_its_end_of_message(tmp_path: Path) -> None:
    shape, key = Shape(), "tokenizer.ggml.eom_token_id"
    files, _ = write_gguf(tmp_path / "m.gguf", shape, random_weights(shape), fields={key: 9})
    (story,) = await ask(files, a_request(1, logit_bias={9: 100.0}, ignore_eos=False))
    assert (story.finish, story.stop_id) == (Finish.STOP, 9)


async def test_min_tokens_holds_the_stop_back(tiny: ModelFiles) -> None:
    request = a_request(1, temperature=0.0, max_tokens=16, stop_ids=tuple(range(96)))
    (at_once,) = await ask(tiny, request)
    assert (at_once.tokens, at_once.finish) == ([], Finish.STOP)
    stops = tuple(range(0, 96, 2))
    later = attrs.evolve(request, key=2, stop_ids=stops, min_tokens=6)
    (story,) = await ask(tiny, later)
    assert all(token % 2 for token in story.tokens[:6])
    assert len(story.tokens) >= 6


async def test_the_context_ends_the_output(tiny: ModelFiles) -> None:
    prompts = [[5] * 2040, [5] * 2047]
    requests = [a_request(key, prompt, max_tokens=500) for key, prompt in enumerate(prompts)]
    stories = await ask(tiny, *requests)
    assert [len(story.tokens) for story in stories] == [8, 1]
    assert {story.finish for story in stories} == {Finish.LENGTH}


async def test_a_prompt_that_fills_the_context_can_be_scored_and_not_answered(
    tiny: ModelFiles,
) -> None:
    prompt = [5] * 2048
    scored, answered = await ask(
        tiny,
        a_request(1, prompt, max_tokens=0, prompt_logprobs=0),
        a_request(2, prompt, max_tokens=1),
    )
    assert (scored.finish, scored.tokens) == (Finish.LENGTH, [])
    assert answered.finish is Finish.ERROR


async def test_logprobs_only_where_asked(tiny: ModelFiles) -> None:
    shape, weights = Shape(), random_weights(Shape())
    async with running(tiny) as (engine, watch):
        engine.submit(a_request(1, temperature=0.0))
        await watch.finished(1)
        assert all(frame.logprob is None and frame.top_id is None for frame in watch.log)
        engine.submit(a_request(2, temperature=0.0, logprobs=3))
        engine.submit(a_request(3, temperature=0.0, max_tokens=20))
        engine.submit(a_request(4, temperature=0.0, logprobs=0))
        await watch.finished(2, 3, 4)
    story = watch[2]
    ids = [5, 7, 11, *story.tokens]
    logits = reference.logits(weights, shape, ids, reference.half_split)[2:-1]
    exact = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for token, logprob, top, row in zip(
        story.tokens, story.logprobs, story.tops, exact, strict=True
    ):
        best = np.argsort(-row)[:3].tolist()
        assert logprob == pytest.approx(row[token], abs=1e-3)
        assert [one for one, _ in top] == best
        assert [value for _, value in top] == pytest.approx(row[best], abs=1e-3)
    assert watch[4].logprobs == story.logprobs
    assert np.isnan(watch[3].logprobs).all()


async def test_a_long_prompt_holds_nobody_up(tiny: ModelFiles) -> None:
    async with running(tiny, step_tokens=16) as (engine, watch):
        engine.submit(a_request(1, max_tokens=1000))
        await watch.grown(1, 1)
        engine.submit(a_request(2, [5] * 2000, max_tokens=1))
        before = len(watch[1].tokens)
        await watch.finished(2)
        # 2,000 prompt tokens at 15 a step beside one decode: every step gave the stream a token.
        assert len(watch[1].tokens) - before >= 2000 // 16


async def test_abort_in_the_middle_of_a_prompt(tiny: ModelFiles) -> None:
    async with running(tiny, step_tokens=16) as (engine, watch):
        engine.submit(a_request(1, [5] * 2000))
        await watch.until(lambda: watch[1].accepted)
        engine.abort([1])
        await watch.finished(1)
        assert (watch[1].finish, watch[1].tokens) == (Finish.ABORT, [])


async def test_the_accept_row_does_not_wait_for_a_slot(tiny: ModelFiles) -> None:
    async with running(tiny, max_running=1, max_waiting=1) as (engine, watch):
        engine.submit(a_request(1, max_tokens=2000))
        await watch.grown(1, 1)
        engine.submit(a_request(2))
        engine.submit(a_request(3))
        await watch.finished(3)
        assert watch[2].accepted
        assert watch[2].cached == NOT_REPORTED
        assert not watch[2].tokens
        assert error_code(watch[3]) == "engine_overloaded"
        engine.abort([1])
        await watch.finished(2)
        assert len(watch[2].tokens) == 8


async def test_a_small_pool_shortens_the_context_and_queues(tiny: ModelFiles) -> None:
    async with running(tiny, kv_bytes=10 * PAGE_BYTES) as (engine, watch):
        for key in range(6):
            engine.submit(a_request(key, max_tokens=100))
        engine.submit(a_request(6, [5] * 160))
        await watch.finished(*range(7))
        assert [len(watch[key].tokens) for key in range(6)] == [100] * 6
        assert error_code(watch[6]) == "context_length_exceeded"


async def test_preempted_requests_say_what_they_would_have_said(tiny: ModelFiles) -> None:
    """Once each, with the same logprobs, under settings that look at all that was said before."""
    settings = {"top_p": 0.95, "repetition": 1.2, "frequency": 0.3, "presence": 0.2, "logprobs": 2}
    requests = [
        a_request(key, prompt, max_tokens=90, min_tokens=60, seed=key, stop_ids=(17,), **settings)
        for key, prompt in enumerate(PROMPTS)
    ]
    expected = await ask(tiny, *requests)
    async with running(tiny, kv_bytes=12 * PAGE_BYTES) as (engine, watch):
        for request in requests:
            engine.submit(request)
        await watch.finished(*range(8))
        counts = [frame.gauges.preemptions for frame in watch.log]
        assert counts == sorted(counts)
        assert counts[-1] >= 3
        assert watch.log[-1].gauges.pages_free == 12
        for key, story in enumerate(expected):
            assert watch[key].tokens == story.tokens
            assert (watch[key].finish, watch[key].stop_id) == (story.finish, story.stop_id)
            assert watch[key].logprobs == pytest.approx(story.logprobs, abs=1e-4)
            assert [[one for one, _ in top] for top in watch[key].tops] == [
                [one for one, _ in top] for top in story.tops
            ]


async def test_a_request_without_a_limit_leaves_room_for_the_others(tiny: ModelFiles) -> None:
    """Each might fill the pool by itself; all run at once."""
    async with running(tiny, kv_bytes=128 * PAGE_BYTES, max_running=8) as (engine, watch):
        for key in range(8):
            engine.submit(a_request(key, max_tokens=2045))
        await watch.until(lambda: all(watch[key].tokens for key in range(8)))
        assert watch.log[-1].gauges.running == 8
        assert watch.log[-1].gauges.preemptions == 0
        engine.abort(range(8))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"grammar": GrammarSpec(kind="regex", text="a+")}, "grammar"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt_logprobs": 21}, "prompt_logprobs"),
        ({"prompt_logprobs": -1}, "prompt_logprobs"),
        ({"repetition": 0.0}, "repetition"),
        ({"repetition": float("inf")}, "repetition"),
        ({"repetition": float("nan")}, "repetition"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [5, 96]}, "prompt"),
        ({"stop_ids": (96,)}, "stop_ids"),
        ({"logit_bias": {96: 1.0}}, "logit_bias"),
        ({"allowed_ids": (96,)}, "allowed_ids"),
        ({"allowed_ids": ()}, "allowed_ids"),
        ({"allowed_ids": (4,), "stop_ids": (4,), "min_tokens": 1}, "allowed token ids"),
    ],
    ids=str,
)
async def test_unsupported_requests_are_refused(
    tiny: ModelFiles, changes: dict[str, Any], named: str
) -> None:
    refused, fine = await ask(tiny, a_request(1, **changes), a_request(2))
    assert error_code(refused) == "unsupported"
    assert refused.error is not None
    assert named in refused.error.message
    assert not refused.accepted
    assert fine.finish is Finish.LENGTH


def test_the_engine_lists_no_option_that_it_refuses() -> None:
    assert Capability.GRAMMAR not in CAPABILITIES


async def test_every_listed_capability_changes_the_output(tiny: ModelFiles) -> None:
    plain = a_request(0, max_tokens=24, seed=5)
    (base,) = await ask(tiny, plain)
    changes: dict[str, dict[str, Any]] = {
        Capability.SEED: {"seed": 6},
        Capability.LOGPROBS: {"logprobs": 0},
        Capability.LOGIT_BIAS: {"logit_bias": {9: 50.0}},
        Capability.MIN_TOKENS: {"stop_ids": (base.tokens[0],), "min_tokens": 24},
        Capability.MIN_P: {"min_p": 0.9},
        Capability.PENALTIES: {"frequency": 2.0, "presence": 2.0},
        Capability.ALLOWED_IDS: {"allowed_ids": (8, 9)},
    }
    # The order of the queue is in the contract's tests, the prompt's logprobs in their own.
    assert set(changes) == CAPABILITIES - {Capability.PRIORITY, Capability.PROMPT_LOGPROBS}
    for change in changes.values():
        (story,) = await ask(tiny, attrs.evolve(plain, **change))
        assert (story.tokens, story.logprobs) != (base.tokens, base.logprobs)


async def test_one_request_cannot_poison_the_next(tiny: ModelFiles) -> None:
    """What an earlier owner left in a page, NaN included, is not seen by the next."""
    # Two page tables of one length, one filled further: the batch reads the other's empty end.
    longer = a_request(1, PROMPTS[3], max_tokens=20)
    shorter = a_request(2, PROMPTS[3][:20], max_tokens=20)
    expected = await ask(tiny, longer, shorter)
    async with running(tiny) as (engine, watch):
        assert engine._engine is not None
        runner = engine._engine.runner
        assert isinstance(runner, Runner)
        runner.cache._by_page[:, :, : runner.cache.padding_page] = np.nan
        engine.submit(longer)
        engine.submit(shorter)
        await watch.finished(1, 2)
        assert [watch[key].tokens for key in (1, 2)] == [story.tokens for story in expected]


async def test_stop_with_grace_lets_requests_end(tiny: ModelFiles) -> None:
    async with running(tiny) as (engine, watch):
        engine.submit(a_request(1, max_tokens=200))
        await watch.grown(1, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.stop, 60.0)
            await watch.end()
        assert (len(watch[1].tokens), watch[1].finish) == (200, Finish.LENGTH)


async def test_gauges_tell_the_load(tiny: ModelFiles) -> None:
    async with running(tiny, max_running=2) as (engine, watch):
        for key in range(3):
            engine.submit(a_request(key, max_tokens=64))
        await watch.finished(0, 1, 2)
        loads = [(frame.gauges.running, frame.gauges.waiting) for frame in watch.log]
        assert (2, 1) in loads
        assert loads[-1] == (0, 0)
        assert watch.log[-1].gauges.pages_free == 2 * 128
        assert max(frame.gauges.batch_tokens for frame in watch.log) >= 2
        assert all(a.t_ns <= b.t_ns for a, b in itertools.pairwise(watch.log))


async def test_frames_have_one_consumer(tiny: ModelFiles) -> None:
    async with running(tiny) as (engine, _):
        with pytest.raises(RuntimeError, match="one consumer"):
            engine.frames()


async def test_frames_before_start_are_an_error(tiny: ModelFiles) -> None:
    with pytest.raises(RuntimeError, match="not started"):
        TorchEngine(EngineOptions(files=tiny)).frames()
    await TorchEngine(EngineOptions(files=tiny)).stop(1)


def error_code(story: Story) -> str | None:
    return None if story.error is None else story.error.code
