"""The rules of the chunks of chat and completions, for each story and each ending."""

from __future__ import annotations

from typing import Any

import pytest

from wire.stories import STORIES, Story, settled
from wire.told import Told

pytestmark = pytest.mark.parametrize("story", STORIES, ids=str)

CHANNELS = ("content", "reasoning_content", "tool_calls", "refusal")


def parts(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for chunk in chunks for part in chunk.get("choices", ())]


@pytest.mark.wire("C1", "K9", "K10", "S1")
async def test_roles_come_first_in_order(app: Told, story: Story) -> None:
    """Of those that fail there is one choice, since the first to fail would end the call."""
    count = 1 if story.ends == "error" else 3
    found = parts(await story.chunks(app, "chat", n=count))
    assert [part["index"] for part in found[:count]] == list(range(count))
    empty = {"role": "assistant", "content": "", "reasoning_content": None}
    assert [part["delta"] for part in found[:count]] == [empty] * count
    assert not any("role" in part["delta"] for part in found[count:])


@pytest.mark.wire("C2", "C3", "C5", "S6", "F8", "S5")
async def test_a_delta_has_one_channel(app: Told, story: Story) -> None:
    found = await story.chunks(app, "chat")
    assert not any("system_fingerprint" in chunk for chunk in found)
    for part in parts(found)[1:]:
        assert "reasoning_content" in part["delta"]
        used = [name for name in CHANNELS if part["delta"].get(name)]
        assert len(used) == (0 if part["finish_reason"] else 1)


@pytest.mark.wire("C6", "C7", "P7", "P17", "K12")
async def test_one_finish_alone_and_last(app: Told, story: Story) -> None:
    chunks = await story.chunks(app, "chat")
    assert {chunk.get("object", "chat.completion.chunk") for chunk in chunks} == {
        "chat.completion.chunk"
    }
    *before, last = parts(chunks)
    assert all(part["finish_reason"] is None for part in before)
    if story.ends == "error":
        assert last["finish_reason"] is None
        return
    assert last["delta"] == {"reasoning_content": None}
    called = any(part["delta"].get("tool_calls") for part in before)
    by_itself = "tool_calls" if called else "stop"
    assert last["finish_reason"] == ("length" if story.ends == "length" else by_itself)


@pytest.mark.wire("C4", "C5", "K11")
async def test_a_call_is_opened_once(app: Told, story: Story) -> None:
    count = 0
    for part in parts(await story.chunks(app, "chat")):
        for call in part["delta"].get("tool_calls", ()):
            if call["index"] == count:
                assert list(call) == ["index", "id", "type", "function"]
                assert call["id"] == f"call_t_0_{count}"
                assert call["function"]["name"]
                count += 1
            else:
                assert call["index"] == count - 1
                assert list(call) == ["index", "function"]
                assert list(call["function"]) == ["arguments"]


@pytest.mark.wire("C9", "P1", "S1")
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_a_failure_is_one_error_chunk(app: Told, story: Story, endpoint: str) -> None:
    chunks = await story.chunks(app, endpoint)
    errors = [chunk for chunk in chunks if "error" in chunk]
    assert len(errors) == (story.ends == "error")
    if errors:
        assert errors == chunks[-1:]
        assert list(errors[0]) == ["error"]
        assert list(errors[0]["error"]) == ["message", "type", "param", "code"]
        assert errors[0]["error"]["code"] == "server_error"


@pytest.mark.wire("S10", "P6", "P14", "P16")
async def test_chat_folds_to_its_body(app: Told, story: Story) -> None:
    found = parts(await story.chunks(app, "chat"))
    body = await story.tell(app, "chat", stream=False)
    if story.ends == "error":
        return
    (choice,) = body["choices"]
    folded: dict[str, Any] = dict.fromkeys(CHANNELS[:2], "")
    calls: list[dict[str, Any]] = []
    for part in found:
        for name in folded:
            folded[name] += part["delta"].get(name) or ""
        for call in part["delta"].get("tool_calls", ()):
            if call["index"] == len(calls):
                calls.append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
            calls[-1]["arguments"] += call["function"]["arguments"]
    message = choice["message"]
    assert {name: message[name] or "" for name in folded} == folded
    assert [
        {"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())
    ] == calls
    assert found[-1]["finish_reason"] == choice["finish_reason"]
    assert (message["content"] is None) == (bool(calls) and not folded["content"])


@pytest.mark.wire("C14", "C16", "C17", "K12", "P17")
async def test_completions(app: Told, story: Story) -> None:
    """The finish rides on the text of its own step, and is alone where there is none left."""
    body = await story.tell(app, "completions", stream=False)
    for grouped in (1, 1000):
        found = parts(await story.chunks(app, "completions", grouped=grouped))
        reasons = [part["finish_reason"] for part in found]
        if story.ends == "error":
            assert not any(reasons)
            continue
        assert [reason is None for reason in reasons] == [True] * (len(found) - 1) + [False]
        assert all(part["text"] for part in found[:-1])
        (choice,) = body["choices"]
        assert "".join(part["text"] for part in found) == choice["text"]
        assert reasons[-1] == choice["finish_reason"]


@pytest.mark.wire("S9", "S10", "P10", "P15")
@pytest.mark.parametrize("grouped", [3, 1000])
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_the_steps_do_not_matter(
    app: Told, story: Story, endpoint: str, grouped: int
) -> None:
    one = await story.tell(app, endpoint, stream=False)
    other = await story.tell(app, endpoint, stream=False, grouped=grouped)
    assert settled(one) == settled(other)
