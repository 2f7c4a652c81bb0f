"""The prompt of a chat: the same fields wherever one is answered, counted or tokenized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.constraints import Length
from antiphon.requests.messages import ChatMessage, check_messages
from antiphon.requests.template_names import TemplateKwargs, check_template_kwargs
from antiphon.requests.tools import ChatCustomTool, ChatTool, check_tools, declared


@attrs.define(kw_only=True, slots=False)
class ChatPrompt(Body):
    """What the chat template is given. Without slots, so that a class can have another base too."""

    messages: Annotated[list[ChatMessage], Length(1)]
    tools: Annotated[list[ChatTool | ChatCustomTool], Length(0, 128)] = attrs.field(factory=list)
    add_generation_prompt: bool = True
    """Whether the prompt ends with the opening of a new message; not if the last is continued."""
    continue_final_message: bool = False
    documents: list[dict[str, Any]] | None = None
    chat_template_kwargs: TemplateKwargs = attrs.field(factory=dict)
    add_special_tokens: bool = False

    def check_prompt(self, body: Mapping[str, Any]) -> None:
        """What no single field can tell; ``body`` tells what was given and what is a default.

        Raises ``InvalidRequest``.
        """
        check_messages(self.messages)
        if self.continue_final_message:
            self._check_continued(asked=bool(body.get("add_generation_prompt")))
            self.add_generation_prompt = False
        check_template_kwargs(self.chat_template_kwargs)
        check_tools(declared(self.tools))

    def _check_continued(self, *, asked: bool) -> None:
        if asked:
            raise InvalidRequest(
                "`add_generation_prompt` and `continue_final_message` exclude each other.",
                code="conflicting_parameters",
                param="continue_final_message",
            )
        last = self.messages[-1]
        if last.role != "assistant" or not last.content or last.tool_calls:
            raise InvalidRequest(
                "`continue_final_message` needs an assistant text at the end, without calls.",
                code="invalid_value",
                param="continue_final_message",
            )
