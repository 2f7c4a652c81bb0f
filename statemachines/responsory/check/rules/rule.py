"""A rule, and the groups of profiles and APIs that rules are for."""

from __future__ import annotations

from responsory.immutable import immutable

EVERYBODY = ("openai", "openresponses", "foreign")
OWN = ("openai", "openresponses")
FOREIGN = ("foreign",)

EVERY_API = ("responses", "chat", "completions")
RESPONSES = ("responses",)
CHAT = ("chat",)
COMPLETIONS = ("completions",)
CHUNKS = ("chat", "completions")
CALLING = ("responses", "chat")
"""The APIs that have tool calls."""


@immutable
class Rule:
    """``profiles``: those whose streams must keep it. ``apis``: the kinds of stream it is about."""

    name: str
    profiles: tuple[str, ...]
    apis: tuple[str, ...]
    sentence: str
