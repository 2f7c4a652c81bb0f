"""The settings of a torch engine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from antiphon.models.files import ModelFiles

Weights: TypeAlias = Literal["auto", "float", "int8", "int4"]


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
    max_waiting: int = attrs.field(validator=attrs.validators.ge(0))
    """Calls of which a sequence is queued beyond those; more calls are refused. By default four
    times as many as run."""
    kv_bytes: int | None = None
    """Size of the KV cache; None: what ``max_running`` full contexts need, within the memory that
    the device can spare."""
    step_tokens: int | None = None
    """Tokens of a step, decodes included; None: by device."""
    weights: Weights = "auto"
    """How the weights are held: as they are computed with (``float``), in rows of 8 bits or in
    groups of 4; ``auto``: by the device and the file."""
    prefix_cache: bool = True
    """Whether pages of earlier prompts are kept and found again."""
    cache: Path | None = None
    """Folder for converted weights; None: the user's cache folder."""

    vocabulary: str | None = attrs.field(default=None, repr=False)
    """A ``TokenTable`` as text: what the tokens spell, for requests whose text is held to a form;
    None: they are refused."""

    @max_waiting.default
    def _four_times_as_many(self) -> int:
        return 4 * self.max_running
