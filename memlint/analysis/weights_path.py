"""Where the scores and the weights of written-out attention go: into its output only?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.attention import Attention
from memlint.analysis.attention_steps import AFTER, BEFORE, PRODUCTS
from memlint.analysis.uses import FUNCTIONS, Function, Use, Uses, dotted
from memlint.late_pattern import late_pattern

_READ_ONLY = frozenset(
    {"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout", "itemsize"}
)
# Methods and functions that ask for no values of the array.
_ASKING = frozenset(
    {"size", "dim", "numel", "stride", "get_device", "is_contiguous", "type", "new_zeros",
     "new_ones", "new_full", "new_tensor", "new_empty", "zeros_like", "ones_like", "full_like",
     "empty_like", "finfo", "isinstance", "len"}
)  # fmt: skip
# Methods that take their argument for its shape, dtype or device only.
_LIKE = frozenset({"type_as", "expand_as", "view_as", "reshape_as", "to"})
_OPERATORS = {"Add", "Sub", "Mult", "Div"}
_PRODUCT = late_pattern(r"(^|\.)(matmul|bmm|mm|einsum)$")
_SOFTMAX = late_pattern(r"softmax$", re.IGNORECASE)
_DROPOUT = late_pattern(r"drop", re.IGNORECASE)
_LONGEST = 60


class _EscapeError(Exception):
    """The scores or the weights are used by something else."""


def outputs_only(found: Attention, uses: Uses) -> bool:
    """Whether all that takes the scores or the weights leads to one product."""
    walk = _Walk(found, uses)
    try:
        walk.follow(found.scores.node, weights=False, call=None)
        walk.follow(found.softmax.node, weights=True, call=None)
    except _EscapeError:
        return False
    return walk.ends == {found.output.node}


class _Walk:
    """Follows the uses forward; raises where one of them leads elsewhere."""

    def __init__(self, found: Attention, uses: Uses) -> None:
        self._found = found
        self._uses = uses
        self._seen: set[tuple[int, bool]] = set()
        self.ends: set[ast.AST] = set()

    def follow(self, node: ast.AST, *, weights: bool, call: ast.Call | None) -> None:
        """All that takes the value of ``node``; ``call`` is the call of the function it is in,
        where the way came through it."""
        if (id(node), weights) in self._seen:
            return
        self._seen.add((id(node), weights))
        if len(self._seen) > _LONGEST or not isinstance(node, ast.expr):
            raise _EscapeError
        if self._uses.parent(node) is None:
            raise _EscapeError
        for use in self._uses.of(node):
            self._take(use, weights, call)

    def _take(self, use: Use, weights: bool, call: ast.Call | None) -> None:
        if _asks_only(use):
            return
        node = use.node
        if use.kind == "updated" and not weights:
            return
        if use.kind == "returned":
            self._return(use, weights, call)
        elif weights and node is self._found.output.node:
            self.ends.add(node)
        elif _is_product(use):
            raise _EscapeError
        elif _is_softmax(use, self._found):
            if weights:
                raise _EscapeError
            self.follow(node, weights=True, call=call)
        elif self._passes(use, weights):
            self.follow(node, weights=weights, call=call)
        elif not weights and _is_maximum(use) and self._only_shifts(node):
            return
        elif use.kind == "argument" and isinstance(node, ast.Call):
            self._enter(use, node, weights)
        else:
            raise _EscapeError

    def _passes(self, use: Use, weights: bool) -> bool:
        if use.kind == "operand":
            return not weights and use.name in _OPERATORS
        if use.kind not in ("receiver", "argument"):
            return False
        if use.node in self._found.nodes:
            return True
        last = use.name.rpartition(".")[2].rstrip("_")
        if use.kind == "argument" and use.name.startswith("self.") and not _DROPOUT.search(last):
            return False
        return last in (AFTER if weights else BEFORE) or bool(weights and _DROPOUT.search(last))

    def _only_shifts(self, maximum: ast.AST) -> bool:
        """Whether the maximum of the scores is only subtracted from them."""
        pending = [maximum]
        for _ in range(_LONGEST):
            if not pending:
                return True
            node = pending.pop()
            if not isinstance(node, ast.expr) or self._uses.parent(node) is None:
                return False
            for use in self._uses.of(node):
                if use.node in self._found.nodes:
                    continue
                if use.kind not in ("item", "attribute", "receiver"):
                    return False
                if use.kind != "item" and use.name not in ("values", "detach"):
                    return False
                pending.append(use.node)
        return False

    def _return(self, use: Use, weights: bool, call: ast.Call | None) -> None:
        """Out of a helper function: on at its calls."""
        if not isinstance(use.node, (ast.Return, ast.Lambda)) or (
            isinstance(use.node, ast.Return) and isinstance(use.node.value, (ast.Tuple, ast.List))
        ):
            raise _EscapeError
        calls = [call] if call is not None else list(self._calls(self._uses.scope_of(use.value)))
        if not calls:
            raise _EscapeError
        for one in calls:
            self.follow(one, weights=weights, call=None)

    def _enter(self, use: Use, node: ast.Call, weights: bool) -> None:
        """Into a helper function of the program, by the name it is called."""
        function = self._function(node)
        if function is None or (not weights and _has_product(function)):
            raise _EscapeError
        name = _parameter(function, node, use)
        if name is None:
            raise _EscapeError
        for inner in self._uses.of_parameter(function, name):
            self._take(inner, weights, node)

    def _function(self, call: ast.Call) -> Function | None:
        last = dotted(call.func).rpartition(".")[2]
        named = [f for f in self._uses.functions() if getattr(f, "name", "") == last]
        return named[0] if len(named) == 1 else None

    def _calls(self, function: ast.AST) -> Iterator[ast.Call]:
        name = getattr(function, "name", "")
        if not isinstance(function, FUNCTIONS) or not name or name in ("forward", "__call__"):
            return
        yield from self._uses.calls_of(name)


def _has_product(function: Function) -> bool:
    """Whether a function multiplies matrices: what it adds to scores is as large as they are."""
    return any(
        (isinstance(node, ast.Call) and _PRODUCT.search(dotted(node.func)))
        or isinstance(node, ast.MatMult)
        for node in ast.walk(function)
    )


def _asks_only(use: Use) -> bool:
    if use.kind == "attribute":
        return use.name in _READ_ONLY
    if use.kind not in ("receiver", "argument"):
        return False
    last = use.name.rpartition(".")[2]
    if last == "type" and use.kind == "receiver" and isinstance(use.node, ast.Call):
        return not (use.node.args or use.node.keywords)  # or else it is a cast
    if last in _ASKING:
        return True
    return use.kind == "argument" and last in _LIKE and isinstance(use.node, ast.Call)


def _is_maximum(use: Use) -> bool:
    return use.kind in ("receiver", "argument") and use.name.rpartition(".")[2] in ("max", "amax")


def _is_product(use: Use) -> bool:
    if use.kind == "operand":
        return use.name == "MatMult"
    return use.kind in ("receiver", "argument") and (
        use.name in PRODUCTS or bool(_PRODUCT.search(use.name))
    )


def _is_softmax(use: Use, found: Attention) -> bool:
    if use.node is found.softmax.node:
        return True
    return use.kind in ("receiver", "argument") and bool(
        re.search(r"(^|\.)(softmax|Softmax)$", use.name)
    )


def _parameter(function: Function, call: ast.Call, use: Use) -> str | None:
    """The parameter that takes an argument."""
    if use.keyword is not None:
        return use.keyword
    if use.position is None or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return names[use.position] if use.position < len(names) else None
