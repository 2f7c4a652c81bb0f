"""The sections of a Markdown page that are written by this tool, each between two marker lines.

::

    <!-- responsory.draw: states -->
    …
    <!-- end -->

A marker is a line of its own. Everything outside the sections is left as it is, line endings
included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from responsory.draw.diagram import diagram
from responsory.draw.errors import DrawError
from responsory.draw.exploration import explore, rows
from responsory.draw.tables import commands_table, events_table, states_table, transition_table

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER = re.compile(r"<!--\s*responsory\.draw\b(?P<name>.*?)-->")
END = "<!-- end -->"


def sections() -> Mapping[str, str]:
    """The text of every section by name. Raises DrawError where the machine cannot be shown."""
    found = explore()
    table = rows(found)
    return {
        "diagram": f"```mermaid\n{diagram(table)}\n```",
        "states": states_table(),
        "table": transition_table(table),
        "commands": commands_table(table),
        "events": events_table(found),
    }


def block(name: str, text: str) -> str:
    """A section with its markers."""
    return f"<!-- responsory.draw: {name} -->\n\n{text}\n\n{END}"


def redrawn(page: str, drawn: Mapping[str, str]) -> tuple[str, list[str]]:
    """The page with its sections as ``drawn``, and the names of those that were not so before.

    Raises DrawError, with the line, for a marker that names no section, for one without its other
    half, and for a page without any.
    """
    ending = "\r\n" if "\r\n" in page else "\n"
    lines: list[str] = []
    stale: list[str] = []
    name, begun, old = "", 0, list[str]()
    sections = 0
    for number, line in enumerate(page.split(ending), 1):
        stripped = line.strip()
        marker = MARKER.fullmatch(stripped)
        if marker is not None:
            if begun:
                raise DrawError(f"line {number}: the section of line {begun} has not ended")
            name, begun, old = _name(marker, drawn, number), number, [line]
            sections += 1
        elif begun and stripped == END:
            new = block(name, drawn[name]).split("\n")
            stale += [name] if [*old, line] != new else []
            lines += new
            begun = 0
        elif stripped == END:
            raise DrawError(f"line {number}: the end of a section that has not begun")
        elif begun:
            old.append(line)
        else:
            lines.append(line)
    if begun:
        raise DrawError(f"line {begun}: the section `{name}` has no end")
    if not sections:
        raise DrawError(f"no section in it; known: {', '.join(drawn)}")
    return ending.join(lines), stale


def _name(marker: re.Match[str], drawn: Mapping[str, str], number: int) -> str:
    colon, _, name = marker["name"].partition(":")
    name = name.strip()
    if colon.strip() or name not in drawn:
        raise DrawError(f"line {number}: {marker[0]} names no section; known: {', '.join(drawn)}")
    return name
