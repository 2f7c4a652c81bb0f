"""How a loaded model marks its thought, told from what its chat template writes.

A template that shows the thought of an earlier message writes it as the model does, and one that
opens the thought itself ends a prompt with the opener. Nothing is guessed from a model's name.
"""

from __future__ import annotations

from antiphon.errors import InvalidRequest
from antiphon.prompting.prompter import TextPrompter

_QUESTION = {"role": "user", "content": "probe of a question"}
_THOUGHT = "probe of a thought"
_REPLY = {
    "role": "assistant",
    "content": "probe of an answer",
    "reasoning_content": _THOUGHT,
}
_MARKS = (("<think>", "</think>", "think"), ("[THINK]", "[/THINK]", "mistral_think"))


def reasoning_family(prompter: TextPrompter) -> str:
    """The name of the family that marks thought so; ``plain`` if the template tells of none."""
    if not prompter.takes_chats:
        return "plain"
    try:
        asked = prompter.decode(prompter.chat([_QUESTION])).rstrip()
        if asked.endswith("<think>"):
            return "think_prefilled"
        whole = prompter.decode(prompter.chat([_QUESTION, _REPLY], add_generation_prompt=False))
    except InvalidRequest:  # a template that wants more than a question and an answer
        return "plain"
    before, _, after = whole.partition(_THOUGHT)
    for opener, closer, name in _MARKS:
        if before.rstrip().endswith(opener) and after.lstrip().startswith(closer):
            return name
    return "plain"


def thinks_unasked(prompter: TextPrompter) -> bool:
    """Whether a model that can think does, where a request says nothing of it: whether its prompt
    is then that of a request which asks for thought."""
    try:
        return prompter.chat([_QUESTION]) == prompter.chat(
            [_QUESTION], extra=dict.fromkeys(("enable_thinking", "thinking"), True)
        )
    except InvalidRequest:
        return True
