"""One line of a recording: JSON text to a typed row, or the reason why it is none.

::

    {"format": 1, "source", "model", "family", "tokenizer", "prompt_tokens", "turns", "note"}
    [ms, choice, [ids], text, logprobs]        one engine step of one choice
    ["hold"]                                   the engine waits here until the request is aborted
    ["finish", choice, reason, detail?]        how the choice ended

``logprobs`` is null or one ``{"token", "logprob", "bytes", "top"}`` per id, ``top`` holding the
same without ``top``, best first. The detail of an ``error`` is ``{"code", "message"}``. Every
function here raises ``ValueError`` with what is wrong; the caller knows the file and the line.
"""

from __future__ import annotations

import json
import math
from array import array
from typing import Literal

import attrs

from antiphon.engines.port import PAD_ID, EngineError, Finish, TokenSpelling

FORMAT = 1
SOURCES = frozenset({"recorded", "handmade"})
TOKENIZERS = frozenset({"opaque", "bytes"})
REASONS = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "abort": Finish.ABORT,
    "error": Finish.ERROR,
    "content_filter": Finish.CONTENT_FILTER,
}
MAX_STEP_TOKENS = 2**15 - 1
"""A step of one choice; two of them still fit a frame's u16 column."""
MAX_CHOICES = 1024


@attrs.frozen(kw_only=True)
class Header:
    """The first line. ``tokenizer`` says what the ids are: ``opaque`` (they mean nothing and the
    step's text counts) or ``bytes`` (each id is one byte of UTF-8 and the text is null).
    ``turns``: the choices are not alternatives but what is said turn after turn."""

    source: str
    model: str
    family: str = "plain"
    tokenizer: Literal["opaque", "bytes"]
    prompt_tokens: int
    turns: bool = False
    note: str = ""


@attrs.frozen(kw_only=True)
class StepRow:
    """What the engine delivered for one choice, ``ms`` milliseconds after the request."""

    ms: float
    choice: int
    ids: array[int]
    text: str | None
    spelling: tuple[TokenSpelling, ...] | None


@attrs.frozen(kw_only=True)
class HoldRow:
    """Nothing more comes until the request is aborted."""


@attrs.frozen(kw_only=True)
class FinishRow:
    """The end of one choice; ``error`` is there exactly for ``Finish.ERROR``."""

    choice: int
    finish: Finish
    error: EngineError | None = None


Row = StepRow | HoldRow | FinishRow


def parse_header(line: str) -> Header:
    """The header of a recording of format 1."""
    value = _json(line)
    if not isinstance(value, dict):
        raise ValueError("the first line is the header and must be a JSON object")
    fields = dict(value)
    number = fields.pop("format", None)
    if number != FORMAT or isinstance(number, bool):
        raise ValueError(f"format must be {FORMAT}, not {json.dumps(number)}")
    known = {field.name: field.default for field in attrs.fields(Header)}
    if unknown := sorted(fields.keys() - known):
        raise ValueError(f"unknown header field {unknown[0]!r}")
    for name, default in known.items():
        if name not in fields and default is attrs.NOTHING:
            raise ValueError(f"the header lacks {name!r}")
        if name not in ("prompt_tokens", "turns") and not isinstance(fields.get(name, ""), str):
            raise ValueError(f"{name} must be a string")
    _integer(fields["prompt_tokens"], "prompt_tokens", PAD_ID)
    turns = fields.get("turns", False)
    if not isinstance(turns, bool):
        raise ValueError("turns must be true or false")
    if turns and not fields["prompt_tokens"]:
        raise ValueError("a recording of turns has a prompt, for it tells the turn")
    for name, allowed in (("source", SOURCES), ("tokenizer", TOKENIZERS)):
        if fields[name] not in allowed:
            raise ValueError(f"{name} must be {' or '.join(sorted(allowed))}")
    return Header(**fields)


def parse_row(line: str, tokenizer: str) -> Row:
    """A line after the header, for a header of this ``tokenizer``."""
    match _json(line):
        case ["hold"]:
            return HoldRow()
        case ["finish", choice, reason, *detail] if len(detail) <= 1:
            return _finish(_choice(choice), reason, detail[0] if detail else None)
        case [bool() | int() | float() as ms, choice, list() as ids, text, logprobs]:
            return _step(ms, _choice(choice), ids, text, logprobs, tokenizer)
    raise ValueError(
        'expected [ms, choice, [ids], text, logprobs], ["hold"] or ["finish", choice, reason, …]'
    )


def _json(line: str) -> object:
    try:
        value: object = json.loads(line, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"not JSON: {name}")


def _finish(choice: int, reason: object, detail: object) -> FinishRow:
    if not isinstance(reason, str) or reason not in REASONS:
        raise ValueError(f"finish reason must be one of {', '.join(REASONS)}")
    finish = REASONS[reason]
    if finish is not Finish.ERROR:
        if detail is not None:
            raise ValueError(f"a finish of {reason!r} takes no detail")
        return FinishRow(choice=choice, finish=finish)
    match detail:
        case {"code": str(code), "message": str(message), **rest} if not rest:
            error = EngineError(code=code, message=message)
            return FinishRow(choice=choice, finish=finish, error=error)
    raise ValueError('a finish of "error" takes a detail {"code": …, "message": …}')


def _step(
    ms: float, choice: int, ids: list[object], text: object, logprobs: object, tokenizer: str
) -> StepRow:
    if isinstance(ms, bool) or not 0 <= ms < math.inf:
        raise ValueError("ms must be a number from 0")
    if len(ids) > MAX_STEP_TOKENS:
        raise ValueError(f"a step holds at most {MAX_STEP_TOKENS} ids")
    limit = 256 if tokenizer == "bytes" else PAD_ID
    tokens = array("I", [_integer(token, "id", limit) for token in ids])
    if tokenizer == "bytes" and text is not None:
        raise ValueError("text must be null where the tokenizer is bytes")
    said = None if tokenizer == "bytes" else _text(text, "text")
    spelling = None
    if logprobs is not None:
        if not isinstance(logprobs, list) or len(logprobs) != len(tokens):
            raise ValueError("logprobs must be null or a list with one entry per id")
        spelling = tuple(_spelling(entry) for entry in logprobs)
    return StepRow(ms=ms, choice=choice, ids=tokens, text=said, spelling=spelling)


def _spelling(entry: object) -> TokenSpelling:
    if not isinstance(entry, dict) or not isinstance(entry.get("top"), list):
        raise ValueError("a logprobs entry must be {token, logprob, bytes, top}")
    text, logprob, data = _token({name: entry[name] for name in entry if name != "top"})
    top = tuple(_token(candidate) for candidate in entry["top"])
    return TokenSpelling(text=text, data=data, logprob=logprob, top=top)


def _token(value: object) -> tuple[str, float, bytes]:
    match value:
        case {
            "token": token,
            "logprob": float() | int() as logprob,
            "bytes": list() as data,
            **rest,
        }:
            if rest or isinstance(logprob, bool):
                raise ValueError("a token's entry must be {token, logprob, bytes}")
            if not math.isfinite(logprob):
                raise ValueError("logprob must be finite")
            spelled = bytes(_integer(byte, "byte", 256) for byte in data)
            return _text(token, "token"), float(logprob), spelled
    raise ValueError("a token's entry must be {token, logprob, bytes}")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} holds half a surrogate pair, which no UTF-8 can say")
    return value


def _choice(value: object) -> int:
    return _integer(value, "choice", MAX_CHOICES)


def _integer(value: object, name: str, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{name} must be a whole number from 0 to {limit - 1}")
    return value
