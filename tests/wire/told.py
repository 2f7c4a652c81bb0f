"""An application over an engine that keeps what it is asked and says what a test wants said.

The model has a real vocabulary and a template that writes down everything it is given, so a test
reads in the engine's prompt what reached the model.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
from quart.typing import TestClientProtocol
from tokenizers import processors

from antiphon.api.service import Service
from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import (
    Capability,
    EngineError,
    EngineInfo,
    EngineRequest,
    Finish,
    Gauges,
    PromptLogprobs,
    StepFrame,
)
from antiphon.prompting.prompter import TextPrompter
from antiphon.runs.catalogue import ServedModel
from prompting import vocabularies
from responsory.segments.formats import family

CAPABILITIES = frozenset(
    value for name, value in vars(Capability).items() if not name.startswith("_")
)
CONTEXT = 600
FAILURE = EngineError(code="engine_failed", message="the engine's own words")
TEMPLATE = """\
{%- for m in messages -%}
<{{ m.role }}:{{ m.content }}
{%- if m.reasoning_content %}|thought={{ m.reasoning_content }}{% endif -%}
{%- if m.tool_calls %}|calls={{ m.tool_calls | tojson }}{% endif -%}
{%- if m.phase %}|phase={{ m.phase }}{% endif -%}
>
{%- endfor -%}
{%- if tools %}|tools={{ tools | tojson }}{% endif -%}
{%- if documents %}|documents={{ documents | tojson }}{% endif -%}
{%- if enable_thinking is defined %}|enable_thinking={{ enable_thinking }}{% endif -%}
{%- if thinking is defined %}|thinking={{ thinking }}{% endif -%}
{%- if reasoning_effort is defined %}|effort={{ reasoning_effort }}{% endif -%}
{%- if verbosity is defined %}|verbosity={{ verbosity }}{% endif -%}
{%- if colour is defined %}|colour={{ colour }}{% endif -%}
{%- if add_generation_prompt %}|go{% endif -%}
"""
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
PATHS = {"chat": CHAT, "completions": COMPLETIONS, "responses": RESPONSES}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "completions": {"model": "m", "prompt": "hi"},
    "responses": {"model": "m", "input": "hi"},
}
BOS = "<|endoftext|>"


class Prompter(TextPrompter):
    """Of a model whose calls can be told from its text, which no loaded model is yet."""

    @property
    def takes_tools(self) -> bool:
        return True


class TellingEngine:
    """Every request is answered at once with the tokens of ``says``, ``grouped`` a step."""

    def __init__(self, info: EngineInfo) -> None:
        self.info = info
        self.requests: list[EngineRequest] = []
        self.aborted: list[int] = []
        self.says: Sequence[int] = ()
        self.grouped = 1
        self.fails = False
        self._send, self._receive = anyio.create_memory_object_stream[StepFrame](100_000)
        self._step = 0

    async def start(self) -> EngineInfo:
        return self.info

    def submit(self, request: EngineRequest) -> None:
        self.requests.append(request)
        self._row(request, cached=0, **self._prompt_row(request))
        said = self.says[: request.max_tokens]
        for start in range(0, len(said), self.grouped):
            self._row(request, said[start : start + self.grouped])
        if self.fails:
            self._row(request, finish=Finish.ERROR, error=FAILURE)
        else:
            cut = len(said) < len(self.says)
            self._row(request, finish=Finish.LENGTH if cut else Finish.STOP)

    def _prompt_row(self, request: EngineRequest) -> dict[str, Any]:
        if request.prompt_logprobs is None:
            return {}
        after, most = request.prompt[1:], min(request.prompt_logprobs, 1)
        logprobs = PromptLogprobs(
            logprob=array("f", [-1.0] * len(after)),
            top_n=most,
            top_id=after[: len(after) * most],
            top_lp=array("f", [-1.0] * len(after) * most),
        )
        return {"prompt_lp": logprobs}

    def _row(self, request: EngineRequest, tokens: Sequence[int] = (), **row: Any) -> None:
        self._step += 1
        builder = FrameBuilder(self._step, top_n=request.logprobs or 0)
        if tokens and request.logprobs is not None:
            row["logprobs"] = [-0.5] * len(tokens)
            row["top"] = [[(token, -0.5), (1, -2.0)][: request.logprobs] for token in tokens]
        builder.row(request.key, tokens, **row)
        self._send.send_nowait(builder.build(self._step, Gauges()))

    def abort(self, keys: Sequence[int]) -> None:
        self.aborted += keys

    async def frames(self) -> AsyncIterator[StepFrame]:
        async with self._receive:
            async for frame in self._receive:
                yield frame

    async def stop(self, grace_s: float) -> None:
        self._send.close()


class Told:
    """The application, and what its engine was asked."""

    def __init__(
        self,
        engine: TellingEngine,
        client: TestClientProtocol,
        prompter: TextPrompter,
        service: Service,
    ) -> None:
        self.engine = engine
        self.client = client
        self.prompter = prompter
        self.service = service

    def say(self, text: str) -> None:
        """What the model says from now on."""
        self.engine.says = self.prompter.text(text, add_special_tokens=False).tolist()

    async def post(
        self,
        endpoint: str,
        status: int = 200,
        *,
        says: str = "Hello",
        grouped: int = 1,
        fails: bool = False,
        **fields: Any,
    ) -> Any:
        """The answer to a sound request with these fields besides; None leaves one out."""
        self.engine.requests.clear()
        self.engine.aborted.clear()
        self.engine.grouped, self.engine.fails = grouped, fails
        self.say(says)
        body = {k: v for k, v in {**BODIES[endpoint], **fields}.items() if v is not None}
        response = await self.client.post(PATHS[endpoint], json=body)
        data = await response.get_data(as_text=True)
        assert response.status_code == status, data
        self.headers = response.headers
        return data if body.get("stream") and status == 200 else json.loads(str(data))

    async def asked(self, endpoint: str, **fields: Any) -> EngineRequest:
        """The first engine request of a call."""
        await self.post(endpoint, **fields)
        return self.engine.requests[0]

    async def prompt(self, endpoint: str, **fields: Any) -> str:
        """The text of the prompt that the engine got."""
        return self.prompter.decode((await self.asked(endpoint, **fields)).prompt.tolist())

    async def refused(self, endpoint: str, **fields: Any) -> tuple[str | None, str]:
        """(param, code) of the 400 that the fields bring; the engine hears of nothing."""
        body = await self.post(endpoint, 400, **fields)
        assert self.engine.requests == []
        return body["error"]["param"], body["error"]["code"]


async def told(
    folder: Path,
    *,
    form: str = "think+hermes",
    template: str = TEMPLATE,
    without: frozenset[str] = frozenset(),
    markers: Sequence[str] = (),
    **settings: Any,
) -> AsyncIterator[Told]:
    """``form``: the family of the model. ``without``: capabilities that the engine lacks.
    ``markers``: control tokens beside the usual ones."""
    vocabulary = vocabularies.train_byte_level(vocabularies.smollm_split())
    vocabulary.add_special_tokens(list(markers))
    vocabulary.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, vocabulary.token_to_id(BOS))]
    )
    files = vocabularies.write_folder(folder, vocabulary, chat_template=template)
    info = EngineInfo(
        name="telling",
        model_id="m",
        vocab_size=vocabulary.get_vocab_size(),
        context_length=CONTEXT,
        eos_ids=frozenset(),
        max_running=8,
        page_size=16,
        kv_pages=64,
        dtype="none",
        device="none",
        capabilities=CAPABILITIES - without,
    )
    engine = TellingEngine(info)
    prompter = Prompter.load(files)
    model = ServedModel(
        id="m",
        created=1,
        prompter=prompter,
        info=info,
        format=family(form),
        format_of_calls=family(form, reasoning=False),
    )
    service = make_service(engine, [model], Config(**settings))
    async with running(service):
        yield Told(engine, make_app(service).test_client(), prompter, service)
