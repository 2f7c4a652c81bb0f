"""The rows of the contract, and which tests name them."""

from __future__ import annotations

import tomllib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

import attrs

from wire.fields import CLASSES

CONTRACT = Path(__file__).with_name("contract.toml")
LATER = ("later:", "never:")
REFUSED, IGNORED = "refused by name", "ignored, and told so"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": ("chat", "completions", "responses"),
    "chunked": ("chat", "completions"),
    "conversation": ("chat", "responses"),
    **{name: (name,) for name in CLASSES},
}
"""The endpoints of a table of parameters."""


@attrs.frozen
class Row:
    """``id``: as tests name it. ``says``: what is held, in a few words."""

    id: str
    says: str

    @property
    def due(self) -> bool:
        """Whether some test must hold it."""
        return not self.says.startswith(LATER)


def load(path: Path = CONTRACT) -> dict[str, Row]:
    """Every row by its id, in the order of the file; what is refused or ignored by name last."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = [Row(name, says) for name, says in data["rules"].items()]
    rows += [Row(f"error:{code}", says) for code, says in data["errors"].items()]
    rows += [Row(f"endpoint:{name}", says) for name, says in data["endpoints"].items()]
    for group, table in data["parameters"].items():
        rows += [
            Row(f"param:{endpoint}.{name}", says)
            for name, says in table.items()
            for endpoint in GROUPS[group]
        ]
    for kind, says in (("refused", REFUSED), ("ignored", IGNORED)):
        for group, names in data[kind].items():
            rows += [Row(f"param:{each}.{name}", says) for name in names for each in GROUPS[group]]
    by_id: dict[str, Row] = {}
    for row in rows:
        by_id.setdefault(row.id, row)
    return by_id


def names_of(rows: Mapping[str, Row], endpoint: str, says: str) -> list[str]:
    """The parameters of an endpoint of which this is said."""
    prefix = f"param:{endpoint}."
    return [
        row.id.removeprefix(prefix)
        for row in rows.values()
        if row.id.startswith(prefix) and row.says == says
    ]


def named(name: str, rows: Mapping[str, Row]) -> list[str]:
    """The ids that a marker's argument names. Raises ``KeyError`` for one that names none."""
    if not name.startswith("param:*."):
        return [rows[name].id]
    found = [row for endpoint in CLASSES if (row := f"param:{endpoint}.{name[8:]}") in rows]
    if not found:
        raise KeyError(name)
    return found


def nearest(name: str, rows: Container[str]) -> str | None:
    """The row of this name, or of the field around the place that it is: ``stop[1]`` is of
    ``stop``. None where neither is a row."""
    while name not in rows:
        cut = max(name.rfind("["), name.rfind("."))
        if cut < 0:
            return None
        name = name[:cut]
    return name


def held(tests: Mapping[str, Iterable[str]], rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """The tests that hold each row, from the names that each test has in its markers."""
    found: dict[str, set[str]] = {row: set() for row in rows}
    for test, names in tests.items():
        for name in names:
            for row in named(name, rows):
                found[row].add(test)
    return {row: sorted(tests) for row, tests in found.items()}
