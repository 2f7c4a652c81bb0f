"""The names in the ``wire`` markers of a module, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def names_in(source: str) -> dict[str, set[str]]:
    """Test function to the names in its decorators and in the module's ``pytestmark``."""
    tree = ast.parse(source)
    common: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            common.update(_names(node.value))
    found: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = {name for mark in node.decorator_list for name in _names(mark)}
            if node.name.startswith("test") and own | common:
                found[node.name] = own | common
    return found


def _names(node: ast.AST) -> Iterator[str]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.wire":
            yield from (ast.literal_eval(argument) for argument in call.args)
