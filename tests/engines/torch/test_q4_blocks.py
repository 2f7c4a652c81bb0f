"""Four-bit tensors of a GGUF file, in parts and as numbers, are the same matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antiphon.engines.torch.weights.gguf_file import GgufFile
from antiphon.engines.torch.weights.source import Q4_GROUP
from engines.torch.tiny_models import Q, Shape, random_weights, write_gguf

SHAPE = Shape()


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q4_1], ids=lambda kind: kind.name)
def test_the_parts_make_the_matrix(tmp_path: Path, kind: Any) -> None:
    """Query and key rows too, whose order is not the file's."""
    weights = random_weights(SHAPE)
    files, _ = write_gguf(
        tmp_path / "m.gguf",
        SHAPE,
        weights,
        quantised={"proj.weight": kind, "embed_tokens.weight": kind},
    )
    source = GgufFile(files.path)
    matrices = [name for name in source.names() if source.tensor(name).ndim == 2]
    assert len(matrices) == 1 + 7 * SHAPE.layers
    for name in matrices:
        parts = source.quantised(name)
        assert parts is not None
        assert int(parts.codes.min()) >= 0
        assert int(parts.codes.max()) <= 15
        expected = source.tensor(name)
        assert parts.codes.shape == expected.shape
        assert parts.scale.shape == (expected.shape[0], expected.shape[1] // Q4_GROUP)
        scale = parts.scale.repeat_interleave(Q4_GROUP, dim=1)
        minimum = parts.minimum.repeat_interleave(Q4_GROUP, dim=1)
        np.testing.assert_allclose(scale * parts.codes + minimum, expected, rtol=0, atol=1e-6)


def test_other_types_have_no_such_parts(tmp_path: Path) -> None:
    weights = random_weights(SHAPE)
    files, _ = write_gguf(tmp_path / "m.gguf", SHAPE, weights, quantised={"proj.weight": Q.Q8_0})
    source = GgufFile(files.path)
    assert {source.quantised(name) for name in source.names()} == {None}
