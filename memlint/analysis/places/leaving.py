"""Whether a function may hand on what a call in it makes, by its names alone: a sieve before what
:mod:`memlint.analysis.carried` tells step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from memlint.analysis.accumulation import Function
from memlint.analysis.carried import PRESERVING_FUNCTIONS, PRESERVING_METHODS, Seed
from memlint.analysis.walking import kinds_in, walk

_Binding: TypeAlias = tuple[ast.expr, ast.expr]
_SHARING: tuple[type[ast.AST], ...] = (ast.Global, ast.Nonlocal)


def may_leave(seed: Seed, function: Function) -> bool:
    """Whether a caller may get to know what a call makes of something that comes from outside of
    the function: as its value, in an object, or in a variable of the module."""
    kinds = kinds_in(function)
    shared = {name for kind in _SHARING for one in kinds[kind] for name in one.names}
    outside = shared | {one.arg for one in walk(function.args) if isinstance(one, ast.arg)}
    bindings = [*_bindings(function)]
    operands = [one for one in seed.operands if isinstance(one, ast.expr)]
    if not _come_from_outside(operands, outside, bindings):
        return False
    own = {target.id for target, _ in bindings if isinstance(target, ast.Name)} - outside
    carriers, found = set[str](), {""}
    while found:
        found = set()
        for target, value in bindings:
            head, is_name = _head(target), isinstance(target, ast.Name)
            if head and _passes(value, seed.node, carriers):
                if head in shared or (head not in own and not is_name):
                    return True
                found.add(head)
        found -= carriers
        carriers |= found
    return any(
        one.value is not None and _passes(one.value, seed.node, carriers)
        for one in kinds[ast.Return]
    )


def _bindings(function: Function) -> Iterator[_Binding]:
    """What is assigned, and the value; of tuples item by item."""
    kinds = kinds_in(function)
    for one in kinds[ast.Assign]:
        for target in one.targets:
            yield from _pairs(target, one.value)
    for kind in (ast.AnnAssign, ast.NamedExpr):
        for one in kinds[kind]:
            if one.value is not None:
                yield from _pairs(one.target, one.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[_Binding]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, part)
    else:
        for one in target.elts:
            yield from _pairs(one, value)


def _come_from_outside(
    operands: list[ast.expr], outside: set[str], bindings: list[_Binding]
) -> bool:
    """Whether one of some values may be what the function was given, or what it does not set."""
    bound = {_head(target) for target, _ in bindings}
    waiting, seen = list(operands), set[str]()
    while waiting:
        for node in _passed_by(waiting.pop()):
            head = _head(node)
            if head in outside or (head and head not in bound):
                return True
            if head not in seen:
                seen.add(head)
                waiting += [value for target, value in bindings if _head(target) == head]
    return False


def _passes(value: ast.expr, node: ast.AST, carriers: set[str]) -> bool:
    return any(one is node or _head(one) in carriers for one in _passed_by(value))


def _passed_by(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may be, or be a part of, without anything being computed."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.IfExp(body=body, orelse=orelse):
                waiting += [body, orelse]
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                waiting += parts
            case ast.NamedExpr(value=one) | ast.Await(value=one) | ast.Starred(value=one):
                waiting.append(one)
            case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=args):
                if name in PRESERVING_METHODS:
                    waiting.append(receiver)
                if name in PRESERVING_FUNCTIONS:
                    waiting += args[:1]
            case ast.Call(func=ast.Name(id=name), args=args) if name in PRESERVING_FUNCTIONS:
                waiting += args[:1]
            case ast.Subscript(value=one) | ast.Attribute(value=one):
                waiting.append(one)


def _head(node: ast.expr) -> str:
    """The variable that a chain of attributes and items begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
