"""Mutants of the transition table, one cell at a time.

A legal cell: refused, made silent, given an event of another kind, given each other handler that
takes its command. A refused cell: made legal, with each handler that takes its command. (That the
import fails when a cell is dropped is a test of its own, ``test_cells.py``.)
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from mutation.mutants import Mutant, Slot

Rows: TypeAlias = Mapping[str, Mapping[str, str | None]]
"""State → command → handler, by name; None where it is refused."""

PRINT_ROWS = """
import json
from responsory.commands import COMMANDS
from responsory.transitions import ROWS
print(json.dumps({
    state.name: {
        command.__name__: row[command].__name__ if command in row else None for command in COMMANDS
    }
    for state, row in ROWS.items()
}))
"""
SILENT, OTHER_KIND = "lambda m, command: []", "lambda m, command: [ev.Queued(m.seq)]"
HAS_NO_EVENT = "cancel_too_late"
"""The handler that is silent by itself."""


def real_rows() -> Rows:
    """The table of the installed library, read by a process of its own."""
    run = subprocess.run([sys.executable, "-c", PRINT_ROWS], capture_output=True, check=True)
    rows: Rows = json.loads(run.stdout)
    return rows


def redirections(rows: Rows) -> Iterator[tuple[str, str, str | None, str | None]]:
    """(state, command, handler, what takes its place)."""
    for state, row in rows.items():
        for command, real in row.items():
            takers = {row[command] for row in rows.values()} - {None, real}
            others = [None, OTHER_KIND, *([] if real == HAS_NO_EVENT else [SILENT])] if real else []
            for other in [*others, *sorted(filter(None, takers))]:
                yield state, command, real, other


def cell_mutants(module: str, source: str, rows: Rows) -> Iterator[Mutant]:
    """The module of the table, with one cell set anew just before the rows are made of it."""
    tree = ast.parse(source)
    index, made = next(
        (index, node)
        for index, node in enumerate(tree.body)
        if isinstance(node, ast.Assign) and ast.unparse(node) == "ROWS = TABLE.rows()"
    )
    for state, command, real, other in redirections(rows):
        setting = ast.parse(f"TABLE._cells[State.{state}, {command}] = {other}").body
        block = ast.copy_location(ast.If(ast.Constant(True), [*setting, made], []), made)
        change = f"{command} in {state}: {real or 'refused'} → {other or 'refused'}"
        yield Mutant(
            module, tree, Slot(tree, "body", index), block, made.lineno, ast.unparse(made), change
        )
