"""Work that makes millions of objects, without the collector of cycles.

The collector stops every thread while it walks through all there is, again and again as more is
made: seconds, for a body of sixteen megabytes. JSON and what is made of it hold no cycles, and
are freed by their reference counts.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_enabled = True
"""Whether the collector was on when the first came in."""


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection in any thread, until the last of those that are inside is out again."""
    global _inside, _enabled
    with _lock:
        if not _inside:
            _enabled = gc.isenabled()
        _inside += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            # All is old from here on without having been walked through, as if collections had
            # been survived: the next one would begin with all that was made.
            gc.freeze()
            gc.unfreeze()
            if _enabled and not _inside:
                gc.enable()
