"""Which engine the settings ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.config import TORCH_ONLY, Config
from antiphon.engines.child.engine import ChildEngine
from antiphon.engines.port import EnginePort
from antiphon.engines.supervisor import Supervisor
from antiphon.engines.torch import TorchEngine, guess
from antiphon.engines.torch.guess import is_cuda
from antiphon.loading import torch_engine
from antiphon.models.files import ModelFiles


def chosen(**settings: Any) -> type[EnginePort]:
    config = Config(**settings)
    config.check()
    return type(torch_engine(config, ModelFiles("m", "hf", Path("m"))))


@pytest.fixture(params=[False, True], ids=["no-driver", "driver"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bool:
    """Whether the machine has a driver for CUDA."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(guess, "DRIVERS", (tmp_path,) if request.param else ())
    return bool(request.param)


def test_a_thread_on_a_cpu_and_a_child_on_cuda(driver: bool) -> None:
    assert chosen() is (Supervisor if driver else TorchEngine)
    assert chosen(device="cpu") is TorchEngine
    assert chosen(device="cuda:1") is Supervisor
    assert chosen(device="cuda", engine_restart=False) is ChildEngine


def test_what_only_a_child_can_do_brings_one(driver: bool) -> None:
    for settings in ({"engine_process": "child"}, {"engine_restart": True}):
        assert chosen(device="cpu", **settings) is Supervisor
    assert chosen(device="cpu", engine_hang_timeout=5.0) is Supervisor
    assert chosen(device="cpu", engine_restart=False) is TorchEngine
    assert chosen(device="cpu", engine_process="child", engine_restart=False) is ChildEngine
    assert chosen(device="cuda", engine_process="thread") is TorchEngine


@pytest.mark.parametrize("shown", ["", "-1"])
def test_devices_that_are_hidden_are_not_there(
    driver: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_cuda("auto") is driver
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert not is_cuda("auto")
    assert is_cuda("cuda:0"), "what is asked for is tried"


@pytest.mark.parametrize("name", sorted(TORCH_ONLY))
def test_every_setting_of_the_engine_is_explained(name: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "serving.md"
    assert f"| `--{name.replace('_', '-')}` |" in page.read_text()
