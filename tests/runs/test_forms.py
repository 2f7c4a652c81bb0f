"""Where a form begins: behind the thought, wherever the prompt has left it."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from antiphon.engines.port import EngineInfo, GrammarSpec
from antiphon.prompting.prompter import TextPrompter
from antiphon.requests.structured import Constraint
from antiphon.runs.answers import chat_answer
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.forms import grammar_spec
from antiphon.runs.plan import RunPlan, Sampling, TokenLimit
from known_replies import FILES
from responsory.segments import PLAIN, Spec, family

PROMPTER = TextPrompter.load(FILES)
CONSTRAINT = Constraint(kind="json_schema", text="{}", param="json_schema", strict=True)
INFO = EngineInfo(
    name="torch", model_id="m", vocab_size=768, context_length=512, eos_ids=frozenset({2}),
    max_running=1, page_size=16, kv_pages=32, dtype="float32", device="cpu",
    capabilities=frozenset(),
)  # fmt: skip


def form(prompt: str, thinks: Spec, constraint: Constraint | None = CONSTRAINT) -> Any:
    ids: array[int] = PROMPTER.text(prompt, add_special_tokens=False)
    plan = RunPlan(
        tail="t",
        model=ServedModel(id="m", created=0, prompter=PROMPTER, info=INFO),
        prompts=[ids],
        prompt_param="messages",
        limit=TokenLimit(tokens=8, param="max_tokens", cut_to_fit=False),
        sampling=Sampling(seed=1, constraint=constraint),
        thinks=thinks,
        echo={"model": "m"},
        answer=chat_answer(stream=False, choices=1, include_usage=False, logprobs=False),
    )
    return grammar_spec(plan, ids)


ASKED = "<|im_start|>assistant\n"
THINK, PREFILLED = family("think"), family("think_prefilled")


@pytest.mark.parametrize(
    ("prompt", "thinks", "opener", "closer"),
    [
        (ASKED, PLAIN, "", ""),
        (ASKED, THINK, "<think>", "</think>"),
        (ASKED, family("mistral_think"), "[THINK]", "[/THINK]"),
        (ASKED, family("think+hermes"), "<think>", "</think>"),
        (ASKED + "<think>\n", THINK, "", "</think>"),
        (ASKED + "<think>\n", PREFILLED, "", "</think>"),
        (ASKED + "<think>\n\n</think>\n\n", THINK, "", ""),
        (ASKED + "<think>\n\n</think>\n\n", PREFILLED, "", ""),
        ("<think>a</think>" + ASKED, THINK, "<think>", "</think>"),
    ],
)
def test_it_begins_behind_the_thought(prompt: str, thinks: Spec, opener: str, closer: str) -> None:
    assert form(prompt, thinks) == GrammarSpec(
        kind="json_schema", text="{}", strict=True, opener=opener, closer=closer
    )


def test_no_constraint_is_no_form() -> None:
    assert form(ASKED, THINK, None) is None
