"""What else is told in JSON: how an engine is to be started, and that it has, or has ended."""

from __future__ import annotations

from typing import Any

from antiphon.engines.codec.columns import Reader, Writer
from antiphon.engines.codec.envelope import CodecError, Kind, seal
from antiphon.engines.codec.fields import plain_fields, take_list, take_plain
from antiphon.engines.port import EngineInfo

INFO = plain_fields(EngineInfo)
TEXT: dict[str, frozenset[type]] = {"text": frozenset({str, type(None)})}


def encode_start(options: dict[str, Any]) -> bytes:
    """The options of an engine, an object of JSON."""
    return _sealed(Kind.START, options)


def decode_start(body: memoryview) -> dict[str, Any]:
    """The options of a body. Raises ``CodecError``."""
    header = _header(body)
    if not isinstance(header, dict):
        raise CodecError("a header is no object")
    return header


def encode_info(info: EngineInfo) -> bytes:
    """What a started engine is."""
    header: dict[str, Any] = {name: getattr(info, name) for name in INFO}
    header["eos_ids"] = sorted(info.eos_ids)
    header["capabilities"] = sorted(info.capabilities)
    return _sealed(Kind.READY, header)


def decode_info(body: memoryview) -> EngineInfo:
    """The description in a body. Raises ``CodecError``."""
    header = _header(body)
    return EngineInfo(
        **take_plain(header, INFO),
        eos_ids=frozenset(take_list(header, "eos_ids", int)),
        capabilities=frozenset(take_list(header, "capabilities", str)),
    )


def encode_text(kind: Kind, text: str | None) -> bytes:
    """A message of one text, or of none."""
    return _sealed(kind, {"text": text})


def decode_text(body: memoryview) -> str | None:
    """The text of a body. Raises ``CodecError``."""
    text: str | None = take_plain(_header(body), TEXT)["text"]
    return text


def _sealed(kind: Kind, header: dict[str, Any]) -> bytes:
    writer = Writer()
    writer.json(header)
    return seal(kind, writer.body())


def _header(body: memoryview) -> Any:
    reader = Reader(body)
    header = reader.json()
    reader.end()
    return header
