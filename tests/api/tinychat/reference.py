"""The same model by other code: what the next tokens are, and how likely.

This is the decoder that the model was trained with, which shares no line with the engine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import torch
from fixtures.models.train_tinychat.export import named
from fixtures.models.train_tinychat.model import Sizes, TinyChat
from safetensors.torch import load_file

from known_replies import FOLDER

CLEAR = 0.01
"""Logits by which a token must lead for the two to agree which comes first."""

Steer = Callable[[torch.Tensor, Sequence[int]], torch.Tensor]
"""(logits [V], the output so far) to the logits that decide."""


@cache
def model() -> TinyChat:
    """In float32."""
    result = TinyChat(Sizes(768))
    weights = load_file(FOLDER / "model.safetensors")
    assert weights.keys() == named(result).keys()
    with torch.no_grad():
        for name, parameter in named(result).items():
            parameter.copy_(weights[name])
    return result


@torch.no_grad()
def logprobs(ids: Sequence[int]) -> torch.Tensor:
    """[T, V]: of what follows each of the ids."""
    logits: torch.Tensor = model()(torch.tensor([list(ids)]))[0]
    return logits.double().log_softmax(-1)


@torch.no_grad()
def greedy(prompt: Sequence[int], count: int, steer: Steer = lambda logits, _: logits) -> list[int]:
    """``count`` tokens after the prompt, the model's own end included like any other."""
    output: list[int] = []
    for _ in range(count):
        logits = model()(torch.tensor([[*prompt, *output]]))[0, -1]
        best = steer(logits.double(), output).topk(2)
        assert best.values[0] - best.values[1] > CLEAR, f"too close a call after {output}"
        output.append(int(best.indices[0]))
    return output


def penalised(presence: float = 0.0, frequency: float = 0.0) -> Steer:
    """OpenAI's two penalties, on what the output holds already."""

    def steer(logits: torch.Tensor, output: Sequence[int]) -> torch.Tensor:
        logits = logits.clone()
        for token, times in Counter(output).items():
            logits[token] -= presence + frequency * times
        return logits

    return steer


def repeated_less(penalty: float, prompt: Sequence[int]) -> Steer:
    """The repetition penalty of CTRL, on prompt and output (Keskar et al. 2019)."""

    def steer(logits: torch.Tensor, output: Sequence[int]) -> torch.Tensor:
        seen = sorted({*prompt, *output})
        logits = logits.clone()
        logits[seen] = torch.where(logits[seen] > 0, logits[seen] / penalty, logits[seen] * penalty)
        return logits

    return steer


def biased(bias: dict[int, float]) -> Steer:
    """Numbers that are added."""

    def steer(logits: torch.Tensor, _output: Sequence[int]) -> torch.Tensor:
        logits = logits.clone()
        for token, value in bias.items():
            logits[token] += value
        return logits

    return steer


def among(allowed: Sequence[int]) -> Steer:
    """Nothing but these."""

    def steer(logits: torch.Tensor, _output: Sequence[int]) -> torch.Tensor:
        kept = torch.full_like(logits, float("-inf"))
        kept[list(allowed)] = logits[list(allowed)]
        return kept

    return steer
