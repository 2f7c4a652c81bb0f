"""Whether a model that can think does so where nobody asks."""

from __future__ import annotations

from antiphon.errors import InvalidRequest
from antiphon.prompting.probes import QUESTION
from antiphon.prompting.prompter import TextPrompter


def thinks_unasked(prompter: TextPrompter) -> bool:
    """Whether a model that can think does, where a request says nothing of it: whether its prompt
    is then that of a request which asks for thought."""
    try:
        return prompter.chat([QUESTION]) == prompter.chat(
            [QUESTION], extra=dict.fromkeys(("enable_thinking", "thinking"), True)
        )
    except InvalidRequest:
        return True
