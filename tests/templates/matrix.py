"""Real chat templates × conversations: each renders, or is refused in words, and nothing else.

``python -m templates.matrix FILE`` with the folder of the tests on the path; FILE has the
templates, as ``dump.mjs`` prints them. Every conversation goes through the real endpoints of chat
and of Responses, which must give the same prompt, and through the template code of
``transformers``, which must write the same text of the same messages. Then the templates alone are
given messages that no request becomes.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anyio
from quart.typing import TestClientProtocol

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.engines.port import EngineInfo
from antiphon.errors import StartupError
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import load_tokenizer
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.model_formats import formats_of
from known_replies import FILES
from templates.bare import BARE, try_bare
from templates.conversations import CONVERSATIONS, Conversation
from templates.peer import MARKS, Asked, by_transformers, difference, in_form
from templates.table import Table, reason
from wire.told import CAPABILITIES, PATHS, TellingEngine

HANGS = 60
"""Seconds after which an answer is given up; a template has five."""


class WatchedTemplate(ChatTemplate):
    """Remembers what it was last given, and what it wrote."""

    last: tuple[Asked, str] | None = None
    given: bool = False

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        self.last, self.given = None, True
        asked = Asked(
            messages=messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            extra=extra or {},
        )
        text = super().render(
            messages, add_generation_prompt=add_generation_prompt, tools=tools, extra=extra
        )
        self.last = (asked, text)
        return text


class Stand:
    """One server of all the templates, each as the template of one model."""

    def __init__(self, table: Table, client: TestClientProtocol, engine: TellingEngine) -> None:
        self.table = table
        self._client = client
        self._engine = engine

    async def talk(
        self, model: ServedModel, template: WatchedTemplate, conversation: Conversation
    ) -> None:
        """The cell of a conversation: through both endpoints, if both can say it."""
        prompts: list[list[int] | None] = []
        for endpoint, fields in (
            ("chat", conversation.chat),
            ("responses", conversation.responses),
        ):
            if fields is not None:
                prompts.append(await self._ask(model, template, conversation, endpoint, fields))
        if any(prompt != prompts[0] for prompt in prompts):
            what = f"chat and responses differ: {prompts}"
            self.table.fault(model.id, conversation.name, what)

    async def _ask(
        self,
        model: ServedModel,
        template: WatchedTemplate,
        conversation: Conversation,
        endpoint: str,
        fields: Mapping[str, Any],
    ) -> list[int] | None:
        """The prompt that the engine got; None if the request was refused."""
        self._engine.requests.clear()
        self._engine.says = (5,)
        template.last, template.given = None, False
        body = {"model": model.id, **fields}
        with anyio.move_on_after(HANGS) as scope:
            response = await self._client.post(PATHS[endpoint], json=body)
            data = await response.get_data(as_text=False)
        table, name = self.table, conversation.name
        where = f"{name}, {endpoint}"
        if scope.cancelled_caught:
            table.fault(model.id, where, "does not come to an end")
            return None
        if response.status_code == 200:
            prompt = self._engine.requests[0].prompt.tolist()
            table.rendered(model.id, name)
            table.compared += 1
            if conversation.refused or not prompt:
                table.fault(model.id, where, f"rendered, which it should not be: {prompt}")
            if fault := _compared(template, model.prompter.decode(prompt)):
                table.fault(model.id, where, fault)
            return prompt
        error = json.loads(data).get("error", {}) if response.status_code == 400 else {}
        if not error.get("message") or not error.get("param"):
            table.fault(model.id, where, f"{response.status_code} {data.decode()}")
        words = reason(error.get("message", ""))
        table.refused(model.id, name, words, asked=template.given)
        return None


async def try_all(
    sources: Sequence[tuple[str, str]], conversations: Sequence[Conversation] = CONVERSATIONS
) -> Table:
    """Every cell of these templates."""
    columns = [each.name for each in conversations] + [name for name, _ in BARE]
    table, models, templates = Table(requests=columns), [], {}
    tokenizer = load_tokenizer(FILES)
    info = EngineInfo(
        name="telling", model_id="m", vocab_size=tokenizer.vocab_size, context_length=100_000,
        eos_ids=frozenset({2}), max_running=8, page_size=16, kv_pages=8_192, dtype="none",
        device="none", capabilities=CAPABILITIES,
    )  # fmt: skip
    for label, source in sources:
        table.templates.append(label)
        try:
            template = WatchedTemplate(source, variables=MARKS)
            model, formats = _model(label, TextPrompter(tokenizer, template), info)
        except StartupError as error:
            table.broken.append(f"{label}: {error}")
            continue
        except Exception as failure:  # a server with this model would not start, and not say why
            table.fault(label, "at the start", f"raises {failure!r}")
            continue
        table.formats[formats] += 1
        models.append(model)
        templates[label] = template
    if models:
        engine = TellingEngine(info)
        service = make_service(engine, models, Config())
        async with running(service):
            stand = Stand(table, make_app(service).test_client(), engine)
            for model in models:
                for conversation in conversations:
                    await stand.talk(model, templates[model.id], conversation)
    for label, template in templates.items():
        for name, asked in BARE:
            try_bare(table, label, template, name, asked)
    return table


def _model(label: str, prompter: TextPrompter, info: EngineInfo) -> tuple[ServedModel, str]:
    """The model, and its families in words."""
    formats = formats_of(prompter)
    model = ServedModel(
        id=label,
        created=1,
        prompter=prompter,
        info=info,
        format=formats.spec(),
        format_of_calls=formats.spec(reasoning=False),
        format_when_forced=formats.forced(),
    )
    return model, f"{formats.reasoning}, {formats.calls}"


def _compared(template: WatchedTemplate, prompt: str) -> str:
    """How the text differs from that of ``transformers``, or from the prompt; empty if it does
    not."""
    if template.last is None:
        return "nothing was rendered"
    asked, text = template.last
    theirs = by_transformers(template.source, in_form(template, asked))
    if isinstance(theirs, Exception):
        return f"transformers refuses it: {theirs!r}"
    # What users write of control tokens is masked with lone surrogates, as is where a text goes on.
    masked = any(0xD800 <= ord(char) <= 0xDFFF for char in text)
    if not masked and prompt != text:
        return f"the prompt is another: {difference(prompt, text)}"
    return difference(text, theirs)


def told_apart(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Some names are there several times, with other templates: the second gets a number."""
    times: Counter[str] = Counter()
    apart = []
    for name, source in sources:
        times[name] += 1
        apart.append((name if times[name] == 1 else f"{name} #{times[name]}", source))
    return apart


def _share(sources: Sequence[tuple[str, str]]) -> Table:
    logging.disable(logging.CRITICAL)
    return anyio.run(try_all, sources)


def main() -> None:
    """Try what the file has, in a process for each core, and say what came of it."""
    began = time.monotonic()
    sources = told_apart([(name, text) for name, text in json.loads(Path(sys.argv[1]).read_text())])
    table, workers = Table(), os.cpu_count() or 1
    shares = [sources[start::workers] for start in range(workers)]
    with get_context("spawn").Pool(workers) as pool:
        for share in pool.imap(_share, [share for share in shares if share]):
            table.add(share)
    table.templates.sort()
    table.print(time.monotonic() - began)
    sys.exit(1 if table.faults or table.broken or not table.states else 0)


if __name__ == "__main__":
    main()
