"""What statements give to names, and calls to parameters, by their syntax: a help of sieves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.walking import walk

_ADDING = frozenset({"append", "appendleft", "extend", "insert", "add", "put", "push"})
# Nodes that :func:`settings` tells of.
SETTING: tuple[type[ast.AST], ...] = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor,
    ast.comprehension, ast.withitem, ast.Call,
)  # fmt: skip


def arguments_for(call: ast.Call, parameter: str, spec: tuple[str, ...]) -> Iterator[ast.expr]:
    """What a call may give to a parameter, by its place in ``spec``, or without one anything."""
    for keyword in call.keywords:
        if keyword.arg in (parameter, None):
            yield keyword.value
    if parameter not in spec or any(isinstance(one, ast.Starred) for one in call.args):
        yield from call.args
        return
    place = spec.index(parameter)
    bound = spec[:1] in (("self",), ("cls",))
    yield from call.args[max(place - bound, 0) : place + 1]


def given_in(
    tree: ast.AST, name: str, *, as_attribute: bool, is_field: bool
) -> Iterator[ast.expr | None]:
    """What a statement gives to a name; ``None`` for what makes objects with this field."""
    for node in walk(tree):
        for target, value in settings(node):
            if any(
                one == name and (attribute is as_attribute or (as_attribute and is_field))
                for one, attribute in names_in(target)
            ):
                yield value
        if as_attribute and isinstance(node, ast.keyword) and node.arg == name:
            yield node.value
        if (
            as_attribute
            and is_field
            and isinstance(node, ast.AnnAssign)
            and getattr(node.target, "id", "") == name
        ):
            yield None


def settings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What gets a value by a node, and the value: it is assigned, looped over, or added."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case (ast.Tuple(elts=parts), ast.Tuple(elts=values)) if len(parts) == len(
                        values
                    ):
                        yield from zip(parts, values, strict=True)
                    case _:
                        yield target, value
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.AsyncFor(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
            | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
        ):
            yield target, value
        case ast.Call(func=ast.Attribute(value=target, attr=name), args=args):
            if name in _ADDING:
                yield from ((target, one) for one in args)


def names_in(target: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that a target sets or adds to, and whether they are those of attributes."""
    waiting = [target]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name):
                yield name, False
            case ast.Attribute(attr=name, value=value):
                yield name, True
                waiting.append(value)
            case ast.Subscript(value=value) | ast.Starred(value=value) | ast.Call(func=value):
                waiting.append(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                waiting += parts
