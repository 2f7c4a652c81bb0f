"""Where a form begins: behind the thought, wherever the prompt has left it."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from antiphon.engines.port import Capability, EngineInfo, GrammarSpec
from antiphon.errors import InvalidRequest
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.requests.structured import Constraint
from antiphon.runs.answers import chat_answer
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.forms import grammar_spec
from antiphon.runs.plan import RunPlan, Sampling, TokenLimit
from known_replies import FILES
from responsory.segments import PLAIN, Spec, Tool, Tools, answer_written, family
from responsory.segments.written import OwnGrammar, as_json

PROMPTER = TextPrompter.load(FILES)
CONSTRAINT = Constraint(kind="json_schema", text="{}", param="json_schema", strict=True)
INFO = EngineInfo(
    name="torch", model_id="m", vocab_size=768, context_length=512, eos_ids=frozenset({2}),
    max_running=1, page_size=16, kv_pages=32, dtype="float32", device="cpu",
    capabilities=frozenset({Capability.FORCED_CALLS}),
)  # fmt: skip


def form(prompt: str, thinks: Spec, constraint: Constraint | None = CONSTRAINT, **told: Any) -> Any:
    ids: array[int] = PROMPTER.text(prompt, add_special_tokens=False)
    prompter = told.pop("prompter", PROMPTER)
    plan = RunPlan(
        tail="t",
        model=ServedModel(id="m", created=0, prompter=prompter, info=INFO),
        prompts=[ids],
        prompt_param="messages",
        limit=TokenLimit(tokens=8, param="max_tokens", cut_to_fit=False),
        sampling=Sampling(seed=1, constraint=constraint),
        thinks=thinks,
        **told,
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


# --- calls ---------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = Tool("get", parameters=SCHEMA)
STRICT = Tool("get", parameters=SCHEMA, strict=True, place="tools[0].parameters")
CUSTOM = Tool("note", "custom", grammar=OwnGrammar("regex", "a+", "tools[0].format"))
BOTH = family("think+hermes")


def calling(
    *tools: Tool,
    least: int = 0,
    only: tuple[str, ...] | None = None,
    parallel: bool = True,
    format: Spec = BOTH,  # noqa: A002 - the name of the field
    prompt: str = ASKED,
    thinks: Spec = BOTH,
    **told: Any,
) -> Any:
    return form(
        prompt,
        thinks,
        told.pop("constraint", None),
        format=format,
        calls=True,
        callable=tools,
        tools=Tools(tools, only=only),
        calls_least=least,
        parallel_calls=parallel,
        **told,
    )


def test_tools_that_are_free_are_no_form() -> None:
    assert calling(TOOL) is None
    assert calling(TOOL, Tool("note", "custom")) is None


@pytest.mark.parametrize("tool", [STRICT, CUSTOM], ids=["strict", "grammar"])
def test_a_strict_tool_is_held_to_its_schema_wherever_it_is_called(tool: Tool) -> None:
    spec = calling(tool)
    assert spec.kind == "calls"
    # The thought is text like any other there, so a call in it is right as well.
    assert (spec.opener, spec.closer) == ("", "")
    assert json.loads(spec.text) == as_json(answer_written(BOTH, [tool], forced=False))


def test_calls_that_must_come_stand_behind_the_thought() -> None:
    spec = calling(TOOL, least=1, parallel=False)
    assert (spec.kind, spec.opener, spec.closer) == ("calls", "<think>", "</think>")
    assert json.loads(spec.barred) == ["<tool_call>"]
    assert json.loads(spec.text) == as_json(answer_written(BOTH, [TOOL], forced=True, most=1))


def test_only_some_of_the_tools() -> None:
    assert json.loads(calling(TOOL, only=("get",)).text) == as_json(
        answer_written(BOTH, [TOOL], forced=False)
    )


def test_a_call_with_an_opener_of_the_beginning_alone_stands_behind_the_thought() -> None:
    bare = family("think+llama3_json")
    spec = calling(STRICT, format=bare, thinks=bare)
    assert (spec.opener, spec.closer) == ("<think>", "</think>")


@pytest.mark.parametrize("kind", ["json_schema", "json_object", "regex", "lark", "gbnf", "choice"])
def test_beside_tools_a_constraint_is_what_the_answer_is_without_a_call(kind: Any) -> None:
    text = {"json_schema": "{}", "choice": '["a"]'}.get(kind, "a")
    constraint = Constraint(kind=kind, text=text, param="response_format")
    spec = calling(TOOL, constraint=constraint)
    assert spec.kind == "calls"
    assert json.loads(spec.text)[0] == "OneOf"
    assert spec.closer == "</think>"


def test_a_budget_alone_holds_the_thought_alone() -> None:
    spec = form(ASKED, THINK, None, thought_budget=5)
    assert (spec.kind, spec.text, spec.budget) == ("any", "", 5)
    assert (spec.opener, spec.closer) == ("<think>", "</think>")
    assert form(ASKED + "<think>\n\n</think>", THINK, None, thought_budget=5) is None
    assert calling(STRICT, thought_budget=5).closer == "</think>"


def test_a_schema_that_the_models_form_cannot_keep_is_refused_by_its_place() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]}
    strict = Tool("get", parameters=schema, strict=True, place="tools[0].function.parameters")
    with pytest.raises(InvalidRequest, match="not") as refused:
        calling(strict, format=family("pythonic"))
    assert refused.value.param == "tools[0].function.parameters"


@pytest.mark.parametrize("constraint", [CONSTRAINT, None])
@pytest.mark.parametrize("reading", [family("hermes"), PLAIN], ids=["hermes", "plain"])
def test_a_recording_plays_as_it_is(constraint: Constraint | None, reading: Spec) -> None:
    """It is held to nothing, be there a form of calls that it could be held to or not."""
    recording = ReplayPrompter(3, "opaque")
    held = form("", PLAIN, constraint, prompter=recording, format=reading, calls=True,
                tools=Tools((STRICT,)), callable=(STRICT,), calls_least=1)  # fmt: skip
    assert held is None
