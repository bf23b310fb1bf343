"""What the body of a Triton kernel says of how it walks through its arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.walking import walk

Kernel = ast.FunctionDef | ast.AsyncFunctionDef

# Calls whose result depends on where an element lies, not on the element alone.
_POSITIONAL = frozenset(
    {
        "argmax", "argmin", "associative_scan", "broadcast_to", "cat", "cumprod", "cumsum", "dot",
        "dot_scaled", "expand_dims", "flip", "gather", "histogram", "interleave", "join", "max",
        "min", "permute", "ravel", "reduce", "reduce_or", "reshape", "softmax", "sort", "split",
        "sum", "swizzle2d", "topk", "trans", "view", "xor_sum", "make_block_ptr",
        "make_tensor_descriptor", "advance", "rand", "randint", "randn", "philox",
    }
)  # fmt: skip
_DESCRIBERS = ("make_block_ptr", "make_tensor_descriptor")
_HINTS = frozenset({"max_contiguous", "multiple_of", "max_constancy"})
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Pass, ast.Return)


class Addresses:
    """Which parameters the addresses that a kernel loads from and stores to are made of."""

    def __init__(self, kernel: Kernel) -> None:
        self._made_of: dict[str, set[str]] = {a.arg: {a.arg} for a in _parameters(kernel)}
        for _ in range(2):  # what a loop carries over is seen the second time
            for statement in walk(kernel):
                self._follow(statement)
        self.loaded: set[str] = set()
        self.stored: set[str] = set()
        self._together: list[set[str]] = []
        for call in _calls(kernel):
            self._note(call)

    def _note(self, call: ast.Call) -> None:
        last = _last_name(call.func)
        atomic = last.startswith("atomic_")
        if not atomic and last not in ("load", "store", *_DESCRIBERS):
            return
        if call.args and (atomic or _is_language(call.func)):
            sources = self._sources(call.args[0])
        elif isinstance(call.func, ast.Attribute):
            sources = self._sources(call.func.value)
        else:
            return
        if last in _DESCRIBERS:
            sources = self._sources(call)
        if last == "load" or atomic:
            self.loaded |= sources
        if last == "store" or atomic:
            self.stored |= sources
        self._together.append(sources)

    def go_with(self, strides: frozenset[str]) -> set[str]:
        """The parameters of addresses that one of these parameters is a part of."""
        found = [sources for sources in self._together if sources & strides]
        return set().union(*found)

    def _follow(self, statement: ast.AST) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                sources = self._sources(value)
                for target in targets:
                    for name in _names(target):
                        self._made_of.setdefault(name, set()).update(sources)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._made_of.setdefault(name, set()).update(self._sources(value))

    def _sources(self, node: ast.expr | ast.keyword) -> set[str]:
        """The parameters in an expression, but for those behind memory that is read."""
        match node:
            case ast.Name(id=name):
                return self._made_of.get(name, set())
            case ast.Call(func=func) if _last_name(func) == "load":
                return set()
            case ast.keyword(value=value):
                return self._sources(value)
        parts = [p for p in ast.iter_child_nodes(node) if isinstance(p, (ast.expr, ast.keyword))]
        return set().union(*(self._sources(part) for part in parts))


def flat_pointers(kernel: Kernel) -> frozenset[str] | None:
    """The pointer parameters of a kernel that treats memory as one flat row of elements.

    Each program instance reads and writes at the same place ``pointer + offsets`` of every
    array, and what it computes there depends on these elements alone; then any order of the
    axes will do, as long as all arrays share it.  ``None`` for every other kernel.
    """
    if not all(isinstance(statement, _SIMPLE) for statement in kernel.body):
        return None
    if any(_last_name(call.func) in _POSITIONAL for call in _calls(kernel)):
        return None
    places = {_place(call) for call in _accesses(kernel)}
    if None in places or not places:
        return None
    offsets = {place[1] for place in places if place is not None}
    if len(offsets) != 1:
        return None
    offset = offsets.pop()
    if not _is_flat_offset(kernel, offset) or not _only_addresses(kernel, offset):
        return None
    return frozenset(place[0] for place in places if place is not None)


def _parameters(kernel: Kernel) -> list[ast.arg]:
    return [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (part for part in walk(node) if isinstance(part, ast.Call))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_language(node: ast.expr) -> bool:
    """Whether a call is ``tl.store(...)``, not a method of a descriptor."""
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("tl", "language", "triton_language", "tlx", "gl")
    )


def _accesses(kernel: Kernel) -> Iterator[ast.Call]:
    for call in _calls(kernel):
        last = _last_name(call.func)
        if last in ("load", "store") or last.startswith("atomic_"):
            yield call


def _place(call: ast.Call) -> tuple[str, str] | None:
    """``pointer + offsets`` as the two names, where an access is of this form."""
    match call.args[0] if call.args else None:
        case ast.BinOp(op=ast.Add(), left=ast.Name(id=pointer), right=ast.Name(id=offset)):
            return (pointer, offset) if _last_name(call.func) in ("load", "store") else None
    return None


def _is_flat_offset(kernel: Kernel, name: str) -> bool:
    """Whether ``name`` is ``program_id * BLOCK + arange``, over one axis of the grid."""
    if sum(_last_name(call.func) == "program_id" for call in _calls(kernel)) != 1:
        return False
    defined: dict[str, list[ast.expr]] = {}
    for statement in kernel.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if not isinstance(target, ast.Name):
                    return False
                defined.setdefault(target.id, []).append(statement.value)
        elif isinstance(statement, ast.AugAssign) and name in _names(statement.target):
            return False
    if len(defined.get(name, ())) != 1:
        return False
    found = _made_of(defined[name][0], defined, 6)
    return found is not None and {"program_id", "arange"} <= found


def _made_of(
    node: ast.expr, defined: dict[str, list[ast.expr]], depth: int
) -> frozenset[str] | None:
    """The functions that a sum of products is made of; ``None`` where it is anything else."""
    if depth == 0:
        return None
    match node:
        case ast.Constant():
            return frozenset()
        case ast.Name(id=name):
            values = defined.get(name, [])
            if not values:
                return frozenset()
            return _made_of(values[0], defined, depth - 1) if len(values) == 1 else None
        case ast.BinOp(op=ast.Add() | ast.Mult(), left=left, right=right):
            parts = [_made_of(side, defined, depth - 1) for side in (left, right)]
            return None if None in parts else frozenset().union(*(p for p in parts if p))
        case ast.Call(func=ast.Attribute(value=inner, attr="to")):
            return _made_of(inner, defined, depth - 1)
        case ast.Call(func=func, args=[inner, *_]) if _last_name(func) in _HINTS:
            return _made_of(inner, defined, depth - 1)
        case ast.Call(func=func) if _last_name(func) in ("program_id", "arange"):
            return frozenset({_last_name(func)})
    return None


def _only_addresses(kernel: Kernel, offset: str) -> bool:
    """Whether an offset is used for addresses and bounds only, and what it is made of for
    nothing else."""
    allowed: set[int] = set()
    for node in walk(kernel):
        if isinstance(node, ast.Compare):
            allowed.update(id(side) for side in (node.left, *node.comparators))
        elif isinstance(node, ast.Call):
            if _last_name(node.func) in ("load", "store") and node.args:
                place = node.args[0]
                if isinstance(place, ast.BinOp):
                    allowed.add(id(place.right))
            elif _last_name(node.func) in _HINTS:
                allowed.update(id(a) for a in node.args)
    return all(
        id(node) in allowed
        for node in walk(kernel)
        if isinstance(node, ast.Name) and node.id == offset and isinstance(node.ctx, ast.Load)
    )
