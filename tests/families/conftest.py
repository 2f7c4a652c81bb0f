"""Each family once, with all its tests before the next: a vocabulary fills much memory."""

from __future__ import annotations

import pytest

from families.originals import FAMILIES, Family


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    """Our tokenizer and the original one."""
    return FAMILIES[request.param](tmp_path_factory.mktemp(request.param))
