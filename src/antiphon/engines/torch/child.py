"""The torch engine in a process of its own: ``python -m antiphon.engines.torch.child FD``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from antiphon.engines.child.engine import HANG_S, ChildEngine
from antiphon.engines.child.main import run
from antiphon.engines.port import StepFrame
from antiphon.engines.torch.inbox import Inbox
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.start import start_loop
from antiphon.models.files import ModelFiles

if TYPE_CHECKING:
    from antiphon.engines.torch.loop import EngineLoop

ARGV = (sys.executable, "-P", "-m", __spec__.name if __spec__ else __name__)
PATHS = frozenset(field.name for field in attrs.fields(EngineOptions) if "Path" in str(field.type))
"""Options that are paths, beside the model's."""


def torch_child(options: EngineOptions, *, hang_s: float = HANG_S) -> ChildEngine:
    """The engine of these options; its process is spawned by ``start``."""
    return ChildEngine(ARGV, to_json(options), hang_s=hang_s)


def to_json(options: EngineOptions) -> dict[str, Any]:
    """The options as JSON can hold them."""
    return attrs.asdict(options, value_serializer=lambda _, __, value: _plain(value))


def from_json(values: dict[str, Any]) -> EngineOptions:
    """The options of ``to_json``. Raises ``TypeError`` or ``ValueError`` for others."""
    given = dict(values)
    files = given.pop("files")
    for name in PATHS:
        if given[name] is not None:
            given[name] = Path(given[name])
    return EngineOptions(files=ModelFiles(**files | {"path": Path(files["path"])}), **given)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _load(values: dict[str, Any], inbox: Inbox, emit: Callable[[StepFrame], None]) -> EngineLoop:
    return start_loop(from_json(values), inbox, emit)


if __name__ == "__main__":
    run(int(sys.argv[1]), _load)
