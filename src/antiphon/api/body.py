"""The JSON body of the current request: media type, then size (by the host), then syntax.

A small body is parsed where it is; a larger one in a thread, because minutes of other clients'
streams must not wait for one client's megabytes. Large ones take turns, without the collector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import anyio
import attrs
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from quart import g, request
from werkzeug.http import parse_options_header

from antiphon.api.identity import name_by_body, tail_of
from antiphon.api.service import Service
from antiphon.api.uncollected import uncollected
from antiphon.errors import InvalidRequest, RequestTimeout, UnsupportedMedia, shortened
from antiphon.requests.body import Body
from antiphon.requests.json_body import parse_object
from antiphon.transport.limits import are_applied

T = TypeVar("T", bound=Body)

SMALL = 32 * 1024
"""Bytes that are parsed on the event loop: well under a millisecond."""
LARGE = 256 * 1024
"""Bytes above which there may be hundreds of thousands of objects in a body."""

_turns: RunVar[CapacityLimiter] = RunVar("turns")


async def read_request(
    service: Service, parse: Callable[[Mapping[str, Any]], T]
) -> tuple[T, list[str]]:
    """The typed request and the sorted paths of the fields that change nothing.

    They are unknown, unless the server refuses those, or known and without effect here. Of very
    many the first are named; ``g.unnamed`` counts the others.

    Raises ``UnsupportedMedia``, ``PayloadTooLarge``, ``RequestTimeout``, ``InvalidRequest``.
    """
    _check_media(request.headers.getlist("content-type"))
    _check_encodings(request.headers.getlist("content-encoding"))
    is_watched = are_applied(request.scope)
    try:
        with anyio.fail_after(None if is_watched else service.body_timeout_s):
            body = await request.body
    except TimeoutError:
        raise RequestTimeout("The request body did not arrive in time.") from None
    outcome = await _parsed(body, parse)
    del body
    if outcome.named is not None:
        name_by_body(outcome.named)
    try:
        typed = outcome.typed()
    finally:
        del outcome
    if typed.unknown and service.strict_requests:
        first = shortened(typed.unknown[0])
        raise InvalidRequest(
            f"Unknown parameter: `{first}`.", code="unknown_parameter", param=first
        )
    g.unnamed = typed.unnamed
    return typed, sorted([*typed.ignored, *typed.unknown])


@attrs.define
class _Outcome(Generic[T]):
    """What became of a body. A refusal is handed over without its traceback: that holds all that
    was made of the body, in a cycle that would wait for the collector."""

    named: str | None
    """The request's id as the body has it."""
    request: T | None = None
    refusal: InvalidRequest | None = None

    def typed(self) -> T:
        """The typed request. Raises the refusal, which is then held by nobody else."""
        refusal, self.refusal = self.refusal, None
        try:
            if refusal is not None:
                raise refusal
        finally:
            del refusal
        assert self.request is not None  # noqa: S101  # one of the two is there
        return self.request


async def _parsed(body: bytes, parse: Callable[[Mapping[str, Any]], T]) -> _Outcome[T]:
    def work() -> _Outcome[T]:
        named = None
        try:
            fields = parse_object(body)
            given = [fields.get(name) for name in ("request_id", "rid")]
            named = next((name for name in given if isinstance(name, str) and tail_of(name)), None)
            return _Outcome(named, request=parse(fields))
        except InvalidRequest as refusal:
            refusal.__context__ = refusal.__cause__ = None
            return _Outcome(named, refusal=refusal.with_traceback(None))

    def work_uncollected() -> _Outcome[T]:
        with uncollected():
            return work()

    if len(body) <= SMALL:
        return work()
    if len(body) <= LARGE:
        return await to_thread.run_sync(work)
    try:
        turns = _turns.get()
    except LookupError:
        turns = CapacityLimiter(1)
        _turns.set(turns)
    return await to_thread.run_sync(work_uncollected, limiter=turns)


def _check_media(given: Sequence[str]) -> None:
    """Every value counts: of two that differ, nobody knows which the body is."""
    kinds = {parse_options_header(value)[0].lower() for value in given}
    if kinds != {"application/json"}:
        raise UnsupportedMedia("The content type must be application/json.")


def _check_encodings(given: Sequence[str]) -> None:
    """A header may come twice, and hold several; an empty one is none (RFC 9110, section 5.6.1)."""
    encodings = {name.strip().lower() for value in given for name in value.split(",")}
    if encodings - {"", "identity"}:
        raise UnsupportedMedia("Encoded request bodies are not supported.")
