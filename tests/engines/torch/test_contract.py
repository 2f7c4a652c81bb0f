"""The torch engine keeps the port's contract."""

from __future__ import annotations

import pytest

from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.runner import Launch
from antiphon.engines.torch.step import Step
from antiphon.models.files import ModelFiles
from engines.contract import EngineContract
from engines.rig import EngineRig
from engines.torch.requests import a_request


class BrokenRunner:
    """A model that fails."""

    def launch(self, step: Step) -> Launch:
        raise RuntimeError("the device is gone")


class TestTorchContract(EngineContract):
    @pytest.fixture
    def rig(self, tiny: ModelFiles) -> EngineRig:
        options = EngineOptions(
            files=tiny, device="cpu", dtype="float32", max_running=4, max_waiting=20
        )
        engine = TorchEngine(options)

        def kill() -> None:
            assert engine._engine is not None
            engine._engine.runner = BrokenRunner()

        return EngineRig(
            port=engine,
            short=lambda key: a_request(key, seed=3),
            endless=lambda key: a_request(key, max_tokens=100_000),
            over_long=lambda key: a_request(key, [1] * 2048),
            kill=kill,
        )
