"""Which functions may launch a kernel or a collective, by their syntax alone: a sieve."""

from __future__ import annotations

import ast
import re

from memlint.analysis.changes import called_name
from memlint.analysis.walking import nodes_of
from memlint.late_pattern import late_pattern

# What brings kernels and foreign functions into a source: how they are called is open then.
LIBRARIES = (
    "triton", "RawKernel", "RawModule", "ctypes", "dlopen", "cpp_extension", "torch.ops",
)  # fmt: skip
_COLLECTIVE = late_pattern(
    r"(?:all_reduce|all_gather|all_to_all|reduce_scatter|broadcast|reduce|gather|scatter)"
    r"(?:_into_tensor|_tensor|_single|_coalesced)?$"
)
_GRID = late_pattern(r"grid|block|launch", re.IGNORECASE)


def may_launch(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may hand an array to code that sees its pointer: any may, where the
    source has such code, else those that call a collective, or a kernel of another module."""
    if any(word in source for word in LIBRARIES):
        return True
    return any(isinstance(node, ast.Call) and _launches(node) for node in nodes_of(function))


def _launches(call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Subscript):
        return bool(call.args or call.keywords) and _is_grid(func.slice)
    return _COLLECTIVE.match(called_name(call)) is not None


def _is_grid(node: ast.expr) -> bool:
    """``kernel[(n,)](...)``, ``kernel[lambda meta: ...](...)``, ``kernel[grid](...)``"""
    if isinstance(node, ast.Name | ast.Attribute):
        return _GRID.search(ast.unparse(node)) is not None
    return isinstance(node, (ast.Tuple, ast.List, ast.Lambda, ast.Call))
