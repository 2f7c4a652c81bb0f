"""``stream_options``: what a stream tells beside its text."""

from __future__ import annotations

import attrs


@attrs.define(kw_only=True)
class StreamOptions:
    """``stream_options`` of every endpoint."""

    include_obfuscation: bool = False


@attrs.define(kw_only=True)
class ChunkOptions(StreamOptions):
    """``stream_options`` of chat and completions, which do not send usage unasked."""

    include_usage: bool = False
    continuous_usage_stats: bool = False
