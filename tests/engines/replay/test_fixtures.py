"""The recordings of the repository: sound, reproducible, and each what its name says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from antiphon.engines.port import Finish
from antiphon.engines.recording import Recording, load_recordings, spelled_bytes

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture(scope="module")
def recordings() -> dict[str, Recording]:
    return load_recordings(FIXTURES)


def test_the_handmade_files_are_what_their_script_writes() -> None:
    script = runpy.run_path(str(FIXTURES / "tokens" / "handmade.py"))
    for name, lines in script["RECORDINGS"].items():
        path = FIXTURES / "tokens" / f"{name}.jsonl"
        assert path.read_text(encoding="utf-8") == script["text"](lines), name


def test_every_handmade_file_comes_from_the_script(recordings: dict[str, Recording]) -> None:
    script = runpy.run_path(str(FIXTURES / "tokens" / "handmade.py"))
    handmade = {name for name, made in recordings.items() if made.source == "handmade"}
    assert handmade == set(script["RECORDINGS"])


@pytest.mark.parametrize(
    ("name", "texts", "finishes"),
    [
        ("hello", ["Hello there! How can I help?"], [Finish.STOP]),
        ("two-choices", ["Yes, sure.", "No way"], [Finish.STOP, Finish.LENGTH]),
        ("length", ["One, two, thr"], [Finish.LENGTH]),
        ("empty", [""], [Finish.STOP]),
        ("hold", ["Wait for"], [Finish.ABORT]),
        ("error-in-text", ["One two three"], [Finish.ERROR]),
        ("error-first", [""], [Finish.ERROR]),
        ("no-finish", ["Half an"], [Finish.ERROR]),
        ("logprobs", ["The answer is forty-two."], [Finish.STOP]),
    ],
)
def test_texts_and_ends(
    recordings: dict[str, Recording], name: str, texts: list[str], finishes: list[Finish]
) -> None:
    choices = recordings[f"plain/{name}"].choices
    assert ["".join(step.text or "" for step in choice.steps) for choice in choices] == texts
    assert [choice.finish for choice in choices] == finishes


def test_long_has_300_steps(recordings: dict[str, Recording]) -> None:
    assert len(recordings["plain/long"].choices[0].steps) == 300


def test_byte_recordings(recordings: dict[str, Recording]) -> None:
    def data(name: str) -> bytes:
        return bytes(i for step in recordings[name].choices[0].steps for i in step.ids)

    assert data("plain/unicode").decode() == "Grüße 👩‍🚀 日本語 🇫🇷 e\u0301!"
    assert data("plain/invalid-utf8").decode("utf-8", "replace") == "a\ufffdb\ufffd"


def test_logprobs_spell_the_text(recordings: dict[str, Recording]) -> None:
    (choice,) = recordings["plain/logprobs"].choices
    assert spelled_bytes(choice.steps) == b"The answer is forty-two."
    assert {len(step.ids) for step in choice.steps} == {1, 2}
    assert all(len(token.top) == 3 for step in choice.steps for token in step.spelling or ())
