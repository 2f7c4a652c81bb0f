"""The torch engine in a process of its own keeps the port's contract."""

from __future__ import annotations

import pytest

from antiphon.engines.torch.child import torch_child
from antiphon.engines.torch.options import EngineOptions
from antiphon.models.files import ModelFiles
from engines.contract import EngineContract
from engines.rig import EngineRig
from engines.torch.requests import a_request


class TestTorchChildContract(EngineContract):
    @pytest.fixture
    def rig(self, tiny: ModelFiles) -> EngineRig:
        engine = torch_child(
            EngineOptions(files=tiny, device="cpu", dtype="float32", max_running=4, max_waiting=20)
        )

        def kill() -> None:
            assert engine.process is not None
            engine.process.kill()

        return EngineRig(
            port=engine,
            short=lambda key: a_request(key, seed=3),
            endless=lambda key: a_request(key, max_tokens=100_000),
            over_long=lambda key: a_request(key, [1] * 2048),
            kill=kill,
        )
