"""A model that thinks: reasoning on each endpoint, shown or left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.config import Config
from antiphon.errors import StartupError
from antiphon.loading import load_replay
from api.conftest import FIXTURES, Bench
from api.test_answers import CHAT, COMPLETIONS, RESPONSES, USER, post

MODEL = "think/then-text"


async def test_reasoning_is_an_item_of_its_own(bench: Bench) -> None:
    response = await post(bench, RESPONSES, model=MODEL, input="x")
    reasoning, message = response["output"]
    assert (reasoning["type"], message["type"]) == ("reasoning", "message")
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    chat = await post(bench, CHAT, model=MODEL, **USER)
    said = chat["choices"][0]["message"]
    assert said["reasoning_content"] == reasoning["content"][0]["text"]
    assert said["content"] == message["content"][0]["text"]


@pytest.mark.parametrize("stream", [False, True])
async def test_hidden_reasoning_opens_no_item_and_still_counts(bench: Bench, stream: bool) -> None:
    shown = await post(bench, RESPONSES, model=MODEL, input="x")
    body = {"model": MODEL, "input": "x", "include_reasoning": False, "stream": stream}
    hidden = await post(bench, RESPONSES, **body)
    if stream:
        assert b"reasoning_text" not in hidden
        assert b'"output_index":0' in hidden
        assert b'"output_index":1' not in hidden
        return
    (message,) = hidden["output"]
    assert message["content"] == shown["output"][1]["content"]
    assert message["id"].endswith("_0")
    assert hidden["usage"] == shown["usage"]
    chat = await post(bench, CHAT, model=MODEL, include_reasoning=False, **USER)
    assert chat["choices"][0]["message"]["reasoning_content"] is None


async def test_a_completion_is_the_raw_text(bench: Bench) -> None:
    raw = await post(bench, COMPLETIONS, model=MODEL, prompt="x", max_tokens=1000)
    assert raw["choices"][0]["text"].startswith("<think>")
    chat = await post(bench, CHAT, model=MODEL, **USER)
    hidden = {"include_reasoning": False, "max_tokens": 1000}
    told = await post(bench, COMPLETIONS, model=MODEL, prompt="x", **hidden)
    assert told["choices"][0]["text"] == chat["choices"][0]["message"]["content"]
    assert told["usage"] == chat["usage"]


async def test_a_family_that_is_not_known_is_refused_at_start(tmp_path: Path) -> None:
    text = (FIXTURES / "tokens" / f"{MODEL}.jsonl").read_text(encoding="utf-8")
    folder = tmp_path / "tokens" / "new"
    folder.mkdir(parents=True)
    changed = text.replace('"family": "think"', '"family": "telepathy"')
    folder.joinpath("a.jsonl").write_text(changed, encoding="utf-8")
    with pytest.raises(StartupError, match=r"^new/a: no family 'telepathy'; of reasoning "):
        await load_replay(Config(fixtures=tmp_path, engine="replay"))
