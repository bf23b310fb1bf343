"""Arithmetic of integers and constants, as far as reading can do it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from memlint.analysis.linear import add, linear, of_linear, scale
from memlint.analysis.values import (
    LARGEST,
    LONGEST_TEXT,
    Const,
    Value,
)
from memlint.late_pattern import late_pattern


def has_short_text(value: object) -> bool:
    """Whether a number or text is small enough to be computed with."""
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return isinstance(value, int) and abs(value) <= LARGEST


# A device string is known by its head: "cuda:%d" % rank.
_NUMBERED = late_pattern(r"((?:cuda|cpu|mps|xpu|hip):)(?:%[ds]|\{\w*\})?")


def numbered_device(text: str) -> Const | None:
    """The device that a text names to which a number is added, or that one is formatted with."""
    found = _NUMBERED.fullmatch(text)
    return Const(f"{found[1]}0") if found is not None else None


def falsy(value: Value) -> bool:
    """Whether a value is a constant that counts as false."""
    return isinstance(value, Const) and not value.value


def number_of(op: type[ast.operator], left: Value, right: Value) -> Value | None:
    """Integer arithmetic on linear forms, where the result is one; floats are folded."""
    a, b = linear(left), linear(right)
    if a is None or b is None:
        return folded(op, left, right)
    if op is ast.Add:
        return of_linear(add(a, b))
    if op is ast.Sub:
        return of_linear(add(a, b, -1))
    if op is ast.Mult:
        if not a.terms:
            return of_linear(scale(b, a.offset))
        if not b.terms:
            return of_linear(scale(a, b.offset))
    if not a.terms and not b.terms:
        return folded(op, Const(a.offset), Const(b.offset))
    return None


_FOLDS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_BIG = 10**12


def folded(op: type[ast.operator], left: Value, right: Value) -> Value | None:
    """Arithmetic of two constant numbers, where its result is known and not too large."""
    if not isinstance(left, Const) or not isinstance(right, Const):
        return None
    a, b = left.value, right.value
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return None
    if abs(a) > _BIG or abs(b) > _BIG:
        return None
    if op in (ast.LShift, ast.Pow) and type(a) is int and type(b) is int and 0 <= b <= 64:
        return Const(a << b if op is ast.LShift else a**b)
    fold = _FOLDS.get(op)
    if fold is None or (b == 0 and op in (ast.Div, ast.FloorDiv, ast.Mod)):
        return None
    return Const(fold(a, b))
