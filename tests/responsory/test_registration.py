"""The table is total by construction: a cell dropped or doubled fails at import."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

import pytest

from responsory import transitions
from responsory.commands import COMMANDS, Cancel, Start, Text
from responsory.errors import TableError
from responsory.states import EVERY, State
from responsory.table import Table

if TYPE_CHECKING:
    from responsory.events import Event

SOURCE = ast.parse(inspect.getsource(transitions))
NEW = frozenset({State.NEW})


def is_registration(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list)
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "refuse"
    )


REGISTRATIONS = [index for index, node in enumerate(SOURCE.body) if is_registration(node)]


def run(body: list[ast.stmt]) -> None:
    """Import the transitions module with another body."""
    tree = ast.Module(body=body, type_ignores=[])
    exec(compile(ast.fix_missing_locations(tree), "transitions.py", "exec"), {"__name__": "copy"})


def test_the_real_module_imports() -> None:
    assert len(REGISTRATIONS) > 20
    run(list(SOURCE.body))


@pytest.mark.parametrize("index", REGISTRATIONS)
def test_a_dropped_registration_fails_at_import(index: int) -> None:
    body = list(SOURCE.body)
    node = body[index]
    if isinstance(node, ast.FunctionDef):
        bare = ast.FunctionDef(node.name, node.args, node.body, [], node.returns)
        body[index] = bare
    else:
        del body[index]
    with pytest.raises(TableError, match="not declared: "):
        run(body)


@pytest.mark.parametrize("index", REGISTRATIONS)
def test_a_doubled_registration_fails_at_import(index: int) -> None:
    body = list(SOURCE.body)
    body.insert(index, body[index])
    with pytest.raises(TableError, match="declared twice: "):
        run(body)


def test_the_error_names_every_missing_cell() -> None:
    table: Table[object] = Table()
    table.refuse(EVERY, *(command for command in COMMANDS if command is not Cancel))
    table.refuse(EVERY - {State.IDLE, State.CALL}, Cancel)
    with pytest.raises(TableError) as caught:
        table.rows()
    assert str(caught.value) == "not declared: Cancel in `idle`, Cancel in `call`"


def test_a_refused_cell_cannot_be_declared_again() -> None:
    table: Table[object] = Table()
    table.refuse(NEW, Start)

    def handler(machine: object, command: Start) -> list[Event]:
        return []

    with pytest.raises(TableError, match="declared twice: Start in `new`"):
        table.on(NEW, Start)(handler)


def test_the_type_checker_rejects_a_handler_of_another_command() -> None:
    """mypy --strict runs over the tests and would report this ignore if it were not needed."""
    table: Table[object] = Table()

    def takes_text(machine: object, command: Text) -> list[Event]:
        return []

    table.on(NEW, Start)(takes_text)  # type: ignore[arg-type]  # a Text handler for Start
