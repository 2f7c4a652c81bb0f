"""Fixtures of the torch engine's tests."""

from __future__ import annotations

import pytest

from antiphon.models.files import ModelFiles
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """A random model in the Hugging Face layout, context 2,048."""
    shape = Shape()
    path = tmp_path_factory.mktemp("models") / "tiny"
    return write_hf(path, hf_config(shape), random_weights(shape))
