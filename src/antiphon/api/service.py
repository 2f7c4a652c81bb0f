"""What every route needs, made once by the composition root."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from antiphon.api.counters import Metrics
from antiphon.runs.catalogue import Catalogue
from antiphon.runs.fanout import Fanout
from responsory.projections.reasoning import ReasoningField
from responsory.projections.responses import Profile


@attrs.define(kw_only=True)
class Service:
    """The served models, the runs, and the inputs that keep the rest pure.

    What is a setting has its default among the settings of the server, and none here.
    """

    catalogue: Catalogue
    fanout: Fanout
    new_tail: Callable[[], str]
    """A fresh id tail: 32 hex digits of a UUIDv7."""
    draw_seed: Callable[[], int]
    """A u63 from the system's entropy, for requests that bring no seed."""
    metrics: Metrics
    api_keys: tuple[str, ...]
    cors_origins: tuple[str, ...]
    """Of pages that may call the API; ``*`` is any."""
    strict_requests: bool
    """Unknown body fields are refused instead of listed in ``antiphon-ignored-fields``."""
    wire_profile: Profile
    """How the events of a Responses stream are named."""
    reasoning_field: ReasoningField
    """Where a chat answer shows its reasoning."""
    secret: bytes = attrs.field(repr=False)
    """Signs the reasoning that clients keep for us."""
    pad: Callable[[int], str]
    """So many random characters, to hide the length of what is sent."""
    max_body: int
    """Bytes of a request body; more is refused."""
    rate_limit: int
    """Generation requests per minute of each key, or of all clients without keys; 0 is off."""
    ping_s: float
    """Seconds of silence before an event stream carries a comment; 0 turns it off."""
    monotonic_s: Callable[[], float] = time.monotonic
    """The clock of the rate limit and of durations, in seconds."""
    body_timeout_s: float = 60.0
    """Time a client gets to send its body, under a host that does not watch over that."""
    prompt_timeout_s: float = 10.0
    """Time a chat template and the tokenizer may take for one request."""
