"""How many files the process may open: each connection is one."""

from __future__ import annotations

import logging
import sys

if sys.platform != "win32":
    import resource

SPARE = 256
"""For all else: listening sockets, logs, models, libraries."""

log = logging.getLogger("antiphon.transport")


def make_room(connections: int) -> None:
    """Raise the limit of open files towards what ``connections`` need, as far as it may go.

    Where it may not go so far, that is one line in the log.
    """
    if sys.platform == "win32":
        return  # It has no such limit.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            pass  # The system has a limit of its own besides.
    if soft < needed:
        log.warning(
            "%d connections need %d open files and %d are allowed: raise ulimit -n",
            connections,
            needed,
            soft,
        )
