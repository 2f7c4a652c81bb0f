"""What the commands that carry text carry: whether it can be told, and whether it is anything."""

from __future__ import annotations

from responsory import checks
from responsory.commands import CallInput, Reasoning, Refusal, Text
from responsory.errors import shown
from responsory.values import Tokens


def check(command: Text | Refusal | Reasoning | CallInput) -> None:
    """Raises ValueError for what no projection can show, before anything changes."""
    checks.text(command.text)
    # The rest is for callers who are not type-checked.
    if command.tokens is not None and not isinstance(command.tokens, Tokens):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"tokens must be a Tokens, not {shown(command.tokens)}")
    if not isinstance(command, Text):
        return
    # A list could still change.
    if not isinstance(command.logprobs, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"logprobs must be a tuple, not {shown(command.logprobs)}")


def tells(command: Text | Refusal | Reasoning | CallInput) -> bool:
    """Whether it carries anything: text, the logprobs of tokens, or their ids."""
    if command.text or (isinstance(command, Text) and command.logprobs):
        return True
    return command.tokens is not None and command.tokens.ids != ()
