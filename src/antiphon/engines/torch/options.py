"""The settings of a torch engine."""

from __future__ import annotations

import attrs

from antiphon.models.files import ModelFiles


@attrs.frozen(kw_only=True)
class EngineOptions:
    """All that ``load`` needs to know."""

    files: ModelFiles
    device: str = "auto"
    """``cpu``, ``cuda``, ``cuda:N``, or ``auto``: CUDA where there is one."""
    dtype: str = "auto"
    """``float32``, ``bfloat16``, ``float16``, or ``auto``: bfloat16 where the device is fast in it,
    else float32."""
    threads: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Threads of one operator on the CPU."""
    max_running: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    """Sequences in one step."""
    max_waiting: int = attrs.field(default=64, validator=attrs.validators.ge(0))
    """Calls of which a sequence is queued beyond those; more calls are refused."""
    kv_bytes: int | None = None
    """Size of the KV cache; None: what ``max_running`` full contexts need, within the memory that
    the device can spare."""
    step_tokens: int | None = None
    """Tokens of a step, decodes included; None: by device."""
