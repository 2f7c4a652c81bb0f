"""Old logs: a chain of upcasts is whole or the import fails, and every old version is read."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from responsory import EventLog, Response, Tokens, upcasts
from responsory.commands import Text
from responsory.errors import LogError, TableError
from responsory.testing import a_response
from responsory.testing.strategies import logs
from responsory.upcasts import CHAIN, CURRENT, Upcasts, Version

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = Version(1, 1)

# A history of five versions, made up, whose last is told in the rows of today: each step up has its
# inverse here, so any log can be written as an old version would have written it.
HISTORY = (FIRST, Version(1, 2), Version(2, 2), Version(2, 3), Version(2, 4))
OLD = Upcasts(*HISTORY)
DOWN: dict[Version, Callable[[list[Any]], list[Any]]] = {}
"""What takes a row of the next version back to this one."""


@OLD.step(Version(1, 1))
def a_kind_is_renamed(row: list[Any]) -> list[Any]:
    return ["item_done", *row[1:]] if row[0] == "item_closed" else row


def renamed_back(row: list[Any]) -> list[Any]:
    return ["item_closed", *row[1:]] if row[0] == "item_done" else row


@OLD.step(Version(1, 2))
def usage_becomes_a_list(row: list[Any]) -> list[Any]:
    """A format: usage was an object."""
    return [[*value.values()] if is_usage(value) else value for value in row]


def is_usage(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"in", "out", "cached", "reasoning", "written"}


def usage_was_an_object(row: list[Any]) -> list[Any]:
    if row[0] not in ("completed", "incomplete", "failed", "cancelled"):
        return row
    names = ("in", "out", "cached", "reasoning", "written")
    return [*row[:2], dict(zip(names, row[2], strict=True)), *row[3:]]


@OLD.step(Version(2, 2))
def a_field_is_added(row: list[Any]) -> list[Any]:
    """``background``, before which every response ran at once or said so in its echo."""
    if row[0] != "created":
        return row
    echo = dict(row[4])
    return [*row[:4], echo.pop("background", False), echo]


def the_field_was_not_there(row: list[Any]) -> list[Any]:
    if row[0] != "created":
        return row
    return [*row[:4], {**row[5], **({"background": True} if row[4] else {})}]


@OLD.step(Version(2, 3))
def an_index_counts_from_0(row: list[Any]) -> list[Any]:
    return [*row[:2], row[2] - 1, *row[3:]] if row[0] in WITH_ITEM else row


def the_index_counted_from_1(row: list[Any]) -> list[Any]:
    return [*row[:2], row[2] + 1, *row[3:]] if row[0] in WITH_ITEM else row


WITH_ITEM = {
    *("item_added", "item_done", "item_closed", "part_added", "part_done"),
    *(f"{what}_{end}" for what in ("text", "refusal", "reasoning", "input")
      for end in ("delta", "done")),
}  # fmt: skip
INVERSES = (
    renamed_back,
    usage_was_an_object,
    the_field_was_not_there,
    the_index_counted_from_1,
)
CHAIN_OF_FIVE = OLD.chain()


def told_in(version: Version, log: EventLog) -> list[Any]:
    """The rows of a log as an old version would have written it."""
    header, *rows = log.rows()
    assert isinstance(header, dict)
    for inverse in reversed(INVERSES[HISTORY.index(version) :]):
        rows = [inverse(row) for row in rows]
    return [{**header, **version._asdict()}, *rows]


@settings(deadline=None, max_examples=50)
@given(logs() | logs(ended=False))
def test_every_old_version_is_read(made: tuple[EventLog, list[int]]) -> None:
    log = made[0]
    stored = [log, log.compact()] if log.terminal else [log]
    for version, kept in itertools.product(HISTORY, stored):
        again = EventLog.from_rows(told_in(version, kept), CHAIN_OF_FIVE)
        assert again == kept
        assert Response.replay(again).view() == Response.replay(log).view()


def test_the_old_versions_differ() -> None:
    """So the test above cannot pass with steps that do nothing."""
    log = a_response(background=True).start().text("a").finish().log
    for version, after in itertools.combinations(HISTORY, 2):
        rows = told_in(version, log)
        rows[0].update(after._asdict())
        with pytest.raises(LogError, match=r"^row \d+: "):
            Response.replay(EventLog.from_rows(rows, CHAIN_OF_FIVE))


def test_old_lines_are_read() -> None:
    log = a_response().text("a", "b").finish().log
    rows = told_in(FIRST, log)
    assert EventLog.from_lines(map(json.dumps, rows), CHAIN_OF_FIVE) == log


def test_a_step_gets_a_row_of_its_own() -> None:
    chain = Upcasts(FIRST, Version(1, 2))

    @chain.step(FIRST)
    def in_place(row: list[Any]) -> list[Any]:
        row[0] = {"queue": "queued"}.get(row[0], row[0])
        return row

    rows: list[Any] = [header(1, 1), ["created", 0, "r1", 5, True, {}], ["queue", 1]]
    assert EventLog.from_rows(rows, chain.chain())[1].kind == "queued"
    assert rows[2] == ["queue", 1]


# --- the chain is whole -------------------------------------------------------------------------


def header(format_: Any, machine: Any) -> dict[str, Any]:
    return {"format": format_, "machine": machine, "compacted": False}


def same(row: list[Any]) -> list[Any]:
    return row


def test_a_missing_step() -> None:
    chain = Upcasts(*HISTORY)
    chain.step(Version(1, 2))(same)
    with pytest.raises(TableError) as caught:
        chain.chain()
    assert str(caught.value) == (
        "no step from format 1, machine 1; none from format 2, machine 2; "
        "none from format 2, machine 3"
    )


def test_a_doubled_step() -> None:
    chain = Upcasts(*HISTORY)
    chain.step(FIRST)(same)
    with pytest.raises(TableError, match="declared twice: the step from format 1, machine 1"):
        chain.step(FIRST)(same)


@pytest.mark.parametrize("since", [Version(2, 4), Version(2, 1), Version(0, 1), Version(3, 4)])
def test_a_step_from_no_old_version(since: Version) -> None:
    chain = Upcasts(*HISTORY)
    with pytest.raises(TableError, match="which is no old version"):
        chain.step(since)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ([], "no versions"),
        ([FIRST, FIRST], "does not come next"),
        ([FIRST, Version(2, 2)], "does not come next"),
        ([FIRST, Version(1, 3)], "does not come next"),
        ([FIRST, Version(1, 2), FIRST], "does not come next"),
        ([Version(1, 2), Version(2, 1)], "does not come next"),
    ],
)
def test_a_history_that_cannot_be(versions: list[Version], message: str) -> None:
    with pytest.raises(TableError, match=message):
        Upcasts(*versions)


def test_the_library_checks_its_own_chain_at_import() -> None:
    """A version more in the module's source, without the step to it, and the import fails; with it
    the module imports and reads both."""
    source = ast.parse(inspect.getsource(upcasts))
    (line,) = [
        node
        for node in source.body
        if isinstance(node, ast.Assign) and ast.unparse(node).startswith("UPCASTS = Upcasts(")
    ]
    history = line.value
    assert isinstance(history, ast.Call)
    history.args.append(
        ast.parse(f"Version({CURRENT.format}, {CURRENT.machine + 1})", mode="eval").body
    )

    def run(tree: ast.Module) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "a_copy"}
        exec(compile(ast.fix_missing_locations(tree), "upcasts.py", "exec"), names)
        return names

    with pytest.raises(TableError, match=f"no step from {CURRENT}"):
        run(source)
    step = f"@UPCASTS.step(Version{tuple(CURRENT)})\ndef step(row): return row"
    source.body.insert(source.body.index(line) + 1, ast.parse(step).body[0])
    assert len(run(source)["CHAIN"].versions) == len(CHAIN.versions) + 1


# --- what is refused ----------------------------------------------------------------------------

NO_NUMBERS = [0, -1, True, False, 1.0, "1", None, [1], {}]


@pytest.mark.parametrize("name", ["format", "machine"])
@pytest.mark.parametrize("number", NO_NUMBERS, ids=repr)
def test_what_is_no_version(name: str, number: Any) -> None:
    with pytest.raises(LogError) as caught:
        EventLog.from_rows([{**header(1, 1), name: number}])
    assert str(caught.value) == f"row 1: the {name} of a log cannot be {number!r}"
    assert caught.value.row == 1


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ((1, 3), "format 1, machine 3 is newer than this library, which reads format 1, machine 1"),
        ((2, 1), "format 2, machine 1 is newer than this library, which reads format 1, machine 1"),
        ((2, 2), "; format 1, machine 2"),
        ((10**5000, 1), "a huge int, machine 1 is newer than this library"),
    ],
    ids=["machine", "format", "both", "huge"],
)
def test_a_newer_log(version: tuple[int, int], message: str) -> None:
    with pytest.raises(LogError) as caught:
        EventLog.from_rows([{**header(*version), "what only it knows": 5}])
    assert message in str(caught.value)
    assert caught.value.row == 1


@pytest.mark.parametrize("version", [Version(2, 1), Version(1, 4), Version(1, 3)], ids=str)
def test_a_version_that_never_was(version: Version) -> None:
    with pytest.raises(LogError) as caught:
        EventLog.from_rows([header(*version)], CHAIN_OF_FIVE)
    told = "; ".join(map(str, HISTORY))
    assert str(caught.value) == f"row 1: {version} never was, and this library reads {told}"


def test_the_first_version_that_can_tell_a_log_is_written() -> None:
    """So a release that reads no tokens reads every log without them."""
    made = a_response().send(Text("a", (), None, Tokens((5,), 1))).finish()
    assert next(a_response().text("a").finish().log.rows()) == header(*FIRST)
    assert next(made.log.rows()) == header(*CURRENT)
    assert EventLog.from_rows(made.log.rows()) == made.log
    assert CHAIN.versions == (FIRST, CURRENT) == (FIRST, Version(1, 2))


def test_a_step_that_only_says_that_more_can_be_told() -> None:
    rows = [*a_response().text("a").finish().log.rows()]
    assert CHAIN.since(FIRST)(rows[1]) is rows[1]
    assert CHAIN.since(CURRENT)(rows[1]) is rows[1]
    assert upcasts.unchanged(["queued", 1]) == ["queued", 1]


def explodes(row: list[Any]) -> list[Any]:
    return [row[0], row[1], row[17]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (explodes, "IndexError: list index out of range"),
        (lambda row: None, "not a row: None"),
        (lambda row: [], r"not a row: \[\]"),
        (lambda row: ["queued"], "not a row: "),
        (lambda row: [7, *row[1:]], "unknown kind of event: 7"),
        (lambda row: ["queued", "1"], "seq cannot be '1'"),
        (lambda row: ["queued", 5], "seq 1 became 5"),
        (lambda row: (_ for _ in ()).throw(SystemError("odd")), "SystemError: odd"),
    ],
)
def test_a_step_that_fails(step: Callable[[list[Any]], list[Any]], message: str) -> None:
    chain = Upcasts(FIRST, Version(1, 2))

    @chain.step(FIRST)
    def fails_on_queued(row: list[Any]) -> list[Any]:
        return step(row) if row[0] == "queued" else row

    rows: list[Any] = [header(1, 1), ["created", 0, "r1", 5, True, {}], ["queued", 1]]
    with pytest.raises(LogError, match=message) as caught:
        EventLog.from_rows(rows, chain.chain())
    assert caught.value.row == 3
    assert "the upcast from format 1, machine 1: " in str(caught.value)


@pytest.mark.parametrize("row", [None, [], ["queued"], "queued", [1, 2], ["queued", True]])
def test_no_step_sees_what_is_no_row(row: Any) -> None:
    chain = Upcasts(FIRST, Version(1, 2))
    chain.step(FIRST)(explodes)
    with pytest.raises(LogError, match=r"row 2: (not a row|unknown kind|seq cannot be)"):
        EventLog.from_rows([header(1, 1), row], chain.chain())


def test_what_a_step_makes_is_read_like_any_row() -> None:
    chain = Upcasts(FIRST, Version(1, 2))
    chain.step(FIRST)(lambda row: ["exploded", *row[1:]])
    with pytest.raises(LogError, match="row 2: unknown kind of event: 'exploded'"):
        EventLog.from_rows([header(1, 1), ["queued", 0]], chain.chain())


def test_the_type_checker_rejects_a_step_that_takes_no_row() -> None:
    """mypy --strict runs over the tests and would report this ignore if it were not needed."""
    chain = Upcasts(FIRST, Version(1, 2))

    def takes_a_header(row: dict[str, Any]) -> dict[str, Any]:
        return row

    chain.step(FIRST)(takes_a_header)  # type: ignore[arg-type]  # a row is a list
