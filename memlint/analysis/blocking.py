"""Copies of batches to a device: whether the host waits for them, and what could be in the way."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from memlint.analysis import knowledge
from memlint.analysis.events import LoaderBuilt, Loop
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    WITH_CUDA,
    Absent,
    Bound,
    Const,
    Linear,
    Made,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    alternatives,
    leaves,
    made_of,
    plain,
)
from memlint.analysis.walking import walk

# What gives a part of a batch, in the memory that the loader filled.
_PARTS = frozenset(
    {"operator.getitem", ".view", ".unsqueeze", ".squeeze", ".flatten", ".get", ".items",
     ".values", "torch.as_tensor", "torch.autograd.Variable", ".detach", ".reshape", ".pop"}
)  # fmt: skip
_DEPTH = 8


def waits(name: str, args: Args) -> bool:
    """Whether ``x.<name>(args)``, a move, is made without ``non_blocking`` on every path."""
    if args.open:
        return False
    given = args.get("non_blocking")
    if not isinstance(given, Absent):
        return all(one in (Const(False), Absent()) for one in alternatives(given))
    first = {"cuda": 0, "type": 1}.get(name, 1)
    rest = args.positional[first:]
    return all(_is_no_switch(one) for value in rest for one in alternatives(value))


def _is_no_switch(value: Value) -> bool:
    """Whether an argument that may be ``non_blocking`` is none, or is off."""
    if isinstance(value, Const):
        return value.value is not True
    return knowledge.dtype_of(value) is not None or bool(knowledge.device_types(value))


def is_fresh(value: Value) -> bool:
    """Whether ``value`` is (a part of) a batch as its loader gave it."""
    return batch_of(value) is not None


def batch_of(value: Value) -> Value | None:
    """What ``value`` is a part of, in the same memory, where nothing was computed since."""
    for _ in range(_DEPTH):
        if isinstance(value, Bound):
            value = plain(value)
        if isinstance(value, (Sequence, Mapping)):
            return value if all(is_fresh(one) for one in leaves(value)) else None
        found = [made_of(one) for one in alternatives(value)]
        made = next((one for one in found if one is not None), None)
        if made is None or made.name == "builtins.next":
            return value
        if made.name not in _PARTS or not made.inputs or _cuts_columns(made):
            return None
        value = made.inputs[0]
    return None


def _cuts_columns(made: Made) -> bool:
    """Whether ``x[:, a:b]`` leaves gaps, so that it is made dense in pageable memory first."""
    return made.name == "operator.getitem" and any(
        isinstance(key, Sequence) and key.kind == "slice" and set(key.items or ()) != {Const(None)}
        for key in made.inputs[2:]
    )


def is_whole_batch(node: ast.AST, loops: Iterable[Loop]) -> bool:
    """Whether ``node`` moves what a loop yields as it is: a tensor, or any object that can be
    moved, whose method may not know ``non_blocking``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return any(name in _targets(loop) for loop in loops)
    return False


def _targets(loop: Loop) -> Iterable[str]:
    node = loop.node
    match getattr(node, "target", node):
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=[_, ast.Name(id=name)]) if _counts(loop.iterated):
            yield name


def _counts(iterated: ast.expr | None) -> bool:
    match iterated:
        case ast.Call(func=ast.Name(id="enumerate")):
            return True
        case ast.Call(args=[inner, *_]):
            return _counts(inner)
    return False


# Loaders


def needs_pinning(loader: LoaderBuilt) -> bool:
    """Whether a loader gives pageable batches of tensors that go to CUDA."""
    pin = alternatives(loader.argument("pin_memory"))
    if not all(isinstance(p, Absent) or p == Const(False) for p in pin):
        return False
    if loader.open and Const(False) not in pin:
        return False
    moved = any("cuda" in t.devices for t in loader.transfers)
    return moved and not gives_cuda(loader.batch) and not gives_no_tensors(loader.batch)


def is_pinned(loader: LoaderBuilt) -> bool:
    """Whether a loader pins its batches, at least where CUDA is used."""
    return any(
        one == Const(True) or (isinstance(one, Unknown) and one.origin == WITH_CUDA)
        for one in alternatives(loader.argument("pin_memory"))
    )


def gives_cuda(batch: Value) -> bool:
    """Whether batches come from the dataset or the collate function on CUDA."""
    return any(
        isinstance(leaf, (Tensor, Unknown)) and "cuda" in leaf.devices for leaf in leaves(batch)
    )


def gives_tensors(batch: Value) -> bool:
    """Whether batches are known to be tensors."""
    found = list(leaves(batch))
    return bool(found) and all(isinstance(leaf, Tensor) for leaf in found)


def gives_no_tensors(batch: Value) -> bool:
    """No tensors that the loader could pin, or a number a sample: a few bytes."""
    found = list(leaves(batch))
    return bool(found) and all(
        isinstance(leaf, (Const, Linear))
        or (isinstance(leaf, Tensor) and leaf.lib in ("numpy", "cupy"))
        for leaf in found
    )


# What may happen to host memory while it is being copied


def is_written(call: ast.Call, scope: ast.AST) -> bool:
    """Whether ``scope`` may write into what ``call``, a move, copies from, where it keeps it."""
    if not isinstance(call.func, ast.Attribute):
        return True
    source = call.args[0] if call.func.attr == "copy_" and call.args else call.func.value
    name = _root(source)
    if not name:
        return True
    if isinstance(source, ast.Name) and _rebinds(scope, call, name):
        return False
    return any(_writes(node, name) for node in walk(scope))


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _rebinds(scope: ast.AST, call: ast.Call, name: str) -> bool:
    """Whether a statement binds ``name`` to what ``call`` gives, so that nothing else has it."""
    for node in walk(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name and node.value is call:
                return True
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                if any(value is call and _root(one) == name for one, value in pairs):
                    return True
    return False


def _writes(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=method)):
            in_place = method.endswith("_") and not method.endswith("__")
            return in_place and _root(base) == name
        case ast.AugAssign(target=target):
            return _root(target) == name
        case ast.Subscript(ctx=ast.Store(), slice=key):
            named = isinstance(key, ast.Constant) and isinstance(key.value, str)
            return not named and _root(node) == name
    return False
