"""Which form of calls a model is read by: its own, or the one that it is held to.

A model whose chat template has no calls writes none by itself. Where a request forces one, an
engine that can hold it to a form makes it write a JSON list, and the tools are told in words.
"""

from __future__ import annotations

from antiphon.engines.port import Capability
from antiphon.errors import InvalidRequest
from antiphon.requests.chat import ChatRequest
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.tokenize import EncodeChat
from antiphon.runs.catalogue import ServedModel


def has_own_form(model: ServedModel) -> bool:
    """Whether the model writes calls by itself. A recording's text is what it is."""
    return model.writes_calls or not model.prompter.writes_prompts


def is_held_to_calls(model: ServedModel, request: ChatRequest | ResponseRequest) -> bool:
    """Whether the answer is a call in a form that is not the model's own."""
    return bool(request.tools) and request.choice.forced and not has_own_form(model)


def check_tools(model: ServedModel, request: ChatRequest | ResponseRequest | EncodeChat) -> None:
    """Raises ``InvalidRequest`` where the model cannot do with the tools what is asked."""
    if not request.tools or has_own_form(model):
        return
    able = model.prompter.takes_chats and Capability.FORCED_CALLS in model.info.capabilities
    choice = None if isinstance(request, EncodeChat) else request.choice
    if choice is not None and (choice.mode == "none" or (able and choice.forced)):
        return
    words = f"The model `{model.id}` cannot use tools on this server"
    if able:
        words = (
            f"The model `{model.id}` calls no tools by itself; with `tool_choice` `required`, or "
            "the name of one, it is made to"
        )
    raise InvalidRequest(f"{words}.", code="unsupported_parameter", param="tools")
