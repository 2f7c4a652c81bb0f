"""Request bodies: valid ones of each endpoint, damaged ones, and bytes that are no JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from antiphon.requests.chat import ChatRequest
from antiphon.requests.completions import CompletionRequest
from antiphon.requests.messages import ChatMessage
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.stream_options import ChunkOptions
from fuzz.kinds import ANYTHING, CALL_IDS, TEXTS, Values, objects, special

REPLAYED = (
    "plain/hello", "plain/unicode", "plain/empty", "plain/length", "plain/error-first",
    "plain/error-in-text", "plain/no-finish", "plain/invalid-utf8", "plain/logprobs",
    "plain/two-choices", "think/then-text", "think/logprobs", "think/lookalike",
    "think/error-in-reasoning",
)  # fmt: skip
"""Recordings that end by themselves."""

TOKEN_IDS = st.lists(st.integers(0, 255), min_size=1, max_size=5)
special("prompt", st.one_of(TEXTS, st.lists(TEXTS, min_size=1, max_size=2), TOKEN_IDS,
                            st.lists(TOKEN_IDS, min_size=1, max_size=2)))  # fmt: skip
special("model", st.just("MODEL"))
special(
    "tool_choice",
    st.sampled_from(
        [
            "none",
            "auto",
            "required",
            {"type": "function", "name": "add"},
            {"type": "function", "function": {"name": "add"}},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
            {"type": "web_search"},
            {},
        ]
    ),
)
special("previous_response_id", st.sampled_from(["resp_1", "resp_", "x", None, None]))
special("response_format", st.sampled_from([{"type": "text"}, {"type": "json_object"}, {},
                                            {"type": "structural_tag"}]))  # fmt: skip

special("stream", st.booleans())
special("phase", st.sampled_from(["commentary", "final_answer", None]))
special("stream_options", st.one_of(st.none(), st.just({}), st.just({"include_usage": True}),
                                    objects(ChunkOptions)))  # fmt: skip
special("top_logprobs", st.integers(0, 20))
_INCLUDES = ["reasoning.encrypted_content", "message.output_text.logprobs", "x"]
special("include", st.lists(st.sampled_from(_INCLUDES), max_size=2))
_CALL = st.fixed_dictionaries(
    {
        "type": st.just("function"),
        "id": CALL_IDS,
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["add", "f"]), "arguments": st.sampled_from(["{}", "{", ""])}
        ),
    }
)
_SAID = st.one_of(
    TEXTS,
    st.lists(
        st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), min_size=1, max_size=2
    ),
)
_TURN = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "user", "assistant", "system", "developer"]),
         "content": _SAID}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "tool_calls": st.lists(_CALL, min_size=1, max_size=2)},
        optional={"content": TEXTS, "reasoning_content": TEXTS},
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": CALL_IDS, "content": _SAID}),
    objects(ChatMessage),
)  # fmt: skip
special("messages", st.lists(_TURN, min_size=1, max_size=3), "ChatRequest")
_CHAT = objects(ChatRequest)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": TEXTS}
    ),
    min_size=1,
    max_size=3,
)
_SMALL: Mapping[str, Values] = {
    "/tokenize": st.one_of(
        st.fixed_dictionaries(
            {"model": st.just("MODEL"), "prompt": TEXTS},
            optional={"add_special_tokens": st.booleans(), "return_token_strs": st.booleans()},
        ),
        st.fixed_dictionaries(
            {"model": st.just("MODEL"), "messages": _MESSAGES},
            optional={
                "add_generation_prompt": st.booleans(),
                "continue_final_message": st.booleans(),
                "return_token_strs": st.booleans(),
                "chat_template_kwargs": st.dictionaries(st.sampled_from(["a", "tools"]), ANYTHING),
            },
        ),
    ),
    "/detokenize": st.fixed_dictionaries(
        {"tokens": st.lists(st.integers(0, 600), max_size=6)}, optional={"model": st.just("MODEL")}
    ),
}
VALID: Mapping[str, Values] = {
    "/v1/chat/completions": _CHAT,
    "/v1/completions": objects(CompletionRequest),
    "/v1/responses": objects(ResponseRequest),
    "/v1/responses/input_tokens": objects(ResponseRequest),
    **_SMALL,
}

DEEP: list[Any] = [[]]
for _ in range(40):
    DEEP = [DEEP]
TWISTED: Values = st.one_of(
    ANYTHING,
    st.sampled_from(
        [
            -1, 0, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**40, 1e308, -0.0, 1.0,
            "1", "true", [], {}, [[]], [{}], [None], {"": None}, {"type": None}, {"type": 1},
            {"type": "function"}, {"role": "user"}, DEEP, list(range(70)), ["x"] * 130,
            "\ud800", "x" * 70_000, {"k" * 65: "v"}, {f"k{n}": "v" for n in range(17)},
        ]
    ),
)  # fmt: skip
"""Values for places where they are wrong, or extreme."""
UNKNOWN_NAMES = st.sampled_from(
    ["foo", "", "ü", "\ud800", "a" * 200, "__class__", "model ", "Model", "response_format",
     "functions", "function_call", "guided_json", "suffix", "background", "conversation", "audio",
     "max_tokens", "messages", "input", "prompt", "type", "a.b", "a[0]", "\n", "%0a"]
)  # fmt: skip


@st.composite
def _damaged(draw: st.DrawFn, valid: Values) -> Any:
    """A valid value with one to three wounds."""
    value = copy.deepcopy(draw(valid))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        places = list(_places(value))
        parent, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.integers(0, 5)):
            case 0 if isinstance(parent, dict):
                del parent[key]
            case 1 if isinstance(parent, dict):
                parent[draw(UNKNOWN_NAMES)] = copy.deepcopy(draw(TWISTED))
            case 2:
                parent[key] = None
            case 3 if isinstance(parent, list):
                parent.append(copy.deepcopy(draw(TWISTED)))
            case _:
                parent[key] = copy.deepcopy(draw(TWISTED))
        if not value:
            break
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every place in a JSON value, the nearest first."""
    places: list[tuple[Any, Any]] = []
    level: Sequence[Any] = [value]
    while level and len(places) < 60:
        below: list[Any] = []
        for each in level:
            keys = list(each) if isinstance(each, dict) else range(len(each))
            places += [(each, key) for key in keys]
            below += [each[key] for key in keys if isinstance(each[key], dict | list)]
        level = below
    return places


RAW: Values = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [
            b"", b" ", b"null", b"[]", b'"x"', b"1", b"{", b"{}", b"{}{}", b"\xef\xbb\xbf{}",
            b'{"model":"MODEL","n":NaN}', b'{"model":"MODEL","temperature":Infinity}',
            b'{"model":"MODEL","temperature":1e999}', b'{"model":"MODEL","prompt":"\\ud800"}',
            b'{"model":"MODEL","model":"x","input":"a","input":"b"}', b'{"a":"\x00"}',
            b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b"{'a':1}", b'{"a":1,}', b"// {}",
            b'{"seed":' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"a":' * 5000, b'{"a":[' * 100,
            b'{"input":"x","metadata":' + b"[" * 199 + b"]" * 199 + b"}", b'{"\\u0000":1}',
        ]
    ),
)  # fmt: skip


def as_bytes(value: Any, *, escaped: bool = True) -> bytes:
    """The value as JSON; half a surrogate pair can only be sent as an escape."""
    return json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


SHOWN = 600
"""Bytes of a body that a report of a failure shows."""


class Body:
    """What is sent. A long one is shown by its two ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        if len(self.data) <= SHOWN:
            return repr(self.data)
        half = SHOWN // 2
        return f"{self.data[:half]!r} … {self.data[-half:]!r} ({len(self.data)} bytes)"


def bodies(path: str, models: Sequence[str]) -> st.SearchStrategy[Body]:
    """Bodies for an endpoint: as many valid as damaged, and a few that are no JSON object."""
    valid = VALID[path]

    @st.composite
    def draw_body(draw: st.DrawFn) -> Body:
        model = draw(st.sampled_from(models)).encode()
        match draw(st.integers(0, 11)):
            case 0:
                data = draw(RAW)
            case 1 | 2 | 3 | 4 | 5:
                data = as_bytes(draw(valid), escaped=False)
            case 6:
                whole = as_bytes(draw(valid))
                data = whole[: draw(st.integers(0, len(whole)))]
            case _:
                data = as_bytes(draw(_damaged(valid)))
        return Body(bytes(data).replace(b"MODEL", model))

    return draw_body()
