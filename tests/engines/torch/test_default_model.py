"""The default model says what it should, from its GGUF file, alone and in company."""

from __future__ import annotations

from array import array

import pytest
import torch

from antiphon.engines.port import Finish
from antiphon.models.files import ModelFiles
from engines.torch.harness import engine_logits, loaded, running
from engines.torch.requests import a_request

# "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face
# <|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
FRANCE = array(
    "I",
    [
        1,
        9690,
        198,
        2683,
        359,
        253,
        5356,
        5646,
        11173,
        3365,
        3511,
        308,
        34519,
        28,
        7018,
        411,
        407,
        19712,
        8182,
        2,
        198,
        1,
        4093,
        198,
        1780,
        314,
        260,
        3575,
        282,
        4649,
        47,
        2,
        198,
        1,
        520,
        9531,
        198,
    ],
)
# "The capital of France is Paris."
PARIS = [504, 3575, 282, 4649, 314, 7042, 30]
EOS = 2


async def test_the_capital_of_france(default_model: ModelFiles) -> None:
    async with running(default_model) as (engine, watch):
        request = a_request(1, FRANCE, max_tokens=20, temperature=0.0, ignore_eos=False)
        engine.submit(request)
        await watch.finished(1)
        assert watch[1].tokens == PARIS
        assert (watch[1].finish, watch[1].stop_id) == (Finish.STOP, EOS)


async def test_bfloat16_finds_the_answer_as_likely_as_float32(default_model: ModelFiles) -> None:
    """Token by token. Which comes first is no question for bfloat16: the answer leads by 0.08 nats
    at its first token, which is within the rounding of a logit of 25."""
    scored = {}
    for dtype in ("float32", "bfloat16"):
        async with running(default_model, dtype=dtype) as (engine, watch):
            whole = array("I", [*FRANCE, *PARIS, EOS])
            engine.submit(a_request(1, whole, max_tokens=0, prompt_logprobs=5))
            await watch.finished(1)
            scored[dtype] = watch[1].prompt_lp
    exact, rounded = scored["float32"], scored["bfloat16"]
    assert exact is not None
    assert rounded is not None
    answer = slice(len(FRANCE) - 1, None)
    assert list(exact.top_id[answer.start * 5 :: 5]) == [*PARIS, EOS]
    assert list(rounded.logprob[answer]) == pytest.approx(list(exact.logprob[answer]), abs=0.3)


def test_four_bits_a_weight_are_as_good_as_bfloat16(default_model: ModelFiles) -> None:
    """As a decode reads them, one by one. The file has four bits, so none are lost: what is left is
    the rounding of scales and of the head, a quarter more than bfloat16's own error (measured)."""
    text = [*FRANCE, *PARIS]
    exact = torch.from_numpy(engine_logits(loaded(default_model), text, [len(text)]))
    error = {}
    for weights in ("float", "auto"):
        engine = loaded(default_model, dtype="bfloat16", weights=weights)
        one_by_one = torch.from_numpy(engine_logits(engine, text, [1] * len(text)))
        error[weights] = (one_by_one - exact).pow(2).mean().sqrt()
        assert (one_by_one.argmax(-1) == exact.argmax(-1)).double().mean() > 0.9
    assert error["auto"] < 2 * error["float"]
