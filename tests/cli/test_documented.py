"""What the documents say of the settings is what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.cli.limit_options import OPTIONS
from antiphon.cli.serve import serve

DOCS = Path(__file__).parents[2] / "docs"
TRANSPORT = {
    "host", "port", "bind", "backlog", "http", "loop", "certfile", "keyfile", "client_ca",
    "drain_timeout", "forwarded_allow_ips", "access_log", "h2_direct_framing", *OPTIONS,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TRANSPORT))
def test_every_flag_of_the_transport_is_explained(name: str) -> None:
    assert name in {option.name for option in serve.params}
    assert f"--{name.replace('_', '-')}" in (DOCS / "serving.md").read_text()
