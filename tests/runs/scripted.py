"""An engine that does what a test says: its frames are written by hand."""

from __future__ import annotations

import json
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import EngineInfo, EngineRequest, Gauges, StepFrame
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.answers import Answer, chat_answer
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.fanout import Fanout
from antiphon.runs.plan import RunPlan, Sampling, TokenLimit
from antiphon.runs.run import Run

NOW = 1_764_500_000


class ScriptedEngine:
    """Keeps what it is told; ``frames`` gives the frames put into ``script``."""

    def __init__(self) -> None:
        self.submitted: list[EngineRequest] = []
        self.aborted: list[int] = []
        self.script: list[StepFrame] = []
        self.info = EngineInfo(
            name="scripted",
            model_id="m",
            vocab_size=256,
            context_length=100,
            eos_ids=frozenset(),
            max_running=8,
            page_size=16,
            kv_pages=64,
            dtype="none",
            device="none",
            capabilities=frozenset({"seed", "logprobs", "prompt_logprobs", "priority"}),
        )

    async def start(self) -> EngineInfo:
        return self.info

    def submit(self, request: EngineRequest) -> None:
        self.submitted.append(request)

    def abort(self, keys: Sequence[int]) -> None:
        self.aborted.extend(keys)

    async def frames(self) -> AsyncIterator[StepFrame]:
        for frame in self.script:
            yield frame

    async def stop(self, grace_s: float) -> None:
        return None


class Stage:
    """A fanout over a scripted engine, and short names for what tests do with both."""

    def __init__(self, tokenizer: Literal["bytes", "opaque"] = "bytes") -> None:
        self.engine = ScriptedEngine()
        self.fanout = Fanout(self.engine, wall_s=lambda: NOW, monotonic_ns=lambda: 7)
        self.model = ServedModel(
            id="m",
            created=NOW,
            prompter=ReplayPrompter(5, tokenizer),
            info=self.engine.info,
        )
        self._step = 0

    def plan(self, answer: Answer | None = None, **fields: object) -> RunPlan:
        defaults: dict[str, object] = {
            "tail": "r1",
            "model": self.model,
            "prompts": [array("I", [0] * 5)],
            "prompt_param": "messages",
            "limit": TokenLimit(tokens=None, param="max_tokens", cut_to_fit=False),
            "sampling": Sampling(seed=3),
            "echo": {"model": "m"},
            "answer": answer or stream(),
        }
        return RunPlan(**{**defaults, **fields})  # type: ignore[arg-type]  # a test's shorthand

    def open(self, answer: Answer | None = None, **fields: object) -> Run:
        return self.fanout.open(self.plan(answer, **fields))

    def step(self, rows: Callable[[FrameBuilder], None]) -> None:
        """One frame with the rows that ``rows`` adds."""
        self._step += 1
        builder = FrameBuilder(self._step)
        rows(builder)
        self.fanout.step(builder.build(self._step, Gauges()))

    def accept(self, run: Run) -> None:
        """One frame with the accept row of every choice."""

        def rows(frame: FrameBuilder) -> None:
            for choice in run.choices:
                frame.row(choice.key)

        self.step(rows)


def stream(choices: int = 1, *, include_usage: bool = False, logprobs: bool = False) -> Answer:
    """A chat stream."""
    return chat_answer(stream=True, choices=choices, include_usage=include_usage, logprobs=logprobs)


def unary(choices: int = 1) -> Answer:
    """A chat body."""
    return chat_answer(stream=False, choices=choices, include_usage=False, logprobs=False)


def chunks(run: Run) -> list[dict[str, Any]]:
    assert run.frames[-1] == b"data: [DONE]\n\n"
    return [json.loads(frame[6:]) for frame in run.frames[:-1]]


def content(run: Run, choice: int = 0) -> str:
    return "".join(
        part["delta"].get("content") or ""
        for chunk in chunks(run)
        for part in chunk.get("choices", [])
        if part["index"] == choice
    )


def body(run: Run) -> dict[str, Any]:
    return run.plan.answer.body(run.logs)
