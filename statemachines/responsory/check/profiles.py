"""Profiles: whose streams are checked. Which rules each keeps is told by the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from responsory.immutable import immutable

ProfileName: TypeAlias = Literal["openai", "openresponses", "foreign"]


@immutable
class Profile:
    """``reasoning``: the names that reasoning text events may have, without ``.delta``."""

    name: ProfileName
    sentence: str
    reasoning: tuple[str, ...]


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "openai",
            "the wire format of this library, exactly: nothing less and nothing more",
            ("response.reasoning_text",),
        ),
        Profile(
            "openresponses",
            "the same, with the reasoning events named as the Open Responses specification does",
            ("response.reasoning",),
        ),
        Profile(
            "foreign",
            "any server: the lifecycle must hold; keys, items and events may be added to it",
            ("response.reasoning_text", "response.reasoning"),
        ),
    )
}
