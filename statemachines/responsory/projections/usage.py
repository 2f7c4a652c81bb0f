"""Token counts in the shapes of the public APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from responsory.values import Usage


def response_usage(usage: Usage) -> dict[str, Any]:
    """``usage`` of a Responses resource."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def call_usage(choices: Mapping[int, Usage], per_prompt: int) -> dict[str, Any]:
    """``usage`` of a chat or completions call, from the usage of each choice by index.

    ``per_prompt`` choices share a prompt, and the first of them counts it; output is summed.
    """
    prompts = [usage for choice, usage in choices.items() if choice % per_prompt == 0]
    prompt_tokens = sum(usage.input_tokens for usage in prompts)
    completion_tokens = sum(usage.output_tokens for usage in choices.values())
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in prompts)},
        "completion_tokens_details": {
            "reasoning_tokens": sum(usage.reasoning_tokens for usage in choices.values())
        },
    }


class RunningUsage:
    """The counts of a call while it runs: ``prompts`` has the tokens of each prompt."""

    __slots__ = ("_outputs", "_prompt", "_total")

    def __init__(self, prompts: Sequence[int]) -> None:
        self._prompt = sum(prompts)
        self._outputs: dict[int, int] = {}
        self._total = 0

    def take(self, choice: int, output: int) -> None:
        """The choice has ``output`` tokens so far."""
        self._total += output - self._outputs.get(choice, 0)
        self._outputs[choice] = output

    def shown(self) -> dict[str, int]:
        """``usage`` of a chunk."""
        return {
            "prompt_tokens": self._prompt,
            "completion_tokens": self._total,
            "total_tokens": self._prompt + self._total,
        }
