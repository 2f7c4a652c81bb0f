"""The map holds: which room imports which, where each third party lives, how long modules are."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "antiphon"
LIBRARY = ROOT / "statemachines" / "responsory"

# room → what it may import of the project besides itself; a dotted name allows that module alone.
ARROWS: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": {"cli"},
    "api": {
        "errors", "requests", "responsory.projections", "runs",
        "transport.counted", "transport.header_size", "transport.limits", "transport.naming",
        "transport.quart_host", "transport.settings",
    },
    "app": {"api", "config", "engines.port", "runs", "transport.quart_host"},
    "cli": {
        "config", "errors", "inspection", "models", "responsory.projections", "serving",
        "transport.limits", "transport.settings",
    },
    "config": {
        "errors", "responsory.projections", "responsory.segments", "transport.addresses",
        "transport.limits", "transport.settings",
    },
    "engines": {"errors"},
    "engines.torch": {
        "engines.child", "engines.frame_builder", "engines.outbox", "engines.port", "errors",
        "models",
    },
    "errors": set(),
    "greeting": {"config", "runs.catalogue"},
    "inspection": {"config", "models", "prompting", "runs.model_formats"},
    "loading": {
        "config", "engines", "errors", "models.files", "prompting", "responsory.segments",
        "runs.catalogue", "runs.model_formats",
    },
    "models": {"errors"},
    "prompting": {"errors", "models", "requests"},
    "requests": {"errors"},
    "runs": {"engines.port", "errors", "prompting", "requests", "responsory", "transport.sink"},
    "serving": {"api.counters", "app", "config", "greeting", "loading", "transport"},
    "transport": {"errors", "responsory.log"},
}  # fmt: skip

# third party → the rooms (or modules) that may import it.
HOMES: dict[str, set[str]] = {
    "torch": {"engines.torch", "kernels"},
    "cupy": {"kernels.cupy_backend"},
    "quart": {"app", "api", "transport.quart_host"},
    "httpx2": {"models.hub_errors"},
    "huggingface_hub": {"models"},
    "hypercorn": {"transport"},
    "cattrs": {"requests"},
    "click": {"__main__", "cli"},
    "itsdangerous": {"runs.envelope"},
    "llguidance": {"engines.torch.grammar"},
    "numpy": {"engines.torch", "requests.token_ids"},
    "prometheus_client": {"api.counters", "api.engine_metrics", "api.metrics"},
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(module: str) -> str:
    if module.startswith("engines.torch"):
        return "engines.torch"
    return module.partition(".")[0]


def within(module: str, place: str) -> bool:
    return module == place or module.startswith(f"{place}.")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "antiphon":
                yield from (f"antiphon.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_follow_the_arrows(path: Path) -> None:
    module = name_of(path)
    room = room_of(module)
    for target in imports(path):
        if target == "antiphon":
            continue
        if within(target, "antiphon"):
            inner = target.removeprefix("antiphon.")
            allowed = ARROWS[room] | {room}
            assert any(within(inner, place) for place in allowed) or inner == "__version__", (
                f"{module} → {inner}"
            )
        elif within(target, "responsory"):
            assert any(within(target, place) for place in ARROWS[room]), f"{module} → {target}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_third_parties_stay_at_home(path: Path) -> None:
    module = name_of(path)
    for target in imports(path):
        homes = HOMES.get(target.partition(".")[0])
        assert homes is None or any(within(module, home) for home in homes), f"{module} → {target}"


def test_the_map_names_every_room() -> None:
    assert {room_of(name_of(path)) for path in MODULES} == {*ARROWS}


@pytest.mark.parametrize("module", ["antiphon.api.chat", "antiphon.app", "antiphon.cli.serve"])
def test_importing_does_not_import_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_modules_are_small() -> None:
    lengths = {
        path: len(path.read_text().splitlines()) for path in [*MODULES, *LIBRARY.rglob("*.py")]
    }
    assert statistics.median(lengths.values()) < 120
    assert {path.name: n for path, n in lengths.items() if n > 300} == {}
