"""Every recording and every built case gives its golden folder, byte for byte.

``pytest --update-golden`` writes the folders instead of comparing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from golden_files import rendered

from golden.built import BUILT
from golden.folders import difference, names, read, write
from golden.playing import RECORDINGS, play
from responsory import EventLog

CASES = [*RECORDINGS, *BUILT]


def logs_of(name: str) -> Sequence[EventLog]:
    if name in BUILT:
        return BUILT[name]
    recording = RECORDINGS[name]
    return [play(recording, choice).log for choice in recording.choices]


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.mark.parametrize("name", CASES)
def test_the_golden_folder_is_what_the_code_gives(name: str, updating: bool) -> None:
    due = rendered(logs_of(name))
    if updating:
        write(name, due)
    if differs := difference(name, read(name), due):
        pytest.fail(f"{differs}\n\nIf this is meant: pytest --update-golden", pytrace=False)


def test_there_is_no_other_golden_folder(updating: bool) -> None:
    if updating:
        for name in names() - set(CASES):
            write(name, {})
    assert names() == set(CASES)


def test_built_cases_have_names_of_their_own() -> None:
    assert not set(RECORDINGS) & set(BUILT)
