"""openai-node's own stream helpers over every golden stream, whole and split at odd places.

Runs where the packages of npm are installed: ``nox -s conformance``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.npm import packages, run_script
from conformance.sdk.differences import differences
from conformance.sdk.goldens import CHAT, COMPLETIONS, GOLDEN, GOLDENS, RESPONSES, Golden

packages()

SCRIPT = Path(__file__).parent / "openai_node" / "accumulate.mjs"
SPLITS = {"whole": None, "split": 7}
ADDED = {"output_text", "parsed", "parsed_arguments", "index"}
"""The helpers' own."""
LOST = {"stop_reason"}
"""The chat helper keeps no field of a finish chunk that it has no type for."""

Key = tuple[str, str, str]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, dict[str, Any]]:
    """What node made of each stream, by endpoint, case and split."""
    jobs = {
        (endpoint, case, how): {
            "endpoint": endpoint,
            "file": str(GOLDEN / case / f"{endpoint}.sse"),
            "split": split,
        }
        for endpoint, goldens in GOLDENS.items()
        for case in goldens
        for how, split in SPLITS.items()
    }
    printed = run_script(SCRIPT, tmp_path_factory.mktemp("node"), json.dumps(list(jobs.values())))
    return dict(zip(jobs, json.loads(printed), strict=True))


def every(goldens: dict[str, Golden], **ids: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("golden", goldens.values(), ids=goldens, **ids)


how = pytest.mark.parametrize("how", SPLITS)


@pytest.mark.wire("K2", "K4", "K7")
@how
@every(dict(RESPONSES))
def test_responses(results: dict[Key, dict[str, Any]], golden: Golden, how: str) -> None:
    made = results["responses", golden.case, how]
    due = [data["type"] for data in golden.data]
    if golden.failed:  # thrown at the error, so the terminal frame is not seen
        assert made["events"] == due[:-2]
        assert_failure(made, golden.data[-1]["response"]["error"])
        return
    assert made["events"] == due
    assert made["error"] is None
    body = golden.body or {}
    if body["status"] == "cancelled":  # no frame says so: it ends as it ran
        assert made["final"]["status"] in ("queued", "in_progress")
        made, body = made["final"]["output"], body["output"]
    else:
        made = made["final"]
    assert list(differences(made, body, added=ADDED)) == []


@pytest.mark.wire("K9", "K10", "K11")
@how
@every(dict(CHAT))
def test_chat(results: dict[Key, dict[str, Any]], golden: Golden, how: str) -> None:
    made = results["chat", golden.case, how]
    if golden.failed:
        assert_failure(made, golden.data[-1]["error"])
        return
    assert len(made["events"]) == len(golden.data)
    if None in golden.finish_reasons:  # cancelled
        assert made["final"] is None
        assert made["error"]["message"] == "missing finish_reason for choice 0"
        return
    assert made["error"] is None
    assert list(differences(made["final"], golden.body, added=ADDED, lost=LOST)) == []


@how
@every(dict(COMPLETIONS))
def test_completions(results: dict[Key, dict[str, Any]], golden: Golden, how: str) -> None:
    made = results["completions", golden.case, how]
    if golden.body is None:
        assert_failure(made, golden.data[-1]["error"])
        return
    assert made["final"]["usage"] == golden.body["usage"]
    for choice in golden.body["choices"]:
        due = {"text": choice["text"], "finish_reason": choice["finish_reason"]}
        nothing = {"text": "", "finish_reason": None}
        assert made["final"]["choices"].get(str(choice["index"]), nothing) == due


def assert_failure(made: dict[str, Any], error: dict[str, Any]) -> None:
    """The SDK's own error, with the code and the message of the stream."""
    assert made["final"] is None
    assert made["error"]["name"] == "APIError"
    assert made["error"]["code"] == error["code"]
    assert error["message"] in made["error"]["message"]
