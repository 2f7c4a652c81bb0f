"""Which protocol a connection speaks.

Hypercorn chooses among its own classes; these are ours.
"""

from __future__ import annotations

from typing import Any

from hypercorn.events import Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H2CProtocolRequiredError, H2ProtocolAssumedError

from antiphon.transport.http1 import AntiphonH1
from antiphon.transport.http2 import AntiphonH2
from antiphon.transport.settings import HostConfig
from antiphon.transport.versions import http1_of
from antiphon.transport.wire import Wire


class Negotiation(ProtocolWrapper):
    """Chooses the protocol: by ALPN, by HTTP/2's preface, or by ``Upgrade: h2c``."""

    config: HostConfig
    protocol: AntiphonH1 | AntiphonH2

    def __init__(self, *connection: Any, alpn_protocol: str | None, wire: Wire) -> None:
        super().__init__(*connection)
        self._wire = wire
        self._connection = (
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.state,
            self.ssl,
            self.client,
            self.server,
            self.send,
        )
        protocol = AntiphonH2 if alpn_protocol == "h2" else http1_of(self.config)
        self.protocol = protocol(*self._connection, wire=wire)

    async def handle(self, event: Event) -> None:
        """Hand ``event`` to the protocol, and change that when the client asks for it."""
        try:
            await self.protocol.handle(event)
        except H2ProtocolAssumedError as assumed:
            self.protocol = AntiphonH2(*self._connection, wire=self._wire)
            await self.protocol.initiate()
            await self.send(Updated(idle=True))
            await self.protocol.handle(RawData(data=assumed.data))
        except H2CProtocolRequiredError as required:
            self.protocol = AntiphonH2(*self._connection, wire=self._wire)
            await self.send(Updated(idle=False))
            await self.protocol.initiate(required.headers, required.settings)
            if required.data:
                await self.protocol.handle(RawData(data=required.data))
