"""What stands between a host and its application: each part only where it is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from hypercorn.typing import ASGIFramework

from antiphon.transport.access_lines import writing
from antiphon.transport.access_log import AccessLog, behind
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
            tell = stack.enter_context(writing(access_log, config.counted))

            def front(inner: ASGIFramework) -> ASGIFramework:
                inner = AccessLog(inner, tell)
                return Forwarded(inner, proxies) if forwarded_allow_ips else inner

            config.fronted = partial(behind, front=front)
            yield front(app)
            return
        yield Forwarded(app, proxies) if forwarded_allow_ips else app
