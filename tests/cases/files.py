"""The cases of ``fixtures/cases``: what is asked, what the engine delivers, what must come out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from antiphon.engines.recording import Recording, load_recordings
from cases.bodies import ENDPOINTS, body_for, with_tools

FOLDER = Path(__file__).parents[2] / "fixtures" / "cases"
BOTH = frozenset({"tools", "arguments", "policy", "reasoning"})
"""Subjects whose cases hold on chat and on responses alike, and on completions as raw text."""


@attrs.frozen(kw_only=True)
class Case:
    """``request``: the body, or text that is sent as it stands; None: no body."""

    name: str
    """``<subject>/<what>``, which is also the name of its recording."""
    endpoint: str
    request: dict[str, Any] | str | None
    expect: Mapping[str, Any]
    recording: Recording | None = None
    """None: the request never reaches the engine."""
    method: str = "POST"
    path: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    server: Mapping[str, Any] = attrs.field(factory=dict)
    steps: Sequence[Mapping[str, Any]] = ()
    """What a client does one after another, where that is more than to ask and to read."""

    @property
    def subject(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_stored(self) -> bool:
        """Whether it is about an answer that somebody comes back to."""
        return bool(self.steps) or "background" in self.fields

    @property
    def fields(self) -> dict[str, Any]:
        """The body as fields; none where it is no object."""
        return self.request if isinstance(self.request, dict) else {}

    @property
    def text(self) -> str:
        """All that the engine says in the first choice; of ``bytes`` recordings nothing."""
        assert self.recording is not None
        return "".join(step.text or "" for step in self.recording.choices[0].steps)

    @property
    def fails(self) -> bool:
        """Whether the engine does."""
        return self.expect.get("finish") == "error"

    def bodies(self) -> dict[str, dict[str, Any]]:
        """The request for each endpoint on which the case holds."""
        own = {**self.fields, "model": self.name}
        if self.subject not in BOTH:
            return {self.endpoint: own}
        return {name: body_for(self.endpoint, own, name) for name in ENDPOINTS}


@cache
def cases() -> tuple[Case, ...]:
    """All of them, by name."""
    recordings = load_recordings(FOLDER)
    declared = json.loads((FOLDER / "declared.json").read_text(encoding="utf-8"))
    found = []
    for path in sorted(FOLDER.glob("*/*.json")):
        name = path.relative_to(FOLDER).with_suffix("").as_posix()
        fields = json.loads(path.read_text(encoding="utf-8"))
        request = fields.pop("request")
        if isinstance(request, dict):
            request = with_tools(fields["endpoint"], request, declared)
        recording = recordings.get(name)
        found.append(Case(name=name, request=request, recording=recording, **fields))
    return tuple(found)
