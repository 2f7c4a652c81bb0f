"""The mutation operators: what else a piece of code could have said.

An operator takes a node of the syntax tree and gives other nodes for its place, each with the words
that name the change. A replacement is a copy; the node itself stays as it is.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Other: TypeAlias = tuple[ast.AST, str]
"""What stands in the place, and how the change reads."""

Families: TypeAlias = Sequence[str]
"""Names that could be taken for one another, one family a string of words: ``min max`` for names,
``ev.Text ev.Refusal`` for attributes of a name, ``.lstrip .rstrip`` for those of anything."""

COMPARISONS: Mapping[type[ast.cmpop], Sequence[type[ast.cmpop]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Mapping[type[ast.operator], Sequence[type[ast.operator]]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add, ast.BitOr),
    ast.Mult: (ast.Add,),
    ast.Div: (ast.Mult,),
    ast.BitOr: (ast.BitAnd, ast.Sub),
    ast.BitAnd: (ast.BitOr,),
}


def changed(node: Any, **fields: Any) -> Any:
    """A copy of the node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def written(node: ast.AST) -> str:
    """The node as code on one line, its middle left out if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:50]} … {text[-25:]}"


def becomes(node: ast.AST, other: ast.AST) -> Other:
    return other, f"{written(node)} → {written(other)}"


def constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


# --- expressions --------------------------------------------------------------------------------


def comparison(node: ast.Compare) -> Iterator[Other]:
    for at, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield becomes(node, changed(node, ops=replaced(node.ops, at, other())))


def both_or_either(node: ast.BoolOp) -> Iterator[Other]:
    """The other word, and each operand left out."""
    operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield becomes(node, changed(node, op=operator))
    for at, operand in enumerate(node.values):
        rest = without(node.values, at)
        other = rest[0] if len(rest) == 1 else changed(node, values=rest)
        yield other, f"{written(node)} → without `{written(operand)}`"


def negation(node: ast.UnaryOp) -> Iterator[Other]:
    if isinstance(node.op, ast.Not):
        yield becomes(node, node.operand)


def arithmetic(node: ast.BinOp) -> Iterator[Other]:
    for other in ARITHMETIC.get(type(node.op), ()):
        yield becomes(node, changed(node, op=other()))


def literal(node: ast.Constant) -> Iterator[Other]:
    value = node.value
    if isinstance(value, bool):
        yield becomes(node, constant(not value))
    elif isinstance(value, int):
        yield becomes(node, constant(value + 1))
        yield becomes(node, constant(value - 1))
    elif isinstance(value, str):
        yield becomes(node, constant(value + "Z"))
    elif isinstance(value, bytes):
        yield becomes(node, constant(value + b"Z"))


def one_or_the_other(node: ast.IfExp) -> Iterator[Other]:
    yield node.body, f"if {written(node.test)} → if True"
    yield node.orelse, f"if {written(node.test)} → if False"


def fewer(node: ast.List | ast.Tuple | ast.Set) -> Iterator[Other]:
    """A display with one element less."""
    if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        for at, element in enumerate(node.elts):
            less = changed(node, elts=without(node.elts, at))
            yield less, f"without element `{written(element)}`"


def swapped(node: ast.List | ast.Tuple) -> Iterator[Other]:
    """A display with two neighbours the other way round."""
    for at, (one, two) in enumerate(itertools.pairwise(node.elts)):
        if isinstance(node.ctx, ast.Load) and ast.dump(one) != ast.dump(two):
            other = [*node.elts[:at], two, one, *node.elts[at + 2 :]]
            yield changed(node, elts=other), f"`{written(one)}` and `{written(two)}` swapped"


def mapping(node: ast.Dict) -> Iterator[Other]:
    """An entry less; an entry with each other value that the display has."""
    values = {ast.dump(value): value for value in node.values}
    for at, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        named = written(key) if key else f"**{written(value)}"
        less = changed(node, keys=without(node.keys, at), values=without(node.values, at))
        yield less, f"without entry `{named}`"
        for text, other in values.items():
            if key and text != ast.dump(value):
                redirected = changed(node, values=replaced(node.values, at, other))
                yield redirected, f"{named}: {written(value)} → {written(other)}"


def call(node: ast.Call) -> Iterator[Other]:
    """The last argument left out."""
    name = "keywords" if node.keywords else "args"
    arguments = getattr(node, name)
    # `strict=False` says what `zip` does anyway.
    if arguments and ast.unparse(arguments[-1]) != "strict=False":
        other = changed(node, **{name: arguments[:-1]})
        yield other, f"{written(node.func)}(…) without argument `{written(arguments[-1])}`"


def bounds(node: ast.Slice) -> Iterator[Other]:
    if node.lower is not None:
        yield becomes(node, changed(node, lower=None))
    if node.upper is not None:
        yield becomes(node, changed(node, upper=None))


def filters(node: ast.comprehension) -> Iterator[Other]:
    for at, test in enumerate(node.ifs):
        yield changed(node, ifs=without(node.ifs, at)), f"if {written(test)} → if True"
        never = replaced(node.ifs, at, constant(False))
        yield changed(node, ifs=never), f"if {written(test)} → if False"


# --- statements ---------------------------------------------------------------------------------


def branch(node: ast.If) -> Iterator[Other]:
    for value in (True, False):
        yield changed(node, test=constant(value)), f"if {written(node.test)} → if {value}"


def loop(node: ast.For | ast.While) -> Iterator[Other]:
    """Not run at all. A loop that never ends is left to the other operators."""
    if isinstance(node, ast.While):
        yield changed(node, test=constant(False)), f"while {written(node.test)} → while False"
    else:
        nothing = ast.Tuple([], ast.Load())
        yield changed(node, iter=nothing), f"for … in {written(node.iter)} → for … in ()"


def added_to(node: ast.AugAssign) -> Iterator[Other]:
    for other in ARITHMETIC.get(type(node.op), ()):
        yield becomes(node, changed(node, op=other()))
    yield from deleted(node)


def deleted(node: ast.stmt) -> Iterator[Other]:
    yield ast.Pass(), f"{written(node)} → pass"


def returned(node: ast.Return) -> Iterator[Other]:
    if node.value is None:
        yield from deleted(node)
    elif not (isinstance(node.value, ast.Constant) and node.value.value in (None, False)):
        yield changed(node, value=None), f"{written(node)} → return None"


OPERATORS: Mapping[type[ast.AST], Callable[[Any], Iterator[Other]]] = {
    ast.Compare: comparison,
    ast.BoolOp: both_or_either,
    ast.UnaryOp: negation,
    ast.BinOp: arithmetic,
    ast.Constant: literal,
    ast.IfExp: one_or_the_other,
    ast.List: fewer,
    ast.Tuple: fewer,
    ast.Set: fewer,
    ast.Dict: mapping,
    ast.Call: call,
    ast.Slice: bounds,
    ast.comprehension: filters,
    ast.If: branch,
    ast.For: loop,
    ast.While: loop,
    ast.AugAssign: added_to,
    ast.Assign: deleted,
    ast.AnnAssign: deleted,
    ast.Expr: deleted,
    ast.Raise: deleted,
    ast.Break: deleted,
    ast.Continue: deleted,
    ast.Delete: deleted,
    ast.Return: returned,
}


def others(owner: ast.AST, node: ast.AST, families: Families = ()) -> Iterator[Other]:
    """All that could stand in the place of the node, which is a part of ``owner``."""
    yield from OPERATORS.get(type(node), lambda _: iter(()))(node)
    if isinstance(node, ast.List | ast.Tuple) and not is_membership(owner):
        yield from swapped(node)
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from relatives(node, families)


def is_membership(node: ast.AST) -> bool:
    """``in``, to which the order of what is on its right does not matter."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn)


def relatives(node: ast.Name | ast.Attribute, families: Families) -> Iterator[Other]:
    name = ast.unparse(node)
    method = f".{node.attr}" if isinstance(node, ast.Attribute) else name
    for family in map(str.split, families):
        for other in family:
            if name in family and other != name:
                yield becomes(node, ast.parse(other, mode="eval").body)
            elif name != method and method in family and other != method:
                yield becomes(node, changed(node, attr=other.removeprefix(".")))


def replaced(nodes: Sequence[Any], at: int, other: Any) -> list[Any]:
    return [*nodes[:at], other, *nodes[at + 1 :]]


def without(nodes: Sequence[Any], at: int) -> list[Any]:
    return [*nodes[:at], *nodes[at + 1 :]]
