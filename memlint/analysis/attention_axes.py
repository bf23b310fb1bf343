"""The axes of attention: which one the keys are on, and over which ones is summed."""

from __future__ import annotations

import ast
import re

from memlint.analysis.attention_steps import (
    CASTS,
    OF_QUERIES,
    SCALES,
    factors,
    softmax_layer,
)
from memlint.analysis.chains import (
    DEPTH,
    axes_exchanged,
    given,
    integer,
    integers,
    layer_of,
    mades,
    order_of,
    rearrangement,
    short,
    swaps,
)
from memlint.analysis.einsum import equation_of, operands_of
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Sequence,
    Tensor,
    Value,
    alternatives,
)
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_QUERY = late_pattern(r"(^|_)(q|qs|query|queries|theta)(_|$|\d)|^q|query", re.IGNORECASE)
_KEY = late_pattern(r"(^|_)(k|ks|key|keys|phi)(_|$|\d)|^k|key", re.IGNORECASE)


def query_and_key(scores: Made) -> tuple[Value, Value] | None:
    """The operands of a product, if it compares each query with each key."""
    if short(scores.name) == "einsum":
        return _einsum_query_and_key(scores)
    operands = factors(scores)
    if len(operands) != 2:
        return None
    query, key = operands
    if _is_single(query):
        return None
    of_query, of_key = _turns(query), _turns(key)
    # Heads may be moved before the sequence in both.
    heads = min(of_query.unsure, of_key.unsure)
    turned = of_query.total - heads, of_key.total - heads
    if turned == (0, 1):
        return None if _ends_in_space(query) else (query, key)
    if turned == (1, 0):
        return query, key
    if turned == (0, 0) and _named(scores, _QUERY, 0) and _named(scores, _KEY, 1):
        return query, key
    return None


def _einsum_query_and_key(scores: Made) -> tuple[Value, Value] | None:
    equation, operands = equation_of(scores), operands_of(scores)
    if equation is None or len(operands) != 2 or len(equation.operands) != 2:
        return None
    if any(len(set(part)) != len(part) for part in equation.operands):
        return None
    left, right = map(frozenset, equation.operands)
    queries, keys = (left - right) & set(equation.result), (right - left) & set(equation.result)
    if not (queries and keys and equation.contracted() <= left & right and equation.contracted()):
        return None
    if max(map(len, (left, right))) > 2 and not left & right & set(equation.result):
        return None  # one of them is the same for the whole batch: it is learned
    if any(_ends_in_space(value) or _is_single(value) for value in operands[:1]):
        return None
    return operands[0], operands[1]


def over_keys(softmax: Made, scores: Made) -> bool:
    """Whether the softmax runs over the keys of each query."""
    axis = axis_of(softmax)
    if axis is None:
        return False
    equation = equation_of(scores) if short(scores.name) == "einsum" else None
    if equation is not None:
        rank = len(equation.result)
        if not -rank <= axis < rank:
            return False
        left, right = map(frozenset, equation.operands)
        return equation.result[axis] in left ^ right
    return axis == -1 or axis == _rank(scores) - 1


def _rank(scores: Made) -> int:
    """The number of axes of scores; 4 where nothing tells."""
    known = {"bmm": 3, "baddbmm": 3, "mm": 2}.get(short(scores.name))
    if known is not None:
        return known
    query, key = (next(mades(one), None) for one in factors(scores))
    if key is not None and short(key.name) in ("T", "t"):
        return 2
    for made in (key, query):
        if made is not None and short(made.name) == "permute" and (order := order_of(made)):
            return len(order)
    heads = query is not None and axes_exchanged(query)
    if key is not None and not heads and set(axes_exchanged(key) or ()) == {1, 2}:
        return 3
    return 4


def axis_of(softmax: Made) -> int | None:
    """The axis that a softmax runs over."""
    layer = softmax_layer(softmax)
    if layer is not None:
        given_axis = layer.fact("dim")
        return integer(layer.fact("0") if isinstance(given_axis, Absent) else given_axis)
    by_name = softmax.get("dim", 0 if "input" in dict(softmax.keywords) else 1)
    return integer(softmax.get("axis") if isinstance(by_name, Absent) else by_name)


def contracts_keys(output: Made, index: int, softmax: Made, passed: tuple[Made, ...]) -> bool:
    """Whether the product sums over the axis of the softmax of the weights, which it has at
    ``index``, and which came through what is ``passed``."""
    turned = sum(swaps(one) is not False for one in passed) % 2 == 1
    if short(output.name) != "einsum":
        return turned == (index == 1)
    equation, axis = equation_of(output), axis_of(softmax)
    if equation is None or len(equation.operands) != 2 or turned or axis is None:
        return False
    indices, values = equation.operands[index], equation.operands[1 - index]
    if not -len(indices) <= axis < len(indices):
        return False
    return equation.contracted() == {indices[axis]} and indices[axis] in values


@dataclass(frozen=True, slots=True)
class _Turns:
    """How often the last axis was exchanged on the way to an operand; ``unsure`` times with
    what may be another one."""

    total: int
    unsure: int


def _turns(value: Value) -> _Turns:
    one = next(mades(value), None)
    total = unsure = 0
    for _ in range(DEPTH):
        if one is None:
            break
        turned = swaps(one)
        total += turned is not False
        unsure += turned is None
        if not _goes_on(one):
            break
        one = next((m for v in given(one)[:1] for m in mades(v)), None)
    return _Turns(total, unsure)


def _goes_on(made: Made) -> bool:
    return (
        short(made.name) in OF_QUERIES
        or made.name == "einops.rearrange"
        or (
            bool(layer_of(made))
            and layer_of(made).rpartition(".")[2] in ("LayerNorm", "Dropout", "Identity", "RMSNorm")
        )
    )


def _ends_in_space(value: Value) -> bool:
    """Whether the last axis of the queries is flattened space: channels are compared then."""
    for made in mades(value):
        one: Made | None = made
        for _ in range(DEPTH):
            if one is None:
                break
            if one.name == "einops.rearrange":
                sides = rearrangement(one)
                return sides is not None and bool(sides[1]) and sides[1][-1].count(" ") > 0
            if short(one.name) in ("view", "reshape"):
                return _flattens(one)
            if short(one.name) == "flatten":
                return integer(one.get("start_dim", 1)) in (2, -2, 3) and isinstance(
                    one.get("end_dim", 2), (Absent, Const)
                )
            if swaps(one) or not _goes_on(one):
                break
            one = next((m for v in given(one)[:1] for m in mades(v)), None)
    return False


def _flattens(made: Made) -> bool:
    """``x.view(b, c, -1)`` and ``x.view(b, c, h * w)``."""
    sizes = made.inputs[1:]
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        sizes = sizes[0].items or ()
    if len(sizes) != 3:
        return False
    if integer(sizes[-1]) == -1:
        return integers(sizes).count(-1) == 1
    return any(short(m.name) == "multiply" for m in mades(sizes[-1]))


def _is_single(query: Value) -> bool:
    """Whether there is known to be one query only, or one number for each."""
    if _is_pooled(query):
        return True
    for _ in range(DEPTH):
        if any(_has_one_row(one) for one in alternatives(query)):
            return True
        made = next(mades(query), None)
        if made is None:
            return False
        name = short(made.name)
        if name == "unsqueeze":
            return integer(made.get("dim", 1)) in (1, -2)
        if name == "unbind":
            return integer(made.get("dim", 1)) == -1
        if name == "getitem":
            return any(isinstance(k, Const) and k.value is None for k in made.inputs[1:])
        if name not in CASTS | SCALES:
            return False
        query = next(iter(given(made)), Absent())
    return False


def _is_pooled(query: Value) -> bool:
    """Whether the query is made from a mean over the sequence."""
    for _ in range(DEPTH):
        made = next(mades(query), None)
        if made is None or not given(made):
            return False
        if short(made.name) in ("mean", "sum", "amax"):
            return made.get("keepdim") == Const(True) and integer(made.get("dim", 1)) in (1, -2)
        if not (_goes_on(made) or layer_of(made) == "torch.nn.Linear"):
            return False
        query = given(made)[0]
    return False


def _has_one_row(value: Value) -> bool:
    return isinstance(value, Tensor) and bool(
        value.sizes and len(value.sizes) > 1 and value.sizes[-2] == 1
    )


def _named(scores: Made, pattern: re.Pattern[str], side: int) -> bool:
    node = scores.node
    if isinstance(node, ast.BinOp):
        operand: ast.expr = (node.left, node.right)[side]
    elif isinstance(node, ast.Call) and len(node.args) == 2:
        operand = node.args[side]
    else:
        return False
    name = getattr(operand, "id", getattr(operand, "attr", ""))
    return bool(pattern.search(name))
