"""What stands between a host and its application: each part only where it is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from hypercorn.typing import ASGIFramework

from antiphon.transport.access_lines import writing
from antiphon.transport.access_log import AccessLog
from antiphon.transport.forwarded import Forwarded, Proxies
from antiphon.transport.settings import HostConfig
from antiphon.transport.versions import Http2Only


@contextmanager
def fronted(
    app: ASGIFramework,
    config: HostConfig,
    *,
    access_log: str | None = None,
    forwarded_allow_ips: Sequence[str] = (),
) -> Iterator[ASGIFramework]:
    """``app`` with an access log and with proxies that are believed, while the block runs.

    A host that speaks HTTP/2 alone needs it too: what is refused for that is written down as well.
    Raises ``StartupError`` for a file that cannot be written and for what is no address.
    """
    proxies = Proxies(forwarded_allow_ips)
    with ExitStack() as stack:
        if config.http == "2":
            app = Http2Only(app, config)
        if access_log is not None:
            app = AccessLog(app, stack.enter_context(writing(access_log, config.counted)))
        if forwarded_allow_ips:
            app = Forwarded(app, proxies)
        yield app
