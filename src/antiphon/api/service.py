"""What every route needs, made once by the composition root."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from antiphon.runs.catalogue import Catalogue
from antiphon.runs.fanout import Fanout


@attrs.define(kw_only=True)
class Service:
    """The served models, the runs, and the inputs that keep the rest pure."""

    catalogue: Catalogue
    fanout: Fanout
    new_tail: Callable[[], str]
    """A fresh id tail: 32 hex digits of a UUIDv7."""
    draw_seed: Callable[[], int]
    """A u63 from the system's entropy, for requests that bring no seed."""
    api_keys: tuple[str, ...] = ()
    strict_requests: bool = False
    """Unknown body fields are refused instead of listed in ``antiphon-ignored-fields``."""
    ping_s: float = 15.0
    """Seconds of silence before an event stream carries a comment; 0 turns it off."""
    body_timeout_s: float = 60.0
    """Time a client gets to send its body."""
    prompt_timeout_s: float = 10.0
    """Time a chat template and the tokenizer may take for one request."""
