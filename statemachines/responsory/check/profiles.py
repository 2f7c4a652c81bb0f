"""Profiles: whose streams are checked. Which rules each keeps is told by the rules themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.check.report import Api

ProfileName: TypeAlias = Literal["openai", "openresponses", "foreign"]


@immutable
class Profile:
    """``reasoning``: the names that reasoning text events may have, without ``.delta``.
    ``bare``: the API whose streams alone may be an error chunk and ``[DONE]``, or ``[DONE]``; None
    where neither tells the API."""

    name: ProfileName
    sentence: str
    reasoning: tuple[str, ...]
    bare: Api | None


OWN_BARE: Api = "completions"
"""This library's Responses streams begin with ``response.created`` and its chat streams with roles,
however they end."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "openai",
            "the wire format of this library, exactly: nothing less and nothing more",
            ("response.reasoning_text",),
            OWN_BARE,
        ),
        Profile(
            "openresponses",
            "the same, with the reasoning events named as the Open Responses specification does",
            ("response.reasoning",),
            OWN_BARE,
        ),
        Profile(
            "foreign",
            "any server: the lifecycle must hold; keys, items and events may be added to it",
            ("response.reasoning_text", "response.reasoning"),
            None,
        ),
    )
}
