"""Paths: names with attributes, as which code leads to objects.

``self.weight`` is the path ``("self", "weight")``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from memlint.analysis.walking import walk

Path: TypeAlias = tuple[str, ...]

# What gives (a part of) the memory that it is given.
_VIEWS = frozenset(
    {"view", "view_as", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "t",
     "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "expand", "expand_as", "narrow",
     "select", "chunk", "split", "unbind", "unfold", "detach", "numpy", "diagonal", "to", "cuda",
     "cpu", "float", "half", "double", "bfloat16", "type", "type_as", "asarray", "as_tensor",
     "from_numpy", "from_dlpack", "asanyarray", "as_strided", "unflatten", "tensor_split",
     "values", "items", "parameters", "named_parameters", "buffers", "children", "modules",
     "state_dict", "get", "zip", "enumerate", "list", "tuple", "iter", "reversed", "memoryview",
     "require", "atleast_1d", "atleast_2d", "broadcast_to", "frombuffer"}
)  # fmt: skip


def names_in(node: ast.AST) -> set[str]:
    """The names in a piece of code."""
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def related(one: Path, other: Path) -> bool:
    """Whether one path leads through the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def path_of(node: ast.AST) -> Path | None:
    """The path that an expression is, if it is one."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(names))


def bases_of(node: ast.AST) -> Iterator[Path]:
    """The paths of the objects whose memory an expression may give (a part of)."""
    match node:
        case ast.Name() | ast.Attribute():
            path = path_of(node)
            if path is not None:
                yield path
            else:
                yield from bases_of(node.value)  # type: ignore[union-attr]
        case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Await(value=inner):
            yield from bases_of(inner)
        case ast.NamedExpr(value=inner):
            yield from bases_of(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
            for part in parts:
                yield from bases_of(part)
        case ast.IfExp(body=body, orelse=orelse):
            yield from bases_of(body)
            yield from bases_of(orelse)
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if name in _VIEWS:
            yield from bases_of(receiver)
            for argument in node.args:
                yield from bases_of(argument)
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if name.endswith("_"):
            yield from bases_of(receiver)
        case ast.Call(func=ast.Name(id=name)) if name in _VIEWS:
            for argument in node.args:
                yield from bases_of(argument)
