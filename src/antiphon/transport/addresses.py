"""Where a server can be told to listen, as text: ``HOST:PORT``, ``unix:PATH`` or ``fd://N``."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import attrs

from antiphon.errors import StartupError


@attrs.frozen
class TcpAddress:
    """A host and a port; 0 is any free one."""

    host: str
    port: int


@attrs.frozen
class UnixAddress:
    """A socket in the file system."""

    path: Path


@attrs.frozen
class InheritedAddress:
    """A socket that whoever started this process has bound: socket activation."""

    fd: int


Address: TypeAlias = TcpAddress | UnixAddress | InheritedAddress


def parse_address(text: str) -> Address:
    """The address that ``text`` names; an IPv6 host is in brackets. Raises ``StartupError``."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise StartupError(f"Address {text!r} has no path.")
        return UnixAddress(Path(path))
    if text.startswith("fd://"):
        return InheritedAddress(_number(text, text.removeprefix("fd://")))
    host, colon, port = text.rpartition(":")
    is_ipv6 = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if is_ipv6 else host
    if not colon or not bare or (":" in bare) != is_ipv6 or {"[", "]"} & set(bare):
        raise StartupError(
            f"Address {text!r} is none of HOST:PORT, [IPV6]:PORT, unix:PATH and fd://NUMBER."
        )
    return TcpAddress(bare, _number(text, port))


def _number(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise StartupError(f"Address {text!r} has no number at its end.")
    return int(digits)
