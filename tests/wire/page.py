"""docs/wire-coverage.md: every row of the contract with the tests that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wire.rows import Row

HEAD = """\
# What holds the wire

Made by `nox -s tests -- tests/wire --update-wire-coverage` from `tests/wire/contract.toml` and the
`wire` markers of all tests; a test fails when it is stale, and when a row that is not `later` has
no test. A test stands here once, however many parameters it is run with, by its path in `tests`.
"""
RULES = (
    ("F", "Framing"),
    ("I", "Identity"),
    ("G", "The Responses stream"),
    ("C", "Chunks of chat and completions"),
    ("S", "Standing rules"),
    ("K", "What SDKs stumble over"),
    ("P", "What is easily got wrong"),
)


def page(rows: Mapping[str, Row], held: Mapping[str, Sequence[str]]) -> str:
    """The whole document."""
    return "\n".join([HEAD, *_parameters(rows, held), *_rest(rows, held)]) + "\n"


def _parameters(rows: Mapping[str, Row], held: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One line for each parameter and what is done with it, whichever endpoints do it."""
    yield from ("## Parameters", "", "| parameter | endpoints | what is done | tests |")
    yield "|---|---|---|---|"
    merged: dict[tuple[str, str], list[str]] = {}
    for row in rows.values():
        if row.id.startswith("param:"):
            endpoint, _, name = row.id.removeprefix("param:").partition(".")
            merged.setdefault((name, row.says), []).append(endpoint)
    for (name, says), endpoints in merged.items():
        tests = {test for each in endpoints for test in held[f"param:{each}.{name}"]}
        yield f"| `{name}` | {', '.join(endpoints)} | {_cell(says)} | {_links(sorted(tests))} |"
    yield ""


def _rest(rows: Mapping[str, Row], held: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for title, ids in (
        ("Endpoints", [row for row in rows if row.startswith("endpoint:")]),
        ("Errors", [row for row in rows if row.startswith("error:")]),
        *((name, [row for row in rows if row[0] == letter and row[1:].isdigit()])
          for letter, name in RULES),
    ):  # fmt: skip
        yield from (f"## {title}", "", "| row | what it says | tests |", "|---|---|---|")
        for row in ids:
            name = row.partition(":")[2]
            shown = f"`{name}`" if name else row
            yield f"| {shown} | {_cell(rows[row].says)} | {_links(held[row])} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _links(tests: Sequence[str]) -> str:
    return "<br>".join(f"`{test.removeprefix('tests/')}`" for test in tests) or "–"
