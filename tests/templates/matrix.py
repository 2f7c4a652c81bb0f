"""Real chat templates × conversations: each renders, or is refused in words, and nothing else.

``python -m templates.matrix FILE`` with the folder of the tests on the path; FILE has the
templates, as ``dump.mjs`` prints them. Every conversation goes through the real endpoints of chat
and of Responses, which must give the same prompt, and through the template code of
``transformers``, which must write the same text of the same messages.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs
from quart.typing import TestClientProtocol
from transformers.utils.chat_template_utils import render_jinja_template

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.engines.port import EngineInfo
from antiphon.errors import StartupError
from antiphon.prompting.message_content import as_parts, as_text
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import load_tokenizer
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.model_formats import formats_of
from known_replies import FILES
from templates.conversations import CONVERSATIONS, Conversation
from wire.told import CAPABILITIES, PATHS, TellingEngine

MARKS = {"bos_token": "<s>", "eos_token": "</s>"}
SHOWN = 40
"""Faults that are printed."""


class WatchedTemplate(ChatTemplate):
    """Remembers what it was last given, and what it wrote."""

    last: tuple[Sequence[Mapping[str, Any]], dict[str, Any], str] | None = None

    def render(self, messages: Sequence[Mapping[str, Any]], **told: Any) -> str:
        self.last = None
        text = super().render(messages, **told)
        self.last = (messages, told, text)
        return text


@attrs.define
class Table:
    """What became of the cells."""

    templates: int = 0
    rendered: Counter[str] = attrs.field(factory=Counter)
    refused: Counter[str] = attrs.field(factory=Counter)
    compared: int = 0
    words: Counter[str] = attrs.field(factory=Counter)
    """Reasons of refusals."""
    broken: list[str] = attrs.field(factory=list)
    """Templates that cannot be loaded."""
    faults: list[str] = attrs.field(factory=list)
    formats: Counter[str] = attrs.field(factory=Counter)

    def print(self, took: float) -> None:
        """For people."""
        say = sys.stdout.write
        say(f"{'conversation':32}{'rendered':>10}{'refused':>10}\n")
        for each in CONVERSATIONS:
            say(f"{each.name:32}{self.rendered[each.name]:10}{self.refused[each.name]:10}\n")
        say("\nwhy refused:\n")
        for words, times in self.words.most_common(12):
            say(f"{times:6}  {words}\n")
        say("\nfamilies (reasoning, calls):\n")
        for name, times in self.formats.most_common():
            say(f"{times:6}  {name}\n")
        for line in [*self.broken, *self.faults[:SHOWN]]:
            say(f"{line}\n")
        cells = self.rendered.total() + self.refused.total()
        say(
            f"\n{self.templates} templates, {len(self.broken)} of them cannot be loaded; "
            f"{cells} cells: {self.rendered.total()} rendered, {self.refused.total()} refused, "
            f"{self.compared} texts compared; {took:.0f} s\n{cells} passed, "
            f"{len(self.faults)} failed\n"
        )


async def try_all(sources: Sequence[tuple[str, str]]) -> Table:
    """Each template as the template of one model of one server."""
    table, models, templates = Table(templates=len(sources)), [], {}
    tokenizer = load_tokenizer(FILES)
    info = EngineInfo(
        name="telling", model_id="m", vocab_size=tokenizer.vocab_size, context_length=100_000,
        eos_ids=frozenset({2}), max_running=8, page_size=16, kv_pages=8_192, dtype="none",
        device="none", capabilities=CAPABILITIES,
    )  # fmt: skip
    engine = TellingEngine(info)
    for index, (name, source) in enumerate(sources):
        try:
            template = WatchedTemplate(source, variables=MARKS)
            prompter = TextPrompter(tokenizer, template)
        except StartupError as error:
            table.broken.append(f"{name}: {error}")
            continue
        formats = formats_of(prompter)
        table.formats[f"{formats.reasoning}, {formats.calls}"] += 1
        model = ServedModel(
            id=f"{name} #{index}",
            created=1,
            prompter=prompter,
            info=info,
            format=formats.spec(),
            format_of_calls=formats.spec(reasoning=False),
            format_when_forced=formats.forced(),
        )
        models.append(model)
        templates[model.id] = template
    service = make_service(engine, models, Config())
    async with running(service):
        client = make_app(service).test_client()
        for model in models:
            for conversation in CONVERSATIONS:
                await _try(table, client, engine, model, templates[model.id], conversation)
    return table


async def _try(
    table: Table,
    client: TestClientProtocol,
    engine: TellingEngine,
    model: ServedModel,
    template: WatchedTemplate,
    conversation: Conversation,
) -> None:
    where = f"{model.id}, {conversation.name}"
    prompts: list[list[int] | None] = []
    for endpoint, fields in (("chat", conversation.chat), ("responses", conversation.responses)):
        if fields is None:
            continue
        engine.requests.clear()
        engine.says = (5,)
        template.last = None
        response = await client.post(PATHS[endpoint], json={"model": model.id, **fields})
        body = json.loads(await response.get_data(as_text=True))
        if response.status_code == 200:
            prompts.append(engine.requests[0].prompt.tolist())
            if not prompts[-1] or conversation.refused:
                table.faults.append(f"{where}, {endpoint}: rendered, which it should not be")
            fault = _compared(template)
            table.compared += 1
            if fault:
                table.faults.append(f"{where}, {endpoint}: {fault}")
        else:
            prompts.append(None)
            error = body.get("error", {})
            if response.status_code != 400 or not error.get("message") or not error.get("param"):
                table.faults.append(f"{where}, {endpoint}: {response.status_code} {body}")
            elif endpoint == "chat" or conversation.chat is None:
                table.words[_reason(error["message"])] += 1
    if any(prompt != prompts[0] for prompt in prompts):
        table.faults.append(f"{where}: chat and responses differ: {prompts}"[:600])
    counted = table.refused if prompts[0] is None else table.rendered
    counted[conversation.name] += 1


def _reason(message: str) -> str:
    """Without what differs by model."""
    return message.split(": ", 1)[-1].split("`")[0][:90] if ": " in message else message[:40]


def _compared(template: WatchedTemplate) -> str:
    """How the text differs from that of ``transformers``; empty if it does not."""
    if template.last is None:
        return "nothing was rendered"
    messages, told, text = template.last
    convert = as_text if template.content_form == "text" else as_parts
    extra = {**(told.get("extra") or {}), **MARKS}
    try:
        rendered: Any = render_jinja_template(
            conversations=[[dict(convert(message)) for message in messages]],
            chat_template=template.source,
            tools=list(told["tools"]) if told.get("tools") else None,
            add_generation_prompt=told.get("add_generation_prompt", True),
            **extra,
        )
    except Exception as failure:  # whatever the template raises there
        return f"transformers refuses it: {failure!r}"
    other = str(rendered[0][0])
    if other == text:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    return f"ours {text[at : at + 60]!r}, transformers {other[at : at + 60]!r}"


def main() -> None:
    """Try what the file has, and say so."""
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    sources = [(name, source) for name, source in json.loads(Path(sys.argv[1]).read_text())]
    table = anyio.run(try_all, sources)
    table.print(time.monotonic() - began)
    sys.exit(1 if table.faults or table.broken else 0)


if __name__ == "__main__":
    main()
