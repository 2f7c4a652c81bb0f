"""One answer held against a case's ``expect``, and against the answers to other cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from antiphon.engines.port import Finish
from cases.files import BOTH, Case
from cases.folding import FOLDS, Folded
from cases.meaning import of_message, of_responses, same_items, same_message
from cases.stage import Answered
from responsory.check import check_stream

TOKENS = {
    "chat": ("prompt_tokens", "completion_tokens"),
    "completions": ("prompt_tokens", "completion_tokens"),
    "responses": ("input_tokens", "output_tokens"),
}
REASONS = {Finish.STOP: "stop", Finish.LENGTH: "length"}


def differences(
    case: Case, endpoint: str, answered: Answered, *, merged: bool, checked: bool
) -> Iterator[str]:
    """What is not as the case says, each in a line.

    ``merged``: steps may not show which of their tokens were reasoning, or came before the end.
    ``checked``: the bytes go through the stream checker too.
    """
    if not answered.frames:
        if not (case.fails and not case.expect["output"]):
            yield f"no answer: {answered.refused}"
        return
    try:
        folded = FOLDS[endpoint](answered.frames)
    except (AssertionError, KeyError) as error:
        yield f"the stream cannot be folded: {type(error).__name__} {error}"
        return
    if checked:
        report = check_stream(b"".join(answered.frames), api=endpoint)  # type: ignore[arg-type]
        if not report.accepted:
            yield f"the checker: {report}"
    if case.fails != (folded.error is not None):
        yield f"the error is {folded.error}"
    if folded.body is None:
        return
    if answered.body is not None:
        one, other = meaning(endpoint, folded.body), meaning(endpoint, answered.body)
        if "stream_options" in case.fields and not case.fields["stream_options"]:
            other = {**other, "usage": None}  # a stream that was not asked for it tells none
        if one != other:
            yield f"folded {one}\n    unary {other}"
        if endpoint == "responses" and folded.body != answered.body:
            yield "the terminal resource is not the unary body"
    yield from _from_expected(case, endpoint, folded, merged=merged)


def meaning(endpoint: str, body: Mapping[str, Any]) -> Any:
    """A body without its envelope: what two answers to one request share."""
    if endpoint == "responses":
        return {
            "items": of_responses(body),
            "status": body["status"],
            "cut": body["incomplete_details"],
            "usage": body["usage"],
        }
    return {
        "choices": [
            {
                **(
                    of_message(choice.get("message", {}))
                    if endpoint == "chat"
                    else {"text": choice["text"]}
                ),
                "finish": choice["finish_reason"],
                "logprobs": choice["logprobs"],
            }
            for choice in body["choices"]
        ],
        "usage": body["usage"],
    }


def steady(case: Case, said: Any) -> Any:
    """What of ``meaning`` is the same for every cut: tokens that share a step and do not show their
    borders are counted as a guess, where some of them are reasoning or come behind the end."""
    kept = dict(said)
    if kept["usage"] and _ends_early(case):
        kept["usage"] = None
    elif kept["usage"]:
        details = ("completion_tokens_details", "output_tokens_details")
        kept["usage"] = {key: value for key, value in kept["usage"].items() if key not in details}
    return kept


def _ends_early(case: Case) -> bool:
    return bool(case.fields.get("stop")) or case.fields.get("parallel_tool_calls") is False


def _from_expected(case: Case, endpoint: str, folded: Folded, *, merged: bool) -> Iterator[str]:
    expect, body = case.expect, folded.body
    assert body is not None
    if endpoint == "responses":
        got, want = of_responses(body), expect["output"]
        if not same_items(got, want):
            yield f"items {got}\n     want {want}"
        cut = (body["incomplete_details"] or {}).get("reason")
        if (body["status"], cut) != (expect["status"], expect["incomplete_reason"]):
            yield f"status {body['status']} {cut}"
    else:
        choices = expect.get("choices") or [{**expect, "index": 0}]
        yield from _choices(case, endpoint, body["choices"], choices)
    usage, wanted = body["usage"], expect.get("usage")
    if usage is None or wanted is None or (merged and _ends_early(case)):
        return
    if endpoint == "completions" and case.subject in BOTH and _ends_early(case):
        return  # the raw text has no end before its own
    names = TOKENS[endpoint]
    found = {"input_tokens": usage[names[0]], "output_tokens": usage[names[1]]}
    if found | {"total_tokens": usage["total_tokens"]} != wanted:
        yield f"usage {usage}\n     want {wanted}"
    if (thought := expect.get("reasoning_tokens")) is not None and not merged:
        details = usage.get("output_tokens_details") or usage["completion_tokens_details"]
        if details["reasoning_tokens"] != thought:
            yield f"reasoning tokens {details}, want {thought}"


def _choices(
    case: Case, endpoint: str, got: Sequence[Mapping[str, Any]], want: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if [choice["index"] for choice in got] != [choice["index"] for choice in want]:
        yield f"choices {got}"
        return
    raw = endpoint == "completions" and case.subject in BOTH
    for found, wanted in zip(got, want, strict=True):
        if raw:
            assert case.recording is not None
            finish = REASONS.get(case.recording.choices[0].finish)
            said, says = {"text": found["text"]}, found["text"] == case.text
        else:
            finish = None if wanted["finish"] == "error" else wanted["finish"]
            if endpoint == "chat":
                said = of_message(found.get("message", {}))
                says = same_message(said, wanted["output"])
            else:
                said = {"text": found["text"]}
                says = said["text"] == "".join(item["text"] for item in wanted["output"])
        if not says:
            yield f"says {said}\n     want {case.text if raw else wanted['output']}"
        if found["finish_reason"] != finish:
            yield f"finish {found['finish_reason']}, want {finish}"
        yield from _logprobs(case, endpoint, found["logprobs"])


def _logprobs(case: Case, endpoint: str, found: Mapping[str, Any] | None) -> Iterator[str]:
    for key, name in (("logprob_tokens", "tokens"), ("text_offset", "text_offset")):
        want = case.expect.get(key)
        if want is None:
            continue
        told = found or {}
        got = told.get(name)
        if endpoint == "chat":
            got = [entry["token"] for entry in told.get("content") or ()]
        if got != want:
            yield f"{name} {got}, want {want}"
