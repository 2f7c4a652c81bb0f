"""The header of a stored log: ``{"format": 1, "machine": 1, "compacted": false}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from responsory.errors import LogError, shown
from responsory.upcasts import CURRENT, Version
from responsory.values import JSON

KEYS = frozenset({"format", "machine", "compacted"})


def to_header(*, compacted: bool) -> JSON:
    """The header of a log as it is written now."""
    return {"format": CURRENT.format, "machine": CURRENT.machine, "compacted": compacted}


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
