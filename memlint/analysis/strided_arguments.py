"""Strided views that are handed to compiled functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Access, LoopNest
from memlint.analysis.knowledge import SliceValue
from memlint.analysis.uses import FUNCTIONS, Uses
from memlint.analysis.values import Linear, Tensor

_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp
)  # fmt: skip


def is_strided_walk(access: Access, nest: LoopNest) -> bool:
    """Whether the innermost loop of a nest steps over memory between the elements of a view."""
    array = access.value
    if not isinstance(array, Tensor) or array.born is None or array.layout.axes is None:
        return False
    axes, memory, symbol = array.layout.axes, array.layout.memory, nest.loops[-1].symbol
    if len(access.index) != len(axes):
        return False
    walked = [
        axis
        for axis, index in zip(axes, access.index, strict=True)
        if isinstance(index, Linear) and abs(index.coefficient(symbol)) == 1
    ]
    if len(walked) != 1 or any(isinstance(index, SliceValue) for index in access.index):
        return False
    axis = walked[0]
    return axis.memory is not None and (
        axis.memory != len(memory) - 1 or axis.step not in (1, None)
    )


def calls_that_hand_over(
    view: ast.AST, nest: LoopNest, uses: Uses
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls, in a loop, of the function of a nest that are given the view."""
    if not isinstance(view, ast.expr) or uses.parent(view) is None:
        return
    for use in uses.of(view):
        if use.kind != "argument" or not isinstance(use.node, ast.Call):
            continue
        if use.name.rpartition(".")[2] == nest.function.rpartition(".")[2] and _in_loop(
            use.node, uses
        ):
            yield use.node, use.value


def _in_loop(node: ast.AST, uses: Uses) -> bool:
    for above in uses.ancestors(node):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, _LOOPS):
            return True
    return False
