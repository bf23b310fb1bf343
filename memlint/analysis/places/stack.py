"""Which functions may run a stack of blocks, one after the other: a sieve."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis.definitions_text import definitions, names_behind
from memlint.analysis.last_name import last_name
from memlint.analysis.walking import nodes_of, walk

# A sequence of as many blocks as a list has.
_SPREAD = re.compile(r"\bSequential\(\s*[^=]{0,200}?\*")


def may_run_stack(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function calls what a loop of it goes over, or what may be a ``Sequential``."""
    del around
    if "channels_last" in source:
        return False  # such transposes are the dense view of the images
    nodes = nodes_of(function)
    return any(
        (isinstance(one, (ast.For, ast.AsyncFor)) and _calls_target(one))
        or (isinstance(one, ast.Call) and _may_be_sequence(one, source))
        for one in nodes
    )


def _calls_target(loop: ast.For | ast.AsyncFor) -> bool:
    targets = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in targets
        for statement in loop.body
        for one in walk(statement)
    )


def _may_be_sequence(call: ast.Call, source: str) -> bool:
    if isinstance(call.func, ast.Name) or not call.args:
        return False
    sequences = _sequences(source)
    return bool(sequences) and not names_behind(last_name(call.func), source).isdisjoint(sequences)


@lru_cache(maxsize=4)
def _sequences(source: str) -> frozenset[str]:
    """``Sequential``, and the functions and classes that hold one; empty where no sequence is made
    of a list."""
    if _SPREAD.search(source) is None:
        return frozenset()
    found = {"Sequential"}
    for one in definitions(source).functions:
        if "Sequential(" in one.text:
            found |= {one.name, one.owner}
    return frozenset(found - {"", "__init__"})
