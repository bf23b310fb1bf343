"""Objects of unseen classes that a program puts on a CUDA device, where they stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called
from memlint.analysis.knowledge import device_types
from memlint.analysis.values import (
    Absent,
    Const,
    Object,
    Site,
    Value,
    alternatives,
    devices_of,
    leaves,
)

PLACING = frozenset({".to", ".cuda", ".prepare"})


def placed_by(move: Called) -> Iterator[Site]:
    """The objects of unseen classes that a statement moves to CUDA: ``model.cuda()``, and those
    that Accelerate moves to its device."""
    if move.name == ".prepare":
        yield from _prepared_by(move)
        return
    if not isinstance(move.statement, ast.Expr) or move.statement.value is not move.node:
        return
    given = move.args.get("device", 0)
    if move.name == ".cuda" or "cuda" in device_types(given) | devices_of(given):
        for one in alternatives(move.receiver) if move.receiver is not None else ():
            if isinstance(one, Object):
                yield one.site


def _prepared_by(call: Called) -> Iterator[Site]:
    if all(_places(one) for one in alternatives(call.receiver or Absent())):
        for given in (*call.args.positional, *call.args.keywords.values()):
            yield from (one.site for one in leaves(given) if isinstance(one, Object))


def _places(one: Value) -> bool:
    """Whether an object is an accelerator that moves what it prepares, to CUDA where there is."""
    return (
        isinstance(one, Object)
        and one.cls == "accelerate.Accelerator"
        and one.fact("cpu") != Const(True)
        and one.fact("device_placement") != Const(False)
    )
