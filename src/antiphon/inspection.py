"""What is known of a model from its files alone: for a person who wonders how it will be served."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.config import Config
from antiphon.models.end_tokens import read_end_ids
from antiphon.models.files import resolve
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.unasked_thought import thinks_unasked
from antiphon.runs.model_formats import NONE, formats_of


def inspected(
    model: str | None, tool_format: str = "auto", reasoning_format: str = "auto"
) -> Iterator[tuple[str, str]]:
    """Names and values, in the order of a page. Raises ``StartupError`` as serving it would."""
    Config(model=model, tool_format=tool_format, reasoning_format=reasoning_format).check()
    files = resolve(model)
    prompter = TextPrompter.load(files)
    yield "model", f"{files.name} ({files.path})"
    table = prompter.table
    yield "vocabulary", f"{prompter.vocab_size} tokens, {len(table.special)} of them control tokens"
    ends = sorted(read_end_ids(files))
    yield "ends by", ", ".join(prompter.spell(ends))
    if not prompter.takes_chats:
        yield "template", "none: /v1/completions alone"
    else:
        yield "template", _template(prompter)
    found = formats_of(prompter, tool_format=tool_format, reasoning_format=reasoning_format)
    unasked = "" if found.reasoning == NONE else _unasked(prompter)
    yield "reasoning", f"{found.reasoning}: {found.reasoning_source}{unasked}"
    yield "calls", f"{found.calls}: {found.calls_source}"
    if found.calls == NONE and prompter.takes_chats:
        yield "", "a call can be forced all the same (tool_choice), as a JSON list"


def _template(prompter: TextPrompter) -> str:
    traits = prompter.traits
    said = ["system messages" if traits.takes_system else "no system message"]
    said.append("tools" if traits.shows_tools else "no tools")
    if traits.shows_calls:
        said.append(f"calls, their arguments as {traits.arguments}")
        said += ["their ids in nine characters"] if traits.short_ids else []
    else:
        said.append("no calls")
    said += ["documents"] if prompter.takes_documents else []
    return ", ".join(said)


def _unasked(prompter: TextPrompter) -> str:
    return "; thinks unasked" if thinks_unasked(prompter) else "; thinks where it is asked to"
