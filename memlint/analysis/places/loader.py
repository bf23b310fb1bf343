"""Which functions may pin batches, by themselves or by a loader, as their text tells: sieves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import code_of
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

PIN = "pin_memory"
DEVICE = "pin_memory_device"
# What a batch that cannot be pinned comes from, or an argument that has no effect.
UNPINNED = late_pattern(rf"{DEVICE}|collate|batch_size['\"]?\s*[=:]\s*None|\.{PIN}\(\s*[^)\s]")
# What else takes ``pin_memory``.
_FACTORY = late_pattern(
    r"^(?:empty|zeros|ones|full|rand|randn|randint|randperm|tensor|arange|eye|linspace)"
    r"(?:_like|_strided)?$|^new_"
)
_MOVES = frozenset({"to", "cuda"})
_PARTS = frozenset(
    {"view", "unsqueeze", "squeeze", "flatten", "get", "items", "values", "as_tensor", "Variable",
     "detach", "reshape", "pop", "next"}
)  # fmt: skip
_LOOPS = (
    ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.While,
)  # fmt: skip


def may_pin_in_vain(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function asks for pinned batches, or pins for a device that it names."""
    del around, source
    return any(_asks(one) for one in walk(function))


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="pin_memory"), args=args, keywords=keywords):
            return bool(args or keywords)
        case ast.Call(func=func, keywords=keywords):
            return any(
                k.arg == DEVICE or (k.arg == PIN and _may_be_on(k.value)) for k in keywords
            ) and not _FACTORY.match(last_name(func))
        case ast.Constant(value=value):
            return value in (PIN, DEVICE)
    return False


def _may_be_on(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and not node.value)


def may_pin_and_copy(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function pins a batch of a loop and copies it, or is called where there is one."""
    del around
    nodes = walk(function)
    pins = [
        one
        for one in nodes
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == PIN
        and not isinstance(one.func.value, ast.Constant)
    ]
    if not pins or not any(map(_may_be_batch, pins)):
        return False
    name = getattr(function, "name", "")
    called = bool(name) and re.search(rf"(?<!def )\b{name}\b", code_of(source)) is not None
    if not called and not any(isinstance(one, _LOOPS) for one in nodes):
        return False
    return _moves(nodes) or called


def _may_be_batch(pin: ast.Call) -> bool:
    """Whether what is pinned is no attribute of the object, and not made there."""
    node = pin.func.value  # type: ignore[attr-defined]
    while True:
        match node:
            case ast.Subscript(value=value):
                node = value
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _PARTS:
                node = value
            case ast.Call(args=[value, *_]) if last_name(node.func) in _PARTS:
                node = value
            case _:
                return not isinstance(node, ast.Call)


def _moves(nodes: Iterable[ast.AST]) -> bool:
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in _MOVES
        for one in nodes
    )
