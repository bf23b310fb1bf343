"""Which functions may copy an array needlessly, as far as their text tells: a sieve.

Most copies are returned, reshaped or written to, which needs no knowledge of the arrays to be seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.broadcast_uses import read_only_by_broadcast
from memlint.analysis.knowledge.broadcasting import CASTS
from memlint.analysis.uses import Uses
from memlint.analysis.walking import as_module, nodes_of
from memlint.late_pattern import late_pattern

COPYING = frozenset({"repeat", "tile", "repeat_interleave"})
_VIEWS = frozenset({"expand", "expand_as", "broadcast_to"})
_MODULES = frozenset({"np", "numpy", "torch", "th", "cp"})
_ALIASED = late_pattern(r"(?:repeat|tile|interleave)(?: as | *(?:#.*)?$)", re.MULTILINE)
_ALIASES = late_pattern(
    r"\b(?:repeat|tile|repeat_interleave) as (\w+)|"
    r"\b(\w+) *= *(?:\w+\.)+(?:repeat|tile|repeat_interleave) *(?:#.*)?$",
    re.MULTILINE,
)


def may_be_needless(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function copies an array that is read only."""
    return any(_needless(function, around, source))


def repeats_parameters(function: ast.AST, around: str, source: str) -> bool:
    """Whether what is copied needlessly is as the caller gave it."""
    parameters = {one.arg for one in nodes_of(function) if isinstance(one, ast.arg)}
    return any(_plain_name(call) in parameters for call in _needless(function, around, source))


def _needless(function: ast.AST, around: str, source: str) -> Iterator[ast.Call]:
    names = COPYING | _aliases(source)
    calls = [one for one in nodes_of(function) if isinstance(one, ast.Call) and _copies(one, names)]
    if not calls:
        return
    uses = Uses(as_module(function))
    readers = _Readers(around, source)
    yield from (call for call in calls if read_only_by_broadcast(call, uses, readers))


class _Readers:
    """Names that may be those of networks, and of tables of embeddings."""

    def __init__(self, around: str, source: str) -> None:
        self._around = around
        self._source = source

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not name:
            return False
        if "." in name:
            return (
                re.search(rf"\b{re.escape(name)}\s*=\s*[\w.]*Embedding\b", self._around) is not None
            )
        placed = rf"\b{name}\s*=[^=\n][^\n]*\.(?:to|cuda|eval|train|requires_grad_)\("
        return re.search(placed, self._source) is not None


@lru_cache(maxsize=4)
def _aliases(source: str) -> frozenset[str]:
    """Other names of functions that repeat."""
    if _ALIASED.search(source) is None:
        return frozenset()
    return frozenset(first or second for first, second in _ALIASES.findall(source))


def _copies(call: ast.Call, names: frozenset[str]) -> bool:
    """Whether a call repeats an array along some axis, or copies a view that does."""
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name in ("copy", "clone"):
        return isinstance(func, ast.Attribute) and _is_view(func.value)
    if name not in names:
        return False
    counts = len(call.args) + len(call.keywords)
    if isinstance(func, ast.Name) or _is_of_module(func):
        counts -= 1
        if name == "repeat":
            return counts > 1  # without an axis the array is flattened
    if counts == 1 and name != "repeat_interleave":
        return not isinstance(call.args[-1] if call.args else None, (ast.Constant, ast.BinOp))
    return counts > 1


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (
        getattr(node.func, "attr", getattr(node.func, "id", "")) in _VIEWS
    )


def _is_of_module(func: ast.expr) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id in _MODULES
    )


def _array(call: ast.Call) -> ast.expr:
    """What a call copies."""
    if isinstance(call.func, ast.Attribute) and not _is_of_module(call.func):
        return call.func.value
    return call.args[0] if call.args else call


def _plain_name(call: ast.Call) -> str:
    """The name of the array that a call copies as it is, up to casts."""
    node = _array(call)
    while isinstance(node, ast.Call) and getattr(node.func, "attr", "") in CASTS:
        node = node.func.value  # type: ignore[attr-defined]
    return node.id if isinstance(node, ast.Name) else ""
