"""What the documents say of the settings is what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.cli.limit_options import OPTIONS
from antiphon.cli.serve import serve
from antiphon.config import Config
from antiphon.transport.counted import meanings
from antiphon.transport.limits import DEFAULT_LIMITS

DOCS = Path(__file__).parents[2] / "docs"
TRANSPORT = {
    "host", "port", "bind", "backlog", "http", "loop", "certfile", "keyfile", "client_ca",
    "drain_timeout", "forwarded_allow_ips", "access_log", "h2_direct_framing", *OPTIONS,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TRANSPORT))
def test_every_flag_of_the_transport_is_explained(name: str) -> None:
    assert name in {option.name for option in serve.params}
    assert f"--{name.replace('_', '-')}" in (DOCS / "serving.md").read_text()


UNITS = {"": 1, "s": 1, "KiB": 1024, "MiB": 1024 * 1024}
VALUE = re.compile(r"([\d.]+) ?(KiB|MiB|s|)(?:/s)?")


def rows(page: str) -> Iterator[list[str]]:
    """The cells of every row of every table."""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def flags(cell: str) -> list[str]:
    return [flag.replace("-", "_") for flag in re.findall(r"`--([a-z0-9-]+)`", cell)]


def numbers(cell: str) -> list[float]:
    return [float(number) * UNITS[unit] for number, unit in VALUE.findall(cell)]


def test_the_limits_are_what_the_table_says() -> None:
    told: dict[str, float] = {}
    for first, *rest in rows("serving.md"):
        if len(rest) == 2 and (names := flags(first)):
            told |= zip(names, numbers(rest[0]), strict=True)
    assert told == {name: getattr(DEFAULT_LIMITS, name) for name in OPTIONS}


TOLD: dict[str, tuple[str, object]] = {
    "host": ("127.0.0.1 and 8000", "127.0.0.1"),
    "port": ("127.0.0.1 and 8000", 8000),
    "backlog": ("2048; ", 2048),
    "http": ("`auto`; ", "auto"),
    "loop": ("`auto`: ", "auto"),
    "drain_timeout": ("`--drain-timeout` seconds (30)", 30.0),
    "max_body": ("a body, 16 MiB; ", 16 * 1024 * 1024),
    "max_waiting": ("runs at once, 256; ", 256),
    "rate_limit": ("no keys), off; ", 0),
}
"""What a page says of a setting, and the value that it means."""


@pytest.mark.parametrize("name", TOLD)
def test_the_other_defaults_are_what_the_pages_say(name: str) -> None:
    words, value = TOLD[name]
    flag = f"--{name.replace('_', '-')}"
    text = [(DOCS / page).read_text() for page in ("serving.md", "api.md")]
    assert any(flag in line and words in line for page in text for line in page.splitlines())
    assert getattr(Config(), name) == value


@pytest.mark.parametrize(("name", "meaning"), meanings().items())
def test_every_counter_of_the_transport_is_explained(name: str, meaning: str) -> None:
    _, _, table = (DOCS / "serving.md").read_text().partition("## Counters")
    row = next(line for line in table.splitlines() if line.startswith(f"| `{name}` |"))
    assert meaning.lower() in row.lower()
    for flag in re.findall(r"`--([a-z0-9-]+)`", row):
        assert flag.replace("-", "_") in TRANSPORT


def test_no_other_counter_is_named() -> None:
    brackets = re.findall(r"\[((?:`[a-z_]+`(?:, )?)+)\]", (DOCS / "transport.md").read_text())
    named = {name for each in brackets for name in re.findall(r"[a-z_]+", each)}
    assert named - {*meanings()} == set()
    assert len(named) > 10
