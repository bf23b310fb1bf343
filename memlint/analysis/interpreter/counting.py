"""How often loops run, and the counters of ``while`` loops."""

from __future__ import annotations

import ast

from memlint.analysis.linear import add, linear
from memlint.analysis.values import (
    Const,
    Value,
)
from memlint.analysis.walking import children, walk
from memlint.layout import length_of


def trips(start: Value, stop: Value, step: Value) -> int | None:
    """How many numbers ``range(start, stop, step)`` has, where that is known."""
    first, last = linear(start), linear(stop)
    if first is None or last is None or not isinstance(step, Const):
        return None
    by = step.value
    distance = add(last, first, -1)
    if type(by) is not int or by == 0 or distance.terms:
        return None
    return length_of(range(0, distance.offset, by))


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def runs_once(body: list[ast.stmt]) -> bool:
    """Whether a loop with this body never comes to a second iteration, since the first ends it."""
    return _leaves(body) and not any(map(_continues, body))


def _leaves(body: list[ast.stmt]) -> bool:
    match body:
        case [*_, ast.Break() | ast.Return() | ast.Raise()]:
            return True
        case [*_, ast.If(body=then, orelse=other)]:
            return _leaves(then) and _leaves(other)
        case [*_, ast.With(body=inner) | ast.AsyncWith(body=inner)]:
            return _leaves(inner)
    return False


def _continues(node: ast.AST) -> bool:
    """Whether a ``continue`` in ``node`` starts the next iteration of the loop around it."""
    if isinstance(node, ast.Continue):
        return True
    if isinstance(node, _SCOPES):
        return False
    below = node.orelse if isinstance(node, _LOOPS) else children(node)
    return any(map(_continues, below))


def counter_of(node: ast.While) -> tuple[str, Value, ast.expr] | None:
    """The index of ``while i < n: ...; i += c``: its name, step and bound."""
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if not isinstance(test.left, ast.Name) or not isinstance(
        test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.NotEq)
    ):
        return None
    name = test.left.id
    steps = [s for statement in node.body if (s := _increment(statement, name)) is not None]
    stores = sum(
        1
        for statement in node.body
        for n in walk(statement)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    )
    if len(steps) == 1 and stores == 1:
        return name, Const(steps[0]), test.comparators[0]
    return None


def _increment(statement: ast.stmt, name: str) -> int | None:
    match statement:
        case ast.AugAssign(
            target=ast.Name(id=target),
            op=ast.Add() | ast.Sub() as op,
            value=ast.Constant(value=int() as step),
        ) if target == name:
            return step if isinstance(op, ast.Add) else -step
        case ast.Assign(
            targets=[ast.Name(id=target)],
            value=ast.BinOp(
                left=ast.Name(id=source), op=ast.Add(), right=ast.Constant(value=int() as step)
            ),
        ) if target == name == source:
            return step
    return None
