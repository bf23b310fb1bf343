"""Which functions may make a DataLoader, and one with workers, by their syntax alone: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.walking import children, walk
from memlint.late_pattern import late_pattern

_OTHER_NAMES = late_pattern(
    r"\bDataLoader as (\w+)|"
    r"\b(\w+)\s*=\s*[\w.]*DataLoader\b(?!\s*\()|\bclass (\w+)\([^)]*DataLoader"
)
_QUESTIONS = frozenset({"isinstance", "issubclass"})
_ANNOTATIONS = {ast.arg: "annotation", ast.AnnAssign: "annotation"}
# Before the number of workers stand so many other parameters.
_BEFORE_WORKERS = 5


def may_make_loader(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function calls a loader's class, or hands it on."""
    names = _names_of_loaders(source)
    return any(True for _ in _mentions(function, names)) or _extends(around, names)


def may_start_workers(function: ast.AST, around: str, source: str) -> bool:
    """Whether such a loader may have workers."""
    names = _names_of_loaders(source)
    if any(call is None or _may_have_workers(call) for call in _mentions(function, names)):
        return True
    return _extends(around, names) and any(
        isinstance(one, ast.Call) and last_name(one.func) == "__init__" for one in walk(function)
    )


@lru_cache(maxsize=4)
def _names_of_loaders(source: str) -> frozenset[str]:
    return frozenset(name for found in _OTHER_NAMES.findall(source) for name in found if name)


def _extends(around: str, names: frozenset[str]) -> bool:
    """Whether the class around a function is a loader's."""
    head = re.match(r"(?:@[^\n]*\n)*\s*class \w+\(([^)]*)\)", around)
    return head is not None and any(
        _is_loader(base.strip().rpartition(".")[2], names) for base in head[1].split(",")
    )


def _is_loader(name: str, names: frozenset[str]) -> bool:
    return name.endswith("DataLoader") or name in names


def _mentions(node: ast.AST, names: frozenset[str]) -> Iterator[ast.Call | None]:
    """The calls of loaders' classes; ``None`` for such a class as a value."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        if isinstance(node.ctx, ast.Load) and _is_loader(last_name(node), names):
            yield None
            return
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _QUESTIONS:
            return
        if isinstance(node.func, (ast.Name, ast.Attribute)) and _is_loader(
            last_name(node.func), names
        ):
            yield node
            for given in (*node.args, *(one.value for one in node.keywords)):
                yield from _mentions(given, names)
            return
    for below in _evaluated(node):
        yield from _mentions(below, names)


def _evaluated(node: ast.AST) -> list[ast.AST]:
    """What is below a node, without annotations."""
    left_out = getattr(node, _ANNOTATIONS.get(type(node), "returns"), None)
    return [one for one in children(node) if one is not left_out]


def _may_have_workers(call: ast.Call) -> bool:
    for keyword in call.keywords:
        if keyword.arg is None:
            return True
        if keyword.arg == "num_workers":
            return not isinstance(keyword.value, ast.Constant) or bool(keyword.value.value)
    return len(call.args) > _BEFORE_WORKERS or any(
        isinstance(one, ast.Starred) for one in call.args
    )
