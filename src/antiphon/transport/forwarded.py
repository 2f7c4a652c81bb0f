"""Who a request comes from when proxies are in between, by those of them that are believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope

from antiphon.errors import StartupError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

ANY = "*"
UNIX = "unix"
MAPPED_BITS = 96
"""Before the IPv4 address in an IPv6 one (RFC 4291, section 2.5.5.2)."""
FOR = b"x-forwarded-for"
PROTO = b"x-forwarded-proto"


def ip_of(text: str) -> Ip:
    """The address that ``text`` names, an IPv4 one also where a socket for both calls it an IPv6
    one (``::ffff:192.0.2.1``). Raises ``ValueError`` for what is none.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


class Proxies:
    """The peers whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed.

    Each of ``allowed`` is an IP address or network, ``unix`` (whoever may connect to a socket in
    the file system) or ``*``. Raises ``StartupError`` for what is none of these.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        given = set(allowed)
        self._any = ANY in given
        self._unix = self._any or UNIX in given
        self._networks: Sequence[Network] = [_network(each) for each in given - {ANY, UNIX}]

    def __contains__(self, peer: Ip | None) -> bool:
        """Whether ``peer`` is believed; None is one without an address."""
        if peer is None:
            return self._unix
        return self._any or any(peer in network for network in self._networks)

    def client(self, peer: Ip | None, forwarded: Sequence[bytes]) -> Ip | None:
        """The nearest client that is none of the proxies, or the farthest one that is told.

        ``forwarded`` are the values of all ``X-Forwarded-For`` lines in their order. Each proxy
        adds who it was called by at the end, and is asked no further when it is not believed or
        has written what is no address.
        """
        hops = b",".join(forwarded).split(b",") if forwarded else []
        while peer in self and hops:
            hop = _address(hops.pop())
            if hop is None:
                break
            peer = hop
        return peer


class Forwarded:
    """``app``, that is told the client and the scheme that its proxies tell."""

    def __init__(self, app: ASGIFramework, proxies: Proxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """As ASGI. The port of a client that is told is not known, and 0."""
        if scope["type"] != "lifespan":
            peer = ip_of(scope["client"][0]) if scope["client"] else None
            if peer in self._proxies:
                headers = list(scope["headers"])
                client = self._proxies.client(peer, _values(headers, FOR))
                if client is not None and client != peer:
                    scope["client"] = (str(client), 0)
                if (scheme := _values(headers, PROTO)[-1:]) in ([b"http"], [b"https"]):
                    scope["scheme"] = scheme[0].decode()
        await self._app(scope, receive, send)


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip() for key, value in headers if key.lower() == name]


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise StartupError(
            f"--forwarded-allow-ips: {text!r} is no IP address or network, nor unix or *."
        ) from None
    mapped, bits = ip_of(str(network.network_address)), network.prefixlen - MAPPED_BITS
    return (
        network if mapped.version == network.version else ipaddress.ip_network(f"{mapped}/{bits}")
    )


def _address(hop: bytes) -> Ip | None:
    """The address of ``1.2.3.4``, ``1.2.3.4:5``, ``::1`` or ``[::1]:5``; None if it is none."""
    text = hop.strip().decode("latin-1")
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return ip_of(text)
    except ValueError:
        return None
