"""Which functions may make a dense copy needlessly, as far as their syntax tells: a sieve.

Either what is copied was made dense in the function itself, or nothing takes the copy but one
operation that needs none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from memlint.analysis.copies import KEEPERS, MAKERS
from memlint.analysis.elementwise_copies import ELEMENTWISE
from memlint.analysis.imported_names import full_name, imported
from memlint.analysis.marks import NONE, OUTER, Marks, MarkWalk
from memlint.analysis.uses import Uses
from memlint.analysis.walking import as_module, nodes_of

_EXCHANGING = frozenset(
    {"transpose", "permute", "t", "T", "mT", "H", "mH", "movedim", "moveaxis", "swapaxes",
     "swapdims", "adjoint"}
)  # fmt: skip
_NO_TENSORS = frozenset({"shape", "ndim", "dtype", "device", "size", "len", "range", "dim"})
# Views between a copy and what takes it.
_VIEWS = frozenset({"t", "transpose", "permute", "T", "mT"})
_ARITHMETIC = frozenset({"Add", "Sub", "Mult", "Div", "Pow", "USub", "MatMult"})
_ELEMENTWISE = frozenset(name.rpartition(".")[2] for name in ELEMENTWISE)
_DENSE = frozenset(name.rpartition(".")[2] for name in MAKERS | KEEPERS)
_LIBRARIES = frozenset({"torch", "th", "F", "nn", "np", "numpy", "einops"})
# Functions that programs import by their names.
_KNOWN = _ELEMENTWISE | {"rearrange", "einsum", "reshape", "list", "tuple", "zip", "reversed"}
# What may copy, and is dense then.
_RESHAPING = frozenset({"reshape", "flatten", "reshape_as", "rearrange"})
_FORMATS = frozenset({"channels_last", "channels_last_3d", "preserve_format"})
_TAKING = (
    _ELEMENTWISE
    | {"matmul", "mm", "bmm", "einsum", "addmm", "baddbmm", "linear"}
    | {"scaled_dot_product_attention", "reshape", "flatten", "reshape_as"}
)
_FOLLOWED = 4
_MADE = "made"
_TURNED = "turned"


def may_be_redundant(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function copies what it made dense itself, or for an operation that needs no
    copy."""
    del around
    copies = [one for one in nodes_of(function) if _is_copy(one)]
    if not copies:
        return False
    made = _Made(source)
    module = as_module(function)
    made.walk(module)
    if made.copied_again:
        return True
    uses = Uses(module)
    return any(_taken_without_need(one, uses, source, _FOLLOWED) for one in copies)  # type: ignore[arg-type]


def _is_copy(node: ast.AST) -> bool:
    """Whether a call copies to row-major."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "contiguous"):
        return False
    asked = [*node.args, *(one.value for one in node.keywords)]
    return not any(getattr(one, "attr", "") in _FORMATS for one in asked)


def _taken_without_need(node: ast.expr, uses: Uses, source: str, followed: int) -> bool:
    """Whether nothing but one operation that needs no copy takes the value of an expression."""
    taken = uses.of(node)
    if len(taken) != 1 or followed == 0:
        return False
    use = taken[0]
    if use.kind == "operand":
        return use.name in _ARITHMETIC
    root, dot, rest = use.name.partition(".")
    name = (imported(source).get(root, root) + dot + rest).rpartition(".")[2]
    if use.kind == "attribute" and name in _VIEWS:
        return isinstance(use.node, ast.expr) and _taken_without_need(
            use.node, uses, source, followed - 1
        )
    if use.kind not in ("receiver", "argument"):
        return False
    if name in _VIEWS:
        return isinstance(use.node, ast.expr) and _taken_without_need(
            use.node, uses, source, followed - 1
        )
    return name in _TAKING


class _Made:
    """Where a function copies what it may have made dense before."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.copied_again = False

    def walk(self, module: ast.Module) -> None:
        """Look through a piece of code."""
        MarkWalk(self._step).run(module)

    def _step(self, node: ast.expr, of: Callable[[ast.expr], Marks]) -> Marks | None:
        match node:
            case ast.Call():
                return self._called(node, of)
            case ast.Attribute(value=value, attr=name) if name in _EXCHANGING:
                return _turned(of(value))
            case ast.Attribute(attr=name) if name in _NO_TENSORS:
                return NONE
            case ast.BinOp(op=ast.MatMult()):
                return frozenset({_MADE})
            case ast.Subscript(value=value, slice=index):
                return of(value) if _is_plain(index) else of(value) | {_MADE}
            case ast.Constant() | ast.JoinedStr():
                return NONE
        return None

    def _called(self, node: ast.Call, of: Callable[[ast.expr], Marks]) -> Marks | None:
        func = node.func
        full = full_name(func, self._source)
        name = full.rpartition(".")[2]
        given = NONE.union(*map(of, [*node.args, *(one.value for one in node.keywords)]))
        receiver = of(func.value) if isinstance(func, ast.Attribute) else of(func)
        if _is_copy(node):
            self.copied_again = self.copied_again or _MADE in receiver
            return frozenset({_MADE})
        if name in _EXCHANGING:
            return _turned(receiver | given)
        if name in _NO_TENSORS:
            return NONE
        if f"def {name}(" in self._source:
            return frozenset({OUTER + name})  # what is made elsewhere is not told
        return self._made_by(func, full, receiver, given)

    def _made_by(self, func: ast.expr, full: str, receiver: Marks, given: Marks) -> Marks:
        base, name = full.partition(".")[0], full.rpartition(".")[2]
        if name in _DENSE or base == "self":
            return frozenset({_MADE})  # of itself, or it is a layer
        if base in _LIBRARIES and name not in _ELEMENTWISE:
            return given | {_MADE}
        if name in _RESHAPING and _TURNED in receiver | given:
            return receiver | given | {_MADE}
        if isinstance(func, ast.Name) and name not in _KNOWN:
            return NONE  # nobody knows what that gives
        return receiver | given


def _turned(marks: Marks) -> Marks:
    """The marks of what has exchanged axes: exchanged twice, it may be dense again."""
    return frozenset({_TURNED, _MADE} if _TURNED in marks else {_TURNED})


def _is_plain(index: ast.expr) -> bool:
    """Whether an index is written in numbers and slices alone, and picks nothing."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(one, (ast.Slice, ast.Constant, ast.UnaryOp)) for one in parts)
