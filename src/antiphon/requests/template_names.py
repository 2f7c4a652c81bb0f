"""What of a request reaches the chat template, and by which names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length

Verbosity = Literal["low", "medium", "high"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
TemplateKwargs = Annotated[dict[str, Any], Length(0, 1024)]
"""``chat_template_kwargs``; the limit is this server's own, each name being looked up."""

RESERVED_TEMPLATE_NAMES = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
)


def check_template_kwargs(kwargs: dict[str, Any]) -> None:
    """Refuse the names that the server sets itself. Raises ``InvalidRequest``."""
    for name in sorted(RESERVED_TEMPLATE_NAMES & kwargs.keys()):
        raise InvalidRequest(
            f"`chat_template_kwargs` may not set '{name}'.",
            code="invalid_value",
            param=f"chat_template_kwargs.{name}",
        )


def template_variables(effort: Effort | None, verbosity: Verbosity | None) -> dict[str, Any]:
    """The names by which chat templates know these two; none for what was not asked."""
    variables: dict[str, Any] = {}
    if effort is not None:
        thinking = effort != "none"
        variables |= {"enable_thinking": thinking, "thinking": thinking, "reasoning_effort": effort}
    if verbosity is not None:
        variables["verbosity"] = verbosity
    return variables
