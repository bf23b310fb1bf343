"""Which functions may make a diagonal matrix, or take the diagonal of a product: a sieve."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memlint.analysis.last_name import last_name
from memlint.analysis.walking import kinds_in
from memlint.late_pattern import late_pattern

# A diagonal that is called, handed on, or imported by another name.
DIAGONAL = late_pattern(
    r"\bdiag(?:_embed|flat|onal)?(?:\(|\s*[,)\]\n#;]| as )|\btrace(?:\(|\s*[,)\]\n#;]| as )"
)
_MAKERS = frozenset({"diag", "diag_embed", "diagflat"})
_EXTRACTS = frozenset({"diag", "diagonal", "trace"})
_PRODUCTS = frozenset({"matmul", "mm", "dot", "bmm", "addmm"})
_OFFSETS = frozenset({"offset", "k", "diagonal"})


def may_multiply_diagonal(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may make a diagonal matrix, or take the diagonal of a product of its
    own."""
    del around
    kinds = kinds_in(function)
    other = _other_names(source)
    called = [one for one in kinds[ast.Call] if last_name(one.func) in other]
    if any(other[last_name(one.func)] in _MAKERS for one in called):
        return True
    if _hands_on(kinds, other):
        return True
    extracts = [one for one in called if not _has_offset(one)]
    return bool(extracts) and _has_product(kinds)


def _has_offset(call: ast.Call) -> bool:
    """Whether a call takes another diagonal than the main one; as a method it is given nothing
    then."""
    return len(call.args) > 1 or any(one.arg in _OFFSETS for one in call.keywords)


def _has_product(kinds: Mapping[type[ast.AST], list[Any]]) -> bool:
    if any(isinstance(one.op, ast.MatMult) for one in (*kinds[ast.BinOp], *kinds[ast.AugAssign])):
        return True
    return any(
        isinstance(one.func, ast.Name) or one.func.attr in _PRODUCTS
        for one in kinds[ast.Call]
        if isinstance(one.func, (ast.Name, ast.Attribute))
    )


def _hands_on(kinds: Mapping[type[ast.AST], list[Any]], other: Mapping[str, str]) -> bool:
    """Whether one of these functions is used as a value, and not called at once."""
    called = {one.func for one in kinds[ast.Call]}
    if any(
        one.attr in other
        and one not in called
        and isinstance(one.value, (ast.Name, ast.Attribute))
        and last_name(one.value) != "self"
        for one in kinds[ast.Attribute]
    ):
        return True
    named = [one for one in kinds[ast.Name] if one.id in other and one not in called]
    if not named:
        return False
    bound = {one.id for one in named if isinstance(one.ctx, ast.Store)}
    bound.update(one.arg for one in kinds[ast.arg])
    return any(one.id not in bound for one in named)


@lru_cache(maxsize=4)
def _other_names(source: str) -> Mapping[str, str]:
    """What the names of these functions, and those that they are imported by, stand for."""
    found = {one: one for one in _MAKERS | _EXTRACTS}
    for one in re.finditer(r"\b(diag(?:_embed|flat|onal)?|trace) as (\w+)", source):
        found[one[2]] = one[1]
    return found
