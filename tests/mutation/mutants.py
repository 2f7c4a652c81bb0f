"""All mutants of a module: each differs from it in one place.

Left alone, because no behaviour hangs on them or the type checker has them: imports, annotations,
base classes, docstrings and the like, ``__slots__``, ``__all__``, type variables, blocks for type
checkers, decorators without arguments, and the words of errors that are raised (the raising itself
is not).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mutation.operators import Families, others

UNMUTATED_FIELDS = frozenset({"annotation", "returns", "bases"})


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the tree: ``owner.field``, or the entry ``index`` of that list."""

    owner: ast.AST
    field: str
    index: int | None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


@dataclass(frozen=True, slots=True)
class Mutant:
    """``line``: the source line where the changed code begins, as text; ``change``: in words, with
    a number where the same is done to the same line once more."""

    module: str
    tree: ast.Module
    slot: Slot
    other: ast.AST
    number: int
    line: str
    change: str

    def grown(self) -> ast.Module:
        """The mutated tree. All mutants of a module share its tree, and it stays mutated: for a
        process of its own."""
        self.slot.put(self.other)
        return ast.fix_missing_locations(self.tree)

    def __str__(self) -> str:
        return f"{self.module}:{self.number}: {self.line}\n    {self.change}"


def mutants(module: str, source: str, families: Families = ()) -> Iterator[Mutant]:
    tree, lines = ast.parse(source), source.splitlines()
    seen: Counter[tuple[str, str]] = Counter()
    for slot, node, number in places(tree):
        line = lines[number - 1].strip()
        for other, change in others(slot.owner, node, families):
            seen[line, change] += 1
            if seen[line, change] > 1:
                change = f"{change} ({seen[line, change]})"
            yield Mutant(module, tree, slot, ast.copy_location(other, node), number, line, change)


def places(
    owner: ast.AST, number: int = 1, *, raised: bool = False
) -> Iterator[tuple[Slot, ast.AST, int]]:
    """Every node that may be mutated, in the order of the source, with its line. ``raised``: the
    owner is what is raised."""
    for field, value in ast.iter_fields(owner):
        many = isinstance(value, list)
        for index, node in enumerate(value if many else [value]):
            if not isinstance(node, ast.AST) or is_left_alone(field, node, raised):
                continue
            line = getattr(node, "lineno", number)
            yield Slot(owner, field, index if many else None), node, line
            yield from places(node, line, raised=field == "exc")


def is_left_alone(field: str, node: ast.AST, raised: bool) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring, or the dots of a body without code
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
        case ast.AnnAssign(value=None) | ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            return True
        case ast.Assign(targets=[ast.Name("__slots__" | "__all__")]):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name("TypeVar"))):
            return True
        case ast.JoinedStr() | ast.Constant(value=str()) if raised:
            return True
    if field == "decorator_list":
        return not isinstance(node, ast.Call)
    return field in UNMUTATED_FIELDS
