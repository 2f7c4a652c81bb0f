"""Every cell of the table can be missed, and every other content of it is a mutant."""

from __future__ import annotations

import pytest

from mutation.cells import OTHER_KIND, SILENT, redirections
from responsory.commands import COMMANDS, Command
from responsory.errors import TableError
from responsory.extended import ExtendedState
from responsory.states import State
from responsory.table import Table
from responsory.transitions import ROWS, TABLE

CELLS = [(state, command) for state in State for command in COMMANDS]


@pytest.mark.parametrize(("state", "command"), CELLS, ids=str)
def test_a_dropped_cell_fails_at_import(state: State, command: type[Command]) -> None:
    """``rows`` is called when ``transitions`` is imported."""
    less: Table[ExtendedState] = Table()
    less._cells = {cell: taken for cell, taken in TABLE._cells.items() if cell != (state, command)}
    with pytest.raises(TableError) as caught:
        less.rows()
    assert str(caught.value) == f"not declared: {command.__name__} in `{state.value}`"


def test_every_cell_is_redirected_to_all_that_it_could_be() -> None:
    rows = {
        state.name: {
            command.__name__: row[command].__name__ if command in row else None
            for command in COMMANDS
        }
        for state, row in ROWS.items()
    }
    found: dict[tuple[str, str], list[str | None]] = {}
    for state, command, real, other in redirections(rows):
        assert rows[state][command] == real != other
        found.setdefault((state, command), []).append(other)
    assert set(found) == {(state.name, command.__name__) for state, command in CELLS}
    assert found["IDLE", "Text"] == [
        None, OTHER_KIND, SILENT, "text_goes_on", "text_opens_part",
    ]  # fmt: skip
    assert found["COMPLETED", "Cancel"] == [None, OTHER_KIND, "cancel"]
    assert found["NEW", "Reasoning"] == ["reasoning_goes_on", "reasoning_opens_item"]
