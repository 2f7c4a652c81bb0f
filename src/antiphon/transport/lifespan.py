"""The start-up and shutdown of an ASGI application, around the time in which it is served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.typing import LifespanState
from hypercorn.utils import LifespanFailureError, LifespanTimeoutError

from antiphon.errors import StartupError
from antiphon.transport.settings import HostConfig

log = logging.getLogger("antiphon.transport")


@asynccontextmanager
async def lifespan_of(app: ASGIWrapper, config: HostConfig) -> AsyncIterator[LifespanState]:
    """The application is started before the block and shut down after it.

    Raises ``StartupError`` when it does not start.
    """
    loop = asyncio.get_running_loop()
    state: LifespanState = {}
    lifespan = Lifespan(app, config, loop, state)
    task = loop.create_task(lifespan.handle_lifespan())
    try:
        await lifespan.wait_for_startup()
        if task.done():
            task.result()
    except (LifespanFailureError, LifespanTimeoutError) as error:
        raise StartupError(f"The application did not start: {error}") from error
    try:
        yield state
    finally:
        try:
            await lifespan.wait_for_shutdown()
        except LifespanTimeoutError:
            log.warning("the application did not shut down in time")
        task.cancel()
        await asyncio.wait({task})
