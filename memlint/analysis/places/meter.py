"""Classes that add what they are given to themselves, as their syntax tells: a sieve."""

from __future__ import annotations

import ast

from memlint.analysis.paths import names_in
from memlint.analysis.retention import GROWING
from memlint.analysis.walking import walk

_GROWING = frozenset(name[1:] for name in GROWING)


def adds_to_itself(text: str) -> bool:
    """Whether a method in a text puts something that rests on its arguments into an attribute of
    its object that was there before, be it a sum or a list."""
    if "class " not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # the definition of a class, cut out in another way than it was meant
    return any(
        _adds(method)
        for one in walk(tree)
        if isinstance(one, ast.ClassDef)
        for method in one.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def _adds(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [one.arg for one in walk(method.args) if isinstance(one, ast.arg)]
    first = [*method.args.posonlyargs, *method.args.args][:1]
    if not first or len(names) < 2:
        return False
    own = first[0].arg
    nodes = walk(method)
    given = _resting_on({name for name in names if name != own}, nodes)
    return any(
        _is_part(target, own) and not given.isdisjoint(names_in(value))
        for node in nodes
        for target, value in _added(node)
    )


def _resting_on(given: set[str], nodes: list[ast.AST]) -> set[str]:
    """The names that may stand for something made of what is given."""
    bindings = [pair for node in nodes for pair in _bound(node)]
    for _ in range(len(bindings)):
        more = {name for name, value in bindings if not given.isdisjoint(names_in(value))}
        if more <= given:
            break
        given = given | more
    return given


def _bound(node: ast.AST) -> list[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case (
            ast.NamedExpr(target=target, value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
        ):
            targets = [target]
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            targets, value = [node.target], node.iter
        case _:
            return []
    return [
        (one.id, value) for target in targets for one in walk(target) if isinstance(one, ast.Name)
    ]


def _added(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What something is put into, and what is."""
    match node:
        case ast.AugAssign(op=ast.Add() | ast.Sub(), target=target, value=value):
            return [(target, value)]
        case ast.Assign(targets=targets, value=value):
            return [
                (target, value)
                for target in targets
                if isinstance(target, ast.Subscript)
                or (isinstance(target, ast.Attribute) and ast.unparse(target) in ast.unparse(value))
            ]
        case ast.Call(func=ast.Attribute(value=held, attr=name), args=[*_, last]):
            return [(held, last)] if name in _GROWING else []
    return []


def _is_part(node: ast.expr, own: str) -> bool:
    """Whether an expression is an attribute of an object, or something in one."""
    inner: ast.expr = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return inner is not node and isinstance(inner, ast.Name) and inner.id == own
