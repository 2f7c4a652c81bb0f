"""The template code of ``transformers``, for which published templates are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from transformers.utils.chat_template_utils import render_jinja_template

from antiphon.prompting.message_content import as_parts, as_text
from antiphon.prompting.template import ChatTemplate

MARKS = {"bos_token": "<s>", "eos_token": "</s>"}
"""What every template of the matrix is told of its model."""


@attrs.frozen(kw_only=True)
class Asked:
    """What a template is asked to write."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = True
    extra: Mapping[str, Any] = attrs.field(factory=dict)


def by_transformers(source: str, asked: Asked) -> str | Exception:
    """What it writes, or what it raises."""
    try:
        rendered: Any = render_jinja_template(
            conversations=[[dict(message) for message in asked.messages]],
            chat_template=source,
            tools=[dict(tool) for tool in asked.tools] if asked.tools else None,
            add_generation_prompt=asked.add_generation_prompt,
            **{**asked.extra, **MARKS},
        )
    except Exception as failure:  # whatever a template makes Python raise
        return failure
    return str(rendered[0][0])


def in_form(template: ChatTemplate, asked: Asked) -> Asked:
    """The same with the content of messages in the form that the template reads."""
    convert = as_text if template.content_form == "text" else as_parts
    return attrs.evolve(asked, messages=[convert(message) for message in asked.messages])


def difference(ours: str, theirs: str) -> str:
    """Where two texts part; empty if they do not."""
    if ours == theirs:
        return ""
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((i for i, (one, other) in pairs if one != other), min(len(ours), len(theirs)))
    return f"ours {ours[at : at + 60]!r}, transformers {theirs[at : at + 60]!r}"
