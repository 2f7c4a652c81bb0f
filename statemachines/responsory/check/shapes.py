"""Shapes of JSON objects: which keys, of which kind, and who may leave them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from responsory.check.judge import brief

if TYPE_CHECKING:
    from responsory.check.judge import Judge


@attrs.frozen
class Kind:
    """A kind of value: its name, and whether a value is of it."""

    name: str
    fits: Callable[[Any], bool]

    def or_null(self) -> Kind:
        fits = self.fits
        return Kind(f"{self.name} or null", lambda value: value is None or fits(value))


def constant(value: str) -> Kind:
    return Kind(f'"{value}"', lambda found: bool(found == value))


def list_of(kind: Kind) -> Kind:
    fits = kind.fits
    return Kind(
        f"an array, each {kind.name}", lambda value: type(value) is list and all(map(fits, value))
    )


# bool is an int to Python, and no count or index is a bool.
INTEGER = Kind("an integer", lambda value: type(value) is int)
INDEX = Kind("an integer from 0", lambda value: type(value) is int and value >= 0)
NUMBER = Kind("a number", lambda value: type(value) in (int, float))
STRING = Kind("a string", lambda value: type(value) is str)
NAME = Kind("a string that is not empty", lambda value: type(value) is str and value != "")
LIST = Kind("an array", lambda value: type(value) is list)
OBJECT = Kind("an object", lambda value: type(value) is dict)
ANY = Kind("anything", lambda _: True)
ABSENT = Kind("no such key", lambda _: False)
NULL = Kind("null", lambda value: value is None)


@attrs.frozen
class Shape:
    """``due``: keys that every server sends. ``loose``: keys of the full wire format that other
    servers leave out, or send as null. ``more``: keys that may be there. ``exact``: narrower kinds
    that the full wire format has for some of these. ``open``: any other key may be there, too."""

    due: Mapping[str, Kind] = attrs.field(factory=dict)
    loose: Mapping[str, Kind] = attrs.field(factory=dict)
    more: Mapping[str, Kind] = attrs.field(factory=dict)
    exact: Mapping[str, Kind] = attrs.field(factory=dict)
    open: bool = False

    def check(self, judge: Judge, value: Any, what: str) -> None:
        """Breaks ``object-keys`` for what no client can read, ``exact-keys`` for the rest."""
        if type(value) is not dict:
            judge.broken("object-keys", f"{what} is {brief(value)}", OBJECT.name)
            return
        for key, kind in self.due.items():
            if key not in value:
                judge.broken("object-keys", f"{what} has no `{key}`", kind.name)
            elif not kind.fits(value[key]):
                judge.broken("object-keys", _wrong(what, key, value), kind.name)
        for key, kind in self.loose.items():
            if key not in value:
                judge.broken("exact-keys", f"{what} has no `{key}`", kind.name)
            elif not kind.fits(value[key]):
                rule = "exact-keys" if value[key] is None else "object-keys"
                judge.broken(rule, _wrong(what, key, value), kind.name)
        for key, kind in self.more.items():
            if key in value and not kind.fits(value[key]):
                rule = "exact-keys" if value[key] is None else "object-keys"
                judge.broken(rule, _wrong(what, key, value), kind.name)
        if judge.keeps("exact-keys"):
            self._check_exact(judge, value, what)

    def _check_exact(self, judge: Judge, value: Mapping[str, Any], what: str) -> None:
        for key, kind in self.exact.items():
            if key in value and not kind.fits(value[key]):
                judge.broken("exact-keys", _wrong(what, key, value), kind.name)
        if self.open:
            return
        for key in value:
            if key not in self.due and key not in self.loose and key not in self.more:
                judge.broken("exact-keys", f"{what} has a key {brief(key)}")


def _wrong(what: str, key: str, value: Mapping[str, Any]) -> str:
    return f"`{key}` of {what} is {brief(value[key])}"


USAGE_DETAILS = {
    "input_tokens_details": Shape(loose={"cached_tokens": INDEX, "cache_write_tokens": INDEX}),
    "output_tokens_details": Shape(loose={"reasoning_tokens": INDEX}),
    "prompt_tokens_details": Shape(loose={"cached_tokens": INDEX}),
    "completion_tokens_details": Shape(loose={"reasoning_tokens": INDEX}),
}
RESPONSE_USAGE = ("input_tokens", "output_tokens")
CHUNK_USAGE = ("prompt_tokens", "completion_tokens")


def check_usage(judge: Judge, usage: Any, parts: tuple[str, str], *, running: bool = False) -> None:
    """Token counts: ``parts`` are the names of the two that make the total. Counts of what is
    ``running`` have no details."""
    counts = {**dict.fromkeys(parts, INDEX), "total_tokens": INDEX}
    details = {} if running else {f"{part}_details": OBJECT for part in parts}
    Shape(due=counts, loose=details).check(judge, usage, "`usage`")
    for name in details:
        if usage.get(name) is not None:
            USAGE_DETAILS[name].check(judge, usage[name], f"`{name}`")
    total = usage[parts[0]] + usage[parts[1]]
    judge.equal("usage-sums", "total_tokens", usage["total_tokens"], total)


BYTES = list_of(Kind("a byte", lambda value: type(value) is int and 0 <= value <= 255))
TOKEN = Shape(due={"token": STRING, "logprob": NUMBER, "bytes": LIST}, exact={"bytes": BYTES})
ENTRY = Shape(due={**TOKEN.due, "top_logprobs": LIST}, exact=TOKEN.exact)


def check_entries(judge: Judge, entries: list[Any]) -> None:
    """The ``{token, logprob, bytes, top_logprobs}`` of Responses and chat."""
    if not entries or not judge.keeps("exact-keys"):
        return
    for entry in entries:
        ENTRY.check(judge, entry, "a logprobs entry")
        for top in entry["top_logprobs"]:
            TOKEN.check(judge, top, "a top_logprobs entry")
