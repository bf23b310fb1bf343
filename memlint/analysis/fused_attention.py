"""Fused attention: where a program has it already, and how a call of it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from memlint.analysis.attention import Attention, written_equation
from memlint.analysis.chains import short
from memlint.analysis.uses import FUNCTIONS, Uses, dotted
from memlint.late_pattern import late_pattern
from memlint.source.model import Source

FUSED = late_pattern(
    r"scaled_dot_product|memory_efficient|use_flash|flash_?attn|flash_?attention|flashattn|xformers|"
    r"\bxops\b|sdpa|fused_attn|flex_attention|ATTENTION_FUNCTIONS|ATTENTION_CLASSES|"
    r"attn_implementation",
    re.IGNORECASE,
)
# What a slow twin of a fused kernel is called.
_TWIN = late_pattern(
    r"eager|fallback|reference|(^|_)ref(_|$)|(^|_)slow(_|$)|(^|_)math(_|$)|^test_|"
    r"window|swin|slot|channel|xca|(^|_)local(_|$)",
    re.IGNORECASE,
)
# A table of biases for each pair of places of a grid, which is small then.
_TABLE = late_pattern(r"bias\w*\[[^\n]*(idxs?|ind(ex|ices))\b")
# Sizes of what a sequence is cut into before it attends to itself.
_PIECES = late_pattern(r"\b(window_size|win_size|window_partition|chunk_size|bucket_size)\b")
_CLASS = late_pattern(r"^[ \t]*class (\w+)", re.MULTILINE)
_FUNCTIONAL = late_pattern(r"^\s*import torch\.nn\.functional as (\w+)", re.MULTILINE)
_FUNCTIONAL_FROM = late_pattern(
    r"^\s*from torch\.nn import (?:.*\b)?functional as (\w+)", re.MULTILINE
)
_TORCH = late_pattern(r"^\s*import torch\b(?!\s*\.)", re.MULTILINE)


def is_meant(found: Attention, uses: Uses, source: Source) -> bool:
    """Whether the code around an attention knows a fused kernel, is the slow twin of one, or
    attends within small grids."""
    around = [
        above
        for made in (found.softmax, found.output)
        for above in uses.ancestors(made.node)
        if isinstance(above, (*FUNCTIONS, ast.ClassDef))
    ]
    if any(_TWIN.search(getattr(one, "name", "")) for one in around):
        return True
    texts = [source.segment(one) for one in around if isinstance(one, (ast.stmt, ast.expr))]
    if any(_TABLE.search(text) or _PIECES.search(text) for text in texts):
        return True
    texts.extend(source.segment(one) for one in _relatives(around, uses))
    return any(FUSED.search(text) for text in texts)


def may_be_naive(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function may hold a part of attention that is not meant to be written out, as
    far as its name and the text around it tell: a sieve."""
    del source
    names = [getattr(function, "name", ""), *_CLASS.findall(around)[:1]]
    return not any(map(_TWIN.search, names)) and FUSED.search(around) is None


def _relatives(around: Sequence[ast.AST], uses: Uses) -> Iterator[ast.stmt]:
    """Classes derived from those around a node, and functions that call one around it."""
    classes = {one.name for one in around if isinstance(one, ast.ClassDef)}
    functions = {
        one.name for one in around if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
    } - {"forward", "__call__"}
    if classes:
        for other in uses.classes():
            if any(dotted(base).rpartition(".")[2] in classes for base in other.bases):
                yield other
    for name in sorted(functions):
        for call in uses.calls_of(name):
            scope = uses.scope_of(call)
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield scope


# A call of the fused function


def replacement_text(found: Attention, source: Source) -> str | None:
    """The call that computes ``found``; ``None`` where it would need a mask, dropout or other
    axes, or where its operands are no plain names."""
    names = [_plain(node, source) for node in _operands(found)]
    prefix = _functional(source)
    if len(names) != 3 or None in names or not prefix or not _in_order(found):
        return None
    scale = _scale(found, source)
    if scale is None:
        return None
    arguments = ", ".join([*(name for name in names if name), scale])
    return f"{prefix}.scaled_dot_product_attention({arguments})"


def _operands(found: Attention) -> list[ast.expr]:
    """The expressions of queries, keys (untransposed) and values."""
    scores, output = _factors(found.scores.node), _factors(found.output.node)
    if len(scores) != 2 or len(output) != 2:
        return []
    key = scores[1]
    if short(found.scores.name) != "einsum":
        match key:
            case ast.Call(func=ast.Attribute(value=inner, attr="transpose" | "swapaxes")):
                key = inner
            case ast.Attribute(value=inner, attr="mT"):
                key = inner
            case _:
                return []
    return [scores[0], key, output[1]]


def _factors(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=func, args=args) if not any(isinstance(a, ast.Starred) for a in args):
            name = dotted(func).rpartition(".")[2]
            if name == "einsum":
                return list(args[1:])
            if isinstance(func, ast.Attribute) and len(args) == 1:
                return [func.value, args[0]]
            return list(args)
    return []


def _in_order(found: Attention) -> bool:
    """Whether the axes of an ``einsum`` are those that the fused function takes."""
    for made, turned in ((found.scores, True), (found.output, False)):
        equation = written_equation(made)
        if short(made.name) == "einsum" and (
            equation is None or not _is_product_of_last(equation.operands, equation.result, turned)
        ):
            return False
    return True


def _is_product_of_last(operands: tuple[str, ...], result: str, turned: bool) -> bool:
    left, right = operands
    if min(len(left), len(right), len(result)) < 2:
        return False
    batch = result[:-2]
    if not (left[:-2] == right[:-2] == batch):
        return False
    i, d = left[-2], left[-1]
    j, e = (right[-2], right[-1]) if turned else (right[-1], right[-2])
    return d == e and result[-2:] == i + j


def _plain(node: ast.expr, source: Source) -> str | None:
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node):
        return source.segment(node)
    return None


def _scale(found: Attention, source: Source) -> str | None:
    """The argument that stands for the steps between scores and softmax."""
    steps = [node for node in found.nodes if node not in (found.softmax.node, found.scores.node)]
    if not steps:
        return "scale=1.0"
    if len(steps) != 1:
        return None
    match steps[0]:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            factor = right if left is found.scores.node else left
            return f"scale={source.segment(factor)}"
        case ast.BinOp(op=ast.Div(), right=right):
            text = source.segment(right)
            return f"scale=1.0 / {text}" if _is_tight(right) else f"scale=1.0 / ({text})"
    return None


def _is_tight(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))


def _functional(source: Source) -> str:
    for pattern in (_FUNCTIONAL, _FUNCTIONAL_FROM):
        if (alias := pattern.search(source.text)) is not None:
            return alias.group(1)
    return "torch.nn.functional" if _TORCH.search(source.text) else ""
