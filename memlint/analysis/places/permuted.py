"""Which functions may undo the format of images that they permute from NHWC: a sieve.

What is permuted is followed through one function. Where it goes on to others, they may undo the
format only if the program makes row-major copies by name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.changes import called_name
from memlint.analysis.uses import Use, Uses
from memlint.analysis.walking import as_module, nodes_of
from memlint.late_pattern import late_pattern
from memlint.rule import Word, occurs

PERMUTED: frozenset[Word] = frozenset(
    {
        late_pattern(r"permute\(\s*\(?\s*(0|-4), *(3|-1), *(1|-3), *(2|-2)\b"),
        late_pattern(r"permute\(\s*\(?\s*0, *4, *1, *2, *3\b"),
        late_pattern(r"move(dim|axis)\(\s*(-1|3|4), *1\b"),
    }
)
_BACK = late_pattern(
    r"permute\(\(?(0|-4), (2|-2), (3|-1), (1|-3)\b|permute\(\(?0, 2, 3, 4, 1\b|"
    r"move(dim|axis)\(1, (-1|3|4)\b"
)
_PERMUTING = frozenset({"permute", "movedim", "moveaxis"})
# What may make a row-major image of its receiver or of an argument.
_LOSING = frozenset(
    {"contiguous", "view", "reshape", "unflatten", "view_as", "reshape_as", "rearrange"}
    | {"cat", "concat", "concatenate", "add", "sub", "mul"}
)
_IN_FORMAT = frozenset({"to", "clone"})
_SHAPING = frozenset({"view", "reshape"})
_NAMED = late_pattern(r"(?<!legacy_)\bcontiguous_format")
_MOVING = late_pattern(r"(?:transpose|permute|movedim|moveaxis|swapaxes|t)\(")
# So far before a copy the axes are moved that it copies.
_NEAR = 120
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LIBRARIES = frozenset({"F", "torch", "nn", "np", "numpy", "einops"})
_TAKEN = frozenset({"argument", "receiver", "operand", "attribute", "item"})
_LEAVES = frozenset(
    {"returned", "yielded", "stored", "contained", "captured", "iterated", "updated", "written"}
)


def may_densify(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function permutes images from NHWC, and they may be made row-major."""
    return any(True for _ in _densified(function, source))


def may_hand_on(function: ast.AST, around: str, source: str) -> bool:
    """Whether that, or the convolution after it, may happen in another function."""
    return any(elsewhere for elsewhere in _densified(function, source))


def _densified(function: ast.AST, source: str) -> Iterator[bool]:
    starts = [one for one in nodes_of(function) if isinstance(one, ast.Call) and _permutes(one)]
    if starts:
        body = as_module(function)
        uses, copied = Uses(body), _is_copied(source)
        for start in starts:
            if (way := _way(start, uses, copied=copied)) is not None:
                yield way


@lru_cache(maxsize=4)
def _is_copied(source: str) -> bool:
    """Whether something is made dense other than right after its axes are moved."""
    if _NAMED.search(source) is not None:
        return True
    at = source.find(".contiguous(")
    while at >= 0:
        if _MOVING.search(source, max(at - _NEAR, 0), at) is None:
            return True
        at = source.find(".contiguous(", at + 1)
    return False


def _permutes(call: ast.Call) -> bool:
    text = _text(call)
    return bool(text) and any(occurs(word, text) for word in PERMUTED)


def _text(call: ast.Call) -> str:
    """A permutation as a method of the array is written, whichever way it is called."""
    name = called_name(call)
    if name not in _PERMUTING:
        return ""
    given = [ast.unparse(one) for one in (*call.args, *(k.value for k in call.keywords))]
    if given and isinstance(call.func, ast.Attribute) and _is_array(call.args[:1]):
        del given[0]
    return f"{name}({', '.join(given)})"


def _is_array(first: list[ast.expr]) -> bool:
    """Whether the first argument of a permutation is what is permuted."""
    return bool(first) and isinstance(
        first[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
    )


def _way(start: ast.Call, uses: Uses, *, copied: bool) -> bool | None:
    """Whether what is permuted leaves the function, if it may be made row-major at all."""
    pending: list[ast.expr] = [start]
    seen: set[ast.expr] = set()
    lost = leaves = False
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        for use in uses.of(node):
            leaves = leaves or _goes_on(use)
            onward = use.node
            if not isinstance(onward, ast.expr) or _goes_back(onward):
                continue
            if _loses(use):
                if goes_elsewhere(onward, uses):
                    continue
                lost = True
            pending.append(onward)
    return leaves if lost or (leaves and copied) else None


def goes_elsewhere(node: ast.expr, uses: Uses) -> bool:
    """Whether an array goes elsewhere than into calls, where its order may be wanted."""
    return any(use.kind not in _TAKEN for use in uses.of(node))


def _loses(use: Use) -> bool:
    if use.kind == "operand":
        return isinstance(use.node, ast.BinOp) and (
            isinstance(use.node.op, _OPERATORS) and use.node.right is use.value
        )
    if use.kind not in ("receiver", "argument"):
        return False
    name = _last(use)
    if name in _IN_FORMAT and isinstance(use.node, ast.Call):
        return any(one.arg == "memory_format" for one in use.node.keywords)
    if name in _SHAPING and use.kind == "receiver" and isinstance(use.node, ast.Call):
        return _may_be_image(use.node.args)
    return name in _LOSING


def _may_be_image(shape: list[ast.expr]) -> bool:
    """Whether an array of this shape may have four or five axes."""
    if len(shape) == 1 and isinstance(shape[0], (ast.Tuple, ast.List)):
        shape = shape[0].elts
    known = len(shape) > 1 and not any(isinstance(one, ast.Starred) for one in shape)
    return not known or len(shape) in (4, 5)


def _goes_on(use: Use) -> bool:
    """Whether another function may get an array: that of a library does nothing to it."""
    if use.kind != "argument":
        return use.kind in _LEAVES
    return use.name.partition(".")[0] not in _LIBRARIES and _last(use) not in _PERMUTING


def _last(use: Use) -> str:
    return use.name.rpartition(".")[2]


def _goes_back(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _BACK.search(_text(node)) is not None
