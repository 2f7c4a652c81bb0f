"""Each case on its own endpoint: as recorded, whole, and by characters.

All endpoints and all cuts are ``nox -s splits``.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from antiphon.config import Config
from antiphon.engines.port import TokenSpelling
from antiphon.engines.recording import RecordedChoice, Recording
from cases.bodies import ENDPOINTS, PATHS, body_for
from cases.cutting import bits, cuts, pieces
from cases.files import BOTH, FOLDER, Case, cases
from cases.matrix import playable, run, shares
from cases.stage import stage
from cases.stress import is_stressed
from responsory.segments.formats import CALLS

PLAYABLE = [case for case in playable() if not is_stressed(case)]
CUT = (
    "tools/gemma4-one",
    "utf8/characters-split-over-tokens",
    "reasoning/interval-4",
    "stops/logprobs-trimmed-at-stop",
)
VARIANTS = ("one", "two", "prose", "rich", "cut", "lookalike", "noargs")


def recorded(name: str) -> Recording:
    (found,) = (case.recording for case in cases() if case.name == name)
    assert found is not None
    return found


@pytest.mark.parametrize("subject", sorted({case.subject for case in PLAYABLE}))
async def test_cases(subject: str) -> None:
    chosen = [case for case in PLAYABLE if case.subject == subject]
    tally = await run(chosen, quick=True)
    assert not tally.differing, "\n".join(tally.first)
    assert tally.cases == len(chosen)


@pytest.mark.parametrize("case", [case for case in cases() if case.recording is None],
                         ids=lambda case: case.name)  # fmt: skip
async def test_refused(case: Case) -> None:
    """What never reaches the engine is refused in the words of the case."""
    known = "chat/role-once"
    body = case.request
    if isinstance(body, dict):
        body = json.dumps({"model": known, **body})
    keys = (case.server["api_key"],) if case.server else ()
    async with stage({known: recorded(known)}, Config(api_key=keys)) as served:
        response = await served.client.open(  # type: ignore[call-arg]  # `json` has a default
            case.path or PATHS[case.endpoint],
            method=case.method,
            data=body,
            headers={"content-type": "application/json", **case.headers},
        )
        error = (await response.get_json())["error"]
    want = case.expect["error"]
    assert response.status_code == case.expect["http"]
    assert error["type"] == want["type"]
    assert want.get("code") in (None, error["code"])
    if want["param"] is None:
        assert error["param"] is None
    else:
        assert error["param"].startswith(want["param"])


async def test_a_wrong_expectation_is_found() -> None:
    """The matrix is no test that cannot fail."""
    (case,) = (case for case in PLAYABLE if case.name == "tools/hermes-two")
    first, second = case.expect["output"]

    async def found(**expect: Any) -> int:
        tally = await run([attrs.evolve(case, expect={**case.expect, **expect})], quick=True)
        return tally.differing.total()

    assert await found() == 0
    assert await found(output=[first]) > 0
    assert await found(output=[second, first]) > 0
    assert await found(output=[first, {**second, "arguments": "{}"}]) > 0
    assert await found(finish="stop") > 0
    assert await found(usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}) > 0


def test_every_family_has_every_variant() -> None:
    names = {case.name for case in cases()}
    assert {f"tools/{family}-{variant}" for family in CALLS for variant in VARIANTS} <= names


def test_files_belong_together() -> None:
    """A recording has a case, and what it delivers is what the case counts."""
    names = {case.name for case in cases()}
    for path in FOLDER.glob("*/*.jsonl"):
        assert path.relative_to(FOLDER).with_suffix("").as_posix() in names
    for case in PLAYABLE:
        usage = case.expect.get("usage")
        if case.subject not in BOTH or usage is None or case.fields.get("stop"):
            continue
        assert case.recording is not None
        tokens = sum(len(step.ids) for step in case.recording.choices[0].steps)
        assert usage["output_tokens"] == tokens, case.name


def _content(choice: RecordedChoice) -> tuple[str, list[int], list[TokenSpelling]]:
    return (
        "".join([step.text or "" for step in choice.steps]),
        [token for step in choice.steps for token in step.ids],
        [entry for step in choice.steps for entry in step.spelling or ()],
    )


@pytest.mark.parametrize("name", CUT)
def test_cuts_lose_nothing(name: str) -> None:
    choice = recorded(name).choices[0]
    found = list(cuts(choice, name))
    assert len({tuple(len(step.ids) for step in cut.choice.steps) for cut in found}) > 4
    for cut in found:
        assert _content(cut.choice) == _content(choice)
    single = found[2].choice
    assert len(single.steps) == len(bits(choice))
    if choice.steps[0].text is not None:
        again = pieces(choice, 7).choice
        assert _content(again)[:2] == _content(choice)[:2]
        assert {len(step.text or "") for step in again.steps[:-1]} == {7}


def test_a_body_can_be_written_for_the_other_endpoint() -> None:
    """And back again, but for the name of the limit."""
    for case in PLAYABLE:
        if case.subject not in BOTH:
            continue
        other = {"chat": "responses", "responses": "chat"}[case.endpoint]
        there = body_for(case.endpoint, case.fields, other)
        back = body_for(other, there, case.endpoint)
        for name in ("tools", "tool_choice"):
            assert back.get(name) == case.fields.get(name)
            assert (name in there) == (name in back)
        assert set(case.bodies()) == set(ENDPOINTS)


def test_cases_are_shared_out_once() -> None:
    parts = shares(PLAYABLE, 2)
    names = [name for part in parts for name in part]
    assert sorted(names) == sorted(case.name for case in PLAYABLE)
