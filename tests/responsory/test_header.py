"""The header of a stored log: what it says, and what is none."""

from __future__ import annotations

import pytest

from responsory import header
from responsory.errors import LogError
from responsory.header import from_header, to_header
from responsory.upcasts import Version
from responsory.values import JSON

VERSIONS = (Version(1, 1), Version(1, 2), Version(2, 2))


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_written_is_the_current_version(
    compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header, "CURRENT", Version(2, 3))
    assert to_header(compacted=compacted) == {"format": 2, "machine": 3, "compacted": compacted}


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_read_is_a_version_of_the_history(version: Version, compacted: bool) -> None:
    found = {"format": version.format, "machine": version.machine, "compacted": compacted}
    assert from_header(found, VERSIONS) == (version, compacted)


READ = "format 1, machine 1; format 1, machine 2; format 2, machine 2"
NEWER, NEVER = "is newer than this library, which reads", "never was, and this library reads"

BAD: list[tuple[JSON, str]] = [
    (None, "not the header of a log: None"),
    (["format", "machine", "compacted"], "not the header of a log: ['format', 'machine', 'compa"),
    ({}, "not the header of a log: {}"),
    ({"machine": 1, "compacted": False}, "not the header of a log: {"),
    ({"format": 1, "compacted": False}, "not the header of a log: {"),
    ({"format": 1, "machine": 1}, "not the header of a log: {'format': 1, 'machine': 1}"),
    ({"format": 1, "machine": 1, "compacted": 0}, "not the header of a log: {"),
    ({"format": 1, "machine": 1, "compacted": False, "x": 1}, "not the header of a log: {"),
    ({"format": "1", "machine": 1}, "the format of a log cannot be '1'"),
    ({"format": True, "machine": 1}, "the format of a log cannot be True"),
    ({"format": 1, "machine": 1.0}, "the machine of a log cannot be 1.0"),
    ({"format": 1, "machine": 0}, "the machine of a log cannot be 0"),
    # Whatever else a newer header says, or leaves out.
    ({"format": 3, "machine": 2}, f"format 3, machine 2 {NEWER} {READ}"),
    ({"format": 2, "machine": 3, "x": 1}, f"format 2, machine 3 {NEWER} {READ}"),
    ({"format": 1, "machine": 3}, f"format 1, machine 3 {NEWER} {READ}"),
    ({"format": 2, "machine": 1}, f"format 2, machine 1 {NEVER} {READ}"),
]


@pytest.mark.parametrize(("value", "message"), BAD)
def test_what_is_no_header(value: JSON, message: str) -> None:
    with pytest.raises(LogError) as caught:
        from_header(value, VERSIONS)
    assert str(caught.value).startswith(message)


def test_a_version_that_no_release_wrote_is_not_newer() -> None:
    with pytest.raises(LogError, match=r"^format 1, machine 2 never was, and this library reads"):
        from_header({"format": 1, "machine": 2}, (Version(1, 1), Version(2, 1), Version(2, 2)))
