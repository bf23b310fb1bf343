"""Whether all that takes an array would take a broadcast view of it as well."""

from __future__ import annotations

import ast
from collections.abc import Container

from memlint.analysis.knowledge.broadcasting import (
    CASTS,
    INTO_ANOTHER,
    JOINS,
    OPERATORS,
    READS_BROADCAST,
    VIEWS,
)
from memlint.analysis.uses import Use, Uses, dotted

_FACTS = frozenset({"shape", "dtype", "device", "ndim", "size", "requires_grad"})
_ASKING = frozenset(
    {"size", "dim", "numel", "shape", "zeros_like", "ones_like", "isinstance", "len"}
)
_LONGEST = 30


def read_only_by_broadcast(
    node: ast.expr, uses: Uses, networks: Container[str]
) -> tuple[ast.AST, ...]:
    """What reads the value of ``node``, if nothing else takes it; empty where anything does.

    ``networks`` are the names of networks, which count as readers.
    """
    readers: list[ast.AST] = []
    seen: set[int] = set()
    pending: list[ast.AST] = [node]
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if len(seen) > _LONGEST or not isinstance(one, ast.expr) or uses.parent(one) is None:
            return ()
        for use in uses.of(one):
            if _asks_only(use):
                continue
            if _reads(use, networks) or _is_only_joined(use, uses):
                readers.append(use.node)
            elif _is_view(use):
                pending.append(use.node)
            else:
                return ()
    return tuple(readers)


def _reads(use: Use, networks: Container[str]) -> bool:
    if use.kind == "operand":
        return use.name in OPERATORS
    if use.keyword == "out" or _is_in_place(use.node):
        return False
    last = use.name.rpartition(".")[2]
    if use.kind == "receiver":
        return last in READS_BROADCAST
    if use.kind != "argument" or not isinstance(use.node, ast.Call):
        return False
    if use.name in networks and not use.keyword:
        return True
    if isinstance(use.node.func, ast.Attribute) and _is_own(use.node.func):
        return False
    return last in READS_BROADCAST or last in INTO_ANOTHER


def _is_only_joined(use: Use, uses: Uses) -> bool:
    """Whether an array is an item of a list that is only joined: ``torch.cat(parts)``."""
    if use.kind != "contained" or not isinstance(use.node, (ast.List, ast.Tuple)):
        return False
    taken = [one for one in uses.of(use.node) if not _asks_only(one)]
    joins = [one for one in taken if one.kind == "argument" and one.position == 0]
    adds = [one for one in taken if one.kind == "receiver" and one.name in ("append", "extend")]
    return (
        bool(joins)
        and len(joins) + len(adds) == len(taken)
        and all(one.name.rpartition(".")[2] in JOINS for one in joins)
    )


def _is_in_place(node: ast.AST) -> bool:
    """``F.relu(x, inplace=True)``."""
    return isinstance(node, ast.Call) and any(
        one.arg == "inplace" and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in node.keywords
    )


def _is_own(func: ast.Attribute) -> bool:
    """A method of the program's own object is not what its name says."""
    return dotted(func).startswith(("self.", "cls.")) and dotted(func).count(".") == 1


def _is_view(use: Use) -> bool:
    if use.kind == "item":
        return True
    if use.kind == "attribute":
        return use.name in ("T", "mT")
    return use.kind == "receiver" and use.name in VIEWS | CASTS


def _asks_only(use: Use) -> bool:
    if use.kind == "attribute":
        return use.name in _FACTS
    return use.kind in ("receiver", "argument") and use.name.rpartition(".")[2] in _ASKING
