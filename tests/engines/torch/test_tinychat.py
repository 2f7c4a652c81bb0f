"""Every reply of the fixture model, word for word, whatever way the engine takes to it.

The next token leads by so much that neither the type of the weights nor the company of others can
change it: a reply that differs is a mistake in the scheduler, the pages or the decoder.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from antiphon.engines.port import Finish
from antiphon.prompting.prompter import TextPrompter
from engines.frame_watch import FrameWatch
from engines.torch.harness import running
from engines.torch.requests import a_request
from known_replies import FILES, FOLDER, REPLIES

MANIFEST = json.loads((FOLDER / "manifest.json").read_bytes())
LIMIT = 400
"""Tokens; the longest reply is shorter."""
PAGE_BYTES = 3 * 2 * 16 * 32 * 4
"""A page of float32: 3 layers, keys and values, 16 tokens, a head of 32."""
TYPES = ("float32", "bfloat16")


@pytest.fixture(scope="module")
def prompter() -> TextPrompter:
    return TextPrompter.load(FILES)


@pytest.fixture(scope="module")
def prompts(prompter: TextPrompter) -> Mapping[str, array[int]]:
    """name -> ids, through the model's template."""
    return {
        name: prompter.chat(known.messages, tools=known.tools, extra=known.template_kwargs)
        for name, known in REPLIES.items()
    }


@pytest.fixture(scope="module")
def expected(prompter: TextPrompter) -> Mapping[str, list[int]]:
    """name -> ids of the reply, without the token that ends it."""
    return {
        name: list(prompter.encode(known.reply, add_special_tokens=False))
        for name, known in REPLIES.items()
    }


def test_the_files_are_those_of_the_manifest() -> None:
    named = MANIFEST["sha256"]
    found = {path.name for path in FOLDER.iterdir()} - {"manifest.json", "README.md"}
    assert found == set(named)
    for name, digest in named.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000
    assert len(REPLIES) == MANIFEST["replies"] == 116
    assert MANIFEST["least_margin"] >= 3


def test_the_template_writes_the_prompts_that_were_learnt(
    prompter: TextPrompter, prompts: Mapping[str, array[int]]
) -> None:
    for name, known in REPLIES.items():
        assert prompts[name] == prompter.encode(known.prompt, add_special_tokens=False), name


def test_characters_of_replies_span_tokens(
    prompter: TextPrompter, expected: Mapping[str, list[int]]
) -> None:
    """The fixture is worth little for text in pieces if every token is whole characters."""
    split = [
        name for name, ids in expected.items() if any("�" in one for one in prompter.spell(ids))
    ]
    assert {REPLIES[name].kind for name in split} >= {"unicode", "turns"}


def submitted(key: int, prompt: array[int], **changes: Any) -> Any:
    """A greedy request that ends as the model ends it."""
    settings = {"max_tokens": LIMIT, "ignore_eos": False, "temperature": 0.0, **changes}
    return a_request(key, prompt, **settings)


def wrong(
    watch: FrameWatch, names: Iterable[str], expected: Mapping[str, list[int]], first_key: int = 0
) -> list[str]:
    """The names, in order of their keys, whose reply or end is another than it should be."""
    return [
        name
        for key, name in enumerate(names, first_key)
        if watch[key].tokens != expected[name] or watch[key].finish is not Finish.STOP
    ]


async def all_at_once(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]], **settings: Any
) -> FrameWatch:
    """Submits all, and holds every reply against the script."""
    async with running(FILES, max_waiting=len(prompts), weights="float", **settings) as (
        engine,
        watch,
    ):
        for key, prompt in enumerate(prompts.values()):
            engine.submit(submitted(key, prompt))
        await watch.finished(*range(len(prompts)))
    assert wrong(watch, prompts, expected) == []
    return watch


@pytest.mark.parametrize("dtype", TYPES)
async def test_one_at_a_time(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]], dtype: str
) -> None:
    await all_at_once(prompts, expected, dtype=dtype, max_running=1)


@pytest.mark.parametrize("prefix_cache", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
async def test_all_at_once(
    prompts: Mapping[str, array[int]],
    expected: Mapping[str, list[int]],
    dtype: str,
    prefix_cache: bool,
) -> None:
    watch = await all_at_once(
        prompts,
        expected,
        dtype=dtype,
        max_running=32,
        step_tokens=256,
        prefix_cache=prefix_cache,
    )
    assert max(frame.gauges.running for frame in watch.log) == 32


@pytest.mark.parametrize("prefix_cache", [True, False])
async def test_asked_again(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]], prefix_cache: bool
) -> None:
    """The whole pages of a prompt are found the second time, but never its last token; and what is
    found is worth as much as what is read."""
    names = list(prompts)[::3]
    settings = {"max_running": 8, "max_waiting": len(names), "prefix_cache": prefix_cache}
    async with running(FILES, weights="float", **settings) as (engine, watch):
        for first_key in (0, len(names)):
            for key, name in enumerate(names, first_key):
                engine.submit(submitted(key, prompts[name]))
            await watch.finished(*range(first_key, first_key + len(names)))
            assert wrong(watch, names, expected, first_key) == []
    again = [watch[key].cached for key in range(len(names), 2 * len(names))]
    whole = [(len(prompts[name]) - 1) // 16 * 16 for name in names]
    assert again == (whole if prefix_cache else [0] * len(names))


@pytest.mark.parametrize("weights", ["int8", "int4"])
async def test_rounded_weights_know_them_as_well(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]], weights: str
) -> None:
    """The margins are wide enough for 8 bits a weight, and for 4."""
    names = list(prompts)
    settings = {"max_running": 8, "max_waiting": len(names), "weights": weights}
    async with running(FILES, **settings) as (engine, watch):
        for key, name in enumerate(names):
            engine.submit(submitted(key, prompts[name]))
        await watch.finished(*range(len(names)))
    assert wrong(watch, names, expected) == []


async def test_prompts_in_pieces_beside_those_that_speak(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]]
) -> None:
    await all_at_once(prompts, expected, max_running=8, step_tokens=16)


async def test_pre_empted_again_and_again(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]]
) -> None:
    longest = max(len(prompts[name]) + len(expected[name]) + 1 for name in prompts)
    pages = -(-longest // 16) + 4
    watch = await all_at_once(
        prompts, expected, max_running=16, step_tokens=64, kv_bytes=pages * PAGE_BYTES
    )
    assert watch.log[-1].gauges.preemptions > 0


@pytest.mark.parametrize("seed", [0, 7])
async def test_a_seed_that_draws_what_is_likely_draws_the_same(
    prompts: Mapping[str, array[int]], expected: Mapping[str, list[int]], seed: int
) -> None:
    """Draws at a temperature that leaves the script no rival, through the sampler's whole way."""
    names = [name for name, known in REPLIES.items() if known.kind in ("chat", "unicode")]
    async with running(FILES, weights="float", max_running=8, max_waiting=len(names)) as (
        engine,
        watch,
    ):
        for key, name in enumerate(names):
            request = submitted(key, prompts[name], temperature=0.1, top_k=20, seed=seed)
            engine.submit(request)
        await watch.finished(*range(len(names)))
    assert wrong(watch, names, expected) == []
