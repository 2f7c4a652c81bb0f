"""The header of a stored log: ``{"format": 1, "machine": 1, "compacted": false}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from responsory.errors import LogError, shown
from responsory.upcasts import CURRENT, FIRST, TOLD, Version
from responsory.values import JSON, Logprob

if TYPE_CHECKING:
    from responsory.events import Event

KEYS = frozenset({"format", "machine", "compacted"})


def to_header(*, compacted: bool, version: Version = CURRENT) -> JSON:
    """The header of a log as it is written now."""
    return {"format": version.format, "machine": version.machine, "compacted": compacted}


def version_of(events: Iterable[Event]) -> Version:
    """The first version that can tell these events. A log is written as that version, so that
    releases which know no later one can read it."""
    return TOLD if any(map(_is_told, events)) else FIRST


def _is_told(event: Any) -> bool:
    """Whether the event has what came with the second version."""
    if getattr(event, "tokens", None) is not None:
        return True
    if getattr(event, "ids", ()) or getattr(event, "cuts", ()):
        return True
    return any(map(_entry_is_told, getattr(event, "logprobs", ())))


def _entry_is_told(entry: Logprob) -> bool:
    if entry.logprob is None or entry.id is not None:
        return True
    return any(top.id is not None for top in entry.top)


def from_header(header: JSON, versions: Sequence[Version]) -> tuple[Version, bool]:
    """The version, one of ``versions``, and whether the log is compacted. Raises LogError."""
    # The version comes first: what else is in the header of a newer log is not known here.
    if not isinstance(header, Mapping) or not {"format", "machine"} <= header.keys():
        raise LogError(f"not the header of a log: {shown(header)}")
    version = Version(_number(header, "format"), _number(header, "machine"))
    if version not in versions:
        raise LogError(_unread(version, versions))
    if KEYS.symmetric_difference(header) or not isinstance(header["compacted"], bool):
        raise LogError(f"not the header of a log: {shown(header)}")
    return version, header["compacted"]


def _number(header: Mapping[str, JSON], name: str) -> int:
    value = header[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise LogError(f"the {name} of a log cannot be {shown(value)}")
    return value


def _unread(version: Version, versions: Sequence[Version]) -> str:
    last = versions[-1]
    newer = version.format > last.format or version.machine > last.machine
    what = "is newer than this library, which" if newer else "never was, and this library"
    shape = f"format {shown(version.format)}, machine {shown(version.machine)}"
    return f"{shape} {what} reads {'; '.join(map(str, versions))}"
