"""Commands to an engine: a header of JSON, then lists of token ids as columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from antiphon.engines.codec.columns import Reader, Writer
from antiphon.engines.codec.envelope import CodecError, Kind, seal
from antiphon.engines.codec.fields import plain_fields, take_list, take_plain
from antiphon.engines.port import EngineRequest, GrammarSpec

REQUEST = plain_fields(EngineRequest)
GRAMMAR = plain_fields(GrammarSpec)
COUNTS = {
    "prompt": frozenset({int}),
    "logit_bias": frozenset({int}),
    "allowed_ids": frozenset({int, type(None)}),
}


def encode_submit(request: EngineRequest) -> bytes:
    """The request. Raises ``OverflowError`` for an id that is no u32."""
    grammar, allowed = request.grammar, request.allowed_ids
    header: dict[str, Any] = {name: getattr(request, name) for name in REQUEST}
    header["stop_ids"] = list(request.stop_ids)
    header["cache_salt"] = request.cache_salt.hex()
    header["grammar"] = None if grammar is None else {n: getattr(grammar, n) for n in GRAMMAR}
    header["prompt"] = len(request.prompt)
    header["allowed_ids"] = None if allowed is None else len(allowed)
    header["logit_bias"] = len(request.logit_bias)
    writer = Writer()
    writer.json(header)
    writer.column(request.prompt)
    writer.numbers("I", allowed or ())
    writer.numbers("I", list(request.logit_bias))
    writer.numbers("d", list(request.logit_bias.values()))
    return seal(Kind.SUBMIT, writer.body())


def decode_submit(body: memoryview) -> EngineRequest:
    """The request of a body. Raises ``CodecError``."""
    reader = Reader(body)
    header = reader.json()
    plain = take_plain(header, REQUEST)
    counts = take_plain(header, COUNTS)
    prompt = reader.column("I", _count(counts["prompt"]))
    allowed = reader.column("I", _count(counts["allowed_ids"] or 0))
    biased = reader.column("I", _count(counts["logit_bias"]))
    biases = reader.column("d", len(biased))
    reader.end()
    return EngineRequest(
        **plain,
        prompt=prompt,
        allowed_ids=None if counts["allowed_ids"] is None else tuple(allowed),
        logit_bias=dict(zip(biased, biases, strict=True)),
        stop_ids=tuple(take_list(header, "stop_ids", int)),
        cache_salt=_bytes(header.get("cache_salt")),
        grammar=_grammar(header.get("grammar")),
    )


def encode_abort(keys: Sequence[int]) -> bytes:
    """Keys to end. Raises ``OverflowError`` for one that is no u32."""
    writer = Writer()
    writer.numbers("I", (len(keys), 0))
    writer.column(array("I", keys))
    return seal(Kind.ABORT, writer.body())


def decode_abort(body: memoryview) -> tuple[int, ...]:
    """The keys of a body. Raises ``CodecError``."""
    reader = Reader(body)
    count, _ = reader.column("I", 2)
    keys = reader.column("I", count)
    reader.end()
    return tuple(keys)


def _count(number: int) -> int:
    if not 0 <= number < 2**32:
        raise CodecError(f"a column cannot have {number} numbers")
    return number


def _bytes(text: object) -> bytes:
    try:
        return bytes.fromhex(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise CodecError("cache_salt of a header is not hexadecimal") from None


def _grammar(spec: object) -> GrammarSpec | None:
    return None if spec is None else GrammarSpec(**take_plain(spec, GRAMMAR))
